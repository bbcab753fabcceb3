"""The driver retries a command after an overload error at most five times.

A timeout or an empty token bucket prevents a retry. The driver does not retry `killCursors`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import gmongo
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import (
    OVERLOADED_LABEL,
    RETRYABLE_LABEL,
    fail,
    overload_reply,
    reply_in_sequence,
    set_tokens,
    tokens_of,
)
from tests.execution.operations import SESSION_OPERATIONS
from tests.support.clients import Client, Connect
from tests.support.server import ScriptedServer

# Each row contains the name of a command, and a function that sends the command.
COMMANDS: dict[str, tuple[str, Callable[[Client], Any]]] = {
    **{case: (name, partial(run, s=None)) for case, (name, run) in SESSION_OPERATIONS.items()},
    "aggregate with $out": ("aggregate", lambda client: client.db.c.aggregate([{"$match": {}}, {"$out": "copy"}])),
    "getMore": ("getMore", lambda client: list(client.db.c.find(batch_size=2))),
    "getMore of an aggregate": ("getMore", lambda client: list(client.db.c.aggregate([{"$match": {}}], batchSize=2))),
    "getMore of a command": ("getMore", lambda client: list(client.db.cursor_command("find", "c", batchSize=2))),
    "estimate": ("count", lambda client: client.db.c.estimated_document_count()),
}


def restore_documents(deployment: Deployment, client: Client) -> None:
    """Drop the collections, insert three documents, and clear the command log of the deployment."""
    for name in ("c", "d", "new"):
        client.db.drop_collection(name)
    client.db.c.insert_many([{"_id": number, "x": number} for number in range(3)])
    deployment.commands.clear()


@pytest.mark.requirement("BP-01", "BP-07", "BP-72")
@pytest.mark.parametrize("case", COMMANDS)
def test_overloaded_command_is_retried(
    deployment: Deployment, client: Client, backoffs: list[float], case: str
) -> None:
    name, run = COMMANDS[case]
    restore_documents(deployment, client)
    run(client)
    expected = len(deployment.commands.named(name))
    restore_documents(deployment, client)
    fail(deployment, name, times=2)
    run(client)
    assert len(deployment.commands.named(name)) == expected + 2
    assert backoffs == [0.1, 0.2]


@pytest.mark.requirement("BP-14", "BP-17", "BP-30", "BP-36", "BP-44")
@pytest.mark.parametrize(
    "case", ["update_many", "create_collection", "command", "find", "insert_one", "client bulk_write"]
)
def test_overloaded_command_fails_after_six_attempts(
    deployment: Deployment, client: Client, backoffs: list[float], case: str
) -> None:
    name, run = COMMANDS[case]
    restore_documents(deployment, client)
    fail(deployment, name)
    with pytest.raises(OperationFailure) as raised:
        run(client)
    # The code of a ClientBulkWriteException is in its attribute `error`.
    assert getattr(raised.value, "error", raised.value).code == 462
    assert len(deployment.commands.named(name)) == 6
    assert len(backoffs) == 5


@pytest.mark.requirement("BP-04")
def test_rate_limit_error_has_overload_labels(deployment: Deployment, client: Client, backoffs: list[float]) -> None:
    client.db.command("ping")
    deployment.rate_limit(requests=1e-6, burst=1.0)
    client.db.command("ping")
    with pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.code == 462
    assert raised.value.has_error_label(OVERLOADED_LABEL)
    assert raised.value.has_error_label(RETRYABLE_LABEL)
    assert "Rate limiter 'ingressRequestRateLimiter' rate exceeded" in str(raised.value)
    assert raised.value.details["codeName"] == "IngressRequestRateLimitExceeded"


@pytest.mark.requirement("BP-07")
def test_kill_cursors_and_end_sessions_are_not_retried(
    deployment: Deployment, client: Client, backoffs: list[float]
) -> None:
    client.db.c.insert_many([{} for _ in range(5)])
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    fail(deployment, "killCursors", "endSessions")
    cursor.close()
    # The session reaper keeps the cursor's session. `client.close` ends the session of `find_one`.
    client.db.c.find_one()
    client.close()
    assert len(deployment.commands.named("killCursors")) == 1
    assert len(deployment.commands.named("endSessions")) == 1
    assert backoffs == []


def test_number_of_retries_is_limited_for_each_batch(
    server: ScriptedServer, connect: Connect, backoffs: list[float]
) -> None:
    server.hello_extra["maxWriteBatchSize"] = 1
    client = connect(f"mongodb://{server.name}")
    reply_in_sequence(
        server, "insert", *[overload_reply()] * 4, {"ok": 1, "n": 1}, *[overload_reply()] * 4, {"ok": 1, "n": 1}
    )
    assert len(client.db.c.insert_many([{"_id": 1}, {"_id": 2}]).inserted_ids) == 2
    assert backoffs == [0.1, 0.2, 0.4, 0.8] * 2
    numbers = [command["txnNumber"] for command in server.commands("insert")]
    assert numbers == [numbers[0]] * 5 + [numbers[0] + 1] * 5


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
    deployment: Deployment, client: Client, backoffs: list[float]
) -> None:
    set_tokens(client, 0.9)
    fail(deployment, "ping")
    with pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.code == 462
    assert len(deployment.commands.named("ping")) == 1
    assert backoffs == [], "the operation fails at once, without a backoff (BP-A04)"
    assert tokens_of(client) == 0.9
    assert client.retry_stats()["exhausted"] == 1
