"""Transactions, sessions, change streams, and the administration of a server."""

from __future__ import annotations

from typing import Any

from .calls import Call, after, command, stored
from .cases import OPERATION_FAILURES, Case
from .refusals import (
    ILLEGAL,
    NO_NAMESPACE,
    NOT_IN_TRANSACTION,
    ON_VIEW,
    ONE,
    OPTIONS,
    THREE,
    TRANSACTIONS,
    admin,
    database_command,
    events,
    ids,
    inserted,
    location,
    make_index,
    of,
    of_others,
    piped,
    refusal,
    view,
    within,
)

STREAMS = "server: jstests/change_streams"
EVENTS = "manual: reference/change-events"


def _kinds(events: Any) -> Any:
    return [event["operationType"] for event in events]


def _set(filter: Any, change: Any, **options: Any) -> Call:
    return lambda collection: collection.update_one(filter, change, **options)


def _remove(filter: Any) -> Call:
    return lambda collection: collection.delete_one(filter)


def _committed(collection: Any) -> Any:
    with collection.database.client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 2}, session=session)
        outside = ids(stored(collection))
        inside = ids(collection.find({}, session=session))
        session.commit_transaction()
    return [outside, inside, ids(stored(collection))]


def _committed_after_an_error(collection: Any) -> Any:
    with collection.database.client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 2}, session=session)
        refused = None
        try:
            collection.insert_one({"_id": 1}, session=session)
        except OPERATION_FAILURES as error:
            refused = error.code
        try:
            session.commit_transaction()
        except OPERATION_FAILURES as error:
            return [refused, error.code, ids(stored(collection))]
    return None


IN_TRANSACTIONS = [
    Case(
        "what a transaction inserts is seen outside when it is committed",
        ONE,
        _committed,
        [[1], [1, 2], [1, 2]],
        "manual: core/transactions",
    ),
    Case(
        "a duplicate ends the transaction",
        ONE,
        _committed_after_an_error,
        [11000, 251, [1]],
        "server: src/mongo/db/ops/write_ops_exec.cpp",
    ),
    Case(
        "the command count in a transaction",
        ONE,
        within(lambda collection, session: collection.database.command({"count": collection.name}, session=session)),
        NOT_IN_TRANSACTION,
        f"{TRANSACTIONS}/commands_not_allowed_in_txn.js",
    ),
    Case(
        "drop in a transaction",
        ONE,
        within(lambda collection, session: collection.database.command({"drop": collection.name}, session=session)),
        NOT_IN_TRANSACTION,
        f"{TRANSACTIONS}/commands_not_allowed_in_txn.js",
    ),
    Case(
        "an index of documents that are there, in a transaction",
        ONE,
        within(
            lambda collection, session: collection.database.command(
                {"createIndexes": collection.name, "indexes": [{"key": {"a": 1}, "name": "a_1"}]}, session=session
            )
        ),
        NOT_IN_TRANSACTION,
        f"{TRANSACTIONS}/create_indexes.js",
    ),
    Case(
        "$out in a transaction",
        ONE,
        within(lambda collection, session: list(collection.aggregate([{"$out": "others"}], session=session))),
        NOT_IN_TRANSACTION,
        "manual: core/transactions-operations",
    ),
    Case(
        "a session ends after half an hour without use",
        [],
        database_command(startSession=1, of=lambda reply: int(reply["timeoutMinutes"])),
        30,
        "manual: reference/command/startSession",
    ),
]


def _resumed(collection: Any) -> Any:
    first = events(inserted({"_id": 1}), inserted({"_id": 2}), inserted({"_id": 3}), count=1)(collection)[0]
    return [
        event["documentKey"]["_id"]
        for event in events(inserted({"_id": 4}), count=3, resume_after=first["_id"])(collection)
    ]


def _in_a_transaction(collection: Any) -> None:
    with collection.database.client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1}, session=session)
        collection.insert_one({"_id": 2}, session=session)
        session.commit_transaction()


