"""Retries after overload errors in transactions, and transaction numbers of retried writes."""

from __future__ import annotations

import pytest

from gmongo.errors import OperationFailure
from gmongo.execution.retry import RetryPolicy, with_retry_writes_hint
from gmongo.testing import Deployment
from tests.execution.harness import (
    BOTH_LABELS,
    assert_no_resource_in_use,
    error_reply,
    fail,
    overload_reply,
    receiving_members,
    reply_in_sequence,
)
from tests.support.clients import Client, Connect
from tests.support.server import ScriptedServer


@pytest.mark.requirement("BP-07", "BP-39")
def test_retry_of_first_command_starts_transaction(
    deployment: Deployment, client: Client, backoffs: list[float]
) -> None:
    with client.start_session() as session:
        fail(deployment, "insert", times=2)
        with session.start_transaction():
            client.db.c.insert_one({"_id": 1}, session=session)
            client.db.c.insert_one({"_id": 2}, session=session)
    inserts = [command.body for command in deployment.commands.named("insert")]
    assert [command.get("startTransaction") for command in inserts] == [True, True, True, None]
    assert {command["txnNumber"] for command in inserts} == {1}
    assert backoffs == [0.1, 0.2]
    assert client.db.c.count_documents({}) == 2


@pytest.mark.parametrize("kind", ["sharded", "load_balanced"])
def test_retry_after_transient_label_uses_the_same_mongos(connect: Connect, backoffs: list[float], kind: str) -> None:
    with getattr(Deployment, kind)() as cluster:
        client = connect(cluster, localThresholdMS=1000)
        for turn in range(6):
            cluster.commands.clear()
            with client.start_session() as session, session.start_transaction():
                client.db.c.insert_one({"_id": 2 * turn}, session=session)
                fail(cluster, "insert", times=1, labels=[*BOTH_LABELS, "TransientTransactionError"])
                client.db.c.insert_one({"_id": 2 * turn + 1}, session=session)
                fail(cluster, "insert", times=0)
            assert len(set(receiving_members(cluster, "insert"))) == 1
        assert_no_resource_in_use(client)


@pytest.mark.requirement("BP-07", "LB-57")
@pytest.mark.parametrize("command_name", ["abortTransaction", "commitTransaction"])
@pytest.mark.parametrize("failure_count", [1, 5])
@pytest.mark.parametrize("kind", ["sharded", "load_balanced"])
def test_retried_commit_or_abort_uses_the_connection_of_the_transaction(
    connect: Connect, backoffs: list[float], kind: str, failure_count: int, command_name: str
) -> None:
    with getattr(Deployment, kind)(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        for turn in range(3):
            cluster.commands.clear()
            fail(cluster, command_name, times=failure_count)
            session = client.start_session()
            session.start_transaction()
            client.db.c.insert_one({"_id": turn}, session=session)
            session.abort_transaction() if command_name == "abortTransaction" else session.commit_transaction()
            received_commands = cluster.commands.named("insert", command_name)
            assert len(received_commands) == failure_count + 2
            assert len({(command.member, command.connection) for command in received_commands}) == 1
            session.end_session()
            assert_no_resource_in_use(client)


RETRYABLE_WRITE = "RetryableWriteError"


@pytest.mark.requirement("BP-40")
def test_retried_write_keeps_transaction_number(
    server: ScriptedServer, scripted_client: Client, backoffs: list[float]
) -> None:
    reply_in_sequence(server, "insert", overload_reply(), error_reply(6, RETRYABLE_WRITE), overload_reply())
    scripted_client.db.c.insert_one({})
    scripted_client.db.c.insert_one({})
    assert [command["txnNumber"] for command in server.commands("insert")] == [1, 1, 1, 1, 2]
    assert len({bytes(command["lsid"]["id"]) for command in server.commands("insert")}) == 1


@pytest.mark.requirement("BP-51")
def test_retry_of_rejected_write_may_omit_transaction_number(
    server: ScriptedServer,
    scripted_client: Client,
    backoffs: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Simulate a first server that rejects a write, and a second server without retryable writes.

    The driver sends the retry without a transaction number (BP-A16). If the first server may have
    executed the write, the driver raises an error instead.
    """
    scripted_client.db.c.find_one()
    support_flags = iter([True, False])
    monkeypatch.setattr(RetryPolicy, "retry_writes", property(lambda self: next(support_flags)), raising=False)
    reply_in_sequence(server, "insert", overload_reply())
    scripted_client.db.c.insert_one({})
    assert ["txnNumber" in command for command in server.commands("insert")] == [True, False]


def test_retry_writes_hint_replaces_message_of_error_without_reply() -> None:
    error = OperationFailure("Transaction numbers are only allowed on a replica set", 20)
    hinted = with_retry_writes_hint(error)
    assert isinstance(hinted, OperationFailure) and hinted.code == 20 and hinted.__cause__ is error
    (text,) = (hinted.details or {}).values()
    assert str(hinted).startswith(text) and "retryWrites=false" in text
    assert with_retry_writes_hint(other := OperationFailure("other", 20)) is other
