"""The manual's examples of updates, and updates that are refused."""

from __future__ import annotations

from typing import Any

from .calls import after, command
from .cases import Case, update
from .refusals import ONE, changed, of, plain, update_code

UPDATE = "manual: reference/operator/update"
RATED = {
    "_id": 100,
    "quantity": 250,
    "instock": True,
    "reorder": False,
    "details": {"model": "14QQ", "make": "Clothes Corp"},
    "tags": ["apparel", "clothing"],
    "ratings": [{"by": "Customer007", "rating": 4}],
}
GRADED = [
    {
        "_id": 1,
        "grades": [
            {"type": "quiz", "questions": [10, 8, 5]},
            {"type": "quiz", "questions": [8, 9, 6]},
            {"type": "hw", "questions": [5, 4, 3]},
            {"type": "exam", "questions": [25, 10, 23, 0]},
        ],
    }
]
ANSWERED = [
    {
        "_id": 1,
        "results": [
            {"item": "A", "score": 5, "answers": [{"q": 1, "a": 4}, {"q": 2, "a": 6}]},
            {"item": "B", "score": 8, "answers": [{"q": 1, "a": 8}, {"q": 2, "a": 9}]},
        ],
    },
    {
        "_id": 2,
        "results": [
            {"item": "C", "score": 8, "answers": [{"q": 1, "a": 8}, {"q": 2, "a": 7}]},
            {"item": "B", "score": 4, "answers": [{"q": 1, "a": 0}, {"q": 2, "a": 8}]},
        ],
    },
]
LETTER = {
    "$switch": {
        "branches": [
            {"case": {"$gte": ["$average", 90]}, "then": "A"},
            {"case": {"$gte": ["$average", 80]}, "then": "B"},
            {"case": {"$gte": ["$average", 70]}, "then": "C"},
            {"case": {"$gte": ["$average", 60]}, "then": "D"},
        ],
        "default": "F",
    }
}


def _no_update(name: str, change: Any, expected: int, source: str, **fields: Any) -> Case:
    return Case(name, ONE, update_code({}, change, **fields), expected, f"server: {source}")


