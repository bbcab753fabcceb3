"""The clock that the driver reads.

Whatever measures or limits time calls ``_clock.monotonic()``. The name is looked up in this module at each call, so
that a test can put another clock there, as :class:`gmongo.testing.VirtualTime` does.
"""

from __future__ import annotations

from time import monotonic

__all__ = ["monotonic"]
