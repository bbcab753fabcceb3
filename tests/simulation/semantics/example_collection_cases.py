"""The manual's examples of collections, views and time series."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .calls import Call, after, command, made, stored
from .cases import Case, find
from .examples import SERIES
from .refusals import (
    NO_NAME,
    ONE,
    OPTIONS,
    UNAUTHORIZED,
    answers,
    database_command,
    inserted,
    make,
    of,
    of_others,
    plain,
    plainly_piped,
    refusal,
    update_code,
    view,
    write_code,
)

FRESHMEN = [
    {"_id": 1, "sID": 22001, "name": "Alex", "year": 1, "score": 4.0},
    {"_id": 2, "sID": 21001, "name": "bernie", "year": 2, "score": 3.7},
    {"_id": 3, "sID": 20010, "name": "Chris", "year": 3, "score": 2.5},
    {"_id": 4, "sID": 22021, "name": "Drew", "year": 1, "score": 3.2},
    {"_id": 5, "sID": 17301, "name": "harley", "year": 6, "score": 3.1},
    {"_id": 6, "sID": 21022, "name": "Farmer", "year": 1, "score": 2.2},
]
ORDERED = [
    {"orderId": 201, "custid": 301, "prodId": 100, "numPurchased": 20},
    {"orderId": 202, "custid": 302, "prodId": 101, "numPurchased": 10},
    {"orderId": 203, "custid": 303, "prodId": 102, "numPurchased": 5},
    {"orderId": 204, "custid": 303, "prodId": 103, "numPurchased": 15},
    {"orderId": 205, "custid": 303, "prodId": 103, "numPurchased": 20},
    {"orderId": 206, "custid": 302, "prodId": 102, "numPurchased": 1},
    {"orderId": 207, "custid": 302, "prodId": 101, "numPurchased": 5},
    {"orderId": 208, "custid": 301, "prodId": 100, "numPurchased": 10},
    {"orderId": 209, "custid": 303, "prodId": 103, "numPurchased": 30},
]
PRICED = [
    {"prodId": 100, "price": 20, "quantity": 125},
    {"prodId": 101, "price": 10, "quantity": 234},
    {"prodId": 102, "price": 15, "quantity": 432},
    {"prodId": 103, "price": 17, "quantity": 320},
]
SENSOR = {"sensorId": 5578, "type": "temperature"}
WEATHER = [
    {"metadata": SENSOR, "timestamp": datetime(2021, 5, 18 + day, hour), "temp": temp}
    for day, temps in enumerate([[12, 11, 11, 12, 16, 15], [13, 12, 11, 12, 17, 12]])
    for hour, temp in zip(range(0, 24, 4), temps, strict=True)
]


def _sales(collection: Any) -> Any:
    """What a view of orders and prices says of each product."""
    database = collection.database
    database.drop_collection("sales")
    database.command(
        {
            "create": "sales",
            "viewOn": collection.name,
            "pipeline": [
                {
                    "$lookup": {
                        "from": "others",
                        "localField": "prodId",
                        "foreignField": "prodId",
                        "as": "inventoryDocs",
                    }
                },
                {"$project": {"_id": 0, "prodId": 1, "orderId": 1, "price": "$inventoryDocs.price", "numPurchased": 1}},
                {"$unwind": "$price"},
            ],
        }
    )
    try:
        return plainly_piped(
            {"$group": {"_id": "$prodId", "amountSold": {"$sum": {"$multiply": ["$price", "$numPurchased"]}}}},
            {"$sort": {"_id": 1}},
        )(database.sales)
    finally:
        database.drop_collection("sales")


def _options(name: str) -> Call:
    """The options with which a collection is listed."""
    return database_command(
        listCollections=1,
        filter={"name": name},
        of=lambda reply: dict(sorted(plain(reply["cursor"]["firstBatch"][0]["options"]).items())),
    )


def _dropped(collection: Any) -> Any:
    """A database that is dropped, and dropped again."""
    database = collection.database.client[f"{collection.database.name}_2"]
    database.cases.insert_one({"_id": 1})
    replies = [database.command({"dropDatabase": 1}) for _ in range(2)]
    return [reply.get("dropped") == database.name for reply in replies]


def _system(collection: Any) -> Any:
    return write_code("insert", documents=[{"_id": 1}])(collection.database["system.nothing"])


CASES = [
    Case(
        "a view of the first year",
        FRESHMEN,
        after(
            view({"$match": {"year": 1}}),
            lambda collection: list(collection.database.others.find({}, {"_id": 0, "name": 1})),
        ),
        [{"name": "Alex"}, {"name": "Drew"}, {"name": "Farmer"}],
        "manual: core/views/create-view",
    ),
    Case(
        "a view that joins two collections",
        ORDERED,
        _sales,
        [
            {"_id": 100, "amountSold": 600},
            {"_id": 101, "amountSold": 150},
            {"_id": 102, "amountSold": 90},
            {"_id": 103, "amountSold": 1105},
        ],
        "manual: core/views/join-collections-with-view",
        others=PRICED,
    ),
    Case(
        "a delete from a view",
        ONE,
        after(view(), of_others(write_code("delete", deletes=[{"q": {}, "limit": 0}]))),
        166,
        "manual: core/views",
    ),
    Case(
        "a view that has no pipeline",
        ONE,
        after(
            lambda collection: collection.database.command({"create": "others", "viewOn": collection.name}),
            of_others(stored),
        ),
        ONE,
        "manual: reference/command/create",
    ),
    Case(
        "a capped collection is listed with its size and its number of documents",
        [],
        after(make(capped=True, size=5242880, max=5000), _options("cases")),
        {"capped": True, "max": 5000, "size": 5242880},
        "manual: core/capped-collections",
    ),
    Case(
        "a collection is copied into a capped one",
        ONE,
        after(
            command("cloneCollectionAsCapped", toCollection="others", size=100096),
            answers(of(_options("others"), lambda options: options["capped"]), of_others(find({}))),
        ),
        [True, [1]],
        "manual: reference/command/cloneCollectionAsCapped",
    ),
    Case(
        "a copy into a collection that is there",
        ONE,
        refusal(command("cloneCollectionAsCapped", toCollection="others", size=100096)),
        [48, "NamespaceExists"],
        "server: src/mongo/db/commands/collection_to_capped.cpp",
        others=ONE,
    ),
    Case(
        "a collection is renamed by a command of admin alone",
        ONE,
        refusal(database_command(renameCollection="cases.cases", to="cases.others")),
        UNAUTHORIZED,
        "manual: reference/command/renameCollection",
    ),
    Case(
        "a name that begins with a dot",
        [],
        refusal(database_command(create=".cases")),
        NO_NAME,
        "manual: reference/limits",
    ),
    Case("an insert into a collection of the system", [], _system, 73, "manual: reference/system-collections"),
    Case("a database that is dropped is told", [], _dropped, [True, False], "manual: reference/command/dropDatabase"),
    Case(
        "measurements by their days",
        [],
        after(
            made(timeseries=SERIES),
            lambda collection: collection.insert_many([dict(each) for each in WEATHER]),
            plainly_piped(
                {
                    "$group": {
                        "_id": {"$dateToString": {"format": "%Y-%m-%d", "date": "$timestamp"}},
                        "avgTmp": {"$avg": "$temp"},
                        "most": {"$max": "$temp"},
                        "n": {"$sum": 1},
                    }
                },
                {"$sort": {"_id": 1}},
            ),
        ),
        [
            {"_id": "2021-05-18", "avgTmp": 12.833333, "most": 16, "n": 6},
            {"_id": "2021-05-19", "avgTmp": 12.833333, "most": 17, "n": 6},
        ],
        "manual: core/timeseries/timeseries-procedures",
    ),
    Case(
        "an update of one measurement",
        [],
        after(
            made(timeseries=SERIES),
            inserted(WEATHER[0]),
            update_code({"metadata.sensorId": 5578}, {"$set": {"metadata.sensorId": 5579}}),
        ),
        72,
        "manual: core/timeseries/timeseries-limitations",
    ),
    Case(
        "a time series becomes coarser, and never finer",
        [],
        after(
            made(timeseries={**SERIES, "granularity": "seconds"}),
            answers(
                command("collMod", timeseries={"granularity": "minutes"}),
                refusal(command("collMod", timeseries={"granularity": "seconds"})),
            ),
        ),
        [1.0, OPTIONS],
        "manual: core/timeseries/timeseries-granularity",
    ),
]
