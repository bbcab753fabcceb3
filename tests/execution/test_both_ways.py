"""A first try runs on local variables, or as an `Attempt`; servers see the same bytes, applications the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bson import ObjectId
from bson.codec_options import CodecOptions
from bson.son import SON

from gmongo import InsertOne, MongoClient, UpdateOne, WriteConcern
from gmongo.execution.attempt import Attempt
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import SecondaryPreferred
from gmongo.server_api import ServerApi
from gmongo.testing import Deployment
from gmongo.wire.transport import Transport
from tests.support.every_try_is_special import force

ID = ObjectId("0123456789ab0123456789ab")
BIG = "x" * 70_000

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "find_one": lambda c: c.find_one({"_id": 1}),
    "find_one with a projection": lambda c: c.find_one({}, {"a": 1}, sort=[("a", -1)], comment="why"),
    "find": lambda c: list(c.find({"a": {"$gt": 0}})),
    "find in batches": lambda c: list(c.find({}, batch_size=2)),
    "a large reply": lambda c: [c.insert_one({"_id": "big", "x": BIG}), c.find_one({"_id": "big"})][1],
    "insert_one": lambda c: c.insert_one({"_id": ID}).inserted_id,
    "insert_one, unacknowledged": lambda c: c.with_options(write_concern=WriteConcern(0)).insert_one({}).acknowledged,
    "insert_one, w=1": lambda c: c.with_options(write_concern=WriteConcern(1)).insert_one({"_id": ID}).inserted_id,
    "insert_many": lambda c: c.insert_many([{"_id": f"new {number}"} for number in range(5)]).inserted_ids,
    "update_one": lambda c: c.update_one({"_id": 1}, {"$set": {"a": 9}}).raw_result,
    "update_one, upserting": lambda c: c.update_one({"_id": 77}, {"$set": {"a": 9}}, upsert=True).upserted_id,
    "update_many": lambda c: c.update_many({}, {"$inc": {"a": 1}}).modified_count,
    "replace_one": lambda c: c.replace_one({"_id": 2}, {"b": 1}).modified_count,
    "delete_one": lambda c: c.delete_one({"_id": 1}).deleted_count,
    "delete_many": lambda c: c.delete_many({"a": {"$lt": 2}}).deleted_count,
    "bulk_write": lambda c: (
        c.bulk_write([InsertOne({"_id": 50}), UpdateOne({"_id": 1}, {"$set": {"b": 1}})]).bulk_api_result
    ),
    "find_one_and_update": lambda c: c.find_one_and_update({"_id": 1}, {"$set": {"z": 1}}),
    "aggregate": lambda c: list(c.aggregate([{"$match": {"_id": 1}}])),
    "aggregate into a collection": lambda c: list(c.aggregate([{"$out": "copy"}])),
    "distinct": lambda c: sorted(c.distinct("a")),
    "count": lambda c: (c.count_documents({}), c.estimated_document_count()),
    "create_index": lambda c: c.create_index("a"),
    "list_indexes": lambda c: [each["name"] for each in c.list_indexes()],
    "command": lambda c: c.database.command("ping"),
    "listing": lambda c: (c.database.list_collection_names(), c.database.client.list_database_names()),
    "drop": lambda c: c.drop(),
    "an error": lambda c: c.insert_one({"_id": 1}),
    "codec options": lambda c: c.with_options(codec_options=CodecOptions(document_class=SON)).find_one({"_id": 1}),
    "a read concern": lambda c: c.with_options(read_concern=ReadConcern("majority")).find_one({"_id": 1}),
    "a read preference": lambda c: c.with_options(read_preference=SecondaryPreferred()).find_one({"_id": 1}),
}
CLIENTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stable API": {"server_api": ServerApi("1")},
    "no retries": {"retryReads": False, "retryWrites": False},
    "directly": {"directConnection": True},
    "socketTimeoutMS": {"socketTimeoutMS": 30_000},
}


SIX = ("find_one", "insert_one", "update_one", "delete_one", "find", "command")
MAKERS: dict[str, Callable[[], Deployment]] = {
    "standalone": Deployment.standalone,
    "replica set": lambda: Deployment.replica_set(1),
    "sharded": lambda: Deployment.sharded(1),
}


@pytest.fixture(scope="module", params=MAKERS)
def deployment(request: pytest.FixtureRequest) -> Iterator[Deployment]:
    with MAKERS[request.param]() as deployment:
        yield deployment


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The requests, without their IDs."""
    requests: list[bytes] = []

    def noting(send: Callable[..., Any]) -> Callable[..., Any]:
        def note(transport: Transport, request: Any, *arguments: Any) -> Any:
            data = request if isinstance(request, bytes) else b"".join(request)
            if b"hello" not in data and b"ismaster" not in data:
                requests.append(_timeless(data[:4] + data[8:]))
            return send(transport, request, *arguments)

        return note

    for name in ("round_trip", "send"):
        monkeypatch.setattr(Transport, name, noting(getattr(Transport, name)))
    return requests


def _timeless(request: bytes) -> bytes:
    """Without what is another each time: times, numbers of cursors and transactions, and IDs that are made."""
    changing = (
        (b"\x11clusterTime\0", 8),
        (b"\x07_id\0", 12),
        (b"\x12getMore\0", 8),
        (b"\x12txnNumber\0", 8),
        (b"\x05id\0", 21),
    )
    for name, length in changing:
        start = 0
        while (found := request.find(name, start)) >= 0:
            start = found + len(name)
            request = request[:start] + b"-" * length + request[start + length :]
    return request


def _outcome(operation: Any, collection: Any) -> str:
    try:
        return repr(operation(collection))
    except Exception as error:
        return f"{type(error).__name__}: {getattr(error, 'code', None)}"


@pytest.mark.parametrize("options", CLIENTS)
def test_the_bytes_are_the_same(
    deployment: Deployment, sent: list[bytes], options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[Attempt] = []
    make = Attempt.__init__
    monkeypatch.setattr(Attempt, "__init__", lambda self, *given: (attempts.append(self), make(self, *given))[1])
    plain = MongoClient[Any](deployment.uri, serverMonitoringMode="poll", **CLIENTS[options])
    with monkeypatch.context() as patch:
        force(patch)
        special = MongoClient[Any](deployment.uri, serverMonitoringMode="poll", **CLIENTS[options])
    with plain, special:
        for client in (plain, special):
            client.shop.command("ping")
        for name in OPERATIONS if options == "plain" else SIX:
            found = {}
            for client in (plain, special):
                things = plain.shop.things
                things.drop()
                things.insert_many([{"_id": number, "a": number} for number in range(4)])
                sent.clear()
                attempts.clear()
                outcome = _outcome(OPERATIONS[name], client.shop.things)
                found[client] = list(sent), outcome
                assert sent and (attempts or client is plain), name
            assert found[plain] == found[special], name
