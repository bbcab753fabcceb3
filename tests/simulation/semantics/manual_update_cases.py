"""Updates and upserts, as the manual describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import after
from .cases import (
    Case,
    Error,
    update,
)
from .manual_calls import code, everything, page, plain, refused, shown, tried

_GRADES = [
    {"grade": 80, "mean": 75, "std": 8},
    {"grade": 85, "mean": 90, "std": 5},
    {"grade": 90, "mean": 85, "std": 3},
]


def _upserted(filter: Any, change: Any, **options: Any) -> Callable[[Any], Any]:
    """The document that an upsert inserts, without its id."""

    def run(collection: Any) -> Any:
        collection.update_one(filter, change, upsert=True, **options)
        return plain(collection.find_one({}, {"_id": 0}))

    return run


CASES = [
    Case(
        "a dollar stands for the element that matches several conditions",
        [{"_id": 5, "grades": _GRADES}],
        after(
            lambda c: c.update_one(
                {"grades": {"$elemMatch": {"grade": {"$lte": 90}, "mean": {"$gt": 80}}}}, {"$inc": {"grades.$.std": 10}}
            ),
            lambda c: [grade["std"] for grade in c.find_one()["grades"]],
        ),
        [8, 15, 3],
        page("reference/operator/update/positional"),
    ),
    Case(
        "an element that is unset becomes null",
        [{"_id": 1, "tags": ["a", "b", "c"]}],
        update({"tags": "b"}, {"$unset": {"tags.$": ""}}),
        {"_id": 1, "tags": ["a", None, "c"]},
        page("reference/operator/update/positional"),
    ),
    Case(
        "a dollar fails in an upsert that inserts",
        [],
        refused(lambda c: c.update_one({"tags": "x"}, {"$set": {"tags.$": "y"}}, upsert=True)),
        "refused",
        page("reference/operator/update/positional"),
    ),
    Case(
        "filters pick elements of nested arrays",
        [
            {
                "_id": 1,
                "grades": [
                    {"type": "quiz", "questions": [10, 8, 5]},
                    {"type": "quiz", "questions": [8, 9, 6]},
                    {"type": "hw", "questions": [5, 4, 30]},
                ],
            }
        ],
        after(
            lambda c: c.update_many(
                {},
                {"$inc": {"grades.$[t].questions.$[score]": 2}},
                array_filters=[{"t.type": "quiz"}, {"score": {"$gte": 8}}],
            ),
            lambda c: [grade["questions"] for grade in c.find_one()["grades"]],
        ),
        [[12, 10, 5], [10, 11, 6], [5, 4, 30]],
        page("reference/operator/update/positional-filtered"),
    ),
    Case(
        "an upsert takes the array that its filters look at from an equality",
        [],
        _upserted({"myArray": [0, 1, 0]}, {"$set": {"myArray.$[element]": 2}}, array_filters=[{"element": 0}]),
        {"myArray": [2, 1, 2]},
        page("reference/operator/update/positional-filtered"),
    ),
    Case(
        "an upsert without the array that its filters look at fails",
        [],
        refused(_upserted({}, {"$set": {"myArray.$[element]": 10}}, array_filters=[{"element": 9}])),
        "refused",
        page("reference/operator/update/positional-filtered"),
    ),
    Case(
        "a filter of elements that the update does not name is refused",
        [{"_id": 1, "a": [1]}],
        refused(lambda c: c.update_one({}, {"$set": {"b": 1}}, array_filters=[{"element": 1}])),
        "refused",
        page("reference/method/db.collection.update"),
    ),
    Case(
        "a negation picks the elements that lack the field too",
        [{"_id": 1, "degrees": [{"level": "Master"}, {"level": "Bachelor"}, {"year": 2001}]}],
        after(
            lambda c: c.update_many(
                {}, {"$set": {"degrees.$[d].mail": 1}}, array_filters=[{"d.level": {"$ne": "Bachelor"}}]
            ),
            lambda c: ["mail" in degree for degree in c.find_one()["degrees"]],
        ),
        [True, False, True],
        page("reference/operator/update/positional-filtered"),
    ),
    Case(
        "pushed numbers are sorted, then cut",
        [{"_id": 1, "tests": [89, 70, 89, 50]}],
        update({}, {"$push": {"tests": {"$slice": -3, "$sort": 1, "$each": [100, 20]}}}),
        {"_id": 1, "tests": [89, 89, 100]},
        page("reference/operator/update/push"),
    ),
    Case(
        "elements are pushed before the last one",
        [{"_id": 1, "a": [1, 2, 3]}],
        update({}, {"$push": {"a": {"$each": ["x", "y"], "$position": -1}}}),
        {"_id": 1, "a": [1, 2, "x", "y", 3]},
        page("reference/operator/update/position"),
    ),
    Case(
        "pushing nothing sorts the documents of an array by a field",
        [{"_id": 1, "q": [{"id": 1, "s": 6}, {"id": 2, "s": 9}, {"id": 3, "s": 4}]}],
        after(
            lambda c: c.update_one({}, {"$push": {"q": {"$each": [], "$sort": {"s": -1}}}}),
            lambda c: [element["id"] for element in c.find_one()["q"]],
        ),
        [2, 1, 3],
        page("reference/operator/update/sort"),
    ),
    Case(
        "documents of another order of fields are not the same to a set",
        [{"_id": 1, "s": [{"a": 1, "b": 2}, "x", "x"]}],
        after(
            lambda c: c.update_one({}, {"$addToSet": {"s": {"$each": [{"a": 1, "b": 2}, {"b": 2, "a": 1}, "x"]}}}),
            lambda c: len(c.find_one()["s"]),
        ),
        4,
        page("reference/operator/update/addToSet"),
    ),
    Case(
        "elements whose inner array matches are pulled",
        [
            {
                "_id": 1,
                "results": [
                    {"item": "A", "answers": [{"q": 1, "a": 4}, {"q": 2, "a": 6}]},
                    {"item": "B", "answers": [{"q": 1, "a": 8}, {"q": 2, "a": 9}]},
                    {"item": "C", "answers": [{"q": 1, "a": 9}, {"q": 2, "a": 7}]},
                ],
            }
        ],
        after(
            lambda c: c.update_one({}, {"$pull": {"results": {"answers": {"$elemMatch": {"q": 2, "a": {"$gte": 8}}}}}}),
            lambda c: [result["item"] for result in c.find_one()["results"]],
        ),
        ["A", "C"],
        page("reference/operator/update/pull"),
    ),
    Case(
        "a condition pulls documents that have other fields too",
        [{"_id": 1, "r": [{"item": "B", "score": 8, "comment": "x"}, {"item": "B", "score": 4}]}],
        update({}, {"$pull": {"r": {"score": 8, "item": "B"}}}),
        {"_id": 1, "r": [{"item": "B", "score": 4}]},
        page("reference/operator/update/pull"),
    ),
    Case(
        "a missing field is multiplied to zero of the multiplier's type",
        [{"_id": 1}],
        update({}, {"$mul": {"a": 5, "b": 2.5}}),
        {"_id": 1, "a": 0, "b": 0.0},
        page("reference/operator/update/mul"),
    ),
    Case(
        "the lesser and the greater of two types follow their order",
        [{"_id": 1, "a": 10, "b": 10, "c": "x"}],
        update({}, {"$max": {"a": "text"}, "$min": {"b": "text", "c": 3}}),
        {"_id": 1, "a": "text", "b": 10, "c": 3},
        page("reference/operator/update/max"),
    ),
    Case(
        "a renamed field takes the place of another one",
        [{"_id": 1, "old": 1, "new": 2, "sub": {"x": 3}}],
        after(lambda c: c.update_one({}, {"$rename": {"old": "new", "sub.x": "y", "none": "z"}}), everything),
        [{"_id": 1, "new": 1, "sub": {}, "y": 3}],
        page("reference/operator/update/rename"),
    ),
    Case(
        "bits are combined",
        [{"_id": 1, "a": 13, "b": 3, "c": 1}],
        update({}, {"$bit": {"a": {"and": 10}, "b": {"or": 5}, "c": {"xor": 5}}}),
        {"_id": 1, "a": 8, "b": 7, "c": 4},
        page("reference/operator/update/bit"),
    ),
    Case(
        "one field is not changed by two operators",
        [{"_id": 1, "a": 1}],
        lambda c: c.update_one({}, {"$set": {"a": 5}, "$inc": {"a": 1}}),
        Error(40),
        page("reference/error-codes"),
    ),
    Case(
        "an id does not change",
        [{"_id": 1, "a": 1}],
        lambda c: c.update_one({"a": 1}, {"$set": {"_id": 2}}),
        Error(66),
        page("core/document"),
    ),
    Case(
        "an operator without fields changes nothing",
        [{"_id": 1, "a": 1}],
        lambda c: shown(c.update_one({}, {"$set": {}}), lambda result: [result.matched_count, result.modified_count]),
        [1, 0],
        page("reference/operator/update/set"),
    ),
    Case(
        "documents that have the value already are matched but not modified",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3, "a": 3}],
        lambda c: shown(
            c.update_many({"a": {"$lte": 2}}, {"$set": {"a": 2}}),
            lambda result: [result.matched_count, result.modified_count],
        ),
        [2, 1],
        page("reference/method/db.collection.updateMany"),
    ),
    Case(
        "a pipeline computes fields from fields it has set before",
        [{"_id": 1, "q1": 8, "q2": 10, "old": 1}],
        after(
            lambda c: c.update_one(
                {},
                [
                    {"$set": {"avg": {"$avg": ["$q1", "$q2"]}}},
                    {
                        "$set": {
                            "grade": {
                                "$switch": {"branches": [{"case": {"$gte": ["$avg", 9]}, "then": "A"}], "default": "B"}
                            }
                        }
                    },
                    {"$unset": ["old", "q1"]},
                ],
            ),
            everything,
        ),
        [{"_id": 1, "avg": 9.0, "grade": "A", "q2": 10}],
        page("tutorial/update-documents-with-aggregation-pipeline"),
    ),
    Case(
        "a pipeline that filters does not update",
        [{"_id": 1}],
        refused(lambda c: c.update_one({}, [{"$match": {"a": 1}}])),
        "refused",
        page("reference/command/update"),
    ),
    Case(
        "variables of a command are seen by its filter and its pipeline",
        [{"_id": 1, "flavor": "cherry"}, {"_id": 2, "flavor": "raspberry"}],
        after(
            lambda c: c.update_one(
                {"$expr": {"$eq": ["$flavor", "$$target"]}},
                [{"$set": {"flavor": "$$fresh"}}],
                let={"target": "cherry", "fresh": "orange"},
            ),
            everything,
        ),
        [{"_id": 1, "flavor": "orange"}, {"_id": 2, "flavor": "raspberry"}],
        page("reference/command/update"),
    ),
    Case(
        "an upsert takes equalities, not comparisons, from its filter",
        [],
        _upserted(
            {"item": "BLP921", "size": {"$eq": 4}, "n": {"$gte": 10}, "$and": [{"in.side": True}]},
            {"$set": {"reorder": False}, "$setOnInsert": {"stock": 10}},
        ),
        {"in": {"side": True}, "item": "BLP921", "reorder": False, "size": 4, "stock": 10},
        page("reference/method/db.collection.update"),
    ),
    Case(
        "an upsert applies its operators to what it took from the filter",
        [],
        _upserted({"a": 5, "b": "gone", "info.x": 1}, {"$inc": {"a": 2}, "$unset": {"b": 1}, "$set": {"info.y": 2}}),
        {"a": 7, "info": {"x": 1, "y": 2}},
        page("reference/method/db.collection.update"),
    ),
    Case(
        "an upsert that finds a document leaves out what is for inserting",
        [{"_id": 1, "n": 1}],
        after(
            lambda c: c.update_one({"_id": 1}, {"$inc": {"n": 1}, "$setOnInsert": {"made": 1}}, upsert=True), everything
        ),
        [{"_id": 1, "n": 2}],
        page("reference/operator/update/setOnInsert"),
    ),
    Case(
        "an upsert with an expression within its filter is refused, whether a document matches or not",
        [{"_id": 1}],
        lambda c: [
            code(lambda: c.find_one_and_update({"_id": 1, "$expr": True}, {"$set": {"b": 1}}, upsert=True)),
            code(lambda: c.update_many({"$and": [{"$expr": False}]}, {"$set": {"b": 1}}, upsert=True)),
            code(lambda: c.update_many({"$and": [{"$expr": False}]}, {"$set": {"b": 1}})),
        ],
        [224, 224, None],
        "server: src/mongo/db/ops/parsed_update.cpp",
    ),
    Case(
        "an upsert of a part of an id fails with a replacement",  # and not with operators, whatever the manual says
        [],
        lambda c: [
            tried(lambda c: c.replace_one({"_id.name": "Robert"}, {"a": 1}, upsert=True), c),
            c.update_one({"_id.name": "Robert"}, {"$set": {"a": 1}}, upsert=True).upserted_id,
        ],
        [("code", 111), {"name": "Robert"}],
        "server: jstests/core/write/update/upsert_fields.js",
    ),
    Case(
        "an upsert of a replacement has the filter's id and no other field of the filter",
        [],
        after(lambda c: c.replace_one({"_id": 9, "a": 1}, {"b": 2}, upsert=True), everything),
        [{"_id": 9, "b": 2}],
        page("reference/method/db.collection.update"),
    ),
    Case(
        "an upsert with an expression for a filter is refused",
        [],
        refused(lambda c: c.update_one({"$expr": {"$eq": ["$a", 1]}}, {"$set": {"b": 1}}, upsert=True)),
        "refused",
        page("reference/method/db.collection.update"),
    ),
    Case(
        "an upsert of a pipeline works on the equalities of its filter",
        [],
        _upserted(
            {"item": "MRQ014", "ratings": [2, 5, 8]},
            [
                {"$replaceRoot": {"newRoot": {"$mergeObjects": [{"stock": 0}, "$$ROOT"]}}},
                {"$set": {"avgRating": {"$avg": "$ratings"}}},
            ],
        ),
        {"avgRating": 5.0, "item": "MRQ014", "ratings": [2, 5, 8], "stock": 0},
        page("reference/method/db.collection.update"),
    ),
    Case(
        "an upsert of many inserts one",
        [{"_id": 1, "a": 1}],
        after(
            lambda c: c.update_many({"_id": 4, "p.q": "self"}, {"$set": {"b": 1}}, upsert=True),
            everything,
        ),
        [{"_id": 1, "a": 1}, {"_id": 4, "b": 1, "p": {"q": "self"}}],
        page("reference/method/db.collection.update"),
    ),
]
