"""Transactions, change streams and commands, as the manual describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Int64

from .calls import after, attempt, command, made, stored
from .cases import OPERATION_FAILURES, Case
from .examples import AGGREGATION, SERIES
from .refusals import (
    BAD_VALUE,
    MISMATCH,
    NO_NAME,
    NO_TRANSACTION,
    ONE,
    admin,
    database_command,
    events,
    found,
    ids,
    inserted,
    location,
    of,
    piped,
    plain,
    refusal,
    within,
)


def _told(collection: Any, session: Any, fields: Any) -> Any:
    """The code with which a command in a transaction is refused."""
    try:
        reply = collection.database.command(fields, session=session)
    except OPERATION_FAILURES as error:
        return error.code
    return reply["writeErrors"][0]["code"] if reply.get("writeErrors") else None


def _inserted_within(collection: Any, session: Any) -> Any:
    return _told(
        collection, session, {"insert": collection.name, "documents": [{"_id": 2, "timestamp": datetime(2021, 5, 18)}]}
    )


def _aborted(collection: Any, session: Any) -> None:
    """A transaction that is aborted by the command."""
    collection.insert_one({"_id": 2}, session=session)
    collection.database.client.admin.command({"abortTransaction": 1}, session=session)


def _inserted_after(collection: Any, session: Any) -> Any:
    _aborted(collection, session)
    return [_inserted_within(collection, session), ids(stored(collection))]


def _committed_after(collection: Any, session: Any) -> Any:
    _aborted(collection, session)
    session.commit_transaction()


def _made_within(collection: Any) -> Any:
    """A collection that is made in a transaction, before the end of it and after."""
    database = collection.database
    with database.client.start_session() as session:
        session.start_transaction()
        database.others.insert_one({"_id": 1}, session=session)
        before = "others" in database.list_collection_names()
        session.commit_transaction()
    return [before, "others" in database.list_collection_names(), ids(stored(database.others))]


IN_TRANSACTIONS = [
    Case(
        "an insert into a capped collection, in a transaction",
        [],
        after(made(capped=True, size=4096), within(_inserted_within)),
        263,
        "manual: core/transactions",
    ),
    Case(
        "an insert into a time series, in a transaction",
        [],
        after(made(timeseries=SERIES), within(_inserted_within)),
        263,
        "manual: core/timeseries/timeseries-limitations",
    ),
    Case(
        "an insert after the transaction is aborted",
        ONE,
        within(_inserted_after),
        [251, [1]],
        "server: src/mongo/db/transaction/transaction_participant.cpp",
    ),
    Case(
        "a commit after the transaction is aborted",
        ONE,
        within(_committed_after),
        NO_TRANSACTION,
        "manual: core/transactions-in-applications",
    ),
    Case(
        "an insert in a transaction makes its collection",
        ONE,
        _made_within,
        [False, True, [1]],
        "manual: core/transactions",
    ),
    Case(
        "listCollections in a transaction",
        ONE,
        within(lambda collection, session: _told(collection, session, {"listCollections": 1})),
        263,
        "manual: core/transactions",
    ),
]


def _without_token(collection: Any) -> Any:
    """Reads a stream whose events lose their tokens."""
    pipeline = [{"$changeStream": {}}, {"$project": {"_id": 0}}]
    reply = collection.database.command({"aggregate": collection.name, "pipeline": pipeline, "cursor": {}})
    collection.insert_one({"_id": 2})
    for _ in range(10):
        collection.database.command(
            {"getMore": Int64(reply["cursor"]["id"]), "collection": collection.name, "maxTimeMS": 200}
        )


STREAMS = [
    Case(
        "what an insert as an event tells",
        ONE,
        of(events(inserted({"_id": 2}), count=1), lambda events: sorted(events[0])),
        ["_id", "clusterTime", "documentKey", "fullDocument", "ns", "operationType", "wallTime"],
        "manual: reference/change-events/insert",
    ),
    Case(
        "a replacement as an event has the whole document",
        ONE,
        of(
            events(lambda collection: collection.replace_one({"_id": 1}, {"b": 2}), count=1),
            lambda events: [events[0]["operationType"], events[0]["fullDocument"], "updateDescription" in events[0]],
        ),
        ["replace", {"_id": 1, "b": 2}, False],
        "manual: reference/change-events/replace",
    ),
    Case(
        "a stream of one user, with a field that is added",
        ONE,
        of(
            events(
                inserted({"_id": 2, "username": "bob"}),
                inserted({"_id": 3, "username": "alice"}),
                count=1,
                pipeline=[
                    {"$match": {"$or": [{"fullDocument.username": "alice"}, {"operationType": "delete"}]}},
                    {"$addFields": {"newField": "this is an added field!"}},
                ],
            ),
            lambda events: [[each["documentKey"], each["newField"]] for each in events],
        ),
        [[{"_id": 3}, "this is an added field!"]],
        "manual: changeStreams",
    ),
    Case(
        "an array that a pipeline cuts off as an event",
        [{"_id": 1, "a": ["a text that is rather long " * 8] * 20}],
        of(
            events(
                lambda collection: collection.update_one({}, [{"$set": {"a": {"$slice": ["$a", 2]}}}]),
                count=1,
            ),
            lambda events: dict(sorted(plain(events[0]["updateDescription"]).items())),
        ),
        {"removedFields": [], "truncatedArrays": [{"field": "a", "newSize": 2}], "updatedFields": {}},
        "manual: reference/change-events/update",
    ),
    Case(
        "a stream whose events lose their tokens",
        ONE,
        refusal(_without_token),
        [280, "ChangeStreamFatalError"],
        "manual: changeStreams",
    ),
    Case(
        "a stream with documents that are looked up as there is no way to",
        ONE,
        refusal(piped({"$changeStream": {"fullDocument": "sometimes"}})),
        BAD_VALUE,
        f"{AGGREGATION}/changeStream",
    ),
    Case(
        "a stream of admin",
        [],
        refusal(admin(aggregate=1, pipeline=[{"$changeStream": {}}], cursor={})),
        NO_NAME,
        "server: src/mongo/db/pipeline/document_source_change_stream.cpp",
    ),
]

COMMANDS = [
    Case(
        "getMore of a cursor that is no long",
        ONE,
        refusal(database_command(getMore=5, collection="cases")),
        MISMATCH,
        "server: src/mongo/db/query/getmore_command.idl",
    ),
    Case(
        "find with a batch below zero",
        ONE,
        refusal(found(filter={}, batchSize=-1)),
        location(51024),
        "server: src/mongo/db/query/find_command.idl",
    ),
    Case(
        "aggregate with a document for a pipeline",
        ONE,
        refusal(command("aggregate", pipeline={"$match": {}}, cursor={})),
        MISMATCH,
        "server: src/mongo/db/pipeline/aggregation_request_helper.cpp",
    ),
    Case(
        "an update with an option that is misspelt",
        ONE,
        attempt(command("update", updates=[{"q": {}, "u": {"$set": {"a": 2}}, "mutli": True}])),
        40415,
        "server: src/mongo/db/ops/write_ops.idl (the code; its name is not compared)",
    ),
]

CASES = [*IN_TRANSACTIONS, *STREAMS, *COMMANDS]
