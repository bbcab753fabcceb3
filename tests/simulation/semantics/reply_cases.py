"""Cursors, distinct values, transactions, change events, and what monitoring reads."""

from __future__ import annotations

from bson import Int64, Timestamp

from gmongo.read_concern import ReadConcern

from .calls import after, attempt, command, made
from .cases import Case, Error

GET_MORE = "server: jstests/core/query/find/find_getmore_cmd.js"
DISTINCT = "server: jstests/core/query/distinct/distinct_semantics.js"
BANNED = "server: jstests/core/txns/commands_not_allowed_in_txn.js"
CONFLICTS = "manual: core/transactions-production-consideration"
EVENTS = "manual: reference/change-events"
RENAME = "manual: reference/command/renameCollection"
MANY = [{"_id": number} for number in range(151)]
ONE = [{"_id": 1, "a": 1}]


def _batches(*more, **fields):
    """The lengths of the batches, and whether the cursor is open after the last one."""

    def run(collection):
        database = collection.database
        reply = database.command({"find": collection.name, **fields})
        lengths = [len(reply["cursor"]["firstBatch"])]
        for options in more:
            reply = database.command({"getMore": reply["cursor"]["id"], "collection": collection.name, **options})
            lengths.append(len(reply["cursor"]["nextBatch"]))
        return [lengths, reply["cursor"]["id"] != 0]

    return run


def _get_more(name):
    """The code of a getMore for a cursor of another collection's name."""

    def run(collection):
        database = collection.database
        cursor = database.command({"find": collection.name, "batchSize": 1})["cursor"]["id"]
        return database.command({"getMore": cursor, "collection": name})

    return run


def _killed(collection):
    database = collection.database
    cursor = database.command({"find": collection.name, "batchSize": 1})["cursor"]["id"]
    replies = [database.command({"killCursors": collection.name, "cursors": [cursor]}) for _ in range(2)]
    return [[len(reply["cursorsKilled"]), len(reply["cursorsNotFound"])] for reply in replies]


def _distinct(documents, key, expected, filter=None):
    return Case(
        f"distinct {key} of {documents!r}"[:120],
        [{"_id": number, **document} for number, document in enumerate(documents)],
        lambda collection: sorted(collection.distinct(key, filter or {}), key=repr),
        expected,
        DISTINCT,
    )


def _within(call):
    """The code with which a call fails in a transaction that has written."""

    def run(collection):
        with collection.database.client.start_session() as session:
            session.start_transaction()
            collection.insert_one({"_id": "first"}, session=session)
            code = attempt(lambda collection: call(collection, session))(collection)
            session.abort_transaction()
            return code

    return run


def _two(first, second):
    """The code with which a call fails in a transaction beside another."""

    def run(collection):
        client = collection.database.client
        with client.start_session() as one, client.start_session() as two:
            one.start_transaction()
            two.start_transaction()
            first(collection, one)
            code = attempt(lambda collection: second(collection, two))(collection)
            for session in (one, two):
                session.abort_transaction()
            return code

    return run


def _snapshot(collection):
    """What a transaction counts before and after another client's insert."""
    client = collection.database.client
    with client.start_session() as session, session.start_transaction(ReadConcern("snapshot")):
        counts = [collection.count_documents({}, session=session)]
        collection.insert_one({"_id": 2})
        counts.append(collection.count_documents({}, session=session))
    return [*counts, collection.count_documents({})]


def _events(writes, shown, count=1, **options):
    """What a change stream of the collection shows of its first events."""

    def run(collection):
        if not list(collection.database.list_collection_names(filter={"name": collection.name})):
            made()(collection)
        with collection.watch(max_await_time_ms=50, **options) as stream:
            writes(collection)
            found = []
            for _ in range(40):
                event = stream.try_next()
                if event is not None:
                    found.append(shown(event))
                if len(found) == count:
                    break
        return found

    return run


def _status(*path):
    def run(collection):
        found = collection.database.command("serverStatus")
        for name in path:
            found = found[name]
        return found

    return run


def _growth(write):
    """By how much an operation counter rises."""

    def run(collection):
        counters = []
        for call in (lambda collection: None, write):
            call(collection)
            counters.append(collection.database.command("serverStatus")["opcounters"])
        return {name: int(counters[1][name]) - int(counters[0][name]) for name in ("insert", "update", "delete")}

    return run


def _renamed(**options):
    def run(collection):
        database = collection.database
        return database.client.admin.command(
            {"renameCollection": collection.full_name, "to": f"{database.name}.others", **options}
        )["ok"]

    return run


