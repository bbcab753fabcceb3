"""The background run of a pool (CMAP-172 to CMAP-177)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from gevent import spawn

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool

_END = -1.0


def upkeep(pool: Pool) -> float:
    """One run: close what has perished, begin to establish what is missing, and wait for neither.

    Returns how many seconds to pause.
    """
    if pool.closed:
        return _END
    pool._remove_perished()
    for _ in range(pool._shortfall()):
        spawn(_populate, weakref.ref(pool))
    return pool.options.upkeep_interval


def _populate(reference: weakref.ref[Pool]) -> None:
    pool = reference()
    if pool is not None:
        try:
            pool._populate()
        except Exception:
            pass  # the topology has been told, and the pool is paused by it
