"""Tests of remote deployments, which run in another process or native thread for programs without
gevent.

The client is PyMongo.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import ssl
import subprocess
import sys
import threading
import time

import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.errors import AutoReconnect, OperationFailure

from gmongo.testing import CommandError, Deployment, DeploymentProcess, DeploymentThread, certificates
from gmongo.testing.simulation.member import Member
from gmongo.testing.simulation.network import Network
from tests.simulation.servers.primaries import await_another_primary
from tests.support.cases import with_cases

pytestmark = pytest.mark.long

REMOTE_CLASSES = [DeploymentProcess, DeploymentThread]


@pytest.fixture(scope="module", params=REMOTE_CLASSES, ids=["process", "thread"])
def replica_set(request):
    with request.param.replica_set(3, election_delay=0.02, tags=[{"dc": "a"}], arbiters=1) as deployment:
        yield deployment


@pytest.fixture
def client(replica_set):
    with MongoClient(replica_set.uri, serverSelectionTimeoutMS=5000) as client:
        client.drop_database("db")
        yield client


def public_names(object_):
    return {name for name in dir(object_) if not name.startswith("_")}


def test_remote_deployment_has_api_of_deployment(replica_set):
    with Deployment.replica_set() as local:
        assert public_names(local) <= public_names(replica_set)
        assert public_names(local.members) <= public_names(replica_set.members)
        assert public_names(Network()) - {"loses"} <= public_names(replica_set.network)
        assert public_names(local.commands) <= public_names(replica_set.commands)


def test_remote_member_has_public_api_of_member(replica_set):
    # A remote member lacks these attributes, which are internal to the simulation.
    internal_names = {
        "accept", "answer", "await_change", "changed", "cluster", "fail_points", "faults", "forget", "operations",
        "parameters", "service_id", "start", "stop", "topology_version"
    }  # fmt: skip
    with Deployment.replica_set() as local:
        assert public_names(local.members[0]) - internal_names <= public_names(replica_set.members[0])
    assert {name for name in internal_names if not hasattr(Member, name)} == {
        "cluster", "fail_points", "faults", "operations", "parameters", "service_id"
    }  # fmt: skip


def test_remote_members_have_addresses_and_traits(replica_set, client):
    client.admin.command("ping")
    members = replica_set.members
    primary, (other, another) = members.primary, members.secondaries
    assert primary in members and {primary.address, other.address, another.address, members[3].address} == {
        f"127.0.0.1:{member.port}" for member in members
    }
    assert (members[0].traits, members[3].traits) == ({"tags": {"dc": "a"}}, {"arbiter": True})
    assert primary.alive and primary.reachable and primary.uptime >= 0 and primary.created >= 1
    connection = next(each for each in primary.connections.values() if each.operations["ping"])
    assert connection.peer_port > 0 and primary.connections[connection.number].operations == connection.operations
    assert replica_set.uri.startswith("mongodb://127.0.0.1:") and replica_set.uri.endswith("replicaSet=rs0")
    assert replica_set.uri_of(other.address, directConnection="true") == (
        f"mongodb://{other.address}/?directConnection=true"
    )


def test_remote_faults_have_effects(replica_set, client):
    client.db.c.insert_one({"_id": 1})
    old = replica_set.members.primary
    old.kill()
    await_another_primary(client, old.address)
    client.db.c.insert_one({"_id": 2})
    assert not old.alive and replica_set.members.primary is not old
    old.restart()
    assert old.alive
    for begin, end in [(old.freeze, old.thaw), (old.partition, old.heal)]:
        begin()
        assert not old.reachable
        end()
        assert old.reachable
    primary = replica_set.members.primary
    began = time.monotonic()
    primary.delay(0.1)
    client.admin.command("ping")
    primary.delay(0)
    assert time.monotonic() - began >= 0.1
    with MongoClient(replica_set.uri_of(primary.address, directConnection="true", retryReads="false")) as direct:
        for fail in (lambda: primary.drop_after(3, "ping"), lambda: primary.garbage("ping")):
            fail()
            with pytest.raises((AutoReconnect, OperationFailure, Exception)):
                direct.admin.command("ping")
    old_connections = set(primary.connections)
    primary.drop_connections()
    assert old_connections and old_connections.isdisjoint(primary.connections)
    primary.step_down()
    await_another_primary(client, primary.address)
    client.db.c.insert_one({"_id": 3})
    with pytest.raises(ValueError, match="not the primary"):
        primary.step_down()
    with pytest.raises(ValueError, match="seconds is -1"):
        primary.delay(-1)
    with pytest.raises(ValueError, match="n_bytes"):
        primary.drop_after("x")
    with pytest.raises(ValueError, match=r"command is 'inserts'.*did you mean 'insert'"):
        primary.garbage("inserts")
    with pytest.raises(ValueError, match="burst is -1"):
        replica_set.rate_limit(requests=5, burst=-1)


def test_remote_log_has_received_commands(replica_set, client):
    replica_set.commands.clear()
    assert not replica_set.commands.named("insert")
    client.db.c.insert_one({"_id": 1, "x": {"y": [1.5]}})
    (insert,) = replica_set.commands.named("insert")
    assert insert.body["documents"] == [{"_id": 1, "x": {"y": [1.5]}}]
    assert (insert.database, insert.name, insert.member) == ("db", "insert", replica_set.members.primary.address)
    assert insert.transaction_number == 1 and insert.time <= time.monotonic() and insert.size > 50
    client.db.c.insert_one({"_id": 2})
    log = replica_set.commands
    assert [each.body["documents"][0]["_id"] for each in log.named("insert")] == [1, 2]
    assert log is replica_set.commands and len(log.named("insert")) == 2
    log.clear()
    assert len(replica_set.commands.named("insert")) == 0
    log.enabled = False
    client.db.c.insert_one({"_id": 3})
    log.enabled = True
    client.db.c.insert_one({"_id": 4})
    assert [each.body["documents"][0]["_id"] for each in replica_set.commands.named("insert")] == [4]


def test_remote_log_keeps_at_most_10_000_commands():
    with DeploymentThread.standalone() as deployment, MongoClient(deployment.uri) as client:
        initial_count = len(deployment.commands)
        for number in range(10_050):
            client.admin.command("ping", comment=number)
        log = deployment.commands
        assert 4_000 < len(log) <= 10_000 and log[-1].body["comment"] == 10_049
        assert initial_count + 10_050 <= len(log) + log.forgotten == log.first + len(log)


def test_remote_fail_point_fails_commands(replica_set, client):
    replica_set.set_fail_point("failCommand", {"times": 1}, {"failCommands": ["find"], "errorCode": 2})
    with pytest.raises(OperationFailure) as caught:
        client.db.c.find_one()
    assert caught.value.code == 2
    replica_set.set_fail_point(mode="off")
    other = replica_set.members.secondaries[0]
    replica_set.set_fail_point(data={"failCommands": ["find"], "errorCode": 2}, member=other)
    client.db.c.find_one()
    replica_set.set_fail_point(mode="off", member=other)
    with pytest.raises(CommandError, match="no field 'failComands'") as refused:
        replica_set.set_fail_point(data={"failComands": []})
    assert refused.value.code == 9


def test_remote_rate_limit_fails_commands(replica_set, client):
    replica_set.rate_limit(requests=0.01, burst=1, member=replica_set.members.primary)
    with pytest.raises(OperationFailure) as caught:
        for _ in range(5):
            client.db.command("find", "c")
    assert caught.value.code == 462 and caught.value.has_error_label("SystemOverloadedError")
    replica_set.rate_limit()
    client.db.command("find", "c")


def test_remote_network_delays_replies(replica_set, client):
    network = replica_set.network
    network.latency = 0.05
    began = time.monotonic()
    client.admin.command("ping")
    assert time.monotonic() - began >= 0.05 and replica_set.network.latency == 0.05
    network.latency = 0
    with pytest.raises(ValueError, match=r"network\.loss is 2"):
        network.loss = 2
    network.random = random.Random(1)
    network.loss = 0.5
    assert network.loss == 0.5
    network.loss = 0


def test_advance_causes_election_in_thread():
    with DeploymentThread.replica_set(election_delay=3600) as deployment, MongoClient(deployment.uri) as client:
        client.db.c.insert_one({"_id": 1})
        old = deployment.members.primary
        old.kill()
        assert not deployment.members.has_primary
        deployment.advance(3599)
        assert not deployment.members.has_primary
        deployment.advance(2)
        assert deployment.members.primary is not old
        client.db.c.insert_one({"_id": 2})
        with pytest.raises(ValueError, match="seconds is -1"):
            deployment.advance(-1)


def test_writes_of_several_native_threads_succeed_during_faults(replica_set, client):
    def update_documents(number):
        for turn in range(20):
            # PyMongo does not retry a write if another thread marks the selected server as unknown
            # before the write. The test therefore retries the write.
            for _ in range(3):
                with contextlib.suppress(AutoReconnect):
                    client.db.c.update_one({"_id": f"{number}-{turn}"}, {"$set": {"x": 1}}, upsert=True)
                    break
            _ = replica_set.commands, replica_set.members.has_primary

    threads = [threading.Thread(target=update_documents, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    replica_set.members.primary.step_down(0.1)
    for thread in threads:
        thread.join()
    assert client.db.c.count_documents({}) == 100


def test_async_pymongo_client_writes_after_kill_of_primary(replica_set):
    async def write_and_count():
        async with AsyncMongoClient(replica_set.uri) as client:
            await client.drop_database("db")
            await asyncio.gather(*(client.db.c.insert_one({"_id": number}) for number in range(20)))
            before = await client.primary
            replica_set.members.primary.kill()
            while await client.primary in (None, before):  # as in `await_another_primary`
                await asyncio.sleep(0.01)
            await asyncio.gather(*(client.db.c.insert_one({"_id": number}) for number in range(20, 40)))
            return await client.db.c.count_documents({})

    assert asyncio.run(write_and_count()) == 40
    for member in replica_set.members:
        if not member.alive:
            member.restart()


@pytest.mark.parametrize("remote_class", REMOTE_CLASSES)
def test_remote_deployment_trusts_authority_of_this_process(remote_class):
    certificate_file = certificates().issue("ada@example.com", common_name="ada")
    with remote_class.standalone(tls=True, users={"CN=bob": None}) as deployment:
        login = {"authMechanism": "MONGODB-X509", "tlsCertificateKeyFile": certificate_file}
        with (
            MongoClient(deployment.uri, **login) as client,
            pytest.raises(
                OperationFailure,
                match='Could not find user "CN=ada,',
                # An authentication error proves that the client has accepted the certificate of the
                # server.
            ),
        ):
            client.admin.command("ping")


def test_ssl_context_as_tls_of_process_raises_value_error():
    with pytest.raises(ValueError, match="SSLContext, which cannot be sent"):
        DeploymentProcess.standalone(tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


@pytest.mark.parametrize("remote_class", REMOTE_CLASSES)
@with_cases
def test_invalid_setting_raises_value_error_before_start(remote_class, kind, settings, message):
    with pytest.raises(ValueError, match=message):
        getattr(remote_class, kind)(**settings)


@pytest.mark.parametrize("remote_class", REMOTE_CLASSES)
def test_start_of_deployment_on_port_in_use_raises_error(remote_class):
    with Deployment.standalone() as local, pytest.raises((OSError, RuntimeError), match="in use"):
        remote_class.standalone(port=local.members[0].port).start()


@pytest.mark.parametrize("remote_class", REMOTE_CLASSES)
def test_use_of_deployment_before_start_or_after_close_raises_runtime_error(remote_class):
    deployment = remote_class.sharded()
    for _ in range(2):
        for name in ("uri", "commands", "network"):
            with pytest.raises(RuntimeError, match="not running"):
                getattr(deployment, name)
        with deployment, MongoClient(deployment.uri) as client:
            assert client.admin.command("hello")["msg"] == "isdbgrid"
            with pytest.raises(RuntimeError, match="running already"):
                deployment.start()
        with pytest.raises(RuntimeError, match="not running"):
            deployment.advance(1)


def test_close_of_deployment_thread_leaves_no_open_files_and_threads():
    def count_open_files():
        return len(os.listdir("/proc/self/fd"))

    def deployment_threads():
        return [thread for thread in threading.enumerate() if thread.name == "gmongo.testing"]

    with DeploymentThread.replica_set():
        pass
    file_count_before, threads_before = count_open_files(), deployment_threads()
    for _ in range(20):
        with DeploymentThread.replica_set() as deployment:
            assert deployment.members.primary.alive
    assert count_open_files() <= file_count_before + 2
    assert deployment_threads() == threads_before


def test_deployment_thread_in_monkey_patched_program_raises_error():
    program = (
        "from gevent import monkey; monkey.patch_all()\n"
        "from gmongo.testing import DeploymentThread, DeploymentProcess\n"
        "from pymongo import MongoClient\n"
        "try:\n"
        "    DeploymentThread.standalone().start()\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "with DeploymentProcess.replica_set() as deployment, MongoClient(deployment.uri) as client:\n"
        "    client.db.c.insert_one({})\n"
        "    deployment.members.primary.kill()\n"
        "    client.db.c.insert_one({})\n"
        "    print(deployment.commands.named('insert')[-1].database)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    refused, database = done.stdout.splitlines()
    assert "monkey-patched program" in refused and database == "db"


BLOCKING_PROGRAMS = {
    "pymongo": (
        "from pymongo import MongoClient\n"
        "with MongoClient(deployment.uri, serverSelectionTimeoutMS=TIMEOUT_MS) as client:\n"
        "    client.db.c.find_one()\n"
    ),
    "pymongo imported before": (
        "with pymongo.MongoClient(deployment.uri, serverSelectionTimeoutMS=TIMEOUT_MS) as client:\n"
        "    client.db.c.find_one()\n"
    ),
    "pymongo async": (
        "import asyncio\n"
        "from pymongo import AsyncMongoClient\n"
        "async def work():\n"
        "    async with AsyncMongoClient(deployment.uri, serverSelectionTimeoutMS=TIMEOUT_MS) as client:\n"
        "        await client.db.c.find_one()\n"
        "asyncio.run(work())\n"
    ),
    "a joined thread": (
        "import threading\n"
        "from pymongo import MongoClient\n"
        "def work():\n"
        "    try:\n"
        "        MongoClient(deployment.uri, serverSelectionTimeoutMS=TIMEOUT_MS).db.c.find_one()\n"
        "    except Exception as problem:\n"
        "        errors.append(problem)\n"
        "errors = []\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
        "raise errors[0]\n"
    ),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "replica_set") for name in BLOCKING_PROGRAMS), ("pymongo", "standalone"), ("pymongo", "load_balanced")],
)
def test_client_that_blocks_event_loop_of_its_deployment_raises_error(name, kind):
    first_line = "import pymongo\n" if "before" in name else ""
    program = f"{first_line}from gmongo.testing import Deployment\ndeployment = Deployment.{kind}().start()\n"
    # On a busy machine, the first timeout may end before the program detects the blocked loop.
    for timeout_ms in ("2_500", "30_000"):
        command = [sys.executable, "-c", program + BLOCKING_PROGRAMS[name].replace("TIMEOUT_MS", timeout_ms)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        *_, message = done.stderr.splitlines()
        assert done.returncode == 1
        if "the greenlets that serve" in message:
            break
    assert "other drivers need a DeploymentThread or a DeploymentProcess" in message


def test_operation_succeeds_after_computation_that_blocks_event_loop():
    # The main thread blocks the event loop with three sleeps. The second sleep is in a function whose
    # module name is `socket`.
    program = """
import pymongo, time, gevent
from gmongo import MongoClient
from gmongo.testing import Deployment
in_socket = {"__name__": "socket", "time": time}
exec("def work(): time.sleep(0.4)", in_socket)
with Deployment.replica_set() as deployment, MongoClient(deployment.uri) as client:
    work = gevent.spawn(client.db.c.find_one)
    gevent.sleep(0)
    time.sleep(1.3)
    in_socket["work"]()
    time.sleep(0.6)
    assert work.get() is None
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