def _drop(collection):
    collection.drop()


CASES: list[Case] = [
    Case("the first batch has 101 documents", MANY, _batches({}), [[101, 50], False], GET_MORE),
    Case(
        "a batch size and a limit",
        MANY,
        _batches({"batchSize": 11}, batchSize=10, limit=20),
        [[10, 10], False],
        GET_MORE,
    ),
    Case("a batch size of zero", MANY, _batches({"batchSize": 5}, batchSize=0), [[0, 5], True], GET_MORE),
    Case("a single batch", MANY, _batches(batchSize=10, singleBatch=True), [[10], False], GET_MORE),
    Case("a limit below the batch size", MANY, _batches(limit=10), [[10], False], GET_MORE),
    Case(
        "getMore of no cursor",
        ONE,
        lambda collection: collection.database.command({"getMore": Int64(12345), "collection": "cases"}),
        Error(43),
        "manual: reference/command/getMore",
    ),
    Case(
        "getMore for another collection",
        MANY,
        _get_more("others"),
        Error(13),
        "server: src/mongo/db/commands/getmore_cmd.cpp",
    ),
    Case(
        "find in a collection without a name",
        [],
        lambda collection: collection.database.command({"find": ""}),
        Error(73),
        GET_MORE,
    ),
    Case("killCursors tells what it found", MANY, _killed, [[1, 0], [0, 1]], "manual: reference/command/killCursors"),
    Case(
        "count with skip and limit",
        MANY,
        command("count", query={"_id": {"$gte": 100}}, skip=10, limit=5, of=lambda reply: reply["n"]),
        5,
        "manual: reference/command/count",
    ),
    _distinct(
        [{"a": [2, 3]}, {"a": 1}, {"a": 2}, {"a": [1, [2, 3]]}, {"a": [3, "str"]}], "a", ["str", 1, 2, 3, [2, 3]]
    ),
    _distinct(
        [{"a": 0}, {"a": [1, 2]}, {"a": [-1, 3]}, {"a": [3, "str"]}, {"a": [3, None]}],
        "a",
        ["str", -1, 3, None],
        {"a": {"$gt": 2}},
    ),
    _distinct([{"a": 0}, {"a": [1, 2]}, {"a": [[2, 3], "str"]}, {"a": [[[4]], None]}], "a.0", [1, 2, 3, [4]]),
    _distinct([{"a": {"b": {"c": 0}}}, {"x": 0}, {"a": 1}, {"a": None}, {"a": []}, {"a": {"b": []}}], "a.b.c", [0]),
    _distinct([{"a": []}, {"a": {}}, {"b": 1}], "a", [{}]),
    *[
        Case(f"{name} in a transaction", ONE, _within(call), 263, BANNED)
        for name, call in (
            (
                "count",
                lambda collection, session: collection.database.command({"count": collection.name}, session=session),
            ),
            (
                "drop",
                lambda collection, session: collection.database.command({"drop": collection.name}, session=session),
            ),
            (
                "explain",
                lambda collection, session: collection.database.command(
                    {"explain": {"find": collection.name}}, session=session
                ),
            ),
        )
    ],
    Case(
        "two transactions update one document",
        ONE,
        _two(
            lambda collection, session: collection.update_one({"_id": 1}, {"$inc": {"a": 1}}, session=session),
            lambda collection, session: collection.update_one({"_id": 1}, {"$inc": {"a": 1}}, session=session),
        ),
        112,
        CONFLICTS,
    ),
    Case(
        "two transactions upsert one ID",
        ONE,
        _two(
            lambda collection, session: collection.update_one(
                {"_id": 5}, {"$set": {"a": 1}}, upsert=True, session=session
            ),
            lambda collection, session: collection.insert_one({"_id": 5}, session=session),
        ),
        112,
        CONFLICTS,
    ),
    Case("a transaction reads its snapshot", ONE, _snapshot, [1, 1, 2], "manual: reference/read-concern-snapshot"),
    Case(
        "an insert as an event",
        [],
        _events(
            lambda collection: collection.insert_one({"_id": 1, "a": 2}),
            lambda event: [
                event["operationType"],
                event["fullDocument"],
                event["documentKey"],
                event["ns"]["coll"],
                isinstance(event["clusterTime"], Timestamp),
            ],
        ),
        [["insert", {"_id": 1, "a": 2}, {"_id": 1}, "cases", True]],
        EVENTS + "/insert",
    ),
    Case(
        "an update as an event",
        [{"_id": 1, "a": {"b": 1}, "c": 1}],
        _events(
            lambda collection: collection.update_one({"_id": 1}, {"$set": {"a.b": 2}, "$unset": {"c": 1}}),
            lambda event: [event["operationType"], event["updateDescription"], "fullDocument" in event],
        ),
        [["update", {"updatedFields": {"a.b": 2}, "removedFields": ["c"], "truncatedArrays": []}, False]],
        EVENTS + "/update",
    ),
    Case(
        "an update that changes nothing makes no event",
        ONE,
        _events(
            after(
                lambda collection: collection.update_one({"_id": 1}, {"$set": {"a": 1}}),
                lambda collection: collection.delete_one({"_id": 1}),
            ),
            lambda event: [event["operationType"], event["documentKey"], "fullDocument" in event],
        ),
        [["delete", {"_id": 1}, False]],
        EVENTS + "/delete",
    ),
    Case(
        "a replacement as an event",
        ONE,
        _events(
            lambda collection: collection.replace_one({"_id": 1}, {"b": 1}),
            lambda event: [event["operationType"], event["fullDocument"], "updateDescription" in event],
        ),
        [["replace", {"_id": 1, "b": 1}, False]],
        EVENTS + "/replace",
    ),
    Case(
        "a drop ends a change stream",
        ONE,
        _events(_drop, lambda event: event["operationType"], count=2),
        ["drop", "invalidate"],
        EVENTS + "/invalidate",
    ),
    Case(
        "a change stream without resume tokens",
        ONE,
        _events(
            lambda collection: collection.insert_one({"_id": 2}),
            lambda event: event,
            pipeline=[{"$project": {"_id": 0}}],
        ),
        Error(280),
        "manual: changeStreams",
    ),
    Case(
        "the image before a change",
        ONE,
        after(
            command("collMod", changeStreamPreAndPostImages={"enabled": True}),
            _events(
                lambda collection: collection.update_one({"_id": 1}, {"$set": {"a": 2}}),
                lambda event: event["fullDocumentBeforeChange"],
                full_document_before_change="required",
            ),
        ),
        [{"_id": 1, "a": 1}],
        "manual: changeStreams",
    ),
    Case(
        "an image before a change that is not kept",
        ONE,
        _events(
            lambda collection: collection.update_one({"_id": 1}, {"$set": {"a": 2}}),
            lambda event: event["fullDocumentBeforeChange"],
            full_document_before_change="required",
        ),
        Error(47),
        "manual: changeStreams",
    ),
    Case(
        "serverStatus counts documents of inserts and statements of updates",
        ONE,
        _growth(
            after(
                lambda collection: collection.insert_many([{"_id": 2}, {"_id": 3}]),
                lambda collection: collection.update_many({}, {"$set": {"b": 1}}),
                lambda collection: collection.delete_many({}),
            )
        ),
        {"insert": 2, "update": 1, "delete": 1},
        "manual: reference/command/serverStatus",
    ),
    Case(
        "serverStatus names the process",
        ONE,
        lambda collection: _status("process")(collection) in ("mongod", "mongos"),
        True,
        "manual: reference/command/serverStatus",
    ),
    Case(
        "killOp of no operation",
        ONE,
        lambda collection: collection.database.client.admin.command({"killOp": 1, "op": 99999999})["info"],
        "attempting to kill op",
        "manual: reference/command/killOp",
    ),
    Case(
        "$currentOp finds itself",
        ONE,
        lambda collection: [
            [each["type"], each["active"], each["ns"], each["op"]]
            for each in collection.database.client.admin.aggregate(
                [
                    {"$currentOp": {}},
                    {"$match": {"command.aggregate": 1, "command.pipeline.0.$currentOp": {"$exists": True}}},
                ]
            )
        ],
        [["op", True, "admin.$cmd.aggregate", "command"]],
        "manual: reference/operator/aggregation/currentOp",
    ),
    Case("a rename to a name that is taken", ONE, _renamed(), Error(48), RENAME, ONE),
    Case("a rename that drops its target", ONE, _renamed(dropTarget=True), 1.0, RENAME, ONE),
    Case("a rename of no collection", [], _renamed(), Error(26), RENAME),
    Case(
        "a rename to the same name",
        ONE,
        lambda collection: collection.database.client.admin.command(
            {"renameCollection": collection.full_name, "to": collection.full_name, "dropTarget": True}
        ),
        Error(20),
        "server: jstests/core/ddl/rename_collection_to_itself.js",
    ),
    Case(
        "an unknown command",
        ONE,
        lambda collection: collection.database.command("notACommand"),
        Error(59),
        "server: src/mongo/base/error_codes.yml",
    ),
]
