"""The manual's examples of indexes: what they serve, and what they cannot be."""

from __future__ import annotations

from typing import Any

from .calls import Call, after, command
from .cases import Case, find
from .examples import FRUIT
from .refusals import (
    NO_INDEX,
    NOT_ALLOWED,
    NOT_CREATED,
    ONE,
    UNPARSED,
    answers,
    batch,
    found,
    inserted,
    location,
    make_index,
    not_indexed,
    of,
    refusal,
    write_code,
)

KEYS = "server: src/mongo/db/catalog/index_key_validate.cpp"
TEXT_INDEX = "server: src/mongo/db/fts/fts_spec.cpp"
LOCATED = [{"_id": 1, "a": [{"loc": "A", "qty": 5}, {"qty": 10}]}]
SCORED = [
    {"_id": 1, "userid": "newbie"},
    {"_id": 2, "userid": "abby", "score": 82},
    {"_id": 3, "userid": "nina", "score": 90},
]


def _steps(**fields: Any) -> Call:
    """The stages of the plan by which a find is answered."""

    def names(plan: Any) -> list[Any]:
        if isinstance(plan, list):
            return [name for each in plan for name in names(each)]
        if not isinstance(plan, dict):
            return []
        own = [plan["stage"]] if isinstance(plan.get("stage"), str) else []
        return own + [name for each in plan.values() for name in names(each)]

    def run(collection: Any) -> Any:
        found = {"find": collection.name, **fields}
        reply = collection.database.command({"explain": found, "verbosity": "queryPlanner"})
        return names(reply["queryPlanner"]["winningPlan"])

    return run


def _scans(**fields: Any) -> Call:
    return of(_steps(**fields), lambda names: "IXSCAN" in names)


def _sorts(**fields: Any) -> Call:
    return of(_steps(**fields), lambda names: "SORT" in names)


def _no_index(name: str, key: Any, expected: Any = tuple(NOT_CREATED), source: str = KEYS, **options: Any) -> Case:
    return Case(name, ONE, not_indexed(key, **options), list(expected), source)


CASES = [
    Case(
        "a sort by a sparse index leaves out documents only if it is hinted",
        SCORED,
        after(
            make_index({"score": 1}, sparse=True),
            answers(found(sort={"score": -1}), found(sort={"score": -1}, hint={"score": 1})),
        ),
        [[3, 2, 1], [3, 2]],
        "manual: core/index-sparse",
    ),
    Case(
        "a hidden index is not used until it is shown",
        SCORED,
        after(
            make_index({"score": 1}, hidden=True),
            answers(
                _scans(filter={"score": 82}),
                after(
                    command("collMod", index={"keyPattern": {"score": 1}, "hidden": False}),
                    _scans(filter={"score": 82}),
                ),
            ),
        ),
        [False, True],
        "manual: core/index-hidden",
    ),
    Case(
        "a sort by the rest of an index is not done in memory",
        FRUIT,
        after(
            make_index({"item": 1, "price": 1}),
            answers(
                _sorts(filter={"item": "apple"}, sort={"price": 1}),
                _sorts(filter={"item": "apple"}, sort={"type": 1}),
            ),
        ),
        [False, True],
        "manual: tutorial/sort-results-with-indexes",
    ),
    Case(
        "an index gives its order and the reverse, and no other",
        FRUIT,
        after(
            make_index({"item": 1, "price": -1}),
            answers(
                _sorts(sort={"item": 1, "price": -1}),
                _sorts(sort={"item": -1, "price": 1}),
                _sorts(sort={"item": 1, "price": 1}),
            ),
        ),
        [False, False, True],
        "manual: core/indexes/index-types/index-compound/sort-order",
    ),
    Case(
        "a unique index of two fields in an array",
        LOCATED,
        after(
            make_index({"a.loc": 1, "a.qty": 1}, unique=True),
            inserted({"_id": 2, "a": [{"loc": "A"}, {"qty": 5}]}),
            inserted({"_id": 3, "a": [{"loc": "A", "qty": 10}]}),
            answers(write_code("insert", documents=[{"_id": 4, "a": [{"loc": "A", "qty": 5}]}]), find({})),
        ),
        [11000, [1, 2, 3]],
        "manual: core/index-unique",
    ),
    Case(
        "an index is dropped by its key",
        ONE,
        after(make_index({"a": 1}), command("dropIndexes", of=lambda reply: reply["nIndexesWas"], index={"a": 1})),
        2,
        "manual: reference/command/dropIndexes",
    ),
    Case(
        "of two indexes to drop one is not there, and the other stays",
        ONE,
        after(
            make_index({"a": 1}),
            answers(
                refusal(command("dropIndexes", index=["a_1", "b_1"])),
                of(batch("listIndexes"), lambda found: [each["name"] for each in found]),
            ),
        ),
        [NO_INDEX, ["_id_", "a_1"]],
        "manual: reference/command/dropIndexes",
    ),
    _no_index("an index in direction zero", {"a": 0}),
    _no_index("weights without a text", {"a": 1}, weights={"a": 2}),
    _no_index("a language that there is not", {"a": "text"}, default_language="klingon", source=TEXT_INDEX),
    _no_index("a unique hashed index", {"a": "hashed"}, location(16764), unique=True),
    _no_index("an index of _id that is sparse", {"_id": 1}, [197, "InvalidIndexSpecificationOption"], sparse=True),
    _no_index(
        "a partial index by an expression",
        {"a": 1},
        NOT_ALLOWED,
        partialFilterExpression={"$expr": {"$gt": ["$a", 1]}},
    ),
    Case(
        "an index without a name",
        ONE,
        refusal(command("createIndexes", indexes=[{"key": {"a": 1}}])),
        UNPARSED,
        KEYS,
    ),
    Case(
        "a document in a language that a text index does not know",
        [],
        after(
            make_index({"title": "text"}),
            write_code("insert", documents=[{"_id": 1, "title": "nuqneH", "language": "klingon"}]),
        ),
        17262,
        TEXT_INDEX,
    ),
    Case(
        "a place beyond the bounds of a flat index",
        [],
        after(make_index({"at": "2d"}), write_code("insert", documents=[{"_id": 1, "at": [200, 0]}])),
        13027,
        "manual: core/indexes/index-types/geospatial/2d",
    ),
]
