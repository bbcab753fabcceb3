"""How long the client waits before it tries again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmongo import MongoClient
from gmongo.errors import OperationFailure
from gmongo.execution.overload import MAX_BACKOFF, backoff
from gmongo.testing import Deployment
from tests.execution.harness import OVERLOADED, RETRYABLE, error, fail, in_turn, rejected
from tests.support.clients import Client
from tests.support.server import ScriptedServer, cut


@pytest.mark.requirement("BP-20", "BP-21", "BP-23", "BP-25", "BP-45")
def test_the_five_waits(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    fail(deployment, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert sleeps == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert client.retry_stats()["slept"] == pytest.approx(3.1)


@pytest.mark.requirement("BP-20", "BP-24", "BP-45")
@pytest.mark.parametrize(("retries", "seconds"), [(0, 0.1), (1, 0.2), (6, 6.4), (7, 10.0), (30, 10.0), (1000, 10.0)])
def test_a_wait_is_ten_seconds_at_most(retries: int, seconds: float) -> None:
    assert backoff(retries, 0.1, 1.0) == pytest.approx(seconds)


@pytest.mark.requirement("BP-20", "BP-22")
@given(st.integers(0, 60), st.floats(0, 1))
def test_the_jitter_takes_a_share_of_the_wait(retries: int, jitter: float) -> None:
    whole = backoff(retries, 0.1, 1.0)
    assert backoff(retries, 0.1, jitter) == pytest.approx(jitter * whole)
    assert 0 <= backoff(retries, 0.1, jitter) <= MAX_BACKOFF


@pytest.mark.requirement("BP-22", "BP-32")
def test_the_jitter_is_random_and_new_for_each_retry(
    deployment: Deployment, connect: Callable[..., Client], sleeps: list[float]
) -> None:
    client = connect(deployment)
    drawn: list[float] = []

    def draw() -> float:
        drawn.append(random.random())
        return drawn[-1]

    client._executor.overload.jitter = draw
    fail(deployment, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert len(set(drawn)) == 5
    assert sleeps == [pytest.approx(share * 0.1 * 2**turn) for turn, share in enumerate(drawn)]


@pytest.mark.requirement("BP-22", "BP-32")
def test_by_default_the_jitter_is_from_0_to_1(deployment: Deployment) -> None:
    with MongoClient[Any](deployment.uri) as client:
        jitter = client._executor.overload.jitter
        drawn = [jitter() for _ in range(1000)]
    assert all(0 <= share < 1 for share in drawn)
    assert min(drawn) < 0.1 < 0.9 < max(drawn)


@pytest.mark.requirement("BP-03", "BP-63", "BP-72")
def test_the_wait_takes_its_time(deployment: Deployment, connect: Callable[..., Client]) -> None:
    client = connect(deployment, baseBackoffMS=30)
    fail(deployment, "ping", times=2)
    assert client.db.command("ping")["ok"] == 1, "the application never hears of it"
    first, second, third = [command.time for command in deployment.commands.named("ping")]
    assert second - first == pytest.approx(0.03)
    assert third - second == pytest.approx(0.06)


@pytest.mark.requirement("BP-33")
def test_no_wait_without_the_label_of_overload(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    in_turn(server, "ping", error(462, RETRYABLE), error(462, RETRYABLE))
    scripted.db.command("ping")
    assert len(server.commands("ping")) == 3
    assert sleeps == []
    server.fail("find", cut(0))
    scripted.db.c.find_one()
    assert sleeps == []


@pytest.mark.requirement("BP-02", "BP-03")
def test_the_wait_comes_with_the_label(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    in_turn(server, "ping", error(1, OVERLOADED, RETRYABLE))
    scripted.db.command("ping")
    assert sleeps == [0.1]


@pytest.mark.requirement("BP-02")
def test_the_other_spelling_of_the_label_is_none(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    in_turn(server, "ping", error(1, "SystemOverloadError", RETRYABLE))
    scripted.db.command("ping")
    assert sleeps == []


@pytest.mark.requirement("BP-20", "BP-21")
def test_the_wait_doubles_with_every_retry_of_any_kind(
    server: ScriptedServer, scripted: Client, sleeps: list[float]
) -> None:
    in_turn(server, "ping", rejected(), error(1, RETRYABLE), rejected())
    scripted.db.command("ping")
    assert sleeps == [0.1, 0.4]


@pytest.mark.requirement("BP-23")
@pytest.mark.parametrize(("milliseconds", "waits"), [(10, [0.01, 0.02, 0.04, 0.08, 0.16]), (4000, [4, 8, 10, 10, 10])])
def test_the_base_is_an_option(
    deployment: Deployment, connect: Callable[..., Client], sleeps: list[float], milliseconds: int, waits: list[float]
) -> None:
    client = connect(f"{deployment.uri}&baseBackoffMS={milliseconds}")
    fail(deployment, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert sleeps == [pytest.approx(wait) for wait in waits]
