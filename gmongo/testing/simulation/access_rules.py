"""The commands that need the primary of a replica set, and the commands that any member accepts."""

from __future__ import annotations

from gmongo.testing.simulation.call import Call

_WRITES = frozenset(
    {
        "abortTransaction", "applyOps", "bulkWrite", "cloneCollectionAsCapped", "collMod",
        "commitTransaction", "convertToCapped", "create", "createIndexes", "createSearchIndexes",
        "createUser", "delete", "drop", "dropAllUsersFromDatabase", "dropDatabase", "dropIndexes",
        "dropSearchIndex", "dropUser", "findAndModify", "findandmodify", "insert",
        "renameCollection", "update", "updateSearchIndex", "updateUser"
    }
)  # fmt: skip
_ANYWHERE = frozenset(
    {
        "endSessions", "getMore", "killAllSessions", "killAllSessionsByPattern", "killCursors",
        "killSessions", "refreshSessions", "startSession"
    }
)  # fmt: skip
_WRITING_STAGES = frozenset({"$out", "$merge"})


def needs_primary(call: Call) -> bool:
    """Return True if the command writes, or belongs to a transaction."""
    return (
        call.name in _WRITES or call.request.in_transaction or (call.name == "aggregate" and _has_writing_stage(call))
    )


def runs_on_any_member(call: Call) -> bool:
    """Return True if any member accepts the command, because the command concerns cursors or sessions of the member."""
    return call.name in _ANYWHERE and not call.request.in_transaction


def _has_writing_stage(call: Call) -> bool:
    pipeline = call.body.get("pipeline") or []
    # Since 5.0, a secondary executes `$out` and `$merge` if the read preference allows a secondary. The secondary sends
    # the writes to the primary.
    mode = call.body.get("$readPreference", {}).get("mode", "primary")
    may_run_on_secondary = mode != "primary" and call.cluster.version >= (5, 0)
    return not may_run_on_secondary and any(stage.keys() & _WRITING_STAGES for stage in pipeline)
