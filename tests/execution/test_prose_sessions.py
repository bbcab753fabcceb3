"""Prose tests of the Driver Sessions specification.

Tests 7, 16 and 17 do not apply, because each client has only one user. Test 15 does not apply,
because gmongo sends only the legacy hello, which has no session, in OP_QUERY messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from gmongo import MongoClient, UpdateOne
from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.read_preferences import Nearest, Primary, PrimaryPreferred, Secondary, SecondaryPreferred
from gmongo.testing import Deployment
from gmongo.write_concern import WriteConcern
from tests.execution.harness import assert_no_resource_in_use
from tests.execution.operations import SESSION_OPERATIONS, skip_if_too_old
from tests.support.clients import Client, Connect
from tests.support.programs import run_program
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually


@pytest.fixture(autouse=True)
def no_session_stays_checked_out(connect: Connect, monkeypatch: Any) -> Iterator[None]:
    """Check after each test that its clients have no session that is still checked out
    (prose test 10).
    """
    clients: list[Client] = []
    original = MongoClient.__init__

    def initialize_and_record(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        clients.append(self)

    monkeypatch.setattr(MongoClient, "__init__", initialize_and_record)
    yield
    for client in clients:
        assert_no_resource_in_use(client)


def lsids_of(recorder: Recorder, name: str) -> list[Any]:
    return [
        event.command.get("lsid") for event in recorder.events_named("CommandStarted") if event.command_name == name
    ]


def test_1_snapshot_with_causal_consistency_raises_configuration_error(client: Client) -> None:
    with pytest.raises(ConfigurationError, match="snapshot"):
        client.start_session(snapshot=True, causal_consistency=True)


def test_2_session_pool_is_lifo(client: Client) -> None:
    a, b = client.start_session(), client.start_session()
    for session in (a, b):
        client.db.command("ping", session=session)
    first, second = a.session_id, b.session_id
    a.end_session()
    b.end_session()
    with client.start_session() as c, client.start_session() as d:
        assert c.session_id == second
        assert d.session_id == first


@pytest.mark.parametrize("deployment_kind", ["replica_set", "standalone"])
@pytest.mark.parametrize(
    ("name", "run_operation"),
    [
        ("ping", lambda client: client.db.command("ping")),
        ("aggregate", lambda client: list(client.db.c.aggregate([{"$match": {}}]))),
        ("find", lambda client: list(client.db.c.find())),
        ("insert", lambda client: client.db.c.insert_one({})),
    ],
)
def test_3_commands_send_cluster_time_of_the_previous_reply(
    connect: Connect, recorder: Recorder, deployment_kind: str, name: str, run_operation: Callable[[Client], Any]
) -> None:
    with getattr(Deployment, deployment_kind)() as deployment:
        client = connect(deployment, heartbeatFrequencyMS=1_000_000)
        gossips = deployment_kind == "replica_set"
        # Let the client receive a cluster time, because a heartbeat does not set the cluster time.
        client.db.command("ping")
        recorder.clear()
        run_operation(client)
        reply = recorder.events_named("CommandSucceeded")[-1].reply
        run_operation(client)
        first, second = [
            event.command for event in recorder.events_named("CommandStarted") if event.command_name == name
        ]
        assert ("$clusterTime" in first) == ("$clusterTime" in second) == gossips
        assert second.get("$clusterTime") == reply.get("$clusterTime")


@pytest.mark.parametrize("operation", SESSION_OPERATIONS)
def test_4_operation_sends_explicit_or_implicit_session_id(client: Client, recorder: Recorder, operation: str) -> None:
    name, run = SESSION_OPERATIONS[operation]
    skip_if_too_old(client, operation)
    client.db.c.insert_many([{"_id": 1}, {"_id": 2}])
    recorder.clear()
    with client.start_session() as session:
        run(client, session)
        assert lsids_of(recorder, name)
        assert all(lsid == session.session_id for lsid in lsids_of(recorder, name))
        client.db.c.drop()
        client.db.drop_collection("d")
        client.db.drop_collection("new")
        client.db.c.insert_many([{"_id": 1}, {"_id": 2}])
        recorder.clear()
        run(client, None)
        assert lsids_of(recorder, name)
        assert all(lsid and lsid != session.session_id for lsid in lsids_of(recorder, name))


@pytest.mark.parametrize("operation", SESSION_OPERATIONS)
def test_5_session_of_another_client_raises_invalid_operation(
    deployment: Deployment, connect: Connect, client: Client, operation: str
) -> None:
    name, run = SESSION_OPERATIONS[operation]
    with connect(deployment).start_session() as foreign, pytest.raises(InvalidOperation, match="MongoClient"):
        run(client, foreign)
    assert deployment.commands.named(name) == []


@pytest.mark.parametrize("operation", SESSION_OPERATIONS)
def test_6_ended_session_raises_invalid_operation(deployment: Deployment, client: Client, operation: str) -> None:
    name, run = SESSION_OPERATIONS[operation]
    with client.start_session() as session:
        pass
    with pytest.raises(InvalidOperation, match="ended"):
        run(client, session)
    assert deployment.commands.named(name) == []


def test_8_cursor_of_one_batch_returns_implicit_session_immediately(client: Client) -> None:
    client.db.c.insert_many([{}, {}])
    cursor = client.db.c.find()
    next(cursor)
    assert_no_resource_in_use(client)
    assert len(list(cursor)) == 1


def test_9_cursor_returns_implicit_session_after_the_last_get_more(client: Client) -> None:
    client.db.c.insert_many([{} for _ in range(5)])
    cursor = client.db.c.find(batch_size=3)
    for _ in range(3):
        next(cursor)
    assert client._executor.sessions.in_use == 1
    next(cursor)
    assert_no_resource_in_use(client)
    assert len(list(cursor)) == 1


@pytest.mark.parametrize("deployment_kind", ["standalone", "replica_set", "sharded", "load_balanced"])
@pytest.mark.parametrize("preference", [Primary(), PrimaryPreferred(), Secondary(), SecondaryPreferred(), Nearest()])
def test_11_get_more_uses_session_of_find(
    connect: Connect, recorder: Recorder, deployment_kind: str, preference: Any
) -> None:
    with getattr(Deployment, deployment_kind)() as deployment:
        client = connect(deployment)
        collection = client.db.get_collection(
            "c", write_concern=WriteConcern(w=3 if deployment_kind == "replica_set" else 1)
        )
        collection.insert_many([{} for _ in range(3)])
        assert len(list(client.db.c.with_options(read_preference=preference).find(batch_size=2))) == 3
        (find,), (get_more,) = lsids_of(recorder, "find"), lsids_of(recorder, "getMore")
        assert find == get_more
        assert find["id"] != bytes(16)


FORK_PROGRAM_START = """
import os
from gmongo import MongoClient