CHANGES = [
    Case(
        "writes of four kinds as events",
        [],
        of(
            events(
                inserted({"_id": 1, "a": 1}),
                _set({"_id": 1}, {"$set": {"a": 2}}),
                lambda collection: collection.replace_one({"_id": 1}, {"b": 3}),
                _remove({"_id": 1}),
                count=4,
            ),
            _kinds,
        ),
        ["insert", "update", "replace", "delete"],
        f"{STREAMS}/change_stream.js",
    ),
    Case(
        "a delete as an event has the key of the document alone",
        ONE,
        of(
            events(_remove({"_id": 1}), count=1),
            lambda found: [found[0]["documentKey"], "fullDocument" in found[0], "updateDescription" in found[0]],
        ),
        [{"_id": 1}, False, False],
        f"{EVENTS}/delete",
    ),
    Case(
        "an update as an event tells what is set by its path, and what is removed",
        [{"_id": 1, "a": {"b": 1, "c": 2}, "d": 3}],
        of(
            events(_set({"_id": 1}, {"$set": {"a.b": 5}, "$unset": {"d": ""}}), count=1),
            lambda found: [found[0]["updateDescription"][field] for field in ("updatedFields", "removedFields")],
        ),
        [{"a.b": 5}, ["d"]],
        f"{EVENTS}/update",
    ),
    Case(
        "the document of an update is looked up as it is then",
        ONE,
        of(
            events(
                _set({"_id": 1}, {"$set": {"a": 2}}),
                _set({"_id": 1}, {"$set": {"b": 3}}),
                count=1,
                full_document="updateLookup",
            ),
            lambda found: found[0]["fullDocument"],
        ),
        {"_id": 1, "a": 2, "b": 3},
        "manual: changeStreams",
    ),
    Case(
        "an upsert as an event is an insert",
        [],
        of(
            events(_set({"_id": 2}, {"$set": {"a": 4}}, upsert=True), count=1),
            lambda found: [found[0]["operationType"], found[0]["fullDocument"]],
        ),
        ["insert", {"_id": 2, "a": 4}],
        f"{STREAMS}/change_stream.js",
    ),
    Case(
        "a pipeline takes deletes alone",
        ONE,
        of(
            events(
                inserted({"_id": 2}),
                _set({"_id": 2}, {"$set": {"a": 1}}),
                _remove({"_id": 2}),
                count=1,
                pipeline=[{"$match": {"operationType": "delete"}}],
            ),
            lambda found: [[event["operationType"], event["documentKey"]] for event in found],
        ),
        [["delete", {"_id": 2}]],
        "manual: changeStreams",
    ),
    Case(
        "a rename as an event tells the new name, and ends the stream",
        ONE,
        of(
            events(lambda collection: collection.rename("others"), count=2),
            lambda found: [[event["operationType"], event.get("to", {}).get("coll")] for event in found],
        ),
        [["rename", "others"], ["invalidate", None]],
        f"{STREAMS}/metadata_notifications.js",
    ),
    Case(
        "a stream of the database tells of all its collections",
        [],
        of(
            events(inserted({"_id": 1}), of_others(inserted({"_id": 2})), count=2, whole=True),
            lambda found: [event["ns"]["coll"] for event in found],
        ),
        ["cases", "others"],
        "manual: changeStreams",
    ),
    Case(
        "indexes as events, if that is asked",
        ONE,
        of(
            events(
                make_index({"a": 1}),
                lambda collection: collection.drop_index("a_1"),
                count=2,
                show_expanded_events=True,
            ),
            lambda found: [
                [event["operationType"], event["operationDescription"]["indexes"][0]["name"]] for event in found
            ],
        ),
        [["createIndexes", "a_1"], ["dropIndexes", "a_1"]],
        f"{STREAMS}/ddl_create_drop_index_events.js",
    ),
    Case(
        "events of a transaction have its number",
        [{"_id": 0}],
        of(
            events(_in_a_transaction, count=2),
            lambda found: [[event["documentKey"]["_id"], "txnNumber" in event, "lsid" in event] for event in found],
        ),
        [[1, True, True], [2, True, True]],
        f"{EVENTS}/insert",
    ),
    Case("a stream goes on after an event", [], _resumed, [2, 3, 4], f"{STREAMS}/change_stream.js"),
    Case(
        "a stream that is grouped",
        ONE,
        refusal(piped({"$changeStream": {}}, {"$group": {"_id": "$_id"}})),
        ILLEGAL,
        f"{STREAMS}/allowlist.js",
    ),
    Case(
        "a stream that is not first",
        ONE,
        refusal(piped({"$match": {}}, {"$changeStream": {}})),
        location(40602),
        "server: src/mongo/db/pipeline/pipeline.cpp",
    ),
    Case(
        "a stream of a view",
        ONE,
        after(view(), refusal(of_others(piped({"$changeStream": {}})))),
        ON_VIEW,
        f"{STREAMS}/ban_from_views.js",
    ),
]

ADMINISTRATION = [
    Case("ping", [], admin(ping=1), 1.0, "manual: reference/command/ping"),
    Case(
        "hello of the primary",
        [],
        admin(hello=1, of=lambda reply: [reply["isWritablePrimary"], reply["secondary"], reply["readOnly"]]),
        [True, False, False],
        "manual: reference/command/hello",
    ),
    Case(
        "the users of a connection that needs none",
        [],
        database_command(
            connectionStatus=1,
            of=lambda reply: [reply["authInfo"][part] for part in ("authenticatedUsers", "authenticatedUserRoles")],
        ),
        [[], []],
        "manual: reference/command/connectionStatus",
    ),
    Case(
        "collStats counts documents and indexes",
        THREE,
        after(
            make_index({"a": 1}),
            command(
                "collStats",
                of=lambda reply: [int(reply["count"]), int(reply["nindexes"]), sorted(reply["indexSizes"])],
            ),
        ),
        [3, 2, ["_id_", "a_1"]],
        "manual: reference/command/collStats",
    ),
    Case(
        "databases by a name that there is not",
        [],
        admin(listDatabases=1, filter={"name": "there_is_no_such_database"}, of=lambda reply: reply["databases"]),
        [],
        "manual: reference/command/listDatabases",
    ),
    Case(
        "a parameter that is set, and that there is not",
        [],
        refusal(admin(setParameter=1, thereIsNoSuchParameter=1)),
        OPTIONS,
        "server: src/mongo/db/commands/parameters.cpp",
    ),
    Case(
        "validate of a collection that is not there",
        [],
        refusal(command("validate")),
        NO_NAMESPACE,
        "server: src/mongo/db/catalog/collection_validation.cpp",
    ),
    Case(
        "a query that an index covers reads no document",
        THREE,
        after(
            make_index({"a": 1}),
            lambda collection: [
                int(
                    collection.database.command(
                        {
                            "explain": {"find": collection.name, "filter": {"a": 2}, "projection": {"_id": 0, "a": 1}},
                            "verbosity": "executionStats",
                        }
                    )["executionStats"][part]
                )
                for part in ("nReturned", "totalKeysExamined", "totalDocsExamined")
            ],
        ),
        [1, 1, 0],
        "manual: core/query-optimization",
    ),
]

CASES = [*IN_TRANSACTIONS, *CHANGES, *ADMINISTRATION]
