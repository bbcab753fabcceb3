"""The clock that the driver reads.

Whatever measures or limits time calls ``_clock.monotonic()``, and what needs the time of day ``_clock.time()``. The
names are looked up in this module at each call, so that a test can put another clock there, as
:class:`gmongo.testing.VirtualTime` does.
"""

from __future__ import annotations

from time import monotonic, time

__all__ = ["monotonic", "time"]
