"""gmongo's own client on each kind of deployment, the fixtures, and life in the caller's hub."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import OperationFailure, ServerSelectionTimeoutError
from gmongo.testing import Deployment
from gmongo.testing.simulation.listener import reserve
from tests.simulation.servers.wire_client import PATIENCE

KINDS = {
    "standalone": Deployment.standalone,
    "replica set": Deployment.replica_set,
    "sharded": Deployment.sharded,
    "version 4.2": lambda: Deployment.replica_set(version="4.2"),
    "version 4.4": lambda: Deployment.replica_set(version="4.4"),
    "version 6.0": lambda: Deployment.sharded(version="6.0"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_reads_and_writes(kind):
    with KINDS[kind]() as deployment, MongoClient(deployment.uri) as client:
        collection = client.db.people
        collection.insert_many([{"_id": number} for number in range(250)])
        assert len(list(collection.find(batch_size=20))) == 250
        assert collection.update_one({"_id": 7}, {"$set": {"x": 1}}).modified_count == 1
        assert collection.delete_many({"_id": {"$gte": 100}}).deleted_count == 150
        assert client.db.list_collection_names() == ["people"]
        with pytest.raises(OperationFailure) as caught:
            client.db.command("noSuchCommand")
        assert caught.value.code == 59


def test_a_step_down_in_the_middle():
    with Deployment.replica_set() as deployment, MongoClient(deployment.uri) as client:
        for number in range(20):
            if number == 10:
                deployment.members.primary.step_down()
            client.db.c.insert_one({"_id": number})
        assert client.db.c.count_documents({}) == 20


def test_a_killed_primary():
    with Deployment.replica_set() as deployment, MongoClient(deployment.uri) as client:
        client.db.c.insert_one({"_id": 1})
        deployment.members.primary.kill()
        client.db.c.insert_one({"_id": 2})
        assert client.db.c.count_documents({}) == 2


def test_clients_leave_no_connections():
    with Deployment.replica_set() as deployment:
        with MongoClient(deployment.uri) as client:
            client.db.c.insert_one({})
        with gevent.Timeout(PATIENCE):
            while any(member.connections for member in deployment.members):
                gevent.sleep(0.002)


def test_several_deployments_at_once():
    with (
        Deployment.replica_set(name="one") as one,
        Deployment.replica_set(name="two") as two,
        MongoClient(one.uri) as first,
        MongoClient(two.uri) as second,
    ):
        first.db.c.insert_one({"_id": 1})
        assert second.db.c.count_documents({}) == 0


def test_after_close_there_is_no_answer():
    with Deployment.standalone() as deployment:
        uri, port = deployment.uri, deployment.members[0].port
    with (
        closing(reserve(port)),  # so that no other program answers there
        MongoClient(uri, serverSelectionTimeoutMS=20) as client,
        pytest.raises(ServerSelectionTimeoutError),
    ):
        client.admin.command("ping")


def test_it_starts_once():
    with Deployment.standalone() as deployment, pytest.raises(RuntimeError, match="started already"):
        deployment.start()


def test_before_the_start_there_is_no_uri():
    with pytest.raises(RuntimeError, match="not been started"):
        Deployment.standalone().uri  # noqa: B018


def test_the_hub_is_not_held():
    program = (
        "import gevent\n"
        "from gmongo.testing import Deployment\n"
        "from gevent import socket\n"
        "deployment = Deployment.replica_set().start()\n"
        "deployment.members.primary.step_down()\n"
        "client = socket.create_connection(('127.0.0.1', deployment.members[0].port))\n"
        "gevent.sleep(0.01)\n"
        "gevent.get_hub().join()\n"
        "print('joined')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "joined\n"


def test_fixture_of_a_standalone(mongodb_standalone):
    with MongoClient(mongodb_standalone.uri) as client:
        assert client.admin.command("hello")["isWritablePrimary"] is True


def test_fixture_of_a_replica_set(mongodb_replica_set):
    assert len(mongodb_replica_set.members) == 3
    with MongoClient(mongodb_replica_set.uri) as client:
        assert client.admin.command("hello")["setName"] == "rs0"


def test_fixture_of_a_sharded_cluster(mongodb_sharded_cluster):
    with MongoClient(mongodb_sharded_cluster.uri) as client:
        assert client.admin.command("hello")["msg"] == "isdbgrid"
