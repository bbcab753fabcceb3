"""Prose tests of the Transactions specification and of the Convenient API for Transactions."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from gmongo.errors import NetworkTimeout, OperationFailure, PoolClearedError
from gmongo.testing import Deployment
from tests.execution.harness import assert_no_resource_in_use, fail
from tests.support.clients import Client, Connect
from tests.support.wait import eventually

TRANSIENT, UNKNOWN = "TransientTransactionError", "UnknownTransactionCommitResult"


@pytest.fixture
def sharded_client(cluster: Deployment, connect: Connect) -> Client:
    client = connect(cluster, localThresholdMS=1000)
    eventually(lambda: len(client.nodes) == 2)
    client.test.test.insert_one({})
    return client


def test_1_new_transaction_unpins_session_from_mongos(sharded_client: Client) -> None:
    addresses = set()
    with sharded_client.start_session() as session:
        with session.start_transaction():
            sharded_client.test.test.insert_one({}, session=session)
        for _ in range(50):
            with session.start_transaction():
                cursor = sharded_client.test.test.find({}, session=session)
                assert next(cursor)
                addresses.add(cursor.address)
    assert len(addresses) == 2


def test_2_operation_outside_transaction_unpins_session_from_mongos(sharded_client: Client) -> None:
    addresses = set()
    with sharded_client.start_session() as session:
        with session.start_transaction():
            sharded_client.test.test.insert_one({}, session=session)
        for _ in range(50):
            cursor = sharded_client.test.test.find({}, session=session)
            assert next(cursor)
            addresses.add(cursor.address)
    assert len(addresses) == 2


def test_3_pool_cleared_error_has_transient_transaction_label(deployment: Deployment, connect: Connect) -> None:
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


class CustomError(Exception):
    pass


def test_custom_error_of_callback_aborts_transaction_and_is_raised(deployment: Deployment, client: Client) -> None:
    calls: list[Any] = []
    custom = CustomError("mine")

    def callback(session: Any) -> None:
        calls.append(session)
        client.db.c.insert_one({"_id": 1}, session=session)
        raise custom

    with client.start_session() as session, pytest.raises(CustomError) as raised:
        session.with_transaction(callback)
    assert raised.value is custom
    assert len(calls) == 1
    assert len(deployment.commands.named("abortTransaction")) == 1
    assert client.db.c.count_documents({}) == 0


def test_with_transaction_returns_value_of_callback(client: Client) -> None:
    value = {"any": "thing"}
    with client.start_session() as session:
        assert session.with_transaction(lambda _session: value) is value
        assert session.with_transaction(lambda session: client.db.c.insert_one({"_id": 7}, session=session).inserted_id)


@pytest.mark.parametrize(
    ("command", "label", "code"),
    [("insert", TRANSIENT, 112), ("commitTransaction", UNKNOWN, 6), ("commitTransaction", TRANSIENT, 251)],
)
def test_with_transaction_raises_after_retry_timeout(
    deployment: Deployment, client: Client, monkeypatch: pytest.MonkeyPatch, command: str, label: str, code: int
) -> None:
    """Let the callback or the commit fail in each attempt of the transaction until the retry
    timeout.
    """
    times = itertools.count(0, 10)  # Each call of `monotonic` advances the clock by 10 seconds.
    monkeypatch.setattr("gmongo.engines.transaction._clock", SimpleNamespace(monotonic=lambda: next(times)))
    fail(deployment, command, code=code, labels=[label])
    with client.start_session() as session, pytest.raises(NetworkTimeout) as raised:
        session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
    assert raised.value.timeout
    assert raised.value.has_error_label(label)
    cause = raised.value.__cause__
    assert isinstance(cause, OperationFailure)
    assert cause.code == code
    assert len(deployment.commands.named(command)) > 1
    assert_no_resource_in_use(client)


def test_with_transaction_waits_for_backoff_before_retries(
    deployment: Deployment, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the sum of the backoffs of 30 retries is more than 1.25 seconds."""
    backoffs: list[float] = []
    monkeypatch.setattr("gmongo.engines.transaction.sleep", backoffs.append)
    fail(deployment, "commitTransaction", times=30, code=251, labels=[TRANSIENT])
    with client.start_session() as session:
        session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
    assert len(backoffs) == 30
    assert all(0 <= wait <= min(0.5, 0.005 * 1.5**retry) for retry, wait in enumerate(backoffs))
    assert sum(backoffs) > 1.25
    assert len(deployment.commands.named("commitTransaction")) == 31
