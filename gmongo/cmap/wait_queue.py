"""First-in, first-out wait queue of greenlets (CMAP-37 to CMAP-42, CMAP-104 to CMAP-113).

The pool hands each connection to the first waiter. After a timeout or a kill, a waiter leaves the
queue immediately, and returns a received connection to the pool.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from gevent import Timeout, get_hub, getcurrent
from greenlet import greenlet

from gmongo import _clock
from gmongo._background import keep_loop_alive, timer_delay

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

Item = TypeVar("Item")


class Waiter(Generic[Item]):
    """Greenlet that waits in the queue, and the result of its wait: an item or an error."""

    __slots__ = ("_asleep", "_hub", "_wake_callback", "error", "greenlet", "item", "operation", "since")

    def __init__(self, operation: str | None = None) -> None:
        self.operation = operation  # name of the operation, only for statistics
        self.greenlet: greenlet = getcurrent()
        self.since = _clock.monotonic()
        self.item: Item | None = None
        self.error: BaseException | None = None
        self._hub = get_hub()
        self._asleep = False
        self._wake_callback: IWatcher | None = None

    def sleep(self, limit: float | None, make_timeout_error: Callable[[], Exception]) -> Item:
        """Wait for an item for at most `limit` seconds. After a timeout or an eviction, raise its error."""
        timeout = Timeout(None if limit is None else timer_delay(limit))
        try:
            with timeout:
                self._sleep()
        except Timeout as expired:
            if expired is not timeout:
                raise
            # raise no timeout if a result arrived together with the timeout
            if self.item is None and self.error is None:
                raise make_timeout_error() from None
        finally:
            del timeout  # prevent a reference cycle between this frame and the timeout
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # prevent a reference cycle between this frame and the error
        assert self.item is not None
        return self.item

    def _sleep(self) -> None:
        switch = self._hub.switch
        self._asleep = True
        try:
            while self.item is None and self.error is None:
                switch()
        finally:
            self._asleep = False
            callback, self._wake_callback = self._wake_callback, None
            if callback is not None:
                callback.stop()  # a pending switch would resume the greenlet in a later wait

    def wake(self) -> None:
        """Resume a sleeping greenlet in the next loop iteration, in the order of the `wake` calls."""
        if self._asleep:
            if self._wake_callback is not None:
                self._wake_callback.stop()
            self._wake_callback = self._hub.loop.run_callback(self.greenlet.switch)


class WaitQueue(Generic[Item]):
    """Waiters in order of arrival."""

    def __init__(self) -> None:
        self._keep_alive_timer: IWatcher | None = None  # Timer that keeps the event loop alive.
        self.waiters: OrderedDict[Waiter[Item], None] = OrderedDict()  # An OrderedDict removes any waiter fast.

    def join(self, operation: str | None = None) -> Waiter[Item]:
        """Add the current greenlet, without a switch. If the wait fails, the caller must call :meth:`leave`."""
        waiter: Waiter[Item] = Waiter(operation)
        self.waiters[waiter] = None
        self._update_keep_alive()
        return waiter

    def leave(self, waiter: Waiter[Item]) -> Item | None:
        """Remove a waiter, and return its received item, or None. Do not switch greenlets."""
        self.waiters.pop(waiter, None)  # `hand_over` or `evict` may have removed the waiter already
        self._update_keep_alive()
        return waiter.item

    def _update_keep_alive(self) -> None:
        """Keep the event loop alive exactly while the queue has waiters."""
        if self.waiters and self._keep_alive_timer is None:
            self._keep_alive_timer = keep_loop_alive()
        elif not self.waiters and self._keep_alive_timer is not None:
            timer, self._keep_alive_timer = self._keep_alive_timer, None
            timer.close()

    def hand_over(self, item: Item) -> None:
        """Remove the first waiter, and hand `item` to this waiter. The method does not switch greenlets."""
        # Critical section: the waiter leaves the queue and receives the item before another greenlet runs. Therefore
        # no waiter receives two items, and `leave` finds the item even if the waiter never runs.
        waiter, _ = self.waiters.popitem(last=False)
        if not self.waiters:
            self._update_keep_alive()
        waiter.item = item
        waiter.wake()

    def hand_over_to_all(self, item: Item) -> None:
        """Hand `item` to all waiters, which stay in the queue. Do not switch greenlets."""
        # The waiters run in the order of the queue, even if an earlier call has already woken some waiters.
        for waiter in self.waiters:
            waiter.item = item
            waiter.wake()

    def evict(self, make_error: Callable[[], BaseException]) -> None:
        """Remove all waiters, and end each wait with a new error. Do not switch greenlets."""
        evicted = list(self.waiters)
        self.waiters.clear()
        self._update_keep_alive()
        for waiter in evicted:
            waiter.error = make_error()
            waiter.wake()

    def oldest_wait(self) -> float | None:
        """Return the seconds that the first waiter has waited, or None if the queue is empty."""
        waiters = list(self.waiters)  # atomic copy, because another thread may call this method
        return _clock.monotonic() - waiters[0].since if waiters else None
