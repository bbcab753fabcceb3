"""What no collection stores, and what an index of places or of texts does not take."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Int64

from .calls import Call, after, attempt, command, made, stored
from .cases import Case, find
from .refusals import MISMATCH, NO_NAME, ONE, make_index, of_others, refusal, update_code, within, write_code

DEPTH = "server: src/mongo/db/ops/insert.cpp, validateDepth"
SYSTEM = "server: src/mongo/db/namespace_string.cpp, isLegalClientSystemNS"
LANGUAGE = "server: src/mongo/db/fts/fts_spec.cpp, getLanguageToUse"
PLANE = "server: src/mongo/db/geo/hash.cpp"
SERIES = "manual: core/timeseries/timeseries-limitations"


def _deep(levels: int, innermost: Any) -> Any:
    """Documents, and an array in each second of them, to so many levels with that of the whole."""
    value = innermost
    for level in range(levels - 1):
        value = [value] if level % 2 else {"a": value}
    return {"_id": 1, "a": value}


def _inserted(document: Any) -> Call:
    return write_code("insert", documents=[document])


def _in_system(call: Call) -> Call:
    return lambda collection: call(collection.database["system.nothing"])


def _of_system(name: str, call: Call) -> Case:
    return Case(f"{name} of a collection of the system", [], refusal(_in_system(call)), NO_NAME, SYSTEM)


def _in_series(name: str, **fields: Any) -> Case:
    def run(collection: Any, session: Any) -> Any:
        return collection.database.command({name: collection.name, **fields}, session=session)

    call = after(made(timeseries={"timeField": "at", "metaField": "of"}), within(run))
    return Case(
        f"{name} of a time series in a transaction", [], call, [263, "OperationNotSupportedInTransaction"], SERIES
    )


def _written(name: str, document: Any, expected: Any, *, source: str = LANGUAGE, **index: Any) -> Case:
    """The code with which a document is refused, by an index that is there, and by one that is made later."""
    key = index.pop("key", {"a.b": "text"})

    def run(collection: Any) -> Any:
        first = after(make_index(key, **index), _inserted(document))(collection)
        collection.drop()
        later = attempt(after(_inserted(document), make_index(key, **index)))(collection)
        return [first, later]

    return Case(name, [], run, [expected, expected], source)


def _in_plane(place: Any, expected: Any, **bounds: Any) -> Case:
    name = f"the place {place} in a plane {bounds or 'of degrees'}"
    return _written(name, {"_id": 1, "at": place}, expected, source=PLANE, key={"at": "2d"}, **bounds)


CASES = [
    Case("a document of 180 levels", [], _inserted(_deep(180, 1)), None, DEPTH),
    Case("a document of 181 levels", [], _inserted(_deep(181, 1)), 15, DEPTH),
    Case("a replacement of 200 levels", ONE, update_code({}, _deep(200, 1)), 15, DEPTH),
    Case("an upsert of 200 levels", [], update_code({"_id": 1}, {"$set": _deep(200, 1)}, upsert=True), 15, DEPTH),
    _of_system("insert", command("insert", documents=[{"_id": 1}])),
    _of_system("update", command("update", updates=[{"q": {}, "u": {"$set": {"a": 1}}}])),
    _of_system("delete", command("delete", deletes=[{"q": {}, "limit": 0}])),
    _of_system("findAndModify", command("findAndModify", query={}, remove=True)),
    _of_system("create", command("create")),
    _of_system("createIndexes", command("createIndexes", indexes=[{"key": {"a": 1}, "name": "a_1"}])),
    _in_series("insert", documents=[{"at": datetime(2024, 5, 1), "of": 1}]),
    _in_series("update", updates=[{"q": {"of": 1}, "u": {"$set": {"of": 2}}, "multi": True}]),
    _in_series("delete", deletes=[{"q": {"of": 1}, "limit": 0}]),
    Case(
        "killCursors of a cursor that is no long",
        ONE,
        refusal(command("killCursors", cursors=[Int64(5), 5])),
        MISMATCH,
        "server: src/mongo/db/query/kill_cursors.idl",
    ),
    _in_plane([180, -180], None),
    _in_plane([0, 181], 13027),
    _in_plane({"x": -181, "y": 0}, 13027),
    _in_plane([[0, 0], [0, 200]], 13027),
    _in_plane([0, 200], None, min=-300, max=300),
    _in_plane([11, 0], 13027, min=-10, max=10),
    _written("a language that is no string", {"_id": 1, "language": 5}, 17261),
    _written("a language of a document on the way to a text", {"_id": 1, "a": [{"language": "klingon"}]}, 17262),
    _written("a language of a document beside the texts", {"_id": 1, "c": {"language": "klingon"}}, None),
    _written("a language in a field of another name", {"_id": 1, "in": "klingon"}, 17262, language_override="in"),
    _written("a language that is not asked for", {"_id": 1, "language": "klingon"}, None, language_override="in"),
    Case(
        "min and max in the order of an index that falls",
        [{"_id": number, "a": value} for number, value in enumerate([3, 1, 4, 1, 5, 9, 2, 6])],
        after(make_index({"a": -1}), find({}, min=[("a", 6)], max=[("a", 1)], hint={"a": -1})),
        [7, 4, 2, 0, 6],
        "manual: reference/method/cursor.min",
    ),
    Case(
        "a copy that is capped keeps the newest documents",
        [{"_id": number, "a": "x" * 2000} for number in range(10)],
        after(
            command("cloneCollectionAsCapped", toCollection="others", size=4096),
            of_others(lambda collection: [each["_id"] for each in stored(collection)]),
        ),
        [8, 9],
        "manual: reference/command/cloneCollectionAsCapped",
    ),
]
