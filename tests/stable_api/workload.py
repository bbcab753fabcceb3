"""A workload that uses operations of all kinds in API version 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gmongo import ASCENDING, DeleteOne, InsertOne, MongoClient, ReturnDocument, UpdateOne
from gmongo.errors import DuplicateKeyError
from gmongo.write_concern import WriteConcern

Client = MongoClient[dict[str, Any]]
NUMBERS = [{"_id": number, "even": number % 2 == 0} for number in range(10)]


def run_workload(client: Client) -> dict[str, Any]:
    """Run all steps of the workload, and return the result of each step."""
    return {step.__name__: step(client) for step in STEPS}


def _manage(client: Client) -> Any:
    client.drop_database("stable")
    client.stable.create_collection("c", validator={"_id": {"$exists": True}})
    client.stable.c.create_index([("even", ASCENDING)], name="even", comment="why not")
    client.stable.command("collMod", "c", validationLevel="moderate")
    names = client.stable.list_collection_names(), sorted(client.stable.c.index_information())
    client.stable.c.drop_index("even")
    return names, "stable" in client.list_database_names(), client.admin.command("ping")["ok"]


def _write(client: Client) -> Any:
    numbers = client.stable.c
    numbers.insert_many([dict(number) for number in NUMBERS])
    numbers.insert_one({"_id": "one"})
    updated = numbers.update_many({"even": True}, {"$set": {"seen": 1}})
    replaced = numbers.replace_one({"_id": "two"}, {"two": 2}, upsert=True)
    deleted = numbers.delete_one({"_id": "one"})
    written = numbers.bulk_write([InsertOne({"_id": "x"}), UpdateOne({"_id": "x"}, {"$set": {"y": 1}}), DeleteOne({})])
    try:
        numbers.insert_one({"_id": 5})
    except DuplicateKeyError as error:
        code = error.code
    return updated.modified_count, replaced.upserted_id, deleted.deleted_count, written.deleted_count, code


def _client_bulk_write(client: Client) -> Any:
    models = [InsertOne({"_id": f"b{n}"}, namespace="stable.bulk") for n in range(3)]
    return client.bulk_write(models, verbose_results=True).inserted_count  # type: ignore[arg-type]


def _find_and_modify(client: Client) -> Any:
    numbers = client.stable.c
    after = numbers.find_one_and_update({"_id": 5}, {"$inc": {"n": 1}}, return_document=ReturnDocument.AFTER)
    return after, numbers.find_one_and_delete({"_id": 9}), numbers.find_one_and_replace({"_id": 8}, {"r": 1})


def _read(client: Client) -> Any:
    numbers = client.stable.c
    matches = numbers.find({"even": False}, batch_size=2).sort("_id").to_list()
    with numbers.find({}, batch_size=2) as cursor:
        first = next(cursor)
    sums = numbers.aggregate([{"$group": {"_id": "$even", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]).to_list()
    return matches, first, sums, numbers.count_documents({}), numbers.estimated_document_count(), numbers.find_one()


def _transact(client: Client) -> Any:
    with client.start_session() as session:
        with session.start_transaction():
            client.stable.c.insert_one({"_id": "t1"}, session=session)
            client.stable.c.find({}, batch_size=2, session=session).to_list()
        session.start_transaction()
        client.stable.c.insert_one({"_id": "t2"}, session=session)
        session.abort_transaction()
    return client.stable.c.count_documents({"_id": {"$in": ["t1", "t2"]}})


def _watch(client: Client) -> Any:
    with client.stable.c.watch(max_await_time_ms=20) as stream:
        client.stable.c.insert_one({"_id": "seen"})
        return next(stream)["fullDocument"]


def _write_unacknowledged(client: Client) -> Any:
    client.stable.get_collection("w0", write_concern=WriteConcern(w=0)).insert_one({})


STEPS: tuple[Callable[[Client], Any], ...] = (
    _manage,
    _write,
    _client_bulk_write,
    _find_and_modify,
    _read,
    _transact,
    _watch,
    _write_unacknowledged,
)
