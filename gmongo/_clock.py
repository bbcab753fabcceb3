"""Clock of the driver. Callers read the functions from this module at each call, so that tests can replace them."""

from __future__ import annotations

from time import monotonic, time

__all__ = ["monotonic", "time"]
