"""Waiting that never keeps the hub running: a simulated deployment must not hold ``hub.join()``."""

from __future__ import annotations

import gevent
from gevent.event import Event


def pause(seconds: float) -> None:
    """Sleep."""
    if seconds > 0:
        gevent.sleep(seconds, ref=False)


def wait_for(event: Event, seconds: float | None = None) -> bool:
    """Wait until `event` is set, up to `seconds`; True if it is."""
    if seconds is None:
        event.wait()
    elif seconds > 0:
        too_late = gevent.Timeout(seconds, ref=False)
        try:
            with too_late:
                event.wait()
        except gevent.Timeout as timeout:
            if timeout is not too_late:
                raise
    return bool(event.is_set())


class Change:
    """Something that changes again and again, for those who wait for the next time."""

    def __init__(self) -> None:
        self._event = Event()

    def announce(self) -> None:
        """Wake everybody who waits."""
        event, self._event = self._event, Event()
        event.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the next announcement, up to `seconds`; True if there was one."""
        return wait_for(self._event, seconds)
