"""Retries after overload errors in transactions."""

from __future__ import annotations

import pytest

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
