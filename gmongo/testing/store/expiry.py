"""Remove documents that expired because of TTL indexes, and abort expired transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing import clock
from gmongo.testing.store.access import Access
from gmongo.testing.store.context import truncate_current_time
from gmongo.testing.store.data import Collection
from gmongo.testing.store.end_transactions import abort
from gmongo.testing.store.index import Index
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.state import State
from gmongo.testing.store.values import MISSING, is_number, to_millis, trunc

_DATE_RANK = 45  # the rank of dates in the comparison order of BSON types


def expire_data(state: State, parameters: Mapping[str, Any]) -> None:
    """Remove expired documents and abort expired transactions, at most once per ``ttlMonitorSleepSecs``."""
    state.transaction_lifetime = parameters["transactionLifetimeLimitSeconds"]
    now = clock.monotonic()
    if now - state.last_expiry_time < parameters["ttlMonitorSleepSecs"]:
        return
    state.last_expiry_time = now
    for session in state.sessions:
        if session.transaction is not None and session.transaction.seconds_left() <= 0:
            abort(state, session)
    if parameters["ttlMonitorEnabled"]:
        for collection in list(state.catalog.values()):
            for index in list(collection.indexes.values()):
                _expire_documents(state, collection, index)


def _expire_documents(state: State, collection: Collection, index: Index) -> None:
    seconds = index.options.get("expireAfterSeconds", MISSING)
    if not is_number(seconds) or len(index.keys) != 1 or not index.is_ordered:
        return
    access = Access(state)
    limit_millis = to_millis(truncate_current_time()) - trunc(seconds) * 1000
    for key in Pace().iterate(index.find_between((), ((_DATE_RANK,),), ((_DATE_RANK, limit_millis),))):
        # If a transaction has locked the document, a later call removes the document.
        if key in collection.records and key not in collection.record_locks:
            access.remove(collection, key)
