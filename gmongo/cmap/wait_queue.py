"""The WaitQueue of a pool (CMAP-37 to CMAP-42, CMAP-104 to CMAP-113): a fair semaphore with a condition.

It is strictly first come, first served: what is handed over goes to the waiter at the head, and the pool hands nothing
past a queue that is not empty. A waiter that leaves (time-out, kill) is gone at once; if something was handed to it in
the same instant, it gives it back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from gevent import Timeout, get_hub, getcurrent
from greenlet import greenlet

from gmongo import _clock
from gmongo._background import hold_hub, timer_delay

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

Item = TypeVar("Item")


class Waiter(Generic[Item]):
    """One greenlet in the queue, and what came of its wait.

    :param purpose: what it waits for, for people.
    """

    __slots__ = ("_asleep", "_hub", "_waking", "error", "greenlet", "item", "purpose", "since")

    def __init__(self, purpose: str | None = None) -> None:
        self.purpose = purpose
        self.greenlet: greenlet = getcurrent()
        self.since = _clock.monotonic()
        self.item: Item | None = None
        self.error: BaseException | None = None
        self._hub = get_hub()
        self._asleep = False
        self._waking: IWatcher | None = None

    def sleep(self, limit: float | None, timed_out: Callable[[], Exception]) -> Item:
        """Switch to the hub until something has been handed over. Anything may be thrown here.

        :param limit: seconds, or None for no limit.
        :param timed_out: makes the error to raise when the limit is reached.
        :raises BaseException: the error of a time-out or an eviction, or whatever is thrown into the greenlet.
        """
        if limit is None:
            self._sleep()
        else:
            self._sleep_for(limit, timed_out)
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # it refers to this frame
        assert self.item is not None
        return self.item

    def _sleep_for(self, limit: float, timed_out: Callable[[], Exception]) -> None:
        timeout = Timeout(timer_delay(limit))
        try:
            with timeout:
                self._sleep()
        except Timeout as error:
            if error is not timeout:
                raise
            if self.item is None and self.error is None:  # else its turn had come, and only the loop was late
                raise timed_out() from None
        finally:
            del timeout  # it refers to this frame once it has been thrown

    def _sleep(self) -> None:
        switch = self._hub.switch
        self._asleep = True
        try:
            while self.item is None and self.error is None:
                switch()
        finally:
            self._asleep = False
            waking, self._waking = self._waking, None
            if waking is not None:  # it must not switch to wherever the greenlet is by then
                waking.stop()

    def wake(self) -> None:
        """Let the greenlet go on in the next pass of the loop, if it sleeps already. Does not switch.

        It goes on after all that were woken before this call, also if it had been woken itself and has not gone on yet.
        """
        if self._asleep:
            if self._waking is not None:
                self._waking.stop()
            self._waking = self._hub.loop.run_callback(self.greenlet.switch)


class WaitQueue(Generic[Item]):
    """The waiters, in order of arrival."""

    __slots__ = ("_holding", "waiters")

    def __init__(self) -> None:
        self._holding: IWatcher | None = None  # the timer that holds the hub
        self.waiters: OrderedDict[Waiter[Item], None] = OrderedDict()  # any of them may leave, at little cost

    def join(self, purpose: str | None = None) -> Waiter[Item]:
        """Queue up; :meth:`Waiter.sleep` follows, and :meth:`leave` if it raises. Does not switch.

        :param purpose: what for, for people.
        """
        waiter: Waiter[Item] = Waiter(purpose)
        self.waiters[waiter] = None
        self._hold_hub()
        return waiter

    def leave(self, waiter: Waiter[Item]) -> Item | None:
        """Leave the queue; returns what was handed over in the same instant. Does not switch."""
        self.waiters.pop(waiter, None)  # it is not there if it was handed something or evicted
        self._hold_hub()
        return waiter.item

    def _hold_hub(self) -> None:
        """Hold the hub exactly while there are waiters."""
        if self.waiters and self._holding is None:
            self._holding = hold_hub()
        elif not self.waiters and self._holding is not None:
            holding, self._holding = self._holding, None
            holding.close()

    def hand(self, item: Item) -> None:
        """Hand `item` to the waiter at the head, which leaves the queue with it. Does not switch."""
        # Critical section: the waiter is out of the queue and has the item before any greenlet runs, so that no second
        # item is handed to it, and `leave` finds the first one even if the waiter never runs.
        waiter, _ = self.waiters.popitem(last=False)
        if not self.waiters:
            self._hold_hub()
        waiter.item = item
        waiter.wake()

    def hand_to_all(self, item: Item) -> None:
        """Hand `item` to all waiters, which keep their places until they leave. Does not switch.

        They go on in order, also those that were woken for something else and have not gone on yet.
        """
        for waiter in self.waiters:
            waiter.item = item
            waiter.wake()

    def detach(self) -> list[Waiter[Item]]:
        """Take all waiters out of the queue, for :meth:`evict`; nothing can be handed to them any more."""
        detached = list(self.waiters)
        self.waiters.clear()
        self._hold_hub()
        return detached

    @staticmethod
    def evict(detached: list[Waiter[Item]], make_error: Callable[[], BaseException]) -> None:
        """End the waits of `detached` with an error each. Does not switch."""
        for waiter in detached:
            waiter.error = make_error()
            waiter.wake()

    def oldest(self) -> float | None:
        """How many seconds the head has been waiting, or None."""
        waiters = list(self.waiters)  # in one step, as another thread may look
        return _clock.monotonic() - waiters[0].since if waiters else None
