"""The manual's examples of inserts, bulks, deletes and find-and-modify."""

from __future__ import annotations

from typing import Any

from bson import Regex

from gmongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

from .calls import Call, after, attempt, command, stored
from .cases import OPERATION_FAILURES, Case, find
from .examples import INVENTORY
from .refusals import BAD_VALUE, ONE, UNPARSED, admin, answers, ids, refusal, update_code, write_code

GRADES = [
    {"_id": 6305, "name": "A. MacDyver", "assignment": 5, "points": 24},
    {"_id": 6308, "name": "B. Batlock", "assignment": 3, "points": 22},
    {"_id": 6312, "name": "M. Tagnum", "assignment": 5, "points": 30},
    {"_id": 6319, "name": "R. Stiles", "assignment": 2, "points": 12},
    {"_id": 6322, "name": "A. MacDyver", "assignment": 2, "points": 14},
    {"_id": 6334, "name": "R. Stiles", "assignment": 1, "points": 10},
]
TEAMS = [
    {"_id": 1521, "team": "Fearful Mallards", "score": 25000},
    {"_id": 2231, "team": "Tactful Mooses", "score": 23500},
    {"_id": 4511, "team": "Aquatic Ponies", "score": 19250},
    {"_id": 5331, "team": "Cuddly Zebras", "score": 15235},
    {"_id": 3412, "team": "Garrulous Bears", "score": 22300},
]
PIZZAS = [
    {"_id": 0, "type": "pepperoni", "size": "small", "price": 4},
    {"_id": 1, "type": "cheese", "size": "medium", "price": 7},
    {"_id": 2, "type": "vegan", "size": "large", "price": 8},
]
CAFES = [
    {"_id": 1, "category": "café", "status": "A"},
    {"_id": 2, "category": "cafe", "status": "a"},
    {"_id": 3, "category": "cafE", "status": "a"},
]
CAKE_FLAVORS = [
    {"_id": 1, "flavor": "chocolate"},
    {"_id": 2, "flavor": "strawberry"},
    {"_id": 3, "flavor": "cherry"},
]


def _pizzas(collection: Any) -> Any:
    made_of = collection.bulk_write(
        [
            InsertOne({"_id": 3, "type": "beef", "size": "medium", "price": 6}),
            InsertOne({"_id": 4, "type": "sausage", "size": "large", "price": 10}),
            UpdateOne({"type": "cheese"}, {"$set": {"price": 8}}),
            DeleteOne({"type": "pepperoni"}),
            ReplaceOne({"type": "vegan"}, {"type": "tofu", "size": "small", "price": 4}),
        ]
    )
    counts = [made_of.inserted_count, made_of.matched_count, made_of.modified_count, made_of.deleted_count]
    return [counts, ids(stored(collection)), collection.find_one({"_id": 2})]


def _grown(collection: Any) -> Any:
    """Whether a document may not grow beyond sixteen megabytes; the code differs by version."""
    large = "x" * (9 << 20)
    collection.update_one({}, {"$set": {"b": large}})
    return update_code({}, {"$set": {"c": large}})(collection) in (10334, 17419)


def _concern(concern: Any) -> Call:
    """The code of the error of a write concern."""

    def run(collection: Any) -> Any:
        fields = {"insert": collection.name, "documents": [{"_id": 2}], "writeConcern": concern}
        try:
            return collection.database.command(fields)["writeConcernError"]["code"]
        except OPERATION_FAILURES as error:
            return error.code

    return run


def _nested(depth: int) -> Any:
    document: Any = {}
    for _ in range(depth):
        document = {"a": document}
    return document


