"""Indexes, as the manual describes them."""

from __future__ import annotations

from .calls import after
from .cases import (
    Case,
    Error,
)
from .manual_calls import ids, index, indexes, insert, modify, page, refused, tried

_PARTIAL = {"age": {"$gte": 21}}


CASES = [
    Case(
        "indexes are listed by the names made of their fields and directions",
        [],
        after(index([("city", 1), ("age", -1)]), index([("zip", -1)]), lambda c: sorted(indexes(c))),
        ["_id_", "city_1_age_-1", "zip_-1"],
        page("reference/method/db.collection.createIndex"),
    ),
    Case(
        "an index that exists is not made again under another name",
        [{"_id": 1, "x": 1}],
        after(index("x"), index("x", name="other")),
        Error(85),
        page("reference/command/createIndexes"),
    ),
    Case(
        "a name of an index is not given to other keys",
        [{"_id": 1, "x": 1}],
        after(index("x", name="n"), index("y", name="n")),
        Error(86),
        page("reference/error-codes"),
    ),
    Case(
        "a compound unique index looks at the combination",
        [{"_id": 1, "a": 1, "b": 1}],
        after(
            index([("a", 1), ("b", 1)], unique=True),
            insert({"_id": 2, "a": 1, "b": 2}, {"_id": 3, "a": 2, "b": 1}),
            lambda c: [ids(c), tried(lambda k: k.insert_one({"_id": 4, "a": 2, "b": 1}), c)],
        ),
        [[1, 2, 3], ("code", 11000)],
        page("core/index-unique"),
    ),
    Case(
        "one document may lack the field of a unique index, a null then repeats it",
        [{"_id": 1}],
        after(index("a", unique=True), lambda c: c.insert_one({"_id": 2, "a": None})),
        Error(11000),
        page("core/index-unique"),
    ),
    Case(
        "a unique index is not built over values that repeat",
        [{"_id": 1, "mail": "x"}, {"_id": 2, "mail": "y"}, {"_id": 3, "mail": "x"}],
        index("mail", unique=True),
        Error(11000),
        page("core/index-unique"),
    ),
    Case(
        "a value may repeat within one array of a unique index",
        [{"_id": 1, "a": [1, 2]}],
        after(index("a", unique=True), lambda c: c.insert_one({"_id": 2, "a": [5, 5, 6]}).inserted_id),
        2,
        page("core/index-unique"),
    ),
    Case(
        "arrays of two documents do not share a unique value",
        [{"_id": 1, "a": [1, 2]}],
        after(index("a", unique=True), lambda c: c.insert_one({"_id": 2, "a": [2, 3]})),
        Error(11000),
        page("core/index-unique"),
    ),
    Case(
        "a sparse unique index lets many documents omit the field",
        [{"_id": 1}, {"_id": 2, "score": 82}],
        after(
            index("score", unique=True, sparse=True),
            insert({"_id": 3}, {"_id": 4, "score": 43}, {"_id": 5}),
            ids,
        ),
        [1, 2, 3, 4, 5],
        page("core/index-sparse"),
    ),
    Case(
        "a sparse unique index holds explicit nulls",
        [{"_id": 1, "score": None}],
        after(index("score", unique=True, sparse=True), lambda c: c.insert_one({"_id": 2, "score": None})),
        Error(11000),
        page("core/index-sparse"),
    ),
    Case(
        "a hinted sparse index leaves out what lacks its field",
        [{"_id": 1, "u": "newbie"}, {"_id": 2, "u": "abby", "score": 82}, {"_id": 3, "u": "nina", "score": 90}],
        after(
            index("score", sparse=True),
            lambda c: [
                [d["_id"] for d in c.find({}, sort=[("score", -1)])],
                [d["_id"] for d in c.find({}, sort=[("score", -1)], hint=[("score", 1)])],
            ],
        ),
        [[3, 2, 1], [3, 2]],
        page("core/index-sparse"),
    ),
    Case(
        "a partial unique index leaves alone what is outside its filter",
        [{"_id": 1, "username": "david", "age": 29}, {"_id": 2, "username": "amanda", "age": 35}],
        after(
            index("username", unique=True, partialFilterExpression=_PARTIAL),
            insert({"_id": 3, "username": "david", "age": 20}, {"_id": 4, "username": "amanda"}),
            insert({"_id": 5, "username": "david", "age": None}),
            ids,
        ),
        [1, 2, 3, 4, 5],
        page("core/index-partial"),
    ),
    Case(
        "a partial unique index refuses what is inside its filter",
        [{"_id": 1, "username": "david", "age": 29}],
        after(
            index("username", unique=True, partialFilterExpression=_PARTIAL),
            lambda c: c.insert_one({"_id": 2, "username": "david", "age": 21}),
        ),
        Error(11000),
        page("core/index-partial"),
    ),
    Case(
        "an update into the filter of a partial unique index repeats a key",
        [{"_id": 1, "username": "david", "age": 29}, {"_id": 2, "username": "david", "age": 20}],
        after(
            index("username", unique=True, partialFilterExpression=_PARTIAL),
            lambda c: c.update_one({"_id": 2}, {"$inc": {"age": 1}}),
        ),
        Error(11000),
        page("core/index-partial"),
    ),
    Case(
        "an index is not both partial and sparse",
        [],
        refused(index("a", sparse=True, partialFilterExpression={"a": {"$gt": 5}})),
        "refused",
        page("core/index-partial"),
    ),
    Case(
        "a partial index is not filtered by what does not exist",
        [],
        refused(index("a", partialFilterExpression={"b": {"$exists": False}})),
        "refused",
        page("core/index-partial"),
    ),
    Case(
        "a hidden index is listed as hidden, another without the word",
        [],
        after(
            index("borough", hidden=True),
            index("cuisine"),
            lambda c: [indexes(c)["borough_1"]["hidden"], "hidden" in indexes(c)["cuisine_1"]],
        ),
        [True, False],
        page("core/index-hidden"),
    ),
    Case(
        "a hidden unique index still keeps its keys unique",
        [{"_id": 1, "a": "x"}],
        after(index("a", unique=True, hidden=True), lambda c: c.insert_one({"_id": 2, "a": "x"})),
        Error(11000),
        page("core/index-hidden"),
    ),
    Case(
        "a hidden index is not hinted",
        [{"_id": 1, "a": "x"}],
        after(index("a", hidden=True), refused(lambda c: list(c.find({"a": "x"}, hint="a_1")))),
        "refused",
        page("core/index-hidden"),
    ),
    Case(
        "the index of ids is not hidden",
        [{"_id": 1}],
        refused(modify(index={"name": "_id_", "hidden": True})),
        "refused",
        page("core/index-hidden"),
    ),
    Case(
        "hiding an index answers the old and the new value, hiding it again neither",
        [{"_id": 1, "a": 1}],
        after(
            index("a"),
            lambda c: [
                {
                    n: v
                    for n, v in sorted(modify(index={"keyPattern": {"a": 1}, "hidden": True})(c).items())
                    if "hid" in n
                }
                for _ in range(2)
            ],
        ),
        [{"hidden_new": True, "hidden_old": False}, {}],
        page("reference/command/collMod"),
    ),
    Case(
        "changing an expiry answers the old and the new seconds",
        [],
        after(
            index("lastAccess", expireAfterSeconds=1800),
            lambda c: [
                int(modify(index={"keyPattern": {"lastAccess": 1}, "expireAfterSeconds": new})(c)[name])
                for new, name in ((3600, "expireAfterSeconds_old"), (7200, "expireAfterSeconds_new"))
            ],
        ),
        [1800, 7200],
        page("reference/command/collMod"),
    ),
    Case(
        "an index that expires nothing is turned into one that does",
        [{"_id": 1, "at": "no date"}],
        after(
            index("at"),
            modify(index={"name": "at_1", "expireAfterSeconds": 86400}),
            lambda c: int(indexes(c)["at_1"]["expireAfterSeconds"]),
        ),
        86400,
        page("core/index-ttl"),
    ),
    Case(
        "an unknown index is not changed",
        [{"_id": 1}],
        modify(index={"name": "missing", "hidden": True}),
        Error(27),
        page("reference/command/collMod"),
    ),
    Case(
        "an index that prepares to be unique refuses new repetitions only",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}],
        after(
            index("a"),
            modify(index={"name": "a_1", "prepareUnique": True}),
            lambda c: [tried(lambda k: k.insert_one({"_id": 3, "a": 1}), c), c.count_documents({"a": 1})],
        ),
        [("code", 11000), 2],
        page("reference/command/collMod"),
    ),
    Case(
        "an index over repetitions is not converted to a unique one",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}],
        after(
            index("a"),
            modify(index={"name": "a_1", "prepareUnique": True}),
            refused(modify(index={"name": "a_1", "unique": True})),
        ),
        "refused",
        page("reference/command/collMod"),
    ),
    Case(
        "an index without repetitions is converted to a unique one",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}],
        after(
            index("a"),
            modify(index={"name": "a_1", "prepareUnique": True}),
            modify(index={"name": "a_1", "unique": True}),
            lambda c: [indexes(c)["a_1"]["unique"], tried(lambda k: k.insert_one({"_id": 3, "a": 2}), c)],
        ),
        [True, ("code", 11000)],
        page("reference/command/collMod"),
    ),
    Case(
        "an index of a type that does not exist is refused",
        [],
        refused(index([("a", "sideways")])),
        "refused",
        page("release-notes/3.4-compatibility: stricter validation of index specifications"),
    ),
    Case(
        "the index of ids is not dropped",
        [{"_id": 1}],
        refused(lambda c: c.drop_index("_id_")),
        "refused",
        page("reference/method/db.collection.dropIndex"),
    ),
    Case(
        "a compound index does not take two arrays of one document",
        [],
        after(index([("a", 1), ("b", 1)]), lambda c: c.insert_one({"_id": 1, "a": [1, 2], "b": [3, 4]})),
        Error(171),
        page("core/index-multikey"),
    ),
    Case(
        "a wildcard index is not unique",
        [],
        refused(index([("$**", 1)], unique=True)),
        "refused",
        page("core/index-wildcard"),
    ),
    Case(
        "a collection has one text index",
        [],
        after(index([("title", "text")]), refused(index([("body", "text")]))),
        "refused",
        page("core/index-text"),
    ),
    Case(
        "a unique index with a collation takes letters of both cases as one",
        [{"_id": 1, "name": "Anna"}],
        after(
            index("name", unique=True, collation={"locale": "en", "strength": 2}),
            lambda c: c.insert_one({"_id": 2, "name": "ANNA"}),
        ),
        Error(11000),
        page("reference/collation"),
    ),
    Case(
        "bounds of an index include the lower and exclude the upper one",
        [{"_id": n, "price": n * 10} for n in range(1, 8)],
        after(
            index("price"),
            lambda c: [d["_id"] for d in c.find({}, min=[("price", 20)], max=[("price", 50)], hint=[("price", 1)])],
        ),
        [2, 3, 4],
        page("reference/method/cursor.max"),
    ),
    Case(
        "a hint of an index that does not exist is refused",
        [{"_id": 1, "price": 10}],
        refused(lambda c: list(c.find({"price": 10}, hint="price_1"))),
        "refused",
        page("reference/method/cursor.hint"),
    ),
]
