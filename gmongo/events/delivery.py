"""Delivery: listeners and log handlers receive events in order of occurrence, one event at a time.

A critical section *records* events in the order of the specification, without a greenlet switch. Then
the greenlet waits until all earlier events have been delivered, and *delivers* its events. A listener
runs in the greenlet that caused the event, with the context variables of this greenlet. If listeners
are slow, the greenlet waits.

If a greenlet is killed, or a listener does not return, undelivered events may remain. A substitute,
which is a greenlet of the driver, delivers these events in the correct order, with the context
variables of the original greenlet.
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

# Maximum wait for the delivery of an earlier event, in seconds. The listener of this event may never
# return, or may wait for a greenlet that uses the client.
_MAX_WAIT = 1.0
# Additional wait in seconds. If the application has blocked the event loop, the wait `_MAX_WAIT`
# may end before other greenlets can deliver their events.
_ADDITIONAL_WAIT = 0.05
_MAX_UNDELIVERED = 10_000  # maximum number of events that wait for substitutes, above which the driver drops events


@dataclass(slots=True, eq=False, repr=False)
class _GreenletEvents:
    """State of the undelivered events of one greenlet."""

    size: int = 0  # the number of these events
    is_delivering: bool = False  # True while the greenlet runs a listener
    turn: Event | None = None  # set when these events are the next events to deliver
    context: Context | None = None  # the greenlet's context variables, if a substitute must deliver the events
    substitute: Greenlet[..., None] | None = None


class Delivery:
    """Undelivered events of a client. In a block ``with delivery:``, :meth:`deliver` does nothing."""

    def __init__(self) -> None:
        self._events: deque[tuple[_GreenletEvents, Callable[..., None], tuple[object, ...]]] = deque()
        self._events_by_greenlet: dict[greenlet, _GreenletEvents] = {}
        self._block_depth = 0
        self._substitute_event_count = 0  # number of events that substitutes must deliver
        self._dropped_count = 0
        self._delivered_count = 0
        self._is_stuck = False  # True if the listener of the first event has not returned in time

    def record(self, publish: Callable[..., None], *arguments: object) -> bool:
        """Record a call ``publish(*arguments)`` without a switch. Return False if the driver dropped the event."""
        if self._substitute_event_count >= _MAX_UNDELIVERED:
            self._dropped_count += 1
            return False
        current = getcurrent()
        pending = self._events_by_greenlet.get(current)
        if pending is None:
            pending = self._events_by_greenlet[current] = _GreenletEvents()
        pending.size += 1
        self._events.append((pending, publish, arguments))
        return True

    def __enter__(self) -> None:
        self._block_depth += 1

    def __exit__(self, *_exception: object) -> None:
        self._block_depth -= 1

    def deliver_after(self, error: BaseException | None) -> None:
        """Deliver the events of this greenlet after an operation, which may have raised `error`.

        An exception from another library may be a kill or a timeout, which delivery must not delay.
        """
        self.deliver(wait=error is None or isinstance(error, (PyMongoError, BSONError)))

    def deliver(self, wait: bool = True) -> None:
        """Deliver the events of this greenlet. If a listener calls this method, the call returns immediately.

        :param wait: True to wait until earlier events are delivered; False in cleanup code.
        :raises BaseException: another greenlet threw this exception. A substitute delivers the
            remaining events.
        """
        current = getcurrent()
        pending = self._events_by_greenlet.get(current)
        if pending is None or pending.is_delivering or self._block_depth:
            return
        try:
            while pending.size:
                if self._events[0][0] is pending:
                    self._publish_first(pending)
                elif not (wait and self._wait_for(pending)):
                    break
        finally:
            # Events may remain after an exception, with `wait=False`, or if a listener does not
            # return. A substitute must deliver these events, because they block later events of other
            # greenlets.
            self._events_by_greenlet.pop(current, None)
            if pending.size:
                self._hand_to_substitute(pending)

    def _publish_first(self, pending: _GreenletEvents) -> None:
        _pending, publish, arguments = self._events[0]
        pending.is_delivering = True
        # Listeners may switch greenlets. The event stays first while its listeners run, so no other
        # event is delivered.
        try:
            publish(*arguments)
        finally:
            pending.is_delivering = False
            if pending.size:  # the size is 0 in a child process that the listener forked
                self._advance(pending)

    def _advance(self, pending: _GreenletEvents) -> None:
        """Remove the first event after its delivery, and wake the greenlet of the next event."""
        self._events.popleft()
        pending.size -= 1
        self._delivered_count += 1
        self._is_stuck = False
        if self._events and self._events[0][0] is not pending:
            self._wake(self._events[0][0])

    def _wake(self, pending: _GreenletEvents) -> None:
        """Wake the greenlet of the first events, or start a substitute. Do not switch greenlets."""
        if pending.context is not None:
            pending.substitute = Greenlet(pending.context.run, self._deliver_as_substitute, pending)
            pending.substitute.link(lambda greenlet: self._replace_substitute(greenlet, pending))
            pending.substitute.start()
        elif pending.turn is not None:
            pending.turn.set()

    def _wait_for(self, pending: _GreenletEvents) -> bool:
        """Wait until these events are first. Return False if no event is delivered for a second."""
        while pending.size and not self._is_stuck:
            delivered_before = self._delivered_count
            pending.turn = Event()
            if pending.turn.wait(_MAX_WAIT) or pending.turn.wait(_ADDITIONAL_WAIT):
                return True
            if pending.size and delivered_before == self._delivered_count:
                self._is_stuck = True
                text = "a listener has not returned for %g s: operations continue without a wait for this listener"
                safely(_log.warning, text, _MAX_WAIT)
        return False

    # Delivery by substitutes

    def _hand_to_substitute(self, pending: _GreenletEvents) -> None:
        """Let a substitute deliver these events after all earlier events. Do not switch greenlets."""
        pending.context = copy_context()
        self._substitute_event_count += pending.size
        if self._events[0][0] is pending:
            self._wake(pending)

    def _deliver_as_substitute(self, pending: _GreenletEvents) -> None:
        pending.context = None
        self._substitute_event_count -= pending.size
        self._events_by_greenlet[getcurrent()] = pending
        self.deliver()
        self._report_dropped()

    def _replace_substitute(self, ended: Greenlet[..., None], pending: _GreenletEvents) -> None:
        """Start a new substitute if the substitute `ended` was killed before its start."""
        if pending.substitute is ended and pending.context is not None and pending.size:
            self._wake(pending)

    def _report_dropped(self) -> None:
        if self._dropped_count and self._substitute_event_count < _MAX_UNDELIVERED:
            count, self._dropped_count = self._dropped_count, 0
            safely(_log.warning, "%d events were not delivered, because listeners did not return in time", count)

    def reset_after_fork(self) -> None:
        """In a forked child, discard the events of the parent process, without I/O and without a greenlet switch."""
        for pending in self._events_by_greenlet.values():
            pending.size = 0
        for pending, _publish, _arguments in self._events:
            pending.size = 0
        self._events.clear()
        self._events_by_greenlet.clear()
        self._block_depth = self._substitute_event_count = self._dropped_count = 0
        self._is_stuck = False
