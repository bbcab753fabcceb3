"""Delivery: events reach listeners and log handlers in the order in which they happened, one at a time.

A critical section *notes* what happens, in the specification's order, and does not switch. After it, the greenlet
*delivers* what it has noted, and waits for its turn: what others noted before comes first. So all listeners see the
same order, whatever they do; each event reaches them in the greenlet and the context in which it happened; and a
greenlet that causes events faster than listeners take them is held back.

What a greenlet does not deliver itself, because it is killed or because a listener does not return, a greenlet of the
driver's delivers later, in the same place of the order and with the same context variables.
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

# For how long a greenlet waits for its turn while no event is delivered, in seconds. The wait must have an end: a
# listener may wait for another greenlet that uses the same client, or never return.
_PATIENCE = 1.0
# An application that holds the loop lets the first wait end late. Then the others have another pass of the loop.
_GRACE = 0.05
# The most events that are kept for greenlets that have gone on. Further ones are not delivered.
_MOST_LEFT = 10_000


class _Turn:
    """The events that one greenlet has noted and that are not delivered yet; `size` is how many they are."""

    __slots__ = ("awake", "context", "delivering", "size", "substitute")

    def __init__(self) -> None:
        self.size = 0
        self.delivering = False  # whether the greenlet is in a listener just now
        self.awake: Event | None = None  # set when its turn has come
        self.context: Context | None = None  # of the greenlet, once it has left the events to a substitute
        self.substitute: Greenlet[..., None] | None = None


class Delivery:
    """The events of one client that are not delivered yet. ``with delivery:`` keeps everything until its end."""

    __slots__ = ("_delivered", "_dropped", "_events", "_held", "_left", "_stuck", "_turns")

    def __init__(self) -> None:
        self._events: deque[tuple[_Turn, Callable[..., None], tuple[object, ...]]] = deque()
        self._turns: dict[greenlet, _Turn] = {}
        self._held = 0
        self._left = 0  # events whose greenlets have gone on
        self._dropped = 0
        self._delivered = 0
        self._stuck = False  # whether the listener that has the first event does not return

    def note(self, publish: Callable[..., None], *what: object) -> bool:
        """Have ``publish(*what)`` called when its turn comes. Does not switch; :meth:`deliver` must follow.

        :returns: False if it will not be delivered, because listeners are too far behind.
        """
        if self._left >= _MOST_LEFT:
            self._dropped += 1
            return False
        me = getcurrent()
        turn = self._turns.get(me)
        if turn is None:
            turn = self._turns[me] = _Turn()
        turn.size += 1
        self._events.append((turn, publish, what))
        return True

    def __enter__(self) -> None:
        self._held += 1

    def __exit__(self, *_outcome: object) -> None:
        self._held -= 1

    @property
    def pending(self) -> bool:
        """Whether there is anything to deliver."""
        return bool(self._events)

    def deliver_after(self, error: BaseException | None) -> None:
        """Deliver what this greenlet has noted, at the end of what `error` has ended; None is a good end.

        What the driver raises itself may wait for its turn. Anything else may have been thrown into the greenlet, by a
        kill or a time-out of the application's, whatever its class is: it is not held up.
        """
        self.deliver(wait=error is None or isinstance(error, (PyMongoError, BSONError)))

    def deliver(self, wait: bool = True) -> None:
        """Deliver what this greenlet has noted. In a listener that uses the client, it is left for later: the events
        that the listener causes come after the one that it handles.

        :param wait: for the turn; False in cleanup, which must not wait.
        :raises BaseException: what is thrown into the greenlet during a delivery; the rest is delivered all the same.
        """
        me = getcurrent()
        turn = self._turns.get(me)
        if turn is None or turn.delivering or self._held:
            return
        try:
            while turn.size:
                if self._events[0][0] is turn:
                    self._publish_first(turn)
                elif not (wait and self._wait_for(turn)):
                    break
        finally:
            # An interruption, a listener that does not return, or `wait=False` have left events. They keep their place
            # in the order, and the events of other greenlets wait behind them: a substitute has to deliver them.
            self._turns.pop(me, None)
            if turn.size:
                self._leave(turn)

    def _publish_first(self, turn: _Turn) -> None:
        _turn, publish, what = self._events[0]
        turn.delivering = True
        # The event stays the first while its listeners run, which may switch: so no other greenlet's turn comes.
        try:
            publish(*what)
        finally:
            turn.delivering = False
            if turn.size:  # else this is a forked child, to which the event does not belong
                self._advance(turn)

    def _advance(self, turn: _Turn) -> None:
        """The first event is delivered."""
        self._events.popleft()
        turn.size -= 1
        self._delivered += 1
        self._stuck = False
        if self._events and self._events[0][0] is not turn:
            self._wake(self._events[0][0])

    def _wake(self, turn: _Turn) -> None:
        """Let the greenlet go on whose turn has come. Does not switch."""
        if turn.context is not None:
            turn.substitute = Greenlet(turn.context.run, self._take_over, turn)
            turn.substitute.link(lambda greenlet: self._replace(greenlet, turn))
            turn.substitute.start()
        elif turn.awake is not None:
            turn.awake.set()

    def _wait_for(self, turn: _Turn) -> bool:
        """Wait until its turn has come; False if nothing moves."""
        while turn.size and not self._stuck:
            delivered = self._delivered
            turn.awake = Event()
            if turn.awake.wait(_PATIENCE) or turn.awake.wait(_GRACE):
                return True
            if turn.size and delivered == self._delivered:
                self._stuck = True
                safely(_log.warning, "a listener has not returned for %g s: operations go on without it", _PATIENCE)
        return False

    # What greenlets do not deliver themselves

    def _leave(self, turn: _Turn) -> None:
        """Leave events to a greenlet of the driver's, which begins when their turn has come. Does not switch."""
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
        """A substitute has ended. If it was killed before it began, another one takes its place."""
        if turn.substitute is ended and turn.context is not None and turn.size:
            self._wake(turn)

    def _report_dropped(self) -> None:
        if self._dropped and self._left < _MOST_LEFT:
            dropped, self._dropped = self._dropped, 0
            safely(_log.warning, "%d events were not delivered, because listeners did not return in time", dropped)

    def reset_after_fork(self) -> None:
        """In a forked child: what is there is the parent's to deliver. No I/O, no switch."""
        for turn in self._turns.values():
            turn.size = 0
        for turn, _publish, _what in self._events:
            turn.size = 0
        self._events.clear()
        self._turns.clear()
        self._held = self._left = self._dropped = 0
        self._stuck = False
