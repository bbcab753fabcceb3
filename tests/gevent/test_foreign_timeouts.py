"""``with gevent.Timeout(t)`` around anything raises that very object, and says nothing of the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo import InsertOne, MongoClient
from gmongo.gridfs import GridFS
from gmongo.testing import Deployment
from tests.gevent.blame import BlameRecorder
from tests.support.fail_points import block, refuse
from tests.support.wait import eventually


def transaction(db: Any) -> None:
    with db.client.start_session() as session:
        session.with_transaction(lambda each: db.c.insert_one({}, session=each))


def iterate(db: Any) -> None:
    with db.c.find(batch_size=2) as cursor:
        list(cursor)


def watch(db: Any) -> None:
    with db.c.watch() as stream:
        stream.next()


OPERATIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "insert_one": ("insert", lambda db: db.c.insert_one({})),
    "insert_many": ("insert", lambda db: db.c.insert_many([{}, {}])),
    "find_one": ("find", lambda db: db.c.find_one()),
    "update_one": ("update", lambda db: db.c.update_one({}, {"$set": {"a": 1}})),
    "delete_many": ("delete", lambda db: db.c.delete_many({"a": 1})),
    "aggregate": ("aggregate", lambda db: list(db.c.aggregate([]))),
    "find_one_and_update": ("findAndModify", lambda db: db.c.find_one_and_update({}, {"$set": {"a": 1}})),
    "getMore": ("getMore", iterate),
    "commit": ("commitTransaction", transaction),
    "insert in a transaction": ("insert", transaction),
    "bulk_write": ("insert", lambda db: db.c.bulk_write([InsertOne({})])),
    "client.bulk_write": ("bulkWrite", lambda db: db.client.bulk_write([InsertOne({}, namespace="test.c")])),
    "change stream": ("getMore", watch),
    "GridFS": ("insert", lambda db: GridFS(db).put(b"abc")),
    "count_documents": ("aggregate", lambda db: db.c.count_documents({})),
    "distinct": ("distinct", lambda db: db.c.distinct("a")),
    "create_index": ("createIndexes", lambda db: db.c.create_index("a")),
    "command": ("ping", lambda db: db.command("ping")),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_that_very_object_comes_out_and_the_server_stays_known(name):
    command, call = OPERATIONS[name]
    recorder = BlameRecorder()
    with Deployment.replica_set(members=1) as deployment, gevent.Timeout(20):
        # The limits of the driver are there as well, and none of them goes off.
        options = {"socketTimeoutMS": 15000, "waitQueueTimeoutMS": 15000}
        with MongoClient(deployment.uri, event_listeners=[recorder], **options) as client:
            client.test.c.insert_many([{"_id": number} for number in range(5)])
            recorder.forget()
            block(deployment, command, 0.4)
            mine = gevent.Timeout(1000)
            caller = gevent.spawn(call, client.test)
            eventually(lambda: command in recorder.commands)
            caller.kill(mine)
            assert caller.exception is mine
            assert sorted(recorder.begun) == sorted(recorder.ended)
            assert command in [each.command_name for each in recorder.failures]
            assert not recorder.blamed
            deployment.set_fail_point("failCommand", "off")
            assert client.test.c.find_one({"_id": 1})["_id"] == 1
            assert client.pool_stats()[0]["in_use"] == 0
        assert not recorder.blamed


def test_while_waiting_for_a_server():
    with Deployment.replica_set(members=1) as deployment:
        uri = deployment.uri
    with MongoClient(uri) as client:
        mine = gevent.Timeout(0.05)
        with pytest.raises(gevent.Timeout) as caught, mine:
            client.test.c.find_one()
        assert caught.value is mine


def test_while_waiting_between_tries():
    with Deployment.replica_set(members=1) as deployment, MongoClient(deployment.uri) as client:
        client.test.c.find_one()
        client._executor.overload.jitter = lambda: 1.0
        client._executor.overload.base = 5.0
        labels = ["SystemOverloadedError", "RetryableError"]
        refuse(deployment, "find", 462, *labels)
        mine = gevent.Timeout(0.05)
        with pytest.raises(gevent.Timeout) as caught, mine:
            client.test.c.find_one()
        assert caught.value is mine
        assert client.pool_stats()[0]["in_use"] == 0