CASES = [
    Case(
        "all of a status are deleted, and the first of another",
        INVENTORY,
        answers(
            lambda collection: collection.delete_many({"status": "A"}).deleted_count,
            lambda collection: collection.delete_one({"status": "D"}).deleted_count,
            find({}),
        ),
        [3, 1, [4]],
        "manual: tutorial/remove-documents",
    ),
    Case(
        "a replaced document has its new fields alone",
        INVENTORY,
        after(
            lambda collection: collection.replace_one(
                {"item": "paper"},
                {"item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 40}]},
            ),
            lambda collection: collection.find_one({"item": "paper"}),
        ),
        {"_id": 3, "item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 40}]},
        "manual: tutorial/update-documents",
    ),
    Case(
        "many are updated by what their documents have",
        INVENTORY,
        after(
            lambda collection: collection.update_many(
                {"qty": {"$lt": 50}}, {"$set": {"size.uom": "in", "status": "P"}, "$currentDate": {"at": True}}
            ),
            find({"size.uom": "in", "status": "P", "at": {"$type": "date"}}),
        ),
        [1, 5],
        "manual: tutorial/update-documents",
    ),
    Case(
        "the one with the fewest points is updated, and shown as it was",
        GRADES,
        command(
            "findAndModify",
            of=lambda reply: reply["value"],
            query={"name": "A. MacDyver"},
            update={"$inc": {"points": 5}},
            sort={"points": 1},
            fields={"assignment": 1, "points": 1},
        ),
        {"_id": 6322, "assignment": 2, "points": 14},
        "manual: reference/method/db.collection.findOneAndUpdate",
    ),
    Case(
        "the one with the lowest score is replaced, and its name shown",
        TEAMS,
        answers(
            command(
                "findAndModify",
                of=lambda reply: reply["value"],
                query={"score": {"$lt": 22250}},
                update={"team": "Therapeutic Hamsters", "score": 22250},
                sort={"score": 1},
                fields={"_id": 0, "team": 1},
            ),
            lambda collection: collection.find_one({"_id": 5331}),
        ),
        [{"team": "Cuddly Zebras"}, {"_id": 5331, "team": "Therapeutic Hamsters", "score": 22250}],
        "manual: reference/method/db.collection.findOneAndReplace",
    ),
    Case(
        "a bulk of pizzas",
        PIZZAS,
        _pizzas,
        [[2, 2, 2, 1], [1, 2, 3, 4], {"_id": 2, "type": "tofu", "size": "small", "price": 4}],
        "manual: reference/method/db.collection.bulkWrite",
    ),
    Case(
        "an upsert takes its _id from $set",
        [],
        answers(
            command(
                "update",
                of=lambda reply: [reply["n"], reply["nModified"], reply["upserted"]],
                updates=[
                    {
                        "q": {"name": "Pizza Rat's Pizzaria"},
                        "u": {"$set": {"_id": 4, "violations": 7, "borough": "Manhattan"}},
                        "upsert": True,
                    }
                ],
            ),
            find({"name": "Pizza Rat's Pizzaria", "violations": 7}),
        ),
        [[1, 0, [{"index": 0, "_id": 4}]], [4]],
        "manual: reference/method/db.collection.updateOne",
    ),
    Case(
        "an update of what differs by case and accents",
        CAFES,
        command(
            "update",
            of=lambda reply: [reply["n"], reply["nModified"]],
            updates=[
                {
                    "q": {"category": "cafe", "status": "a"},
                    "u": {"$set": {"status": "Updated"}},
                    "multi": True,
                    "collation": {"locale": "fr", "strength": 1},
                }
            ],
        ),
        [3, 3],
        "manual: reference/method/db.collection.updateMany",
    ),
    Case(
        "a delete of what differs by case and accents",
        CAFES,
        command(
            "delete",
            of=lambda reply: reply["n"],
            deletes=[
                {
                    "q": {"category": "cafe", "status": "a"},
                    "limit": 0,
                    "collation": {"locale": "fr", "strength": 1},
                }
            ],
        ),
        3,
        "manual: reference/command/delete",
    ),
    Case(
        "an update with variables of the command",
        CAKE_FLAVORS,
        after(
            command(
                "update",
                updates=[
                    {
                        "q": {"$expr": {"$eq": ["$flavor", "$$targetFlavor"]}},
                        "u": [{"$set": {"flavor": "$$newFlavor"}}],
                    }
                ],
                let={"targetFlavor": "cherry", "newFlavor": "orange"},
            ),
            stored,
        ),
        [
            {"_id": 1, "flavor": "chocolate"},
            {"_id": 2, "flavor": "strawberry"},
            {"_id": 3, "flavor": "orange"},
        ],
        "manual: reference/command/update",
    ),
    Case(
        "a delete with a variable of the command",
        CAKE_FLAVORS,
        after(
            command(
                "delete",
                deletes=[{"q": {"$expr": {"$eq": ["$flavor", "$$targetFlavor"]}}, "limit": 1}],
                let={"targetFlavor": "strawberry"},
            ),
            find({}),
        ),
        [1, 3],
        "manual: reference/command/delete",
    ),
    Case(
        "an _id that is a pattern",
        [],
        write_code("insert", documents=[{"_id": Regex("a")}]),
        53,
        "server: src/mongo/db/update/storage_validation.cpp, storageValidIdField, as insert.cpp calls it",
    ),
    Case(
        "a document that is too deep",
        [],
        write_code("insert", documents=[{"_id": 1, **_nested(189)}]),
        15,
        "server: src/mongo/db/ops/insert.cpp",
    ),
    Case("a document that grows too large", ONE, _grown, True, "server: src/mongo/db/exec/update_stage.cpp"),
    Case(
        "a delete of two",
        ONE,
        refusal(command("delete", deletes=[{"q": {}, "limit": 2}])),
        UNPARSED,
        "server: src/mongo/db/ops/write_ops.cpp, readMultiDeleteProperty",
    ),
    Case(
        "a delete without a limit",
        ONE,
        attempt(command("delete", deletes=[{"q": {}}])),
        40414,
        "manual: reference/command/delete (the code; its name is not compared)",
    ),
    Case(
        "findAndModify of nothing to do",
        ONE,
        refusal(command("findAndModify", query={})),
        UNPARSED,
        "manual: reference/command/findAndModify",
    ),
    Case(
        "bulkWrite with a namespace that is not given",
        ONE,
        refusal(
            admin(
                bulkWrite=1,
                ops=[{"insert": 1, "document": {"_id": 2}}],
                nsInfo=[{"ns": "cases.cases"}],
            )
        ),
        BAD_VALUE,
        "server: src/mongo/db/commands/bulk_write_common.cpp",
    ),
    Case(
        "a write concern of more members than there may be",
        ONE,
        refusal(command("insert", documents=[{"_id": 2}], writeConcern={"w": 51})),
        UNPARSED,
        "server: src/mongo/db/write_concern_options.cpp",
    ),
    Case(
        "a write concern of more members than there are, and the document that is written",
        ONE,
        answers(
            _concern({"w": 50, "wtimeout": 1000}),
            find({}),
        ),
        [100, [1, 2]],
        "manual: reference/write-concern",
    ),
    Case(
        "a write concern that the replica set does not know",
        ONE,
        _concern({"w": "noSuchMode", "wtimeout": 1000}),
        79,
        "server: src/mongo/base/error_codes.yml, UnknownReplWriteConcern",
    ),
]