client = MongoClient("127.0.0.1:1", connect=False)

def run_in_child(check):
    child = os.fork()
    if not child:
        status = 1
        try:
            check()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def new_session_id():
    with client.start_session() as session:
        return session.session_id
"""
PROGRAM_OF_TEST_12 = """
used = new_session_id()

def check():
    assert new_session_id() != used

run_in_child(check)
assert new_session_id() == used
print("done")
"""
PROGRAM_OF_TEST_13 = """
session = client.start_session()
used = session.session_id

def check():
    session.end_session()
    assert new_session_id() != used

run_in_child(check)
session.end_session()
assert new_session_id() == used
print("done")
"""


@pytest.mark.parametrize("program", [PROGRAM_OF_TEST_12, PROGRAM_OF_TEST_13], ids=["12", "13"])
def test_12_13_forked_child_uses_no_session_of_parent(program: str) -> None:
    """Check that the forked child clears the session pool (test 12).

    Check that the child does not return sessions of the parent to the session pool (test 13).
    """
    assert run_program(FORK_PROGRAM_START + program) == "done\n"


def test_14_session_is_allocated_after_check_out(deployment: Deployment, connect: Connect, recorder: Recorder) -> None:
    client = connect(deployment, maxPoolSize=1)
    collection = client.db.c
    operations: list[Callable[[], Any]] = [
        lambda: collection.insert_one({}),
        lambda: collection.delete_one({}),
        lambda: collection.update_one({}, {"$set": {"a": 1}}),
        lambda: collection.bulk_write([UpdateOne({}, {"$set": {"a": 1}})]),
        lambda: collection.find_one_and_delete({}),
        lambda: collection.find_one_and_update({}, {"$set": {"a": 1}}),
        lambda: collection.find_one_and_replace({}, {"a": 1}),
        lambda: list(collection.find()),
    ]
    id_counts = []
    for _ in range(5):
        recorder.clear()
        gevent.joinall([gevent.spawn(run) for run in operations], timeout=5, raise_error=True)
        id_counts.append(len({bytes(event.command["lsid"]["id"]) for event in recorder.events_named("CommandStarted")}))
    assert 1 in id_counts
    assert max(id_counts) < len(operations)


@pytest.fixture
def server_without_sessions() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.hello_extra["logicalSessionTimeoutMinutes"] = None
        yield server


def test_18_implicit_session_is_omitted_if_unsupported(
    server_without_sessions: ScriptedServer, connect: Connect
) -> None:
    client = connect(f"mongodb://{server_without_sessions.name}")
    client.db.c.find_one()
    client.db.c.insert_one({})
    for name in ("find", "insert"):
        assert ["lsid" in command for command in server_without_sessions.commands(name)] == [False]


def test_19_explicit_session_raises_if_unsupported(server_without_sessions: ScriptedServer, connect: Connect) -> None:
    client = connect(f"mongodb://{server_without_sessions.name}")
    eventually(lambda: client.nodes)
    with client.start_session() as session:
        for run in (client.db.c.find_one, client.db.c.insert_one):
            with pytest.raises(ConfigurationError, match=r"(?i)sessions are not supported"):
                run({}, session=session)
    assert server_without_sessions.commands("find") == server_without_sessions.commands("insert") == []
