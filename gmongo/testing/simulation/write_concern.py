"""Check write concerns, and wait for the replication of writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing import clock
from gmongo.testing.command import error, find_error_name
from gmongo.testing.simulation.call import Call
from gmongo.testing.store.values import is_number, to_long
from gmongo.testing.unsupported import not_supported

_TIMEOUT_CODE = 64
_CHECK_INTERVAL = 0.5  # Seconds between two checks of the connection.
# Commands without write concerns. In a transaction, only commit and abort may have a write concern.
COMMANDS_WITHOUT_WRITE_CONCERN = frozenset(
    {"count", "distinct", "find", "getMore", "listCollections", "listDatabases", "listIndexes"}
)

# The error codes of commands, such as a second drop, that repeat an earlier change. After such an
# error, the server still waits for the write concern, because the change may not be replicated yet.
CODES_THAT_AWAIT_WRITE_CONCERN = frozenset({26, 27, 48, 11000})


def check_write_concern(call: Call) -> None:
    """Check the write concern of a command, before the execution of the command."""
    concern = call.body.get("writeConcern")
    if not concern:
        return
    w = _normalize_w(concern.get("w", 1))
    if w == {}:
        raise error(9, "tagged write concern requires tags")
    if isinstance(w, dict):
        raise not_supported("a write concern with tags")
    if not isinstance(w, str) and not 0 <= w <= 50:
        raise error(9, f"w has to be a number from 0 to 50 or a string, not {w!r}")
    if w == 0 and (concern.get("j") or concern.get("fsync")):
        raise error(2, "cannot have w : 0 and j : true")
    if call.cluster.topology.has_cluster_time:
        return
    if isinstance(w, str) and w != "majority":
        raise error(2, f"cannot use non-majority 'w' mode {w} when a host is not a member of a replica set")
    if not isinstance(w, str) and w > 1:
        raise error(2, "cannot use 'w' > 1 when a host is not replicated")


def satisfy_write_concern(call: Call, reply: dict[str, Any]) -> None:
    """Wait until enough members have replicated the write. If the wait fails, add a ``writeConcernError``."""
    concern = call.body.get("writeConcern")
    is_replicated = call.cluster.topology.has_cluster_time
    if not concern or not is_replicated or call.name in COMMANDS_WITHOUT_WRITE_CONCERN:
        return
    w = _normalize_w(concern.get("w", "majority"))
    failure = _find_problem(call, w) or _await_replication(call, w, concern)
    if failure is not None:
        code, message = failure
        fields = {"w": w, "wtimeout": concern.get("wtimeout", 0), "provenance": "clientSupplied"}
        info = {**({"wtimeout": True} if code == _TIMEOUT_CODE else {}), "writeConcern": fields}
        write_concern_error = {"code": code, "codeName": find_error_name(code), "errmsg": message, "errInfo": info}
        reply.setdefault("writeConcernError", write_concern_error)


def _normalize_w(w: Any) -> Any:
    return "" if w is None else to_long(w) if is_number(w) else w


def _find_problem(call: Call, w: Any) -> tuple[int, str] | None:
    """Return the error's code and message if the deployment can never satisfy the write concern."""
    if isinstance(w, str):
        is_known = w == "majority" or w in call.cluster.write_concern_modes
        return None if is_known else (79, f"No write concern mode named '{w}' found in replica set configuration")
    return (100, "Not enough data-bearing nodes") if w > call.cluster.topology.data_bearing_count else None


def _await_replication(call: Call, w: Any, concern: Mapping[str, Any]) -> tuple[int, str] | None:
    """Wait for the replication that `w` requires. After a timeout, return the error code and text."""
    topology = call.cluster.topology
    required_count = topology.data_bearing_count // 2 + 1 if isinstance(w, str) else w
    wtimeout = concern.get("wtimeout")
    max_seconds = to_long(wtimeout) / 1000 if is_number(wtimeout) else 0
    deadline = clock.monotonic() + max_seconds if max_seconds else None
    while topology.replicating_count < required_count and call.connection.is_open:
        remaining = None if deadline is None else deadline - clock.monotonic()
        if remaining is not None and remaining <= 0:
            return _TIMEOUT_CODE, "waiting for replication timed out"
        topology.change.wait(_CHECK_INTERVAL if remaining is None else min(_CHECK_INTERVAL, remaining))
    return None
