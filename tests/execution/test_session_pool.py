"""The pool of server sessions, and the times that sessions carry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from bson import Timestamp

from gmongo import _clock
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import AutoReconnect
from gmongo.execution.server_session import ServerSession, ServerSessionPool
from gmongo.execution.sessions import ImplicitSession, SharedSession
from gmongo.monitoring.listeners import EventListeners
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.testing import Deployment
from tests.execution.harness import fail
from tests.support.clients import Client

LIFETIME = 30  # minutes


@pytest.fixture
def pool() -> ServerSessionPool:
    address = ("a", 27017)
    hello = {"ok": 1, "isWritablePrimary": True, "maxWireVersion": 21, "logicalSessionTimeoutMinutes": LIFETIME}
    servers = {address: ServerDescription(address, hello)}
    settings = TopologySettings(seeds=(address,), listeners=EventListeners())
    description = TopologyDescription(TOPOLOGY_TYPE.Single, servers, None, None, None, settings)
    return ServerSessionPool(SimpleNamespace(description=description))  # type: ignore[arg-type]


def aged(pool: ServerSessionPool, seconds: float) -> ServerSession:
    """A session that was used so many seconds ago."""
    session = pool.acquire()
    session.last_used = _clock.monotonic() - seconds
    return session


@pytest.mark.parametrize(
    ("unused", "kept"), [(0, True), (1739.0, True), (1740.0, True), (1740.5, False), (31 * 60, False)]
)
def test_a_session_in_its_last_minute_is_not_used_again(
    pool: ServerSessionPool, monkeypatch: pytest.MonkeyPatch, unused: float, kept: bool
) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 5000.0)
    session = aged(pool, unused)
    pool.release(session)
    assert len(pool) == int(kept)
    assert (pool.acquire() is session) is kept


@pytest.mark.parametrize(("unused", "kept"), [(28.5 * 60, True), (29.5 * 60, False)])
def test_a_session_that_grew_old_in_the_pool_is_not_used(pool: ServerSessionPool, unused: float, kept: bool) -> None:
    session = pool.acquire()
    pool.release(session)
    session.last_used -= unused
    assert (pool.acquire() is session) is kept


def test_old_sessions_do_not_pile_up(pool: ServerSessionPool) -> None:
    sessions = [pool.acquire() for _ in range(10)]
    for session in sessions[:9]:
        pool.release(session)
        session.last_used -= 29.5 * 60
    pool.release(sessions[9])
    assert len(pool) == 1


def test_a_dirty_session_is_not_used_again(pool: ServerSessionPool) -> None:
    session = pool.acquire()
    session.dirty = True
    pool.release(session)
    assert len(pool) == 0
    assert pool.in_use == 0


def test_a_lost_connection_makes_its_session_dirty(deployment: Deployment, client: Client) -> None:
    client.db.command("ping")
    client.db.c.insert_one({"_id": 1})
    fail(deployment, "insert", times=1, code=None, labels=None, closeConnection=True)
    before = deployment.commands.named("insert")[-1].body["lsid"]
    client.db.c.insert_one({"_id": 2})
    assert [each.body["lsid"] for each in deployment.commands.named("insert")] == [before] * 3, "the retry has it too"
    client.db.c.insert_one({"_id": 3})
    assert deployment.commands.named("insert")[-1].body["lsid"] != before


def cluster_time(seconds: int) -> dict[str, Any]:
    return {"clusterTime": Timestamp(seconds, 1), "signature": {"hash": b"\x00" * 20, "keyId": 0}}


NOW = 4_000_000_000  # later than the servers' time


@pytest.mark.parametrize(
    ("client_knows", "session_knows", "sent"), [(1, 2, 2), (2, 1, 2), (None, 2, 2), (2, None, 2), (2, 2, 2)]
)
def test_the_newer_cluster_time_is_sent(
    deployment: Deployment, client: Client, client_knows: int | None, session_knows: int | None, sent: int
) -> None:
    client.db.command("ping")
    with client.start_session() as session:
        client._topology.cluster_time = None if client_knows is None else cluster_time(NOW + client_knows)
        if session_knows is not None:
            session.advance_cluster_time(cluster_time(NOW + session_knows))
        client.db.command("ping", session=session)
    command = deployment.commands.named("ping")[-1].body
    assert command["$clusterTime"]["clusterTime"].time == NOW + sent


@pytest.mark.parametrize("in_transaction", [False, True])
def test_the_labels_of_a_lost_connection(deployment: Deployment, client: Client, in_transaction: bool) -> None:
    """In a transaction the whole may be tried again, but not the write."""
    client.db.c.insert_one({"_id": 1})
    with client.start_session() as session:
        if in_transaction:
            session.start_transaction()
            client.db.c.insert_one({"_id": 2}, session=session)
        fail(deployment, "insert", code=None, labels=None, closeConnection=True)
        with pytest.raises(AutoReconnect) as raised:
            client.db.c.insert_one({"_id": 3}, session=session)
        fail(deployment, "insert", times=0)
        assert raised.value.has_error_label("TransientTransactionError") is in_transaction
        assert raised.value.has_error_label("RetryableWriteError") is not in_transaction


def test_a_session_that_is_shared_is_given_back_once_by_the_last_of_its_holders(pool: ServerSessionPool) -> None:
    implicit = ImplicitSession(pool)
    taken = implicit.server_session
    shared = SharedSession(implicit)
    assert shared.server_session is taken
    implicit.end_implicit()
    assert (len(pool), pool.in_use) == (0, 1)
    shared.share()
    shared.end_implicit()
    assert (len(pool), pool.in_use) == (0, 1)
    shared.end_implicit()
    assert (len(pool), pool.in_use) == (1, 0)
    assert pool.acquire() is taken


def test_an_implicit_session_may_be_ended_again(pool: ServerSessionPool) -> None:
    implicit = ImplicitSession(pool)
    implicit.end_implicit()
    assert (len(pool), pool.in_use) == (0, 0)
    first = implicit.server_session
    assert implicit.server_session is first and pool.in_use == 1
    for _ in range(2):
        implicit.end_implicit()
    assert (len(pool), pool.in_use) == (1, 0)


def test_a_child_leaves_the_sessions_of_its_parent_alone(pool: ServerSessionPool) -> None:
    held, used = ImplicitSession(pool), pool.acquire()
    parents = held.server_session
    pool.release(pool.acquire())
    assert (parents.epoch, len(pool), pool.in_use) == (0, 1, 2)
    pool.forget()
    assert (len(pool), pool.in_use) == (0, 0)
    pool.release(used)
    assert (len(pool), pool.in_use) == (0, 0)
    own = pool.acquire()
    assert (own.epoch, pool.in_use) == (1, 1)
    for epoch, kept in ((0, True), (1, False)):
        held._server_session = parents
        held.begin(SimpleNamespace(epoch=epoch), SimpleNamespace())  # type: ignore[arg-type]
        assert (held._server_session is parents) is kept
    assert pool.in_use == 1
    assert pool.drain() == [] and pool.release(own) is None and pool.drain() == [own.lsid]
    assert len(pool) == 0
