"""The clock of a simulated deployment: the virtual clock of the current hub, or the real clock."""

from __future__ import annotations

import datetime
import time

import gevent

from gmongo.testing.virtual_loop import VirtualLoop


def monotonic() -> float:
    """Return the monotonic time in seconds."""
    loop = gevent.get_hub().loop
    return loop.monotonic() if isinstance(loop, VirtualLoop) else time.monotonic()


def seconds() -> float:
    """Return the current time in seconds since 1970."""
    loop = gevent.get_hub().loop
    return loop.seconds() if isinstance(loop, VirtualLoop) else time.time()


def utc_now() -> datetime.datetime:
    """Return the current date and time in UTC."""
    return datetime.datetime.fromtimestamp(seconds(), datetime.timezone.utc)
