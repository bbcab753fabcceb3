"""The fields that any command may have: what they must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson import Timestamp

from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.error_codes import error

_TYPES: dict[str, tuple[type, str]] = {
    "lsid": (Mapping, "an object"),
    "$clusterTime": (Mapping, "an object"),
    "$readPreference": (Mapping, "an object"),
    "writeConcern": (Mapping, "an object"),
    "txnNumber": (int, "a long"),
    "autocommit": (bool, "a bool"),
    "startTransaction": (bool, "a bool"),
}
# From when on the comment of a command may be more than a text.
_ANY_COMMENT = {"aggregate": (4, 4), "find": (4, 4), "count": (4, 4, 14), "distinct": (4, 4, 14)}
_READ_CONCERN_LEVELS = frozenset({"local", "available", "majority", "linearizable", "snapshot"})
_READ_CONCERN_FIELDS = frozenset({"level", "afterClusterTime", "afterOpTime", "atClusterTime", "provenance"})
_READ_PREFERENCES = frozenset({"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"})


def check(call: Call) -> None:
    """Check the generic fields.

    :raises CommandError: one is not what it must be.
    """
    body = call.body
    for name, (kind, description) in _TYPES.items():
        if name in body and not isinstance(body[name], kind):
            raise error(14, f"BSON field '{call.name}.{name}' is {body[name]!r}, which is not {description}")
    _check_session(call)
    _check_comment(call)
    _check_cluster_time(body)
    _check_read_concern(body.get("readConcern", {}))
    mode = body.get("$readPreference", {}).get("mode", "primary")
    if not isinstance(mode, str) or mode not in _READ_PREFERENCES:
        raise error(9, f"$readPreference mode {mode!r} is not one of {sorted(_READ_PREFERENCES)}")


def _check_read_concern(concern: Any) -> None:
    if not isinstance(concern, dict):
        raise error(9, f"readConcern is {concern!r}, which is not a document")
    level = concern.get("level", "local")
    if not isinstance(level, str):
        raise error(14, f"readConcern level {level!r} is not a string")
    if level not in _READ_CONCERN_LEVELS:
        raise error(9, f"readConcern level {level!r} is not one of {sorted(_READ_CONCERN_LEVELS)}")
    for name in set(concern) - _READ_CONCERN_FIELDS:
        raise error(72, f"Unrecognized option in readConcern: {name}")


def _check_session(call: Call) -> None:
    body = call.body
    lsid = body.get("lsid")
    if lsid is not None and (not isinstance(lsid.get("id"), bytes) or len(lsid["id"]) != 16):
        raise error(14, f"lsid.id is {lsid.get('id')!r}, which is not a UUID")
    if "txnNumber" not in body:
        return
    if lsid is None:
        raise error(72, "Transaction number requires a session ID to also be specified")
    if not call.cluster.topology.gossips:
        raise error(20, "Transaction numbers are only allowed on a replica set member or mongos")


def _check_comment(call: Call) -> None:
    comment = call.body.get("comment", "")
    if not isinstance(comment, str) and call.cluster.version < _ANY_COMMENT.get(call.name, (0,)):
        raise error(14, f"BSON field '{call.name}.comment' is {comment!r}, which is not a string")


def _check_cluster_time(body: Mapping[str, Any]) -> None:
    gossip = body.get("$clusterTime")
    if gossip is not None and not isinstance(gossip.get("clusterTime"), Timestamp):
        raise error(14, f"$clusterTime.clusterTime is {gossip.get('clusterTime')!r}, which is not a timestamp")
