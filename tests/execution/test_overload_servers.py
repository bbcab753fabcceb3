"""Servers that the driver selects for retries after overload errors."""

from __future__ import annotations

import pytest

from gmongo.errors import OperationFailure
from gmongo.read_preferences import Secondary
from gmongo.testing import Deployment
from tests.execution.harness import fail, receiving_members
from tests.support.clients import Client, Connect
from tests.support.wait import eventually

# If the driver chose between the two servers at random, all rounds would succeed in 1 of 256 runs.
ROUNDS = 8


def wait_for_discovery(client: Client, count: int) -> Client:
    eventually(lambda: len(client.nodes) == count)
    return client


@pytest.mark.requirement("BP-26", "BP-28", "BP-37", "BP-48")
@pytest.mark.parametrize("retargeting", [False, True])
def test_retry_uses_another_mongos_with_and_without_retargeting(
    cluster: Deployment, connect: Connect, backoffs: list[float], retargeting: bool
) -> None:
    client = wait_for_discovery(connect(cluster, localThresholdMS=1000, enableOverloadRetargeting=retargeting), 2)
    for _ in range(ROUNDS):
        cluster.commands.clear()
        fail(cluster, "update", times=1)
        client.db.c.update_many({}, {"$set": {"x": 1}})
        first, second = receiving_members(cluster, "update")[:2]
        assert first != second


@pytest.mark.requirement("BP-26", "BP-27")
def test_retries_continue_if_every_mongos_is_overloaded(
    cluster: Deployment, connect: Connect, backoffs: list[float]
) -> None:
    client = wait_for_discovery(connect(cluster, localThresholdMS=1000), 2)
    fail(cluster, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    receivers = receiving_members(cluster, "ping")
    assert len(receivers) == 6
    assert receivers[0] != receivers[1]


@pytest.mark.requirement("BP-48")
def test_overloaded_get_more_is_retried_on_same_server(connect: Connect, backoffs: list[float]) -> None:
    with Deployment.replica_set(3) as members:
        options = {"localThresholdMS": 1000, "enableOverloadRetargeting": True}
        client = wait_for_discovery(connect(members, **options), 3)
        client.db.c.insert_many([{} for _ in range(5)])
        fail(members, "getMore", times=3)
        cursor = client.db.c.with_options(read_preference=Secondary()).find(batch_size=3)
        assert len(list(cursor)) == 5
        assert cursor.address is not None
        address = f"{cursor.address[0]}:{cursor.address[1]}"
        assert receiving_members(members, "getMore") == [address] * 4
        assert backoffs == [0.1, 0.2, 0.4]
