"""The pool of server sessions."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from gmongo import _clock
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.execution.server_session import ServerSession, ServerSessionPool
from gmongo.execution.sessions import ImplicitSession
from gmongo.monitoring.listeners import EventListeners
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import TopologyDescription

TIMEOUT_MINUTES = 30  # the `logicalSessionTimeoutMinutes` of the server


@pytest.fixture
def pool() -> ServerSessionPool:
    address = ("a", 27017)
    hello = {
        "ok": 1,
        "isWritablePrimary": True,
        "maxWireVersion": 21,
        "logicalSessionTimeoutMinutes": TIMEOUT_MINUTES,
    }
    servers = {address: ServerDescription(address, hello)}
    settings = TopologySettings(seeds=(address,), listeners=EventListeners())
    description = TopologyDescription(TOPOLOGY_TYPE.Single, servers, None, None, None, settings)
    return ServerSessionPool(SimpleNamespace(description=description))  # type: ignore[arg-type]


def session_unused_for(pool: ServerSessionPool, seconds: float) -> ServerSession:
    """Return a server session that was last used `seconds` ago."""
    session = pool.acquire()
    session.last_used = _clock.monotonic() - seconds
    return session


@pytest.mark.parametrize(
    ("unused_seconds", "is_kept"),
    [(0, True), (1739.0, True), (1740.0, True), (1740.5, False), (31 * 60, False)],
)
def test_session_returns_to_pool_unless_session_expires_within_a_minute(
    pool: ServerSessionPool, monkeypatch: pytest.MonkeyPatch, unused_seconds: float, is_kept: bool
) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 5000.0)
    session = session_unused_for(pool, unused_seconds)
    pool.release(session)
    assert len(pool) == int(is_kept)
    assert (pool.acquire() is session) is is_kept


def test_session_with_open_cursor_leaves_the_pool(pool: ServerSessionPool) -> None:
    idle, other = pool.acquire(), pool.acquire()
    pool.release(other)
    pool.release(idle)
    reaper = Mock()
    pool.session_taker = lambda: reaper
    for session in (None, ServerSession(epoch=7), idle):  # the process has neither of the first two sessions
        pool.leave_cursor(session, ("a", 27017))
    reaper.assert_called_once_with(idle, None)
    assert (idle.dirty, len(pool)) == (True, 1)
    assert pool.acquire() is other


def test_release_removes_expired_sessions_from_the_pool(pool: ServerSessionPool) -> None:
    sessions = [pool.acquire() for _ in range(10)]
    for session in sessions[:9]:
        pool.release(session)
        session.last_used -= 29.5 * 60
    pool.release(sessions[9])
    assert len(pool) == 1


def test_dirty_session_is_not_returned_to_the_pool(pool: ServerSessionPool) -> None:
    session = pool.acquire()
    session.dirty = True
    pool.release(session)
    assert len(pool) == 0
    assert pool.in_use == 0


def test_ended_implicit_session_returns_to_pool_after_last_operation(pool: ServerSessionPool) -> None:
    implicit, owner, operation = ImplicitSession(pool), Mock(epoch=0), Mock()
    implicit.begin(owner, operation)
    server_session = implicit.server_session
    implicit.begin(owner, operation)
    implicit.end_implicit()
    implicit.end_use()
    assert (len(pool), pool.in_use) == (0, 1)
    implicit.end_use()
    assert (len(pool), pool.in_use) == (1, 0)
    assert pool.acquire() is server_session


def test_forked_child_neither_reuses_nor_ends_sessions_of_parent(pool: ServerSessionPool) -> None:
    implicit, used = ImplicitSession(pool), pool.acquire()
    parent_session = implicit.server_session
    pool.release(pool.acquire())
    assert (parent_session.epoch, len(pool), pool.in_use) == (0, 1, 2)
    pool.forget()
    assert (len(pool), pool.in_use) == (0, 0)
    pool.release(used)
    assert (len(pool), pool.in_use) == (0, 0)
    own = pool.acquire()
    assert (own.epoch, pool.in_use) == (1, 1)
    for epoch, is_kept in ((0, True), (1, False)):
        implicit._server_session = parent_session
        implicit.begin(SimpleNamespace(epoch=epoch), SimpleNamespace())  # type: ignore[arg-type]
        assert (implicit._server_session is parent_session) is is_kept
    assert pool.in_use == 1
    assert pool.drain() == [] and pool.release(own) is None and pool.drain() == [own.lsid]
    assert len(pool) == 0
