"""Which fields each command and statement takes; any other is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson.int64 import Int64

from gmongo.testing.command import CommandError
from gmongo.testing.store.errors import bad_value, failed_to_parse, location, type_mismatch
from gmongo.testing.store.values import is_number, is_whole, type_name, whole

Version = tuple[int, int]
_MAX_BATCH = 100_000

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
    "bulkWrite.delete": ("filter",),
    "bulkWrite.insert": ("document",),
    "bulkWrite.update": ("filter", "updateMods"),
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
_KINDS: Mapping[str, str] = {
    "array": """cursors deletes documents indexes ops updates endSessions killSessions refreshSessions killAllSessions
        killAllSessionsByPattern""",
    "objects": "arrayFilters nsInfo pipeline",
    "object": """c changeStreamPreAndPostImages collation constants encryptedFields fields filter idIndex
        indexOptionDefaults let lsid projection q query readConcern sort storageEngine timeseries validator""",
    "cursor": "cursor",
    "bool": """allowDiskUse allowPartialResults authorizedCollections authorizedDatabases awaitData errorsOnly explain
        multi noCursorTimeout oplogReplay ordered returnKey showRecordId singleBatch tailable upsert""",
    "switch": """autoIndexId bypassDocumentValidation capped dryRun dropTarget freeStorage ignoreUnknownIndexOptions new
        remove""",
    "number": "batchSize cappedMax cappedSize limit maxTimeMS scale skip size txnNumber",
    "string": "toCollection validationAction validationLevel viewOn",
    "hint": "hint",
}
_EXPECTED = {field: kind for kind, fields in _KINDS.items() for field in fields.split()}
# Where a field is something else than its namesakes.
_EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("bulkWrite.delete", "multi"): "bool",
    ("create", "max"): "number",
    ("explain", "explain"): "any",
    ("find", "max"): "object",
    ("find", "min"): "object",
    ("getMore", "getMore"): "long",
    ("findAndModify", "upsert"): "switch",
    ("listCollections", "nameOnly"): "bool",
    ("listDatabases", "nameOnly"): "switch",
    ("delete.deletes", "limit"): "one or all",
}


def check_command(name: str, body: Mapping[str, Any], version: Version) -> None:
    """Check the fields of a command.

    :raises CommandError: 40415 for a field that it does not take, 40414 if one that it needs is missing.
    """
    if name not in FIELDS:
        return
    if name == "bulkWrite" and version < (8, 0):
        raise CommandError(59, "CommandNotFound", "no such command: 'bulkWrite'")
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
    for field in ("documents", "updates", "deletes", "ops"):
        if isinstance(body.get(field), list) and field in known and not 0 < len(body[field]) <= _MAX_BATCH:
            raise CommandError(16, "InvalidLength", f"Write batch sizes must be between 1 and {_MAX_BATCH}. Got "
                               f"{len(body[field])} operations.")  # fmt: skip
    for field in _REQUIRED.get(name, ()):
        if body.get(field) is None:
            raise CommandError(40414, "Location40414", f"BSON field '{name}.{field}' is missing but a required field")


def _is_there(name: str, field: str, version: Version) -> bool:
    since = _RAW_DATA_SINCE if field == "rawData" else _SINCE.get((name, field), (0, 0))
    return version >= since


def _check_type(name: str, field: str, value: Any) -> None:
    if field == "maxTimeMS" and not (is_number(value) and is_whole(value) and 0 <= whole(value) < 2**31):
        raise bad_value(f"{value!r} value for maxTimeMS is no whole number, or out of range")
    kind = _EXCEPTIONS.get((name, field)) or _EXPECTED.get(field, "any")
    if (value is None and not _refuses_null(name, field, kind)) or _IS[kind](value):
        _check_parts(name, field, value, kind)
    elif kind in _UNREADABLE:
        raise failed_to_parse(f"{_UNREADABLE[kind]}, and not {value!r}")
    elif (name, field) == ("count", "limit"):
        raise bad_value(f"limit value for count cannot be {value!r}")
    else:
        raise _mismatch(f"{name}.{field}", value, _NAMES.get(kind, kind))


# Kinds of fields that a command has without a value, but not with null.
_NEVER_NULL: Mapping[str, tuple[str, ...]] = {
    "aggregate": ("bool", "cursor", "objects"),
    "count": ("number",),
    "find": ("bool", "object"),
}


def _refuses_null(name: str, field: str, kind: str) -> bool:
    known = field in ("let", "lsid", "readConcern", "skip")
    return not known and (kind == "hint" or kind in _NEVER_NULL.get(name, ()))


# Kinds whose values a command reads by itself.
_UNREADABLE = {
    "hint": "Hint must be a string or an object",
    "one or all": "The limit field in delete objects must be 0 or 1",
}
_NAMES = {"objects": "array", "cursor": "object", "switch": "[bool, long, int, decimal, double]"}


def _mismatch(field: str, value: Any, expected: str) -> CommandError:
    return type_mismatch(f"BSON field '{field}' is the wrong type '{type_name(value)}', expected type '{expected}'")


def _check_parts(name: str, field: str, value: Any, kind: str) -> None:
    if kind == "objects":
        for place, part in enumerate(value or ()):
            if not isinstance(part, dict):
                raise _mismatch(f"{name}.{field}.{place}", part, "object")
    elif kind == "cursor":
        for part in value or ():
            if part != "batchSize":
                raise location(40415, f"BSON field '{name}.cursor.{part}' is an unknown field.")


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0


_IS: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "array": lambda value: isinstance(value, list),
    "bool": lambda value: isinstance(value, bool),
    "cursor": lambda value: isinstance(value, dict),
    "hint": lambda value: type(value) is str or isinstance(value, dict),
    "long": lambda value: isinstance(value, Int64),
    "number": _is_finite,
    "object": lambda value: isinstance(value, dict),
    "objects": lambda value: isinstance(value, list),
    "one or all": lambda value: not is_number(value) or float(str(value)) in (0, 1),
    "string": lambda value: type(value) is str,
    "switch": lambda value: isinstance(value, bool) or is_number(value),
}


def _unknown(name: str, field: str, version: Version) -> CommandError:
    if version < (5, 0) and name in ("find", "aggregate"):
        word = "Unrecognized" if name == "find" else "unrecognized"
        return CommandError(9, "FailedToParse", f"{word} field '{field}'")
    if version < (5, 0) and name == "findAndModify":
        return CommandError(40415, "Location40415", f"BSON field '{field}' is an unknown field.")
    return CommandError(40415, "Location40415", f"BSON field '{name}.{field}' is an unknown field.")
