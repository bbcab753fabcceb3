"""Delivery: listeners and log handlers receive events in their order of occurrence, one event at a time.

A critical section *records* events in the order of the specification, without a greenlet switch. Then the greenlet
waits until all earlier events have been delivered, and *delivers* its events. A listener runs in the greenlet that
caused the event, with the context variables of this greenlet. If listeners are slow, the greenlet waits.

If a greenlet is killed, or a listener does not return, undelivered events may remain. A substitute, which is a greenlet
of the driver, delivers these events in the correct order, with the context variables of the original greenlet.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass

from bson.errors import BSONError
from gevent import Greenlet, getcurrent
from gevent.event import Event
from greenlet import greenlet

from gmongo._safe_log import safely
from gmongo.errors import PyMongoError

_log = logging.getLogger("gmongo.events")

# A greenlet waits for earlier events until the client has delivered no event for this number of seconds. A listener may
# never return, or may wait for a greenlet that uses the client.
_PATIENCE = 1.0
# Second wait in seconds, after `_PATIENCE`. If the application has blocked the event loop, the first wait ends before
# other greenlets can deliver their events.
_GRACE = 0.05
_MAX_UNDELIVERED = 10_000  # maximum number of events that wait for substitutes, above which the driver drops events


@dataclass(slots=True, eq=False, repr=False)
class _Turn:
    """Undelivered events of one greenlet."""

    size: int = 0  # the number of these events
    delivering: bool = False  # True while the greenlet runs a listener
    awake: Event | None = None  # set when these events are the next events to deliver
    context: Context | None = None  # the greenlet's context variables, if a substitute must deliver the events
    substitute: Greenlet[..., None] | None = None


class Delivery:
    """Undelivered events of one client. In a block ``with delivery:``, :meth:`deliver` does nothing."""

    def __init__(self) -> None:
        self._events: deque[tuple[_Turn, Callable[..., None], tuple[object, ...]]] = deque()
        self._events_by_greenlet: dict[greenlet, _Turn] = {}
        self._block_depth = 0
        self._left = 0  # number of events that substitutes must deliver
        self._dropped = 0
        self._delivered = 0
        self._stuck = False  # True if the listener of the first event has not returned in time

    def record(self, publish: Callable[..., None], *arguments: object) -> bool:
        """Record a call ``publish(*arguments)`` without a switch. Return False if the driver dropped the event."""
        if self._left >= _MAX_UNDELIVERED:
            self._dropped += 1
            return False
        current = getcurrent()
        turn = self._events_by_greenlet.get(current)
        if turn is None:
            turn = self._events_by_greenlet[current] = _Turn()
        turn.size += 1
        self._events.append((turn, publish, arguments))
        return True

    def __enter__(self) -> None:
        self._block_depth += 1

    def __exit__(self, *_exception: object) -> None:
        self._block_depth -= 1

    @property
    def pending(self) -> bool:
        """True if there are undelivered events."""
        return bool(self._events)

    def deliver_after(self, error: BaseException | None) -> None:
        """Deliver the events of this greenlet at the end of an operation. `error` is its error, or None.

        An exception that is not an error of the driver may be a kill or a timeout, which the delivery must not delay.
        """
        self.deliver(wait=error is None or isinstance(error, (PyMongoError, BSONError)))

    def deliver(self, wait: bool = True) -> None:
        """Deliver the events of this greenlet. If a listener calls this method, the call returns immediately.

        :param wait: True to wait until earlier events are delivered; False in cleanup code.
        :raises BaseException: another greenlet threw this exception. A substitute delivers the remaining events.
        """
        current = getcurrent()
        turn = self._events_by_greenlet.get(current)
        if turn is None or turn.delivering or self._block_depth:
            return
        try:
            while turn.size:
                if self._events[0][0] is turn:
                    self._publish_first(turn)
                elif not (wait and self._wait_for(turn)):
                    break
        finally:
            # After an exception, with `wait=False`, or if a listener does not return, events may remain. A substitute
            # must deliver these events, because they block later events of other greenlets.
            self._events_by_greenlet.pop(current, None)
            if turn.size:
                self._hand_to_substitute(turn)

    def _publish_first(self, turn: _Turn) -> None:
        _turn, publish, arguments = self._events[0]
        turn.delivering = True
        # Listeners may switch greenlets. The event stays first while its listeners run, so no other event is delivered.
        try:
            publish(*arguments)
        finally:
            turn.delivering = False
            if turn.size:  # the size is 0 if the listener forked, and this process is the child
                self._advance(turn)

    def _advance(self, turn: _Turn) -> None:
        """Remove the first event after its delivery, and wake the greenlet of the next event."""
        self._events.popleft()
        turn.size -= 1
        self._delivered += 1
        self._stuck = False
        if self._events and self._events[0][0] is not turn:
            self._wake(self._events[0][0])

    def _wake(self, turn: _Turn) -> None:
        """Start a substitute or wake the greenlet for the events of `turn`, which are now first, without a switch."""
        if turn.context is not None:
            turn.substitute = Greenlet(turn.context.run, self._take_over, turn)
            turn.substitute.link(lambda greenlet: self._replace(greenlet, turn))
            turn.substitute.start()
        elif turn.awake is not None:
            turn.awake.set()

    def _wait_for(self, turn: _Turn) -> bool:
        """Wait until the events of `turn` are first. Return False if the client delivers no event for a second."""
        while turn.size and not self._stuck:
            delivered = self._delivered
            turn.awake = Event()
            if turn.awake.wait(_PATIENCE) or turn.awake.wait(_GRACE):
                return True
            if turn.size and delivered == self._delivered:
                self._stuck = True
                text = "a listener has not returned for %g s: operations continue without a wait for this listener"
                safely(_log.warning, text, _PATIENCE)
        return False

    # Delivery by substitutes

    def _hand_to_substitute(self, turn: _Turn) -> None:
        """Let a substitute deliver the events of `turn` when these events are first, without a switch."""
        turn.context = copy_context()
        self._left += turn.size
        if self._events[0][0] is turn:
            self._wake(turn)

    def _take_over(self, turn: _Turn) -> None:
        turn.context = None
        self._left -= turn.size
        self._events_by_greenlet[getcurrent()] = turn
        self._report_dropped()
        self.deliver()

    def _replace(self, ended: Greenlet[..., None], turn: _Turn) -> None:
        """Start another substitute if the substitute `ended` was killed before its start."""
        if turn.substitute is ended and turn.context is not None and turn.size:
            self._wake(turn)

    def _report_dropped(self) -> None:
        if self._dropped and self._left < _MAX_UNDELIVERED:
            dropped, self._dropped = self._dropped, 0
            safely(_log.warning, "%d events were not delivered, because listeners did not return in time", dropped)

    def reset_after_fork(self) -> None:
        """In a forked child, discard the events of the parent process, without I/O and without a greenlet switch."""
        for turn in self._events_by_greenlet.values():
            turn.size = 0
        for turn, _publish, _arguments in self._events:
            turn.size = 0
        self._events.clear()
        self._events_by_greenlet.clear()
        self._block_depth = self._left = self._dropped = 0
        self._stuck = False
