"""Servers that the driver selects for retries after overload errors."""

from __future__ import annotations

import pytest

from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import fail, receiving_members
from tests.support.clients import Client, Connect
from tests.support.wait import eventually

# With a random choice between two servers, all eight rounds succeed in 1 of 256 runs.
ROUNDS = 8


def wait_for_discovery(client: Client, server_count: int) -> Client:
    eventually(lambda: len(client.nodes) == server_count)
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
