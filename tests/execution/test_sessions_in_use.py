"""Sessions under kills and misuse: nothing leaks, and no two greenlets use one at a time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pymongo.client_session
import pytest

from gmongo import MongoClient
from gmongo.client_session import ClientSession
from gmongo.errors import InvalidOperation
from gmongo.testing import Deployment
from tests.execution.harness import bystander, check_nothing_held, fail, idle, slow
from tests.execution.operations import WITH_SESSION
from tests.support.clients import Client
from tests.support.pymongo_version import since
from tests.support.wait import eventually

# One session, one greenlet at a time


@pytest.mark.parametrize("what", ["find", "insert_one", "command", "bulk_write", "aggregate"])
def test_two_greenlets_at_once_are_refused(deployment: Deployment, client: Client, what: str) -> None:
    slow(deployment, "update", milliseconds=100)
    with client.start_session() as session:
        first = gevent.spawn(client.db.c.update_one, {}, {"$set": {"x": 1}}, session=session)
        eventually(lambda: deployment.commands.named("update"))
        with pytest.raises(InvalidOperation, match="in use by another greenlet"):
            WITH_SESSION[what][1](client, session)
        first.get(timeout=5)
        WITH_SESSION[what][1](client, session)
    assert len(deployment.commands.named(WITH_SESSION[what][0])) == 1
    check_nothing_held(client)


@pytest.fixture
def in_use(deployment: Deployment, client: Client) -> Iterator[tuple[ClientSession, gevent.Greenlet]]:
    """A session, and the greenlet that uses it for a while."""
    slow(deployment, "find", milliseconds=100)
    session = client.start_session()
    reader = gevent.spawn(client.db.c.find_one, {}, session=session)
    eventually(lambda: deployment.commands.named("find"))
    yield session, reader
    reader.get(timeout=5)
    session.end_session()
    check_nothing_held(client)


def test_a_session_in_use_is_not_ended_by_another_greenlet(deployment: Deployment, client: Client, in_use: Any) -> None:
    session, _reader = in_use
    lsid = session.session_id
    try:
        session.end_session()
    except InvalidOperation as error:
        assert "in use by another greenlet" in str(error)
    client.db.command("ping")
    assert deployment.commands.named("ping")[0].body["lsid"] != lsid, "two greenlets would use it at the same time"


def test_a_session_in_use_starts_no_transaction_for_another_greenlet(in_use: Any) -> None:
    session, reader = in_use
    with pytest.raises(InvalidOperation, match="in use by another greenlet"):
        session.start_transaction()
    reader.get(timeout=5)
    session.start_transaction()
    session.abort_transaction()


# Server sessions


@pytest.mark.parametrize("what", ["find", "insert_one", "command", "aggregate", "client bulk_write", "watch"])
def test_a_killed_operation_leaks_no_session(deployment: Deployment, client: Client, what: str) -> None:
    name, run = WITH_SESSION[what]
    client.db.c.insert_one({})
    (good,) = idle(client)
    deployment.commands.clear()
    slow(deployment, name)
    killed = gevent.spawn(run, client, None)
    eventually(lambda: deployment.commands.named(name))
    killed.kill()
    eventually(lambda: not client._executor.sessions.in_use)
    check_nothing_held(client)
    assert idle(client) == [], f"the server may still be busy with {name} in it"
    fail(deployment, name, times=0)
    client.db.command("ping")
    assert bytes(deployment.commands.named("ping")[-1].body["lsid"]["id"]) != good


def test_a_kill_before_the_command_costs_no_session(deployment: Deployment, connect: Callable[..., Client]) -> None:
    client = connect(deployment, maxPoolSize=1)
    client.db.command("ping")
    before = idle(client)
    slow(deployment, "find", milliseconds=200)
    with client.start_session() as session:
        first = gevent.spawn(client.db.c.find_one)
        eventually(lambda: deployment.commands.named("find"))
        waiting = gevent.spawn(client.db.c.insert_one, {}, session=session)
        eventually(lambda: client.pool_stats()[0]["waiting"] == 1)
        waiting.kill()
        first.get(timeout=5)
        client.db.c.insert_one({}, session=session)
    check_nothing_held(client)
    assert set(before) <= set(idle(client))
    assert bytes(deployment.commands.named("insert")[0].body["lsid"]["id"]) in idle(client)


def test_a_dropped_session_is_given_back(client: Client) -> None:
    session: ClientSession | None = client.start_session()
    assert session is not None
    client.db.command("ping", session=session)
    lsid = bytes(session.session_id["id"])
    assert client._executor.sessions.in_use
    del session
    gc.collect()
    check_nothing_held(client)
    assert idle(client) == [lsid]


def test_a_dropped_session_with_an_open_transaction_is_not_used_again(deployment: Deployment, client: Client) -> None:
    session: ClientSession | None = client.start_session()
    assert session is not None
    session.start_transaction()
    client.db.c.insert_one({"_id": 1}, session=session)
    lsid = bytes(session.session_id["id"])
    del session
    gc.collect()
    assert lsid not in idle(client)
    client.db.command("ping")
    assert bytes(deployment.commands.named("ping")[0].body["lsid"]["id"]) != lsid


def test_sessions_are_ended_with_the_client(deployment: Deployment) -> None:
    with MongoClient[Any](deployment.uri) as client:
        sessions = [client.start_session() for _ in range(3)]
        used = {bytes(session.session_id["id"]) for session in sessions}
        for session in sessions:
            client.db.command("ping", session=session)
            session.end_session()
    (end,) = deployment.commands.named("endSessions")
    assert {bytes(lsid["id"]) for lsid in end.body["endSessions"]} == used


def test_bound_sessions_are_those_of_their_greenlet(deployment: Deployment, client: Client) -> None:
    with client.start_session().bind() as session:
        client.db.c.insert_one({"_id": 1})
        bystander(lambda: client.db.c.insert_one({"_id": 2}))
        mine, other = [command.body["lsid"] for command in deployment.commands.named("insert")]
        assert mine == session.session_id != other
    check_nothing_held(client)


@since("4.17")
def test_a_session_shows_nothing_that_is_the_drivers_own() -> None:
    """What the executor needs of it is its `SessionState`."""
    public = {name for name in dir(ClientSession) if not name.startswith("_")}
    assert public <= set(dir(pymongo.client_session.ClientSession))
