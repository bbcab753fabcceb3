"""Which fields each command and statement takes; any other is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.errors import bad_value, type_mismatch
from gmongo.testing.store.values import type_name

Version = tuple[int, int]

GENERIC = frozenset(
    {
        "$audit",
        "$client",
        "$clusterTime",
        "$configServerState",
        "$db",
        "$oplogQueryData",
        "$queryOptions",
        "$readPreference",
        "$replData",
        "$tenant",
        "allowImplicitCollectionCreation",
        "apiDeprecationErrors",
        "apiStrict",
        "apiVersion",
        "autocommit",
        "client",
        "comment",
        "databaseVersion",
        "help",
        "lsid",
        "maxTimeMS",
        "maxTimeMSOpOnly",
        "mayBypassWriteBlocking",
        "readConcern",
        "recoveryToken",
        "shardVersion",
        "startTransaction",
        "stmtId",
        "stmtIds",
        "tracking_info",
        "txnNumber",
        "usesDefaultMaxTimeMS",
        "writeConcern",
    }
)

_CREATE = """create autoIndexId capped size max storageEngine validator validationLevel validationAction
    indexOptionDefaults viewOn pipeline collation changeStreamPreAndPostImages timeseries clusteredIndex
    expireAfterSeconds encryptedFields flags idIndex"""
_SPECS: Mapping[str, str] = {
    "abortTransaction": "abortTransaction",
    "aggregate": """aggregate pipeline explain allowDiskUse cursor bypassDocumentValidation collation hint let
        rawData""",
    "bulkWrite": """bulkWrite ops nsInfo ordered bypassDocumentValidation errorsOnly let cursor rawData""",
    "bulkWrite.insert": "insert document",
    "bulkWrite.update": "update filter sort multi updateMods upsert arrayFilters hint collation constants return",
    "bulkWrite.delete": "delete filter multi hint collation return",
    "collMod": """collMod index validator validationLevel validationAction viewOn pipeline cappedSize cappedMax
        changeStreamPreAndPostImages expireAfterSeconds timeseries dryRun""",
    "collStats": "collStats scale",
    "commitTransaction": "commitTransaction",
    "convertToCapped": "convertToCapped size",
    "count": "count query limit skip hint collation fields rawData",
    "create": _CREATE,
    "createIndexes": "createIndexes indexes commitQuorum ignoreUnknownIndexOptions rawData",
    "createSearchIndexes": "createSearchIndexes indexes",
    "dbStats": "dbStats scale freeStorage",
    "delete": "delete deletes ordered let bypassDocumentValidation rawData",
    "delete.deletes": "q limit collation hint",
    "distinct": "distinct key query collation hint rawData",
    "drop": "drop",
    "dropDatabase": "dropDatabase",
    "dropIndexes": "dropIndexes index rawData",
    "dropSearchIndex": "dropSearchIndex id name",
    "endSessions": "endSessions",
    "explain": "explain verbosity",
    "find": """find filter sort projection hint skip limit batchSize singleBatch min max returnKey showRecordId tailable
        oplogReplay noCursorTimeout awaitData allowPartialResults collation allowDiskUse let rawData""",
    "findAndModify": """findAndModify findandmodify query sort remove update new fields upsert bypassDocumentValidation
        collation arrayFilters hint let rawData""",
    "getMore": "getMore collection batchSize term lastKnownCommittedOpTime",
    "insert": "insert documents ordered bypassDocumentValidation rawData",
    "killAllSessions": "killAllSessions",
    "killAllSessionsByPattern": "killAllSessionsByPattern",
    "killCursors": "killCursors cursors",
    "killSessions": "killSessions",
    "listCollections": "listCollections filter nameOnly authorizedCollections cursor rawData",
    "listDatabases": "listDatabases filter nameOnly authorizedDatabases",
    "listIndexes": "listIndexes cursor rawData",
    "listSearchIndexes": "listSearchIndexes id name cursor",
    "refreshSessions": "refreshSessions",
    "renameCollection": "renameCollection to dropTarget",
    "startSession": "startSession",
    "update": "update updates ordered let bypassDocumentValidation rawData",
    "update.updates": "q u c multi upsert collation arrayFilters hint sort",
    "updateSearchIndex": "updateSearchIndex id name definition",
    "validate": "validate scandata full repair metadata checkBSONConformance background",
}
FIELDS: Mapping[str, frozenset[str]] = {name: frozenset(spec.split()) for name, spec in _SPECS.items()}

# The fields that a command cannot do without.
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "aggregate": ("pipeline",),
    "bulkWrite": ("ops", "nsInfo"),
    "convertToCapped": ("size",),
    "createIndexes": ("indexes",),
    "delete": ("deletes",),
    "delete.deletes": ("q", "limit"),
    "distinct": ("key",),
    "dropIndexes": ("index",),
    "getMore": ("collection",),
    "insert": ("documents",),
    "killCursors": ("cursors",),
    "renameCollection": ("to",),
    "update": ("updates",),
    "update.updates": ("q", "u"),
}

_SINCE: Mapping[tuple[str, str], Version] = {
    ("aggregate", "let"): (5, 0),
    ("bulkWrite.update", "sort"): (8, 0),
    ("collMod", "changeStreamPreAndPostImages"): (6, 0),
    ("create", "changeStreamPreAndPostImages"): (6, 0),
    ("create", "clusteredIndex"): (5, 3),
    ("create", "timeseries"): (5, 0),
    ("delete", "comment"): (4, 4),
    ("delete.deletes", "hint"): (4, 4),
    ("find", "allowDiskUse"): (4, 4),
    ("findAndModify", "comment"): (4, 4),
    ("findAndModify", "hint"): (4, 4),
    ("getMore", "comment"): (4, 4),
    ("insert", "comment"): (4, 4),
    ("update", "comment"): (4, 4),
    ("delete", "let"): (5, 0),
    ("find", "let"): (5, 0),
    ("findAndModify", "let"): (5, 0),
    ("update", "let"): (5, 0),
    ("update.updates", "sort"): (8, 0),
}
_RAW_DATA_SINCE = (8, 2)
# What the values of fields must be; null stands for no value.
_KINDS: Mapping[str, tuple[str, str]] = {
    "array": (
        "list",
        "arrayFilters cursors deletes documents indexes nsInfo ops pipeline updates endSessions killSessions "
        "refreshSessions killAllSessions killAllSessionsByPattern",
    ),
    "object": (
        "dict",
        "c changeStreamPreAndPostImages collation constants cursor fields filter idIndex let lsid "
        "projection q query readConcern sort timeseries validator",
    ),
    "bool": ("bool", "ignoreUnknownIndexOptions"),
    "number": ("number", "batchSize cappedMax cappedSize limit maxTimeMS scale skip size txnNumber"),
    "string": ("str", "validationAction validationLevel viewOn"),
}
_EXPECTED = {field: (kind, wanted) for wanted, (kind, fields) in _KINDS.items() for field in fields.split()}
# Where a field is something else than its namesakes.
_EXCEPTIONS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("find", "min"): ("dict", "object"),
    ("find", "max"): ("dict", "object"),
    ("create", "max"): ("number", "number"),
    ("delete.deletes", "limit"): ("any", "any"),
}


def check_command(name: str, body: Mapping[str, Any], version: Version) -> None:
    """Check the fields of a command.

    :raises CommandError: 40415 for a field that it does not take, 40414 if one that it needs is missing.
    """
    if name not in FIELDS:
        return
    _check(name, body, version, GENERIC)


def check_statement(name: str, statement: Any, version: Version) -> None:
    """Check the fields of one of a command's statements, such as of ``update.updates``.

    :raises CommandError: as for a command.
    """
    if not isinstance(statement, dict):
        raise type_mismatch(f"BSON field '{name}' must contain objects, not {type_name(statement)}")
    _check(name, statement, version, frozenset())


def _check(name: str, body: Mapping[str, Any], version: Version, generic: frozenset[str]) -> None:
    known = FIELDS[name]
    for field, value in body.items():
        if field not in known and field not in generic:
            raise _unknown(name, field, version)
        if not _is_there(name, field, version):
            raise _unknown(name, field, version)
        _check_type(name, field, value)
    for field in _REQUIRED.get(name, ()):
        if body.get(field) is None:
            raise CommandError(40414, "Location40414", f"BSON field '{name}.{field}' is missing but a required field")


def _is_there(name: str, field: str, version: Version) -> bool:
    since = _RAW_DATA_SINCE if field == "rawData" else _SINCE.get((name, field), (0, 0))
    return version >= since


def _check_type(name: str, field: str, value: Any) -> None:
    if field == "maxTimeMS" and _IS["number"](value) and not 0 <= value < 2**31:
        raise bad_value(f"{value} value for maxTimeMS is out of range")
    expected = _EXCEPTIONS.get((name, field)) or _EXPECTED.get(field)
    if expected is None or value is None or _IS[expected[0]](value):
        return
    raise type_mismatch(
        f"BSON field '{name}.{field}' is the wrong type '{type_name(value)}', expected type '{expected[1]}'"
    )


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0


_IS: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "bool": lambda value: isinstance(value, bool),
    "dict": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "number": _is_finite,
    "str": lambda value: type(value) is str,
}


def _unknown(name: str, field: str, version: Version) -> CommandError:
    if version < (5, 0) and name in ("find", "aggregate"):
        word = "Unrecognized" if name == "find" else "unrecognized"
        return CommandError(9, "FailedToParse", f"{word} field '{field}'")
    if version < (5, 0) and name == "findAndModify":
        return CommandError(40415, "Location40415", f"BSON field '{field}' is an unknown field.")
    return CommandError(40415, "Location40415", f"BSON field '{name}.{field}' is an unknown field.")