CASES = [
    Case(
        "$set of a path, of an element and of an element's field",
        [RATED],
        update({"_id": 100}, {"$set": {"details.make": "Kustom Kidz", "tags.1": "rain gear", "ratings.0.rating": 2}}),
        {
            "_id": 100,
            "quantity": 250,
            "instock": True,
            "reorder": False,
            "details": {"model": "14QQ", "make": "Kustom Kidz"},
            "tags": ["apparel", "rain gear"],
            "ratings": [{"by": "Customer007", "rating": 2}],
        },
        f"{UPDATE}/set",
    ),
    Case(
        "$inc below and above zero",
        [{"_id": 1, "sku": "abc123", "quantity": 10, "metrics": {"orders": 2, "ratings": 3.5}}],
        update({"sku": "abc123"}, {"$inc": {"quantity": -2, "metrics.orders": 1}}),
        {"_id": 1, "sku": "abc123", "quantity": 8, "metrics": {"orders": 3, "ratings": 3.5}},
        f"{UPDATE}/inc",
    ),
    Case(
        "$rename within a document",
        [{"_id": 1, "nickname": ["The Man"], "name": {"first": "george", "last": "washington"}}],
        of(
            update({"_id": 1}, {"$rename": {"nickname": "alias", "name.first": "name.fname"}}),
            lambda found: [sorted(found), sorted(found["name"].items()), found["alias"]],
        ),
        [["_id", "alias", "name"], [("fname", "george"), ("last", "washington")], ["The Man"]],
        f"{UPDATE}/rename",
    ),
    Case(
        "$addToSet of an array is one element",
        [{"_id": 1, "letters": ["a", "b"]}],
        update({"_id": 1}, {"$addToSet": {"letters": ["c", "d"]}}),
        {"_id": 1, "letters": ["a", "b", ["c", "d"]]},
        f"{UPDATE}/addToSet",
    ),
    Case(
        "$pull by a condition on an array within",
        ANSWERED,
        changed(
            {},
            {"$pull": {"results": {"answers": {"$elemMatch": {"q": 2, "a": {"$gte": 8}}}}}},
            multi=True,
        ),
        [
            {"_id": 1, "results": [{"item": "A", "score": 5, "answers": [{"q": 1, "a": 4}, {"q": 2, "a": 6}]}]},
            {"_id": 2, "results": [{"item": "C", "score": 8, "answers": [{"q": 1, "a": 8}, {"q": 2, "a": 7}]}]},
        ],
        f"{UPDATE}/pull",
    ),
    Case(
        "$push of nothing sorts what is there",
        [{"_id": 3, "tests": [89, 70, 100, 20]}],
        update({"_id": 3}, {"$push": {"tests": {"$each": [], "$sort": -1}}}),
        {"_id": 3, "tests": [100, 89, 70, 20]},
        f"{UPDATE}/sort",
    ),
    Case(
        "all elements are raised by $[]",
        [{"_id": 1, "grades": [85, 82, 80]}, {"_id": 2, "grades": [88, 90, 92]}],
        changed({}, {"$inc": {"grades.$[]": 10}}, multi=True),
        [{"_id": 1, "grades": [95, 92, 90]}, {"_id": 2, "grades": [98, 100, 102]}],
        f"{UPDATE}/positional-all",
    ),
    Case(
        "elements of elements by two filters",
        GRADED,
        changed(
            {},
            {"$inc": {"grades.$[t].questions.$[score]": 2}},
            arrayFilters=[{"t.type": "quiz"}, {"score": {"$gte": 8}}],
            multi=True,
        ),
        [
            {
                "_id": 1,
                "grades": [
                    {"type": "quiz", "questions": [12, 10, 5]},
                    {"type": "quiz", "questions": [10, 11, 6]},
                    {"type": "hw", "questions": [5, 4, 3]},
                    {"type": "exam", "questions": [25, 10, 23, 0]},
                ],
            }
        ],
        f"{UPDATE}/positional-filtered",
    ),
    Case(
        "an upsert of an exact array, with a filter of its elements",
        [],
        after(
            changed(
                {"myArray": [0, 1]},
                {"$set": {"myArray.$[element]": 2}},
                arrayFilters=[{"element": 0}],
                upsert=True,
            ),
            lambda collection: collection.find_one({}, {"_id": 0}),
        ),
        {"myArray": [2, 1]},
        f"{UPDATE}/positional-filtered",
    ),
    Case(
        "an upsert without the array whose elements are filtered",
        [],
        update_code({}, {"$set": {"myArray.$[element]": 10}}, arrayFilters=[{"element": 9}], upsert=True),
        2,
        f"{UPDATE}/positional-filtered",
    ),
    Case(
        "$set of nothing is no error, and no change",
        ONE,
        command("update", of=lambda reply: [reply["n"], reply["nModified"]], updates=[{"q": {}, "u": {"$set": {}}}]),
        [1, 0],
        f"{UPDATE}/set",
    ),
    Case(
        "averages and grades by a pipeline",
        [
            {"_id": 1, "tests": [95, 92, 90]},
            {"_id": 2, "tests": [94, 88, 90]},
            {"_id": 3, "tests": [70, 75, 82]},
        ],
        of(
            changed(
                {},
                [{"$set": {"average": {"$trunc": [{"$avg": "$tests"}, 0]}}}, {"$set": {"grade": LETTER}}],
                multi=True,
            ),
            plain,
        ),
        [
            {"_id": 1, "tests": [95, 92, 90], "average": 92, "grade": "A"},
            {"_id": 2, "tests": [94, 88, 90], "average": 90, "grade": "A"},
            {"_id": 3, "tests": [70, 75, 82], "average": 75, "grade": "C"},
        ],
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    Case(
        "defaults of missing fields by a pipeline come first",
        [{"_id": 1, "quiz1": 8, "test2": 100, "quiz2": 9}],
        update(
            {},
            [
                {
                    "$replaceRoot": {
                        "newRoot": {"$mergeObjects": [{"quiz1": 0, "quiz2": 0, "test1": 0, "test2": 0}, "$$ROOT"]}
                    }
                }
            ],
        ),
        {"_id": 1, "quiz1": 8, "quiz2": 9, "test1": 0, "test2": 100},
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    Case(
        "the position of an element that the filter did not ask for",
        [{"_id": 1, "grades": [85, 80]}],
        update_code({"_id": 1}, {"$set": {"grades.$": 82}}),
        2,
        "server: src/mongo/db/update/update_object_node.cpp",
    ),
    _no_update(
        "an element without its filter", {"$set": {"a.$[i]": 0}}, 2, "src/mongo/db/update/update_object_node.cpp"
    ),
    _no_update("$inc by a text", {"$inc": {"a": "1"}}, 14, "src/mongo/db/update/arithmetic_node.cpp"),
    _no_update(
        "$set of a path and of a path within it",
        {"$set": {"b": 1, "b.c": 2}},
        40,
        "src/mongo/db/update/update_object_node.cpp",
    ),
    _no_update(
        "$set of a path with an empty name", {"$set": {"b..c": 1}}, 56, "src/mongo/db/update/update_object_node.cpp"
    ),
    _no_update("operators beside a field", {"$set": {"b": 1}, "c": 2}, 9, "src/mongo/db/update/update_driver.cpp"),
    _no_update("$pop of two", {"$pop": {"b": 2}}, 9, "src/mongo/db/update/pop_node.cpp"),
    _no_update("a pipeline with $match", [{"$match": {"a": 1}}], 72, "src/mongo/db/update/pipeline_executor.cpp"),
]
