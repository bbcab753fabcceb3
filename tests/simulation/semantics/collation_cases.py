"""Updates under a collation: that of the statement, or else of the collection."""

from __future__ import annotations

from .cases import Case

FOLDING = {"locale": "en", "strength": 2}
SOURCE = "server: jstests/core/collation_update.js"


def _both(name, documents, query, change, expected, source=SOURCE, **options):
    """The documents after an update with the collation, and in a collection that has it."""

    def by_statement(collection):
        collection.update_one(query, change, collation=FOLDING, **options)
        return list(collection.find({}, {"_id": 0}))

    def by_collection(collection):
        collection.drop()
        made = collection.database.create_collection(collection.name, collation=FOLDING)
        made.insert_many(documents)
        made.update_one(query, change, **options)
        return list(made.find({}, {"_id": 0}))

    return [
        Case(f"{name}, of the statement", documents, by_statement, expected, source),
        Case(f"{name}, of the collection", documents, by_collection, expected, source),
    ]


def _binary(name, documents, query, change, expected):
    """The documents after the same update without a collation."""

    def call(collection):
        collection.update_one(query, change)
        return list(collection.find({}, {"_id": 0}))

    return Case(f"{name}, without a collation", documents, call, expected, SOURCE)


FOO = [{"_id": 1, "a": ["foo"]}]
FOOS = [{"_id": 1, "a": ["foo", "FOO"]}]
CASES = [
    *_both("$min", [{"_id": 1, "a": "a"}], {}, {"$min": {"a": "B"}}, [{"a": "a"}]),
    _binary("$min", [{"_id": 1, "a": "a"}], {}, {"$min": {"a": "B"}}, [{"a": "B"}]),
    *_both("$max", [{"_id": 1, "a": "a"}], {}, {"$max": {"a": "B"}}, [{"a": "B"}]),
    _binary("$max", [{"_id": 1, "a": "a"}], {}, {"$max": {"a": "B"}}, [{"a": "a"}]),
    *_both("$addToSet", FOO, {}, {"$addToSet": {"a": "FOO"}}, [{"a": ["foo"]}]),
    _binary("$addToSet", FOO, {}, {"$addToSet": {"a": "FOO"}}, [{"a": ["foo", "FOO"]}]),
    *_both(
        "$addToSet of several",
        [{"_id": 1, "a": ["foo", "bar", "FOO"]}],
        {},
        {"$addToSet": {"a": {"$each": ["FOO", "BAR", "str"]}}},
        [{"a": ["foo", "bar", "FOO", "str"]}],
    ),
    *_both("$pull", FOOS, {}, {"$pull": {"a": "foo"}}, [{"a": []}]),
    _binary("$pull", FOOS, {}, {"$pull": {"a": "foo"}}, [{"a": ["FOO"]}]),
    *_both("$pull by comparison", [{"_id": 1, "a": ["a", "C"]}], {}, {"$pull": {"a": {"$lt": "B"}}}, [{"a": ["C"]}]),
    *_both("$pullAll", [{"_id": 1, "a": ["foo", "bar"]}], {}, {"$pullAll": {"a": ["FOO", "BAR"]}}, [{"a": []}]),
    _binary(
        "$pullAll",
        [{"_id": 1, "a": ["foo", "bar"]}],
        {},
        {"$pullAll": {"a": ["FOO", "BAR"]}},
        [{"a": ["foo", "bar"]}],
    ),
    *_both(
        "$push and $sort",
        [{"_id": 1, "a": ["b", "C"]}],
        {},
        {"$push": {"a": {"$each": ["A"], "$sort": 1}}},
        [{"a": ["A", "b", "C"]}],
    ),
    *_both("the positional $", FOOS, {"a": "FOO"}, {"$set": {"a.$": "FOO"}}, [{"a": ["FOO", "FOO"]}]),
    *_both(
        "array filters",
        FOOS,
        {},
        {"$set": {"a.$[one]": 1}},
        [{"a": [1, 1]}],
        "manual: reference/collation (the collation of an operation)",
        array_filters=[{"one": "foo"}],
    ),
    *_both(
        "a pipeline",
        [{"_id": 1, "a": "foo"}],
        {},
        [{"$set": {"same": {"$eq": ["$a", "FOO"]}}}],
        [{"a": "foo", "same": True}],
        "manual: reference/collation (the collation of an operation)",
    ),
]
