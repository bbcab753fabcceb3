"""The background run of a pool (CMAP-172 to CMAP-177)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from gevent import spawn

from gmongo.cmap.inventory import PoolState

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool

_END = -1.0
_SHORTEST_PAUSE = 0.1


def upkeep(pool: Pool) -> float:
    """One run: close what has perished, begin to establish what is missing, and wait for neither.

    Returns how many seconds to pause; a negative number is for ever.
    """
    interval = pool.options.upkeep_interval
    if pool.state is PoolState.CLOSED or interval < 0:
        return _END
    pool.remove_perished()
    if pool.is_short():
        spawn(_populate, weakref.ref(pool))
    idle = pool.options.max_idle_time
    return interval if idle is None else min(interval, max(idle, _SHORTEST_PAUSE))


def _populate(reference: weakref.ref[Pool]) -> None:
    pool = reference()
    if pool is not None:
        try:
            pool.populate()
        except Exception:
            pass  # the topology has been told, and the pool is paused by it
