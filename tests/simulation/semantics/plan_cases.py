"""Plans, as ``explain`` tells them: stages, bounds and counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import Case
from .refusals import indexed, refusal

COUNTED = "server: jstests/core/query/explain/explain_count.js"
CHANGED = "server: jstests/core/query/explain/explain_find_and_modify.js"
DISTINCT = "server: jstests/core/query/explain/explain_distinct.js"
MULTIKEY = "server: jstests/core/query/explain/explain_multikey.js"
RESULTS = "manual: reference/explain-results"
TENS = [{"_id": number, "a": 1} for number in range(10)]
PAIRS = [{"_id": number, "a": 1 + number % 2, "b": number} for number in range(20)]
LISTS = [{"_id": 1, "a": [1, 2], "b": {"c": [3]}}]


def _explained(fields: Any, of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part of the explanation of a command."""

    def run(collection: Any) -> Any:
        name, *others = fields.items()
        command = {name[0]: collection.name, **dict(others)}
        return of(collection.database.command({"explain": command, "verbosity": "executionStats"}))

    return run


def _stages(explained: Any) -> list[str]:
    node, found = explained["queryPlanner"]["winningPlan"], []
    while node:
        found.append(node["stage"])
        node = node.get("inputStage")
    return found


def _counted(name: str, fields: Any, expected: int, documents: Any = tuple(TENS)) -> Case:
    call = _explained({"count": 1, **fields}, lambda found: int(found["executionStats"]["executionStages"]["nCounted"]))
    return Case(name, list(documents), indexed({"a": 1, "_id": 1}, call), expected, COUNTED)


def _would(name: str, fields: Any, expected: Any) -> Case:
    """How many a find-and-modify would return, delete, modify and upsert."""
    names = ("nReturned", "nWouldDelete", "nWouldModify", "nWouldUpsert")

    def of(found: Any) -> Any:
        stages = found["executionStats"]["executionStages"]
        return [int(stages[field]) for field in names if field in stages]

    documents = [{"_id": 0, "i": 1}]
    return Case(name, documents, _explained({"findAndModify": 1, **fields}, of), expected, CHANGED)


def _bounds(name: str, filter: Any, expected: Any, **fields: Any) -> Case:
    def of(found: Any) -> Any:
        node = found["queryPlanner"]["winningPlan"]
        while node["stage"] != "IXSCAN":
            node = node["inputStage"]
        return [node["indexBounds"], node["direction"]]

    call = _explained({"find": 1, "filter": filter, **fields}, of)
    return Case(name, PAIRS, indexed({"a": 1, "b": -1}, call), expected, RESULTS)


def _range(found: Any) -> Any:
    node = found["executionStats"]["executionStages"]["inputStage"]
    return [node["stage"], *(node["indexBounds"][name] for name in ("startKeyInclusive", "endKeyInclusive"))]


INCREMENT = {"update": {"$inc": {"i": 1}}}
CASES = [
    _counted("explain of a count of all", {}, 10),
    _counted("explain of a count with a skip", {"skip": 3}, 7),
    _counted("explain of a count with a limit", {"limit": 3}, 3),
    _counted("explain of a count with a negative limit and a skip", {"limit": -3, "skip": 4}, 3),
    _counted("explain of a count with a query and a limit", {"query": {"a": 1}, "limit": 3}, 3),
    _counted("explain of a count that skips all", {"query": {"a": 2}, "skip": 2}, 0),
    Case(
        "a count by an index looks at no document",
        TENS,
        indexed({"a": 1, "_id": 1}, _explained({"count": 1, "query": {"a": 1}}, _range)),
        ["COUNT_SCAN", True, True],
        COUNTED,
    ),
    _would("explain of a removal of none", {"remove": True, "query": {"_id": "no-match"}}, [0, 0]),
    _would("explain of a removal", {"remove": True, "query": {"_id": 0}}, [1, 1]),
    _would("explain of an update of none", {**INCREMENT, "query": {"_id": "no-match"}}, [0, 0, 0]),
    _would("explain of an update", {**INCREMENT, "query": {"_id": 0}}, [1, 1, 0]),
    _would("explain of an upsert", {**INCREMENT, "upsert": True, "query": {"_id": "no-match"}}, [0, 0, 1]),
    _would(
        "explain of an upsert that gives the new document",
        {**INCREMENT, "upsert": True, "query": {"_id": "no-match"}, "new": True},
        [1, 0, 1],
    ),
    Case(
        "a find and modify with fields ends with a projection",
        [{"_id": 0, "i": 1}],
        _explained(
            {"findAndModify": 1, **INCREMENT, "query": {"i": 1}, "fields": {"i": 0}}, lambda found: _stages(found)[:2]
        ),
        ["PROJECTION_DEFAULT", "UPDATE"],
        CHANGED,
    ),
    Case(
        "distinct by an index looks at each value once",
        PAIRS,
        indexed(
            {"a": 1},
            _explained(
                {"distinct": 1, "key": "a", "query": {}},
                lambda found: [*_stages(found), int(found["executionStats"]["nReturned"])],
            ),
        ),
        ["PROJECTION_COVERED", "DISTINCT_SCAN", 2],
        DISTINCT,
    ),
    Case(
        "distinct without an index looks at all documents",
        PAIRS,
        _explained(
            {"distinct": 1, "key": "b", "query": {}},
            lambda found: [*_stages(found), int(found["executionStats"]["nReturned"])],
        ),
        ["COLLSCAN", 20],
        DISTINCT,
    ),
    Case(
        "distinct with a bad query is not explained",
        PAIRS,
        refusal(_explained({"distinct": 1, "key": "b", "query": {"$not": 1}}, _stages)),
        [2, "BadValue"],
        DISTINCT,
    ),
    _bounds(
        "bounds of two fields", {"a": 1, "b": {"$gt": 2, "$lte": 8}}, [{"a": ["[1, 1]"], "b": ["[8, 2)"]}, "forward"]
    ),
    _bounds(
        "bounds of several values",
        {"a": {"$in": [2, 1]}},
        [{"a": ["[1, 1]", "[2, 2]"], "b": ["[MaxKey, MinKey]"]}, "forward"],
    ),
    _bounds(
        "bounds of a scan that goes backwards",
        {"a": 1},
        [{"a": ["[1, 1]"], "b": ["[MinKey, MaxKey]"]}, "backward"],
        sort={"b": 1},
    ),
    Case(
        "an index knows the paths of arrays",
        LISTS,
        indexed(
            {"a": 1, "b": 1},
            _explained(
                {"find": 1, "filter": {"a": 1}},
                lambda found: [
                    found["queryPlanner"]["winningPlan"]["inputStage"][name] for name in ("isMultiKey", "multiKeyPaths")
                ],
            ),
        ),
        [True, {"a": ["a"], "b": []}],
        MULTIKEY,
    ),
    Case(
        "a sort in memory is below a skip",
        PAIRS,
        _explained({"find": 1, "filter": {"a": 1}, "sort": {"b": 1}, "skip": 1, "limit": 2}, _stages),
        ["SKIP", "SORT", "COLLSCAN"],
        "server: jstests/core/query/explain/explain_skip.js",
    ),
    Case(
        "a covered query fetches nothing",
        PAIRS,
        indexed({"a": 1}, _explained({"find": 1, "filter": {"a": 1}, "projection": {"a": 1, "_id": 0}}, _stages)),
        ["PROJECTION_COVERED", "IXSCAN"],
        "manual: core/query-optimization (covered query)",
    ),
]
