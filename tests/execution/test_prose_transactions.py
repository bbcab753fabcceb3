"""The prose tests of the Transactions specification, and of the Convenient API for Transactions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from gmongo.errors import NetworkTimeout, OperationFailure, PoolClearedError
from gmongo.testing import Deployment
from tests.execution.harness import check_nothing_held, fail
from tests.support.clients import Client
from tests.support.wait import eventually

TRANSIENT, UNKNOWN = "TransientTransactionError", "UnknownTransactionCommitResult"


@pytest.fixture
def cluster() -> Iterator[Deployment]:
    with Deployment.sharded(2) as cluster:
        yield cluster


@pytest.fixture
def sharded(cluster: Deployment, connect: Callable[..., Client]) -> Client:
    client = connect(cluster, localThresholdMS=1000)
    eventually(lambda: len(client.nodes) == 2)
    client.test.test.insert_one({})
    return client


# Mongos pinning


def test_1_unpin_for_next_transaction(sharded: Client) -> None:
    """1. Starting a new transaction on a pinned ClientSession unpins the session."""
    addresses = set()
    with sharded.start_session() as session:
        with session.start_transaction():
            sharded.test.test.insert_one({}, session=session)
        for _ in range(50):
            with session.start_transaction():
                cursor = sharded.test.test.find({}, session=session)
                assert next(cursor)
                addresses.add(cursor.address)
    assert len(addresses) == 2


def test_2_unpin_for_non_transaction_operation(sharded: Client) -> None:
    """2. Non-transaction operations using a pinned ClientSession unpin the session."""
    addresses = set()
    with sharded.start_session() as session:
        with session.start_transaction():
            sharded.test.test.insert_one({}, session=session)
        for _ in range(50):
            cursor = sharded.test.test.find({}, session=session)
            assert next(cursor)
            addresses.add(cursor.address)
    assert len(addresses) == 2


def test_3_pool_cleared_error_is_transient(deployment: Deployment, connect: Callable[..., Client]) -> None:
    """3. PoolClearedError has the label TransientTransactionError."""
    client = connect(deployment, maxPoolSize=1, serverMonitoringMode="poll")
    client.db.c.insert_one({})
    fail(deployment, "find", times=1, code=91, labels=None, blockConnection=True, blockTimeMS=100)
    reader = gevent.spawn(lambda: client.db.c.find_one())
    eventually(lambda: deployment.commands.named("find"))
    with client.start_session() as session:
        session.start_transaction()
        with pytest.raises(PoolClearedError) as raised:
            client.db.c.insert_one({}, session=session)
        assert raised.value.has_error_label(TRANSIENT)
    reader.get(timeout=5)


# The convenient API


class Custom(Exception):
    """An error that is not the driver's."""


def test_custom_errors_pass(deployment: Deployment, client: Client) -> None:
    """Callback raises a custom error."""
    calls: list[Any] = []
    custom = Custom("mine")

    def callback(session: Any) -> None:
        calls.append(session)
        client.db.c.insert_one({"_id": 1}, session=session)
        raise custom

    with client.start_session() as session, pytest.raises(Custom) as raised:
        session.with_transaction(callback)
    assert raised.value is custom
    assert len(calls) == 1
    assert len(deployment.commands.named("abortTransaction")) == 1
    assert client.db.c.count_documents({}) == 0


def test_the_value_is_returned(client: Client) -> None:
    """Callback returns a value."""
    value = {"any": "thing"}
    with client.start_session() as session:
        assert session.with_transaction(lambda _session: value) is value
        assert session.with_transaction(lambda session: client.db.c.insert_one({"_id": 7}, session=session).inserted_id)


@pytest.mark.parametrize(
    ("command", "label", "code"),
    [("insert", TRANSIENT, 112), ("commitTransaction", UNKNOWN, 6), ("commitTransaction", TRANSIENT, 251)],
)
def test_the_time_limit_is_kept(
    deployment: Deployment, client: Client, monkeypatch: pytest.MonkeyPatch, command: str, label: str, code: int
) -> None:
    """Retry timeout is enforced: errors of the callback (1), unknown results (2), transient errors of commits (3)."""
    looks = itertools.count(0, 10)  # each reading of the clock is ten seconds later
    monkeypatch.setattr("gmongo.engines.transaction._clock", SimpleNamespace(monotonic=lambda: next(looks)))
    fail(deployment, command, code=code, labels=[label])
    with client.start_session() as session, pytest.raises(NetworkTimeout) as raised:
        session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
    assert raised.value.timeout
    assert raised.value.has_error_label(label)
    cause = raised.value.__cause__
    assert isinstance(cause, OperationFailure)
    assert cause.code == code
    assert len(deployment.commands.named(command)) > 1
    check_nothing_held(client)


def test_retries_back_off(deployment: Deployment, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry backoff is enforced: thirty retries wait for more than 1.25 seconds in all."""
    slept: list[float] = []
    monkeypatch.setattr("gmongo.engines.transaction.sleep", slept.append)
    fail(deployment, "commitTransaction", times=30, code=251, labels=[TRANSIENT])
    with client.start_session() as session:
        session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
    assert len(slept) == 30
    assert all(0 <= wait <= min(0.5, 0.005 * 1.5**turn) for turn, wait in enumerate(slept))
    assert sum(slept) > 1.25
    assert len(deployment.commands.named("commitTransaction")) == 31
