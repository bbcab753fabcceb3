"""Tests of the program ``python -m gmongo.testing``, which runs a deployment in a separate process.
The client is PyMongo.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from gmongo.testing import DeploymentProcess
from gmongo.testing.__main__ import main
from tests.simulation.servers.primaries import await_another_primary
from tests.support.cases import with_cases

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("arguments", "topology"),
    [
        (("--replica-set", "2", "--arbiters", "1"), "ReplicaSetWithPrimary"),
        (("--sharded", "2"), "Sharded"),
        (("--load-balanced", "2"), "LoadBalanced"),
    ],
)
def test_pymongo_reads_and_writes(arguments, topology):
    with DeploymentProcess(*arguments) as deployment, MongoClient(deployment.uri) as client:
        collection = client.db.people
        assert collection.insert_many([{"_id": number, "even": number % 2 == 0} for number in range(250)]).acknowledged
        assert collection.update_many({"even": True}, {"$set": {"half": 1}}).modified_count == 125
        assert len(list(collection.find({"even": False}, batch_size=50))) == 125
        assert collection.delete_one({"_id": 3}).deleted_count == 1
        assert collection.count_documents({}) == 249
        assert client.topology_description.topology_type_name == topology


@pytest.fixture(scope="module")
def replica_set():
    with DeploymentProcess("--replica-set", "3", "--election-delay", "0.02") as deployment:
        yield deployment


@pytest.fixture
def client(replica_set):
    with MongoClient(replica_set.uri, serverSelectionTimeoutMS=5000) as client:
        client.drop_database("db")
        yield client


def test_pymongo_runs_transactions_and_change_streams(client):
    collection = client.db.create_collection("people")
    with collection.watch() as stream, client.start_session() as session:
        with session.start_transaction():
            collection.insert_one({"_id": 1}, session=session)
            assert collection.find_one() is None
        assert next(stream)["documentKey"] == {"_id": 1}
        with pytest.raises(ZeroDivisionError), session.start_transaction():
            collection.insert_one({"_id": 2}, session=session)
            raise ZeroDivisionError
    assert [each["_id"] for each in collection.find()] == [1]


def test_pymongo_writes_succeed_after_step_down(client):
    client.db.c.insert_one({"_id": 1})
    host, port = client.primary
    client.admin.command("replSetStepDown", 60)
    await_another_primary(client, f"{host}:{port}")
    client.db.c.insert_one({"_id": 2})
    assert client.db.c.count_documents({}) == 2


def test_pymongo_retries_command_that_fail_point_fails(client):
    data = {"failCommands": ["insert"], "closeConnection": True}
    client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)
    client.db.c.insert_one({"_id": 1})
    data = {"failCommands": ["find"], "errorCode": 2}
    client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)
    with pytest.raises(OperationFailure):
        client.db.c.find_one()


def test_fault_method_of_process_changes_member(replica_set, client):
    client.db.c.insert_one({"_id": 1})
    addresses = replica_set.uri.split("/")[2].split(",")
    number = addresses.index(f"127.0.0.1:{client.primary[1]}")
    replica_set.fault(number, "kill")
    await_another_primary(client, addresses[number])
    client.db.c.insert_one({"_id": 2})
    replica_set.fault(number, "restart")
    with pytest.raises(ValueError, match="not the primary"):
        replica_set.fault(number, "step_down")
    with pytest.raises(ValueError, match="no member 7"):
        replica_set.fault(7, "kill")
    with pytest.raises(ValueError, match="'explode'"):
        replica_set.fault(0, "explode")


def test_pymongo_authenticates_over_tls_with_compression():
    arguments = ("--user", "ada:päss w", "--tls", "--compressors", "snappy,zstd,zlib")
    with DeploymentProcess(*arguments) as deployment:
        for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256"):
            check_login(deployment.uri, authMechanism=mechanism, compressors="snappy")


def check_login(uri, **options):
    with MongoClient(uri, **options) as client:
        client.db.c.insert_one({"x": "y" * 1000})
        status = client.admin.command("connectionStatus")
        assert status["authInfo"]["authenticatedUsers"] == [{"user": "ada", "db": "admin"}]
    with (
        MongoClient(uri, **options, password="wrong", username="ada") as client,
        pytest.raises(OperationFailure, match="Authentication failed"),
    ):
        client.db.c.find_one()


@pytest.mark.parametrize("ending", ["terminate", "interrupt", "close standard input"])
def test_program_ends_at_signal_or_end_of_input(ending):
    command = [sys.executable, "-m", "gmongo.testing", "--replica-set", "3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        uri = process.stdout.readline().strip()
        assert uri.startswith("mongodb://127.0.0.1:") and uri.endswith("/?replicaSet=rs0")
        assert process.poll() is None
        if ending == "close standard input":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM if ending == "terminate" else signal.SIGINT)
        assert process.wait(10) == 0


@with_cases
def test_invalid_argument_prints_error_with_reason(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_failed_start_raises_error_with_output():
    with pytest.raises(RuntimeError, match=r"version '1\.0'"):
        DeploymentProcess("--version", "1.0").start()
