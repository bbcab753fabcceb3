"""Clock of the driver. Callers import this module instead of its functions, which tests replace."""

from __future__ import annotations

from time import monotonic, time

__all__ = ["monotonic", "time"]
