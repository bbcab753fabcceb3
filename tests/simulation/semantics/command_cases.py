"""Commands, cursors and change streams; they need a replica set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bson import Int64

from .cases import Case, Error, aggregate

ONE_TO_FIVE = [{"_id": number, "x": number} for number in range(1, 6)]
EVENTS = "manual: reference/change-events"
READ_CONCERN = "server: src/mongo/db/read_concern_support_result.h"


def _command(
    *arguments: Any, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any
) -> Callable[[Any], Any]:
    return lambda collection: of(collection.database.command(*arguments, **fields))


def _in_transaction(run: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def call(collection: Any) -> Any:
        with collection.database.client.start_session() as session, session.start_transaction():
            return run(collection, session)

    return call


def _snapshot(collection: Any) -> Any:
    with collection.database.client.start_session(snapshot=True) as session:
        return [one["_id"] for one in collection.find({}, batch_size=2, session=session)]


def _events(change: Callable[[Any], Any], show: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    def call(collection: Any) -> Any:
        collection.insert_one({"_id": 100})
        with collection.database.watch(show_expanded_events=True, max_await_time_ms=500, **options) as stream:
            change(collection)
            return show(stream.next())

    return call


def _update(change: Any) -> Callable[[Any], Any]:
    return lambda collection: collection.update_one({"_id": 1}, change)


def _rename(collection: Any) -> None:
    others = collection.database.others
    others.insert_one({"_id": 1})
    collection.rename("others", dropTarget=True)


def _index(keys: Any, **options: Any) -> Callable[[Any], Any]:
    def call(collection: Any) -> Any:
        name = collection.create_index(keys, **options)
        (found,) = (dict(one) for one in collection.list_indexes() if one["name"] == name)
        return found

    return call


def _tailable(collection: Any) -> Any:
    database = collection.database
    database.drop_collection("capped")
    capped = database.create_collection("capped", capped=True, size=100_000)
    capped.insert_many([dict(one) for one in ONE_TO_FIVE])
    reply = database.command("find", "capped", tailable=True, limit=2)
    database.drop_collection("capped")
    return [one["_id"] for one in reply["cursor"]["firstBatch"]], reply["cursor"]["id"]


def _time_series(collection: Any) -> Any:
    database = collection.database
    database.drop_collection("weather")
    weather = database.create_collection("weather", timeseries={"timeField": "t"})
    now = collection.find_one({}, {"_id": 0, "t": "$$NOW"})["t"]
    weather.insert_many([{"_id": 1, "t": now}, {"_id": 1, "t": now}])
    count = weather.count_documents({})
    database.drop_collection("weather")
    return count


def _retried(collection: Any) -> Any:
    client = collection.database.client
    client.admin.command("configureFailPoint", "onPrimaryTransactionalWrite", mode={"times": 1})
    try:
        return collection.insert_one({"_id": 50}).inserted_id, collection.count_documents({"_id": 50})
    finally:
        client.admin.command("configureFailPoint", "onPrimaryTransactionalWrite", mode="off")


CASES = [
    Case(
        "a snapshot session reads beyond one batch",
        ONE_TO_FIVE,
        _snapshot,
        [1, 2, 3, 4, 5],
        "specifications: sessions/snapshot-sessions",
    ),
    *(
        Case(
            f"{limit} as maxTimeMS",
            ONE_TO_FIVE,
            _command("count", "cases", maxTimeMS=limit),
            expected,
            "manual: reference/command/count",
        )
        for limit, expected in [(0, 1.0), (1000, 1.0), (-1, Error(2)), (2**31, Error(2)), ("1", Error(14))]
    ),
    Case(
        "distinct of a key that is no string",
        ONE_TO_FIVE,
        _command("distinct", "cases", key=1),
        Error(14),
        "manual: reference/command/distinct",
    ),
    *(
        Case(
            f"{output!r} within {stage}",
            ONE_TO_FIVE,
            aggregate({stage: {"pipeline": [output], **more}}),
            Error(code),
            "server: src/mongo/db/pipeline/document_source_lookup.cpp, document_source_union_with.cpp",
        )
        for stage, more, code in [
            ("$lookup", {"from": "others", "as": "x"}, 51047),
            ("$unionWith", {"coll": "others"}, 31441),
        ]
        for output in ({"$out": "x"}, {"$merge": "x"})
    ),
    Case(
        "validate with scandata",
        ONE_TO_FIVE,
        _command("validate", "cases", scandata=True, of=lambda reply: reply["valid"]),
        True,
        "manual: reference/command/validate",
    ),
    Case(
        "a change stream reads what a majority has",
        ONE_TO_FIVE,
        _command("aggregate", "cases", pipeline=[{"$changeStream": {}}], cursor={}, readConcern={"level": "local"}),
        Error(72),
        READ_CONCERN,
    ),
    Case(
        "$out is not linearizable",
        ONE_TO_FIVE,
        _command("aggregate", "cases", pipeline=[{"$out": "others"}], cursor={}, readConcern={"level": "linearizable"}),
        Error(72),
        "manual: reference/read-concern-linearizable",
    ),
    Case(
        "create of what is there, in a transaction",
        ONE_TO_FIVE,
        _in_transaction(lambda collection, session: collection.database.command("create", "cases", session=session)),
        Error(48),
        "manual: core/transactions-operations",
    ),
    Case(
        "time series have no unique _id", ONE_TO_FIVE, _time_series, 2, "manual: core/timeseries/timeseries-limitations"
    ),
    Case(
        "a write that is done is not done again",
        ONE_TO_FIVE,
        _retried,
        (50, 1),
        "specifications: retryable-writes, onPrimaryTransactionalWrite",
    ),
    Case(
        "paths that are not ambiguous",
        [{"_id": 1, "a": {"b": 1}}],
        _events(_update({"$set": {"a.b": 2}}), lambda event: event["updateDescription"]["disambiguatedPaths"]),
        {},
        f"{EVENTS}/update",
    ),
    Case(
        "paths that are ambiguous",
        [{"_id": 1, "a": {"0": 1}}],
        _events(_update({"$set": {"a.0": 2}}), lambda event: event["updateDescription"]["disambiguatedPaths"]),
        {"a.0": ["a", "0"]},
        f"{EVENTS}/update",
    ),
    Case(
        "paths to elements",
        [{"_id": 1, "home.town": "x", "a": [1, 2, 3]}],
        _events(_update({"$set": {"a.1": 5}}), lambda event: event["updateDescription"]["disambiguatedPaths"]),
        {"a.1": ["a", 1]},
        f"{EVENTS}/update",
    ),
    Case(
        "a rename tells what it replaced",
        ONE_TO_FIVE,
        lambda collection: _events(
            _rename,
            lambda event: event["operationType"],
            pipeline=[{"$match": {"operationType": "rename", "operationDescription.dropTarget": {"$exists": True}}}],
        )(collection),
        "rename",
        f"{EVENTS}/rename",
    ),
    Case(
        "returnKey with showRecordId",
        ONE_TO_FIVE,
        lambda collection: next(collection.find({"_id": 3}, return_key=True, show_record_id=True)),
        {"_id": 3},
        "specifications: command-logging-and-monitoring, find",
    ),
    Case(
        "returnKey with the index of a sort",
        ONE_TO_FIVE,
        lambda collection: next(collection.find({}, return_key=True, sort={"_id": -1})),
        {"_id": 5},
        "specifications: command-logging-and-monitoring, find",
    ),
    Case(
        "a limit ends a tailable cursor", ONE_TO_FIVE, _tailable, ([1, 2], Int64(0)), "manual: reference/command/find"
    ),
    Case(
        "indexes show background",
        ONE_TO_FIVE,
        _index("x", background=True),
        {"v": 2, "key": {"x": 1}, "name": "x_1", "background": True},
        "manual: reference/command/listIndexes",
    ),
    Case(
        "text indexes show weights",
        ONE_TO_FIVE,
        _index([("b", "text"), ("a", "text")], weights={"a": 5}),
        {
            "v": 2,
            "key": {"_fts": "text", "_ftsx": 1},
            "name": "b_text_a_text",
            "weights": {"a": 5, "b": 1},
            "default_language": "english",
            "language_override": "language",
            "textIndexVersion": 3,
        },
        "manual: core/indexes/index-types/index-text",
    ),
    Case(
        "a fail point of no commands",
        ONE_TO_FIVE,
        lambda collection: collection.database.client.admin.command(
            "configureFailPoint", "failCommand", mode={"times": 1}, data={"errorCode": 2}
        )["ok"],
        1.0,
        "server: src/mongo/db/commands.cpp",
    ),
]
