"""Clock of the driver.

Callers use ``_clock.monotonic()`` for durations and ``_clock.time()`` for the time of day. Callers read the function
from this module at each call. A test can therefore install another clock, as :class:`gmongo.testing.VirtualTime` does.
"""

from __future__ import annotations

from time import monotonic, time

__all__ = ["monotonic", "time"]
