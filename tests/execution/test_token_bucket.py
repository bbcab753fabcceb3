"""What retries cost and successes bring in: the bucket by itself, and the bucket of a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmongo import MongoClient
from gmongo.errors import ConfigurationError, DuplicateKeyError, OperationFailure
from gmongo.execution.backpressure import TokenBucket
from gmongo.testing import Deployment
from tests.execution.harness import bucket, error, fail, in_turn, rejected, set_tokens
from tests.support.clients import Client
from tests.support.server import ScriptedServer, cursor_reply


def filled(tokens: float) -> TokenBucket:
    new = TokenBucket()
    while new.tokens > tokens:
        new.consume()
    new.deposit(round((tokens - new.tokens) * 10))
    return new


# The bucket by itself


@pytest.mark.requirement("BP-56", "BP-57")
def test_the_bucket_starts_full_and_holds_a_thousand_tokens() -> None:
    new = TokenBucket()
    assert new.tokens == 1000
    assert all(new.consume() for _ in range(1000))
    assert not new.consume()
    assert new.tokens == 0


@pytest.mark.requirement("BP-58", "BP-59", "BP-60")
@given(st.lists(st.sampled_from([None, 1, 10, 11]), max_size=200), st.integers(0, 10_000))
def test_the_sum_is_exact(steps: list[int | None], tenths: int) -> None:
    new, expected = filled(tenths / 10), tenths
    for step in steps:
        if step is None:
            assert new.consume() == (expected >= 10)
            expected -= 10 if expected >= 10 else 0
        else:
            new.deposit(step)
            expected = min(10_000, expected + step)
        assert new.tokens == expected / 10


@pytest.mark.requirement("BP-10", "BP-18")
@pytest.mark.parametrize("name", ["retryTokenReturnRate", "retryTokenCapacity", "maxAttempts"])
def test_the_policy_has_no_such_option(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        MongoClient("127.0.0.1", connect=False, **{name: 3})


# The bucket of a client


@pytest.mark.requirement("BP-08", "BP-09", "BP-29", "BP-52")
def test_a_success_at_once_brings_a_tenth(client: Client) -> None:
    set_tokens(client, 10)
    client.db.c.insert_one({})
    assert bucket(client) == 10.1


@pytest.mark.requirement("BP-11", "BP-29", "BP-52")
def test_a_success_of_a_retry_brings_the_token_back_and_a_tenth(
    deployment: Deployment, client: Client, sleeps: list[float]
) -> None:
    set_tokens(client, 10)
    fail(deployment, "insert", times=1)
    client.db.c.insert_one({})
    assert bucket(client) == pytest.approx(10.1)
    assert client.retry_stats()["retries"] == len(sleeps) == 1


@pytest.mark.requirement("BP-12", "BP-53")
def test_a_retry_that_fails_otherwise_brings_the_token_back(
    server: ScriptedServer, scripted: Client, sleeps: list[float]
) -> None:
    set_tokens(scripted, 10)
    in_turn(server, "insert", rejected(), error(2))
    with pytest.raises(OperationFailure, match="scripted 2"):
        scripted.db.c.insert_one({})
    assert bucket(scripted) == 10


@pytest.mark.requirement("BP-12", "BP-53")
def test_a_first_try_that_fails_brings_nothing(client: Client) -> None:
    client.db.c.insert_one({"_id": 1})
    client.db.c.create_index("x", unique=True)
    set_tokens(client, 10)
    with pytest.raises(OperationFailure):
        client.db.command("nothing")
    assert bucket(client) == 10
    with pytest.raises(DuplicateKeyError):
        client.db.c.insert_one({"_id": 1})
    assert bucket(client) == 10


@pytest.mark.requirement("BP-08")
def test_each_batch_of_a_cursor_and_of_a_bulk_brings_its_own(server: ScriptedServer, scripted: Client) -> None:
    batches = iter([cursor_reply([{"_id": 2}], 7, "nextBatch"), cursor_reply([{"_id": 3}], 0, "nextBatch")])
    server.replies["find"] = cursor_reply([{"_id": 1}], 7)
    server.replies["getMore"] = lambda _command: next(batches)
    set_tokens(scripted, 10)
    assert len(list(scripted.db.c.find())) == 3
    assert bucket(scripted) == pytest.approx(10.3)
    server.hello_extra["maxWriteBatchSize"] = 2
    with MongoClient[Any](server.name) as other:
        set_tokens(other, 10)
        other.db.c.insert_many([{"_id": number} for number in range(5)])
        assert bucket(other) == pytest.approx(10.3)


@pytest.mark.requirement("BP-08")
def test_what_the_driver_does_for_itself_brings_nothing(deployment: Deployment, connect: Callable[..., Client]) -> None:
    client = connect(deployment)
    client.db.c.insert_many([{"_id": number} for number in range(5)])
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    set_tokens(client, 10)
    cursor.close()
    gevent.sleep(0.02)
    client.close()
    assert [command.name for command in deployment.commands[-2:]] == ["killCursors", "endSessions"]
    assert bucket(client) == 10


@pytest.mark.requirement("BP-55")
def test_each_client_has_its_own(deployment: Deployment, connect: Callable[..., Client], sleeps: list[float]) -> None:
    poor, rich = connect(deployment), connect(deployment)
    set_tokens(poor, 0)
    fail(deployment, "ping", times=2)
    with pytest.raises(OperationFailure):
        poor.db.command("ping")
    rich.db.command("ping")
    assert bucket(rich) == 1000
    assert len(deployment.commands.named("ping")) == 3


@pytest.mark.requirement("BP-58")
def test_many_greenlets_at_once_leave_an_exact_sum(deployment: Deployment, connect: Callable[..., Client]) -> None:
    client = connect(deployment, baseBackoffMS=1)
    set_tokens(client, 500)
    fail(deployment, "ping", times=40)
    gevent.joinall([gevent.spawn(client.db.command, "ping") for _ in range(60)], raise_error=True)
    stats, pings = client.retry_stats(), len(deployment.commands.named("ping"))
    assert pings == 60 + stats["retries"] == 100
    came_back = stats["tokens"] - (500 - stats["retries"] + 60 * 0.1)  # a token for each operation that was retried
    assert came_back == pytest.approx(round(came_back))
    assert 8 <= came_back <= 40
