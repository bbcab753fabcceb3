"""Wait in a greenlet of a simulated deployment. Such a wait does not keep the hub running."""

from __future__ import annotations

import gevent
from gevent.event import Event


def pause(seconds: float) -> None:
    """Sleep for `seconds`."""
    if seconds > 0:
        gevent.sleep(seconds, ref=False)


def wait_for(event: Event, seconds: float | None = None) -> bool:
    """Wait until `event` is set, at most `seconds`. Return True if `event` is set."""
    if seconds is None:
        event.wait()
    elif seconds > 0:
        time_limit = gevent.Timeout(seconds, ref=False)
        try:
            with time_limit:
                event.wait()
        except gevent.Timeout as timeout:
            if timeout is not time_limit:
                raise
    return bool(event.is_set())


class Signal:
    """A signal that can be announced repeatedly. Each announcement wakes all greenlets that wait at this moment."""

    def __init__(self) -> None:
        self._event = Event()

    def announce(self) -> None:
        event, self._event = self._event, Event()
        event.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the next announcement, at most `seconds`. Return True after an announcement."""
        return wait_for(self._event, seconds)
