"""The driver waits before each retry after an overload error (*backoff*)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gmongo import MongoClient, _clock
from gmongo.errors import OperationFailure
from gmongo.execution.retry import backoff
from gmongo.testing import Deployment
from tests.execution.harness import fail
from tests.support.clients import Client, Connect


@pytest.mark.requirement("BP-20", "BP-21", "BP-23", "BP-25", "BP-45")
def test_backoff_doubles_for_each_of_five_retries(
    deployment: Deployment, client: Client, backoffs: list[float]
) -> None:
    fail(deployment, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert backoffs == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert client.retry_stats()["slept"] == pytest.approx(3.1)


@pytest.mark.requirement("BP-20", "BP-24", "BP-45")
@pytest.mark.parametrize(("retries", "seconds"), [(0, 0.1), (1, 0.2), (6, 6.4), (7, 10.0), (30, 10.0), (1000, 10.0)])
def test_backoff_doubles_up_to_ten_seconds(retries: int, seconds: float) -> None:
    assert backoff(retries, 0.1, 1.0) == pytest.approx(seconds)


@pytest.mark.requirement("BP-22", "BP-32")
def test_each_retry_draws_a_new_random_jitter(deployment: Deployment, connect: Connect, backoffs: list[float]) -> None:
    client = connect(deployment)
    jitters: list[float] = []

    def draw_jitter() -> float:
        jitters.append(random.random())
        return jitters[-1]

    client._executor.overload.jitter = draw_jitter
    fail(deployment, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert len(set(jitters)) == 5
    assert backoffs == [pytest.approx(factor * 0.1 * 2**number) for number, factor in enumerate(jitters)]


@pytest.mark.requirement("BP-22", "BP-32")
def test_default_jitter_is_between_0_and_1(deployment: Deployment) -> None:
    with MongoClient[Any](deployment.uri) as client:
        jitter = client._executor.overload.jitter
        jitters = [jitter() for _ in range(1000)]
    assert all(0 <= factor < 1 for factor in jitters)
    assert min(jitters) < 0.1 < 0.9 < max(jitters)


@pytest.mark.requirement("BP-03", "BP-63", "BP-72")
def test_retry_is_sent_after_backoff(deployment: Deployment, connect: Connect) -> None:
    client = connect(deployment, baseBackoffMS=30)
    fail(deployment, "ping", times=2)
    assert client.db.command("ping")["ok"] == 1
    first, second, third = [command.time for command in deployment.commands.named("ping")]
    assert second - first == pytest.approx(0.03)
    assert third - second == pytest.approx(0.06)


@pytest.mark.requirement("BP-02", "BP-03", "BP-25")
def test_random_jitter_shortens_exponential_backoff(deployment: Deployment, client: Client) -> None:
    """Run prose test 1 of the Client Backpressure specification."""
    fail(deployment, "insert", code=2)
    seconds = []
    for jitter in (0.0, 1.0):
        client._executor.overload.jitter = lambda jitter=jitter: jitter  # type: ignore[misc]
        begin = _clock.monotonic()
        with pytest.raises(OperationFailure):
            client.db.c.insert_one({"a": 1})
        seconds.append(_clock.monotonic() - begin)
    assert seconds[1] - seconds[0] >= 2.1
