"""Monitor that stops after the deletion of its owner."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from gevent import get_hub

Owner = TypeVar("Owner")


class OwnedMonitor(ABC, Generic[Owner]):
    """Monitor with a weak reference to its owner, a topology."""

    def __init__(self, owner: Owner) -> None:
        self._stopped = False
        self._loop = get_hub().loop
        self._owner = weakref.ref(owner, self._owner_was_deleted)

    @abstractmethod
    def stop(self) -> None:
        """Stop the greenlet, without a switch."""

    def _owner_was_deleted(self, _reference: object) -> None:
        # Garbage collection may run in any thread and inside a critical section. A callback of the event loop does not.
        # A stopped monitor may outlive its event loop.
        if not self._stopped:
            self._loop.run_callback_threadsafe(self.stop)
