"""The clock of a simulated deployment: that of the hub whose greenlets serve it, which may be virtual."""

from __future__ import annotations

import datetime
import time

import gevent

from gmongo.testing.virtual_loop import VirtualLoop


def monotonic() -> float:
    """The moment, in seconds, for measuring time."""
    loop = gevent.get_hub().loop
    return loop.monotonic() if isinstance(loop, VirtualLoop) else time.monotonic()


def seconds() -> float:
    """The time of day, in seconds since 1970."""
    loop = gevent.get_hub().loop
    return loop.seconds() if isinstance(loop, VirtualLoop) else time.time()


def utc_now() -> datetime.datetime:
    """The time of day as a date in UTC."""
    return datetime.datetime.fromtimestamp(seconds(), datetime.timezone.utc)
