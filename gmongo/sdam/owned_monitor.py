"""Monitor greenlet that ends after the deletion of its owner."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from gevent import get_hub

from gmongo._background import RestartingGreenlet, Wakeup

Owner = TypeVar("Owner")


class OwnedMonitor(ABC, Generic[Owner]):
    """Monitor greenlet with a weak reference to its owner, a topology."""

    def __init__(self, owner: Owner) -> None:
        self._loop = get_hub().loop
        self._wakeup = Wakeup()
        self._background = RestartingGreenlet(self._run)
        self._owner = weakref.ref(owner, self._owner_was_deleted)

    def start(self) -> None:
        self._background.start()

    @abstractmethod
    def _run(self) -> None: ...

    @abstractmethod
    def stop(self) -> None:
        """Stop the greenlet. Do not switch greenlets."""

    def _owner_was_deleted(self, _reference: object) -> None:
        # Garbage collection may run in any thread and in a critical section, so the event loop
        # calls `stop`. A stopped monitor may outlive its event loop.
        if not self._background.ended:
            self._loop.run_callback_threadsafe(self.stop)
