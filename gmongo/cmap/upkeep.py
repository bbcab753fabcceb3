"""The background of a pool: its runs (CMAP-172 to CMAP-177), and populating (CMAP-94 to CMAP-103)."""

from __future__ import annotations

import weakref
from typing import Protocol

from gevent import spawn

from gmongo.cmap.establishing import Establisher
from gmongo.cmap.pool_settings import PoolSettings
from gmongo.cmap.state import PoolState, StateMachine

END = -1.0  # seconds of a pause after which there is no further run
_SHORTEST_PAUSE = 0.1


class MaintainedPool(Protocol):
    """The part of a pool that its background uses."""

    options: PoolSettings
    machine: StateMachine
    establisher: Establisher

    @property
    def state(self) -> PoolState:
        """Paused, ready or closed."""

    def remove_perished(self) -> None:
        """Close the available connections that have perished."""

    def finish(self) -> None:
        """Deliver the events of a step, and close the connections that it has dropped."""


def upkeep(pool: MaintainedPool) -> float:
    """One run: close what has perished, begin to establish what is missing, and wait for neither.

    Returns how many seconds to pause; a negative number is for ever.
    """
    interval = pool.options.upkeep_interval
    if pool.state is PoolState.CLOSED or interval < 0:
        return END
    pool.remove_perished()
    if pool.machine.is_short():
        spawn(_populate, weakref.ref(pool))
    pauses = [interval]
    if pool.options.max_idle_time is not None:
        pauses.append(max(pool.options.max_idle_time, _SHORTEST_PAUSE))
    if (rest := pool.machine.rest()) > 0:
        pauses.append(rest)
    return min(pauses)


def _populate(reference: weakref.ref[MaintainedPool]) -> None:
    pool = reference()
    if pool is not None:
        try:
            populate(pool)
        except Exception:
            pass  # the topology has been told, and the next run waits for the back-off


def populate(pool: MaintainedPool) -> None:
    """Establish a connection and make it available, in a greenlet of its own."""
    connection = pool.machine.begin_populating()
    if connection is None:
        return
    connection.hold_hub(False)
    try:
        pool.establisher.establish(connection, ref=False)
        connection.hold_hub(True)  # before it is kept, which may hand it to a greenlet that waits
        pool.machine.keep(connection)
    finally:
        pool.finish()
