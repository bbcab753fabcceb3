"""Decide which members may execute a command. Check the client's authentication, and the generic fields."""

from __future__ import annotations

from gmongo.testing.command import error
from gmongo.testing.simulation.call import Call

_WRITE_COMMANDS = frozenset(
    {
        "abortTransaction", "applyOps", "bulkWrite", "cloneCollectionAsCapped", "collMod",
        "commitTransaction", "convertToCapped", "create", "createIndexes", "createSearchIndexes",
        "createUser", "delete", "drop", "dropAllUsersFromDatabase", "dropDatabase", "dropIndexes",
        "dropSearchIndex", "dropUser", "findAndModify", "findandmodify", "insert",
        "renameCollection", "update", "updateSearchIndex", "updateUser"
    }
)  # fmt: skip
_ALL_MEMBER_COMMANDS = frozenset(
    {
        "endSessions", "getMore", "killAllSessions", "killAllSessionsByPattern", "killCursors",
        "killSessions", "refreshSessions", "startSession"
    }
)  # fmt: skip
_WRITING_STAGES = frozenset({"$out", "$merge"})


def needs_primary(call: Call) -> bool:
    """Return True for a command in a transaction, and for a write that a secondary cannot send to the primary."""
    return (
        call.name in _WRITE_COMMANDS
        or call.request.in_transaction
        or (call.name == "aggregate" and _writes_on_primary(call))
    )


def runs_on_any_member(call: Call) -> bool:
    """Return True if all members accept the command: a command for cursors or sessions outside a transaction."""
    return call.name in _ALL_MEMBER_COMMANDS and not call.request.in_transaction


def _writes_on_primary(call: Call) -> bool:
    pipeline = call.body.get("pipeline") or []
    # Since 5.0, a secondary executes `$out` and `$merge` if the read preference allows a secondary.
    # The secondary sends the writes to the primary.
    mode = call.body.get("$readPreference", {}).get("mode", "primary")
    may_run_on_secondary = mode != "primary" and call.cluster.version >= (5, 0)
    return not may_run_on_secondary and any(stage.keys() & _WRITING_STAGES for stage in pipeline)


_UNAUTHENTICATED_COMMANDS = frozenset(
    {
        "authenticate", "buildInfo", "buildinfo", "connectionStatus", "endSessions", "getnonce",
        "hello", "isMaster", "ismaster", "listCommands", "logout", "ping", "saslContinue",
        "saslStart", "whatsmyuri"
    }
)  # fmt: skip


def check_access(call: Call) -> None:
    """Raise an error if the command needs authentication, and the client is not authenticated."""
    needs_user = call.cluster.users.requires_authentication and call.name not in _UNAUTHENTICATED_COMMANDS
    if needs_user and not call.connection.authentication.users:
        raise error(13, f"Command {call.name} requires authentication")


# The first server version that accepts any type in the field ``comment``, by command.
_ANY_COMMENT_VERSIONS = {"aggregate": (4, 4), "find": (4, 4), "count": (4, 4, 14), "distinct": (4, 4, 14)}
_READ_CONCERN_LEVELS = frozenset({"local", "available", "majority", "linearizable", "snapshot"})
_READ_PREFERENCE_MODES = frozenset({"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"})


def check_generic_fields(call: Call) -> None:
    """Check ``comment``, ``readConcern`` and ``$readPreference`` of a command."""
    comment = call.body.get("comment", "")
    if not isinstance(comment, str) and call.cluster.version < _ANY_COMMENT_VERSIONS.get(call.name, (0,)):
        raise error(14, f"BSON field '{call.name}.comment' is {comment!r}, which is not a string")
    level = (call.body.get("readConcern") or {}).get("level", "local")
    if level not in _READ_CONCERN_LEVELS:
        raise error(9, f"readConcern level {level!r} is not one of {sorted(_READ_CONCERN_LEVELS)}")
    mode = call.body.get("$readPreference", {}).get("mode", "primary")
    if mode not in _READ_PREFERENCE_MODES:
        raise error(2, f"$readPreference mode {mode!r} is not one of {sorted(_READ_PREFERENCE_MODES)}")
