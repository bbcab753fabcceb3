"""Delivery: listeners and log handlers receive events in their order of occurrence, one event at a time.

A critical section *notes* events in the order of the specification, without a greenlet switch. Afterwards the greenlet
*delivers* its events when all earlier events have been delivered. So all listeners see the same order. Each event
reaches them in the greenlet and the context of its occurrence. A greenlet that causes events faster than listeners
handle them has to wait.

A greenlet may leave events, because it is killed or because a listener does not return. A substitute greenlet of the
driver delivers such events later, at the same position in the order and with the same context variables.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

from bson.errors import BSONError
from gevent import Greenlet, getcurrent
from gevent.event import Event
from greenlet import greenlet

from gmongo._safe_log import safely
from gmongo.errors import PyMongoError

_log = logging.getLogger("gmongo.events")

# Maximum seconds that a greenlet waits for its turn without any delivery. The limit is necessary: a listener may wait
# for another greenlet that uses the same client, or may never return.
_PATIENCE = 1.0
# If the application blocks the event loop, the first wait ends late. The other greenlets then get one more loop pass.
_GRACE = 0.05
# Maximum number of events for substitutes. The driver drops further events.
_MOST_LEFT = 10_000


class _Turn:
    """Undelivered events of one greenlet. `size` is their number."""

    __slots__ = ("awake", "context", "delivering", "size", "substitute")

    def __init__(self) -> None:
        self.size = 0
        self.delivering = False  # True while the greenlet runs a listener
        self.awake: Event | None = None  # set at the turn of the greenlet
        self.context: Context | None = None  # the context of the greenlet, after it left the events to a substitute
        self.substitute: Greenlet[..., None] | None = None


class Delivery:
    """Undelivered events of one client. ``with delivery:`` postpones all deliveries until the end of the block."""

    __slots__ = ("_block_depth", "_delivered", "_dropped", "_events", "_left", "_stuck", "_turns")

    def __init__(self) -> None:
        self._events: deque[tuple[_Turn, Callable[..., None], tuple[object, ...]]] = deque()
        self._turns: dict[greenlet, _Turn] = {}
        self._block_depth = 0
        self._left = 0  # number of events that greenlets have left to substitutes
        self._dropped = 0
        self._delivered = 0
        self._stuck = False  # True if the listener of the first event does not return

    def note(self, publish: Callable[..., None], *arguments: object) -> bool:
        """Schedule ``publish(*arguments)``, without a greenlet switch. The caller must call :meth:`deliver` later.

        :returns: False if the driver dropped the event, because listeners are too slow.
        """
        if self._left >= _MOST_LEFT:
            self._dropped += 1
            return False
        current = getcurrent()
        turn = self._turns.get(current)
        if turn is None:
            turn = self._turns[current] = _Turn()
        turn.size += 1
        self._events.append((turn, publish, arguments))
        return True

    def __enter__(self) -> None:
        self._block_depth += 1

    def __exit__(self, *_outcome: object) -> None:
        self._block_depth -= 1

    @property
    def pending(self) -> bool:
        """True if any event is undelivered."""
        return bool(self._events)

    def deliver_after(self, error: BaseException | None) -> None:
        """Deliver the events of this greenlet at the end of an operation. `error` is None after a success.

        After a driver error, the delivery may wait for its turn. Any other exception may come from a kill or a timeout
        of the application, and the delivery must not delay it.
        """
        self.deliver(wait=error is None or isinstance(error, (PyMongoError, BSONError)))

    def deliver(self, wait: bool = True) -> None:
        """Deliver the events of this greenlet.

        Inside a listener that uses the client, the delivery is postponed: the events that the listener causes follow
        the event that it handles.

        :param wait: True to wait for the turn; False in cleanup, which must not wait.
        :raises BaseException: an exception thrown into the greenlet. The remaining events are delivered nevertheless.
        """
        current = getcurrent()
        turn = self._turns.get(current)
        if turn is None or turn.delivering or self._block_depth:
            return
        try:
            while turn.size:
                if self._events[0][0] is turn:
                    self._publish_first(turn)
                elif not (wait and self._wait_for(turn)):
                    break
        finally:
            # An interruption, a listener that does not return, or `wait=False` may leave events. They keep their
            # positions and block the events of other greenlets, so a substitute has to deliver them.
            self._turns.pop(current, None)
            if turn.size:
                self._leave(turn)

    def _publish_first(self, turn: _Turn) -> None:
        _turn, publish, arguments = self._events[0]
        turn.delivering = True
        # The event stays first while its listeners run, which may switch: no other greenlet gets its turn.
        try:
            publish(*arguments)
        finally:
            turn.delivering = False
            if turn.size:  # in a child that a listener forked, the size is 0
                self._advance(turn)

    def _advance(self, turn: _Turn) -> None:
        """Remove the first event after its delivery."""
        self._events.popleft()
        turn.size -= 1
        self._delivered += 1
        self._stuck = False
        if self._events and self._events[0][0] is not turn:
            self._wake(self._events[0][0])

    def _wake(self, turn: _Turn) -> None:
        """Resume the greenlet whose turn has come, without a greenlet switch."""
        if turn.context is not None:
            turn.substitute = Greenlet(turn.context.run, self._take_over, turn)
            turn.substitute.link(lambda greenlet: self._replace(greenlet, turn))
            turn.substitute.start()
        elif turn.awake is not None:
            turn.awake.set()

    def _wait_for(self, turn: _Turn) -> bool:
        """Wait for the turn. Return False if deliveries make no progress."""
        while turn.size and not self._stuck:
            delivered = self._delivered
            turn.awake = Event()
            if turn.awake.wait(_PATIENCE) or turn.awake.wait(_GRACE):
                return True
            if turn.size and delivered == self._delivered:
                self._stuck = True
                safely(_log.warning, "a listener has not returned for %g s: operations continue without it", _PATIENCE)
        return False

    # Delivery by substitutes

    def _leave(self, turn: _Turn) -> None:
        """Leave events to a substitute, which starts at their turn. Does not switch greenlets."""
        turn.context = copy_context()
        self._left += turn.size
        if self._events[0][0] is turn:
            self._wake(turn)

    def _take_over(self, turn: _Turn) -> None:
        turn.context = None
        self._left -= turn.size
        self._turns[getcurrent()] = turn
        self._report_dropped()
        self.deliver()

    def _replace(self, ended: Greenlet[..., None], turn: _Turn) -> None:
        """Start another substitute if the ended substitute was killed before it began."""
        if turn.substitute is ended and turn.context is not None and turn.size:
            self._wake(turn)

    def _report_dropped(self) -> None:
        if self._dropped and self._left < _MOST_LEFT:
            dropped, self._dropped = self._dropped, 0
            safely(_log.warning, "%d events were not delivered, because listeners did not return in time", dropped)

    def reset_after_fork(self) -> None:
        """Discard the events of the parent in a forked child. No I/O, no greenlet switch."""
        for turn in self._turns.values():
            turn.size = 0
        for turn, _publish, _arguments in self._events:
            turn.size = 0
        self._events.clear()
        self._turns.clear()
        self._block_depth = self._left = self._dropped = 0
        self._stuck = False
