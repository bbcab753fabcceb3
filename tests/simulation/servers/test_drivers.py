"""Tests of gmongo clients on simulated deployments, of the fixtures, and of the end of a program."""

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
from tests.simulation.servers.wire_client import TIMEOUT_SECONDS

DEPLOYMENT_FACTORIES = {
    "standalone": Deployment.standalone,
    "replica set": Deployment.replica_set,
    "sharded": Deployment.sharded,
    "version 4.2": lambda: Deployment.replica_set(version="4.2"),
    "version 4.4": lambda: Deployment.replica_set(version="4.4"),
    "version 6.0": lambda: Deployment.sharded(version="6.0"),
}


@pytest.mark.parametrize("kind", DEPLOYMENT_FACTORIES)
def test_client_reads_and_writes_on_each_kind_of_deployment(kind):
    with DEPLOYMENT_FACTORIES[kind]() as deployment, MongoClient(deployment.uri) as client:
        collection = client.db.people
        collection.insert_many([{"_id": number} for number in range(250)])
        assert len(list(collection.find(batch_size=20))) == 250
        assert collection.update_one({"_id": 7}, {"$set": {"x": 1}}).modified_count == 1
        assert collection.delete_many({"_id": {"$gte": 100}}).deleted_count == 150
        assert client.db.list_collection_names() == ["people"]
        with pytest.raises(OperationFailure) as caught:
            client.db.command("noSuchCommand")
        assert caught.value.code == 59


def test_writes_succeed_during_step_down():
    with Deployment.replica_set() as deployment, MongoClient(deployment.uri) as client:
        for number in range(20):
            if number == 10:
                deployment.members.primary.step_down()
            client.db.c.insert_one({"_id": number})
        assert client.db.c.count_documents({}) == 20


def test_write_succeeds_after_kill_of_primary():
    with Deployment.replica_set() as deployment, MongoClient(deployment.uri) as client:
        client.db.c.insert_one({"_id": 1})
        deployment.members.primary.kill()
        client.db.c.insert_one({"_id": 2})
        assert client.db.c.count_documents({}) == 2


def test_closed_client_leaves_no_connections():
    with Deployment.replica_set() as deployment:
        with MongoClient(deployment.uri) as client:
            client.db.c.insert_one({})
        with gevent.Timeout(TIMEOUT_SECONDS):
            while any(member.connections for member in deployment.members):
                gevent.sleep(0.002)


def test_deployments_share_no_data():
    with (
        Deployment.replica_set(name="one") as one,
        Deployment.replica_set(name="two") as two,
        MongoClient(one.uri) as first,
        MongoClient(two.uri) as second,
    ):
        first.db.c.insert_one({"_id": 1})
        assert second.db.c.count_documents({}) == 0


def test_closed_deployment_does_not_reply():
    with Deployment.standalone() as deployment:
        uri, port = deployment.uri, deployment.members[0].port
    with (
        closing(reserve(port)),  # no other program can listen on the reserved port
        MongoClient(uri, serverSelectionTimeoutMS=20) as client,
        pytest.raises(ServerSelectionTimeoutError),
    ):
        client.admin.command("ping")


def test_second_start_of_deployment_raises_runtime_error():
    with Deployment.standalone() as deployment, pytest.raises(RuntimeError, match="started before"):
        deployment.start()


def test_uri_of_deployment_before_start_raises_runtime_error():
    with pytest.raises(RuntimeError, match="not been started"):
        Deployment.standalone().uri  # noqa: B018


def test_deployment_does_not_keep_hub_running():
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


def test_fixture_mongodb_standalone_starts_standalone(mongodb_standalone):
    with MongoClient(mongodb_standalone.uri) as client:
        assert client.admin.command("hello")["isWritablePrimary"] is True


def test_fixture_mongodb_replica_set_starts_three_members(mongodb_replica_set):
    assert len(mongodb_replica_set.members) == 3
    with MongoClient(mongodb_replica_set.uri) as client:
        assert client.admin.command("hello")["setName"] == "rs0"


def test_fixture_mongodb_sharded_cluster_starts_mongos(mongodb_sharded_cluster):
    with MongoClient(mongodb_sharded_cluster.uri) as client:
        assert client.admin.command("hello")["msg"] == "isdbgrid"
