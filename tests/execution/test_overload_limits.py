"""Options, timeouts and an empty token bucket prevent a retry after an overload error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gmongo
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import fail, set_tokens, tokens_of
from tests.support.clients import Client, Connect

READ, WRITE, GENERIC = "find", "update", "ping"
RUN: dict[str, Callable[[Client], Any]] = {
    READ: lambda client: client.db.c.find_one({}),
    WRITE: lambda client: client.db.c.update_many({}, {"$set": {"y": 1}}),
    "create": lambda client: client.db.create_collection("x"),
    "getMore": lambda client: list(client.db.c.find(batch_size=2)),
    "aggregate": lambda client: client.db.c.aggregate([{"$out": "copy"}]),
    GENERIC: lambda client: client.db.command("ping"),
}


@pytest.mark.requirement("BP-39", "BP-43")
@pytest.mark.parametrize(
    ("name", "option", "sent_commands"),
    [
        (READ, "retryReads", 1),
        (READ, "retryWrites", 3),
        (WRITE, "retryReads", 3),
        (WRITE, "retryWrites", 1),
        ("create", "retryReads", 3),
        ("create", "retryWrites", 1),
        ("getMore", "retryReads", 1),
        ("getMore", "retryWrites", 3),
        ("aggregate", "retryReads", 3),
        ("aggregate", "retryWrites", 1),
        (GENERIC, "retryReads", 1),
        (GENERIC, "retryWrites", 1),
    ],
)
def test_retry_reads_and_retry_writes_control_overload_retries(
    deployment: Deployment, connect: Connect, sleeps: list[float], name: str, option: str, sent_commands: int
) -> None:
    client = connect(deployment, **{option: False})
    client.db.c.insert_many([{} for _ in range(3)])
    fail(deployment, name, times=2)
    if sent_commands == 1:
        with pytest.raises(OperationFailure):
            RUN[name](client)
    else:
        RUN[name](client)
    assert len(deployment.commands.named(name)) == sent_commands


@pytest.mark.requirement("BP-15", "BP-34", "BP-46")
def test_backoff_that_would_exceed_the_deadline_raises_immediately(deployment: Deployment, client: Client) -> None:
    fail(deployment, "ping")
    with gmongo.timeout(0.09), pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.code == 462, "the operation raises the server error (BP-A17)"
    assert len(deployment.commands.named("ping")) == 1
    assert tokens_of(client) == 1000
    assert client.retry_stats()["slept"] == 0


@pytest.mark.requirement("BP-16", "BP-35", "BP-47")
def test_empty_token_bucket_prevents_retry_after_overload_error(
    deployment: Deployment, client: Client, sleeps: list[float]
) -> None:
    set_tokens(client, 0.9)
    fail(deployment, "ping")
    with pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.code == 462
    assert len(deployment.commands.named("ping")) == 1
    assert sleeps == [], "the operation fails at once, without a backoff (BP-A04)"
    assert tokens_of(client) == 0.9
    assert client.retry_stats()["exhausted"] == 1
