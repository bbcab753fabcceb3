"""Transactions, and cursors inside and outside of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bson import Int64

from gmongo.read_concern import ReadConcern

from .calls import Call, command, stored
from .cases import Case
from .refusals import BAD_VALUE, ONE, OPTIONS, QUERY, TRANSACTIONS, batch, database_command, listed_collections, refusal


def _transaction(run: Callable[[Any, Any], Any], **options: Any) -> Call:
    """What is found in a transaction, which is aborted unless the call ends it."""

    def call(collection: Any) -> Any:
        with collection.database.client.start_session() as session:
            session.start_transaction(**options)
            try:
                return run(collection, session)
            finally:
                if session.in_transaction:
                    session.abort_transaction()

    return call


def _second(fields: Any) -> Call:
    """The refusal of a command that is not the first of its transaction."""

    def run(collection: Any, session: Any) -> Any:
        collection.insert_one({"_id": "first"}, session=session)
        return refusal(lambda _: collection.database.command(fields, session=session))(collection)

    return _transaction(run)


def _existing(collection: Any, session: Any) -> Any:
    refused = refusal(lambda _: collection.database.command({"create": "cases"}, session=session))
    counted = refusal(lambda _: collection.database.command({"find": "cases"}, session=session))
    return [refused(collection), counted(collection)]


def _abandoned(collection: Any, session: Any) -> Any:
    collection.database.command({"create": "others"}, session=session)
    collection.database.others.insert_one({"_id": 1}, session=session)
    session.abort_transaction()
    return listed_collections({"name": "others"})(collection)


def _isolated(collection: Any, session: Any) -> Any:
    counts = []

    def count() -> None:
        (found,) = collection.aggregate([{"$count": "n"}], session=session)
        counts.append(found["n"])

    count()
    collection.insert_one({"_id": "outside"})
    count()
    collection.insert_one({"_id": "inside"}, session=session)
    count()
    return counts


def _killed(collection: Any, session: Any) -> Any:
    database = collection.database
    opened = [database.command({"find": "cases", "batchSize": 2}, session=session)["cursor"]["id"] for _ in range(2)]
    database.command({"killCursors": "cases", "cursors": opened[:1]})
    rest = database.command({"getMore": opened[1], "collection": "cases"}, session=session)["cursor"]["nextBatch"]
    collection.insert_one({"_id": 4}, session=session)
    session.commit_transaction()
    return [rest, len(stored(collection))]


FOUR = [{"_id": number} for number in range(4)]
CONCERNS = f"{TRANSACTIONS}/no_read_or_write_concern_inside_txn.js"

IN_TRANSACTIONS = [
    Case(
        "a write concern within a transaction",
        ONE,
        _second({"insert": "cases", "documents": [{"_id": 7}], "writeConcern": {"w": "majority"}}),
        OPTIONS,
        CONCERNS,
    ),
    Case(
        "a read concern within a transaction",
        ONE,
        _second({"find": "cases", "filter": {"_id": 1}, "readConcern": {"level": "majority"}}),
        OPTIONS,
        CONCERNS,
    ),
    Case(
        "a collection that is there ends a transaction that creates it",
        ONE,
        _transaction(_existing),
        [[48, "NamespaceExists"], [251, "NoSuchTransaction"]],
        f"{TRANSACTIONS}/create_collection.js",
    ),
    Case(
        "a collection of a transaction that is aborted",
        ONE,
        _transaction(_abandoned),
        [],
        f"{TRANSACTIONS}/create_collection.js",
    ),
    Case(
        "a transaction counts what it sees",
        ONE,
        _transaction(_isolated, read_concern=ReadConcern("snapshot")),
        [1, 1, 2],
        f"{TRANSACTIONS}/aggregation_in_transaction.js",
    ),
    Case(
        "a cursor that is killed from outside leaves its transaction alone",
        FOUR,
        _transaction(_killed),
        [[{"_id": 2}, {"_id": 3}], 5],
        f"{TRANSACTIONS}/kill_txn_cursor.js",
    ),
]


def _without_first(collection: Any) -> Any:
    first = collection.database.command({"find": "cases", "batchSize": 0})["cursor"]
    more = collection.database.command({"getMore": first["id"], "collection": "cases"})["cursor"]
    return [first["firstBatch"], first["id"] != 0, len(more["nextBatch"]), more["id"]]


def _kill(collection: Any) -> Any:
    opened = collection.database.command({"find": "cases", "batchSize": 2})["cursor"]["id"]
    reply = collection.database.command({"killCursors": "cases", "cursors": [opened, Int64(12345)]})
    lists = ["cursorsKilled", "cursorsNotFound", "cursorsAlive", "cursorsUnknown"]
    gone = refusal(database_command(getMore=opened, collection="cases"))(collection)
    return [reply["cursorsKilled"] == [opened], *(reply[each] for each in lists[1:]), gone]


def _dropped(collection: Any) -> Any:
    opened = collection.database.command({"find": "cases", "batchSize": 2})["cursor"]["id"]
    collection.drop()
    return refusal(database_command(getMore=opened, collection="cases"))(collection)


CURSORS = [
    Case(
        "a cursor of a collection that was dropped",
        FOUR,
        _dropped,
        [175, "QueryPlanKilled"],
        "server: jstests/core/ddl/drop_collection_cursors.js",
    ),
    Case("a first batch of none", ONE, _without_first, [[], True, 1, Int64(0)], f"{QUERY}/expr/expr.js"),
    Case(
        "cursors that are killed, and one that is not there",
        FOUR,
        _kill,
        [True, [Int64(12345)], [], [], [43, "CursorNotFound"]],
        "manual: reference/command/killCursors",
    ),
    Case(
        "a tailable cursor of a collection that is not capped",
        ONE,
        refusal(batch("find", tailable=True)),
        BAD_VALUE,
        f"{QUERY}/awaitdata_getmore_cmd.js",
    ),
    Case(
        "a tailable cursor of a collection that is not there",
        [],
        command("find", of=lambda reply: [reply["cursor"]["id"], reply["cursor"]["firstBatch"]], tailable=True),
        [Int64(0), []],
        f"{QUERY}/awaitdata_getmore_cmd.js",
    ),
]


CASES = [*IN_TRANSACTIONS, *CURSORS]
