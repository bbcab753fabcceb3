"""Background runs: a greenlet of the pool closes perished connections, and maintains ``minPoolSize`` connections.

Requirements: CMAP-172 to CMAP-177, and for :func:`populate` CMAP-94 to CMAP-103.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from gevent import spawn

from gmongo.cmap.establishing import Establisher
from gmongo.cmap.pool_settings import PoolSettings
from gmongo.cmap.pool_state import PoolState, StateMachine

END = -1.0  # return value of `background_run` that ends the background runs
_SHORTEST_PAUSE = 0.1


class MaintainedPool(Protocol):
    """The attributes and methods of a pool that :func:`background_run` uses."""

    options: PoolSettings
    machine: StateMachine
    establisher: Establisher

    @property
    def state(self) -> PoolState: ...

    def remove_perished(self) -> None: ...

    def finish(self) -> None: ...


def background_run(pool: MaintainedPool) -> float:
    """Close perished connections, and start to establish a connection if necessary, without a wait.

    Return the seconds until the next run, or a negative number if no run follows.
    """
    interval = pool.options.background_interval
    if pool.state is PoolState.CLOSED or interval < 0:
        return END
    pool.remove_perished()
    if pool.machine.needs_connection():
        spawn(_populate, weakref.ref(pool))
    pauses = [interval]
    if pool.options.max_idle_time is not None:
        pauses.append(max(pool.options.max_idle_time, _SHORTEST_PAUSE))
    if (backoff := pool.machine.remaining_backoff()) > 0:
        pauses.append(backoff)
    return min(pauses)


def _populate(reference: weakref.ref[MaintainedPool]) -> None:
    pool = reference()
    if pool is not None:
        try:
            populate(pool)
        except Exception:
            pass  # the topology has already handled the error


def populate(pool: MaintainedPool) -> None:
    """Establish a connection if the pool needs one, and make the connection available."""
    connection = pool.machine.begin_populating()
    if connection is None:
        return
    connection.set_ref(False)
    try:
        pool.establisher.establish(connection, ref=False)
        connection.set_ref(True)  # `make_available` may hand the connection to a waiter, so set `ref` first
        pool.machine.make_available(connection)
    finally:
        pool.finish()
