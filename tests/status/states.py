"""States of processes and clients, as the status page receives the states."""

from __future__ import annotations

from typing import Any

POOL = {
    **dict.fromkeys(("generation", "minPoolSize"), 0),
    **{"state": "ready", "inUse": 1, "available": 2, "pending": 3, "waiting": 4, "total": 6, "maxPoolSize": 9},
    **{"oldestWaitMS": 500.0, "inUseBy": {"cursors": 1}},
}
SERVER = {"address": "h:1", "type": "Mongos", "roundTripMS": 1.25, "minRoundTripMS": 1.0, "error": "", "pool": POOL}
UNKNOWN_SERVER = {**SERVER, "type": "Unknown", "roundTripMS": None, "error": "refused", "pool": None}
RETRIES = {"retries": 5, "others": 6, "tokens": 99.5, "errors": 7, "slept": 0.0, "exhausted": 0}
OPERATION = {
    **{"phase": "waiting", "operation": "find shop.orders", "server": "h:1", "sinceMS": 20.0, "greenlet": "g1"},
    "connection": None,
}
EVENT = {
    **{"what": "elected primary", "server": "h:1", "times": 2, "agoMS": 61_000.0, "sinceMS": 62_000.0},
    "error": "gone",
}
SLOW_ENTRY = {
    **dict.fromkeys((f"{part}MS" for part in ("selection", "connecting", "decoding", "backOff", "driver")), 0.0),
    **{"operation": "find shop.orders", "server": "h:1", "durationMS": 300.0, "checkOutMS": 200.0, "serverMS": 98.0},
    **{"networkMS": 2.0, "tries": 1, "commands": 1, "agoMS": 1000.0},
}


def client(**fields: Any) -> dict[str, Any]:
    """Return the state of a client.

    Without `fields`, the summary of the status page finds no problem in the state.
    """
    defaults = {"number": 7, "application": "shop", "topology": "Sharded", "replicaSet": "", "servers": [SERVER]}
    return {**defaults, "operations": [], "slow": [], "history": [], "retries": RETRIES, **fields}


def state(*clients: dict[str, Any], process: Any = 12) -> dict[str, Any]:
    """Return the state of a process that has the given clients."""
    return {"process": process, "version": "1", "requests": 1, "clients": list(clients)}


def silent_state(process: str, error: str = "does not answer within 1 s") -> dict[str, Any]:
    """Return the state of a process that has not replied."""
    return {"process": process, "error": error, "clients": []}
