"""Commands, cursors and bulk writes, as the manual describes them."""

from __future__ import annotations

from typing import Any

from bson import Int64

from gmongo import DeleteMany, InsertOne, ReplaceOne, UpdateOne

from .calls import after
from .cases import (
    BULK_WRITE_ERRORS,
    Case,
)
from .manual_calls import ids, page, plain, plainly, shown, tried


def _inserted(collection: Any, numbers: Any, ordered: bool) -> Any:
    """How a bulk ends, and what is there then."""
    writes = [InsertOne({"_id": number}) for number in numbers]
    return tried(lambda c: c.bulk_write(writes, ordered=ordered), collection)[0], ids(collection)


def _bulk_errors(collection: Any, writes: Any) -> Any:
    """The places and codes of the errors of an unordered bulk, and what it counts."""
    try:
        collection.bulk_write(writes, ordered=False)
    except BULK_WRITE_ERRORS as error:
        details = error.details
        errors = sorted((write["index"], write["code"]) for write in details["writeErrors"])
        return [errors, *(int(details[name]) for name in ("nModified", "nUpserted", "nRemoved"))]
    return "written"


CASES = [
    Case(
        "distinct values are those of arrays' elements too",
        [{"_id": 1, "s": ["S", "M"]}, {"_id": 2, "s": "S"}, {"_id": 3, "s": [["L"]]}, {"_id": 4}],
        lambda c: sorted(map(str, c.distinct("s"))),
        ["M", "S", "['L']"],
        page("reference/method/db.collection.distinct"),
    ),
    Case(
        "a count is limited after it has skipped",
        [{"_id": n, "a": n % 2} for n in range(10)],
        lambda c: [
            int(c.database.command({"count": c.name, "query": {"a": 1}, "skip": 3})["n"]),
            int(c.database.command({"count": c.name, "query": {"a": 1}, "skip": 1, "limit": 2})["n"]),
        ],
        [2, 2],
        page("reference/command/count"),
    ),
    Case(
        "finding and modifying answers the document before, and what was done",
        [{"_id": 1, "name": "Tom", "rating": 20, "score": 5}, {"_id": 2, "name": "Tom", "rating": 10, "score": 1}],
        plainly(
            lambda c: [
                shown(
                    c.database.command(
                        {
                            "findAndModify": c.name,
                            "query": {"name": "Tom"},
                            "sort": {"rating": 1},
                            "update": {"$inc": {"score": 1}},
                        }
                    ),
                    lambda answer: [answer["value"], answer["lastErrorObject"]],
                ),
                c.find_one({"_id": 2})["score"],
            ]
        ),
        [[plain({"_id": 2, "name": "Tom", "rating": 10, "score": 1}), {"n": 1, "updatedExisting": True}], 2],
        page("reference/command/findAndModify"),
    ),
    Case(
        "finding and modifying tells the id that it inserted",
        [],
        plainly(
            lambda c: shown(
                c.database.command(
                    {
                        "findAndModify": c.name,
                        "query": {"_id": "gus", "rating": 100},
                        "update": {"$inc": {"score": 1}},
                        "upsert": True,
                    }
                ),
                lambda answer: [answer["value"], answer["lastErrorObject"]],
            )
        ),
        [None, {"n": 1, "updatedExisting": False, "upserted": "gus"}],
        page("reference/command/findAndModify"),
    ),
    Case(
        "a bulk of all kinds of writes counts them",
        [{"_id": 0, "type": "pepperoni", "size": "small"}, {"_id": 1, "type": "cheese", "size": "medium"}],
        plainly(
            lambda c: shown(
                c.database.client.admin.command(
                    {
                        "bulkWrite": 1,
                        "ops": [
                            {"insert": 0, "document": {"_id": 4, "type": "sausage"}},
                            {"update": 0, "filter": {"size": "medium"}, "updateMods": {"$set": {"price": 15}}},
                            {"delete": 0, "filter": {"_id": 0}},
                        ],
                        "nsInfo": [{"ns": f"{c.database.name}.{c.name}"}],
                    }
                ),
                lambda answer: [
                    [
                        answer[name]
                        for name in ("nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted")
                    ],
                    [[item["idx"], item["n"], item.get("nModified")] for item in answer["cursor"]["firstBatch"]],
                ],
            )
        ),
        [
            [0, 1, 1, 1, 0, 1],
            [[0, 1, None], [1, 1, 1], [2, 1, None]],
        ],
        page("reference/command/bulkWrite"),
    ),
    Case(
        "an ordered bulk ends at its first error, another goes on",
        [{"_id": 1}],
        lambda c: [_inserted(c, (2, 1, 3), True), _inserted(c, (4, 1, 5), False)],
        [("code", [1, 2]), ("code", [1, 2, 4, 5])],
        page("reference/method/db.collection.bulkWrite"),
    ),
    Case(
        "a bulk tells which of its writes failed and why",
        [{"_id": 1, "a": 1}, {"_id": 2}, {"_id": 3}],
        lambda c: _bulk_errors(
            c,
            [
                UpdateOne({"_id": 1}, {"$set": {"a": 2}}),
                InsertOne({"_id": 1}),
                ReplaceOne({"_id": 7}, {"b": 1}, upsert=True),
                InsertOne({"_id": 2}),
                DeleteMany({"_id": 3}),
            ],
        ),
        [[(1, 11000), (3, 11000)], 1, 1, 1],
        page("reference/method/db.collection.bulkWrite"),
    ),
    Case(
        "a batch has as many documents as asked for, and a limit ends the cursor",
        [{"_id": n} for n in range(5)],
        lambda c: [
            shown(
                c.database.command({"find": c.name, **options})["cursor"],
                lambda cursor: [len(cursor["firstBatch"]), cursor["id"] != 0],
            )
            for options in ({"batchSize": 2}, {"limit": 3}, {"batchSize": 2, "singleBatch": True}, {"batchSize": 0})
        ],
        [[2, True], [3, False], [2, False], [0, True]],
        page("reference/command/find"),
    ),
    Case(
        "a killed cursor gives no more",
        [{"_id": n} for n in range(5)],
        lambda c: shown(
            Int64(c.database.command({"find": c.name, "batchSize": 2})["cursor"]["id"]),
            lambda cursor: [
                c.database.command({"killCursors": c.name, "cursors": [cursor]})["cursorsKilled"] == [cursor],
                tried(lambda k: k.database.command({"getMore": cursor, "collection": k.name}), c),
            ],
        ),
        [True, ("code", 43)],
        page("reference/command/killCursors"),
    ),
    Case(
        "a query without an index examines all documents, one with an index those in its bounds",
        [{"_id": n, "a": n} for n in range(20)],
        after(
            lambda c: c.create_index("a"),
            lambda c: plain(
                [
                    [stats["nReturned"], stats["totalKeysExamined"], stats["totalDocsExamined"]]
                    for stats in (
                        c.database.command(
                            {"explain": {"find": c.name, "filter": filter}, "verbosity": "executionStats"}
                        )["executionStats"]
                        for filter in ({"b": None}, {"a": {"$gte": 15}})
                    )
                ]
            ),
        ),
        [[20, 0, 20], [5, 5, 5]],
        page("tutorial/analyze-query-plan"),
    ),
    Case(
        "names of collections alone are listed with their types",
        [{"_id": 1}],
        lambda c: [
            {name: info[name] for name in ("name", "type")} | {"more": "options" in info}
            for info in c.database.command(
                {"listCollections": 1, "nameOnly": True, "filter": {"name": {"$regex": "^cas"}}}
            )["cursor"]["firstBatch"]
        ],
        [{"name": "cases", "type": "collection", "more": False}],
        page("reference/command/listCollections"),
    ),
]
