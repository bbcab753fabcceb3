"""Retries after overload errors in transactions."""

from __future__ import annotations

import pytest

from gmongo import WriteConcern
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import BOTH, assert_no_resource_in_use, fail, receiving_members
from tests.support.clients import Client, Connect


@pytest.mark.requirement("BP-07", "BP-39")
def test_retry_of_first_command_starts_transaction(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    with client.start_session() as session:
        fail(deployment, "insert", times=2)
        with session.start_transaction():
            client.db.c.insert_one({"_id": 1}, session=session)
            client.db.c.insert_one({"_id": 2}, session=session)
    inserts = [command.body for command in deployment.commands.named("insert")]
    assert [command.get("startTransaction") for command in inserts] == [True, True, True, None]
    assert {command["txnNumber"] for command in inserts} == {1}
    assert sleeps == [0.1, 0.2]
    assert client.db.c.count_documents({}) == 2


@pytest.mark.requirement("BP-39")
def test_retry_of_later_command_does_not_start_transaction(
    deployment: Deployment, client: Client, sleeps: list[float]
) -> None:
    with client.start_session() as session, session.start_transaction():
        client.db.c.insert_one({"_id": 1}, session=session)
        fail(deployment, "insert", "find", times=1)
        client.db.c.insert_one({"_id": 2}, session=session)
        fail(deployment, "find", times=1)
        assert client.db.c.find_one({"_id": 2}, session=session) == {"_id": 2}
    sent = [command.body for command in deployment.commands.named("insert", "find")]
    assert [command.get("startTransaction") for command in sent] == [True, None, None, None, None]
    assert client.db.c.count_documents({}) == 2


def test_retry_in_transaction_uses_the_same_mongos(connect: Connect, sleeps: list[float]) -> None:
    with Deployment.sharded(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        for turn in range(5):
            cluster.commands.clear()
            with client.start_session() as session, session.start_transaction():
                client.db.c.insert_one({"_id": 2 * turn}, session=session)
                fail(cluster, "insert", times=2)
                client.db.c.insert_one({"_id": 2 * turn + 1}, session=session)
                fail(cluster, "insert", times=0)
            assert len(set(receiving_members(cluster, "insert"))) == 1
            assert len(receiving_members(cluster, "insert")) == 4


@pytest.mark.parametrize("kind", ["sharded", "load_balanced"])
def test_retry_after_transient_label_uses_the_same_mongos(connect: Connect, sleeps: list[float], kind: str) -> None:
    with getattr(Deployment, kind)() as cluster:
        client = connect(cluster, localThresholdMS=1000)
        for turn in range(6):
            cluster.commands.clear()
            with client.start_session() as session, session.start_transaction():
                client.db.c.insert_one({"_id": 2 * turn}, session=session)
                fail(cluster, "insert", times=1, labels=[*BOTH, "TransientTransactionError"])
                client.db.c.insert_one({"_id": 2 * turn + 1}, session=session)
                fail(cluster, "insert", times=0)
            assert len(set(receiving_members(cluster, "insert"))) == 1
        assert_no_resource_in_use(client)


@pytest.mark.requirement("BP-07", "BP-43")
def test_commit_retried_after_overload_keeps_write_concern(
    deployment: Deployment, client: Client, sleeps: list[float]
) -> None:
    fail(deployment, "commitTransaction", times=2)
    with client.start_session() as session, session.start_transaction(write_concern=WriteConcern(1)):
        client.db.c.insert_one({"_id": 1}, session=session)
    commits = [command.body for command in deployment.commands.named("commitTransaction")]
    assert [command["writeConcern"] for command in commits] == [{"w": 1}] * 3
    assert sleeps == [0.1, 0.2]
    assert client.db.c.count_documents({}) == 1


@pytest.mark.requirement("BP-14", "BP-44")
@pytest.mark.parametrize("command", ["commitTransaction", "abortTransaction"])
def test_overloaded_commit_or_abort_is_sent_at_most_six_times(
    deployment: Deployment, client: Client, sleeps: list[float], command: str
) -> None:
    fail(deployment, command)
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({"_id": 1}, session=session)
    if command == "abortTransaction":
        session.abort_transaction()
    else:
        with pytest.raises(OperationFailure) as raised:
            session.commit_transaction()
        assert raised.value.code == 462
    assert len(deployment.commands.named(command)) == 6
    session.end_session()
    assert_no_resource_in_use(client)


@pytest.mark.requirement("BP-07", "LB-57")
@pytest.mark.parametrize("command_name", ["abortTransaction", "commitTransaction"])
@pytest.mark.parametrize("failures", [1, 5])
@pytest.mark.parametrize("kind", ["sharded", "load_balanced"])
def test_retried_commit_or_abort_uses_the_connection_of_the_transaction(
    connect: Connect, sleeps: list[float], kind: str, failures: int, command_name: str
) -> None:
    with getattr(Deployment, kind)(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        for turn in range(3):
            cluster.commands.clear()
            fail(cluster, command_name, times=failures)
            session = client.start_session()
            session.start_transaction()
            client.db.c.insert_one({"_id": turn}, session=session)
            session.abort_transaction() if command_name == "abortTransaction" else session.commit_transaction()
            sent = cluster.commands.named("insert", command_name)
            assert len(sent) == failures + 2
            assert len({(command.member, command.connection) for command in sent}) == 1
            session.end_session()
            assert_no_resource_in_use(client)


@pytest.mark.requirement("LB-57")
@pytest.mark.parametrize("code", [462, 2])
@pytest.mark.parametrize("kind", ["sharded", "load_balanced"])
def test_failed_abort_unpins_session_from_server(connect: Connect, sleeps: list[float], kind: str, code: int) -> None:
    with getattr(Deployment, kind)(2) as cluster:
        client = connect(cluster)
        fail(cluster, "abortTransaction", code=code, labels=BOTH if code == 462 else [])
        session = client.start_session()
        session.start_transaction()
        client.db.c.insert_one({"_id": 1}, session=session)
        session.abort_transaction()
        assert (session._state.transaction.pin, session._state.transaction.pinned_address) == (None, None)
        session.end_session()
        assert_no_resource_in_use(client)


@pytest.mark.parametrize("kind", ["sharded", "load_balanced"])
def test_transient_overload_error_of_last_attempt_unpins_session(
    connect: Connect, sleeps: list[float], kind: str
) -> None:
    with getattr(Deployment, kind)(2) as cluster:
        client = connect(cluster, maxAdaptiveRetries=1)
        session = client.start_session()
        session.start_transaction()
        client.db.c.insert_one({"_id": 1}, session=session)
        fail(cluster, "insert", labels=[*BOTH, "TransientTransactionError"])
        with pytest.raises(OperationFailure):
            client.db.c.insert_one({"_id": 2}, session=session)
        assert len(cluster.commands.named("insert")) == 3
        assert (session._state.transaction.pin, session._state.transaction.pinned_address) == (None, None)
        session.abort_transaction()
        session.end_session()
        assert_no_resource_in_use(client)
