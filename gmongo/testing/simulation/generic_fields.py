"""Check the fields that several commands have: ``comment``, ``readConcern`` and ``$readPreference``."""

from __future__ import annotations

from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.error_codes import error

# The server version since which the field ``comment`` may have any type, by command.
_ANY_COMMENT = {"aggregate": (4, 4), "find": (4, 4), "count": (4, 4, 14), "distinct": (4, 4, 14)}
_READ_CONCERN_LEVELS = frozenset({"local", "available", "majority", "linearizable", "snapshot"})
_READ_PREFERENCES = frozenset({"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"})


def check(call: Call) -> None:
    """Check ``comment``, ``readConcern`` and ``$readPreference`` of a command."""
    _check_comment(call)
    level = (call.body.get("readConcern") or {}).get("level", "local")
    if level not in _READ_CONCERN_LEVELS:
        raise error(9, f"readConcern level {level!r} is not one of {sorted(_READ_CONCERN_LEVELS)}")
    mode = call.body.get("$readPreference", {}).get("mode", "primary")
    if mode not in _READ_PREFERENCES:
        raise error(2, f"$readPreference mode {mode!r} is not one of {sorted(_READ_PREFERENCES)}")


def _check_comment(call: Call) -> None:
    comment = call.body.get("comment", "")
    if not isinstance(comment, str) and call.cluster.version < _ANY_COMMENT.get(call.name, (0,)):
        raise error(14, f"BSON field '{call.name}.comment' is {comment!r}, which is not a string")
