"""When an error of an overloaded server is not answered by another try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gmongo
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment, VirtualTime
from tests.execution.harness import OVERLOADED, bucket, error, fail, in_turn, set_tokens
from tests.support.clients import Client
from tests.support.server import ScriptedServer, cut

RETRYABLE_WRITE = "RetryableWriteError"


# The labels


@pytest.mark.requirement("BP-13", "BP-42")
def test_overload_alone_is_final(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    fail(deployment, "ping", labels=[OVERLOADED])
    with pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.has_error_label(OVERLOADED)
    assert len(deployment.commands.named("ping")) == 1
    assert (sleeps, bucket(client)) == ([], 1000)


@pytest.mark.requirement("BP-31", "BP-50")
def test_a_plain_error_is_final(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    fail(deployment, "ping", "insert", "find", code=2, labels=None)
    for run in (client.db.c.find_one, lambda: client.db.c.insert_one({}), lambda: client.db.command("ping")):
        with pytest.raises(OperationFailure):
            run()
    assert [len(deployment.commands.named(name)) for name in ("find", "insert", "ping")] == [1, 1, 1]


@pytest.mark.requirement("BP-33", "BP-43")
def test_overload_without_the_other_label_but_regular(
    server: ScriptedServer, scripted: Client, sleeps: list[float]
) -> None:
    """A read may be tried again after this code, once; with a wait and for a token, since it is overload (BP-A09)."""
    in_turn(server, "find", *[error(6, OVERLOADED)] * 3)
    with pytest.raises(OperationFailure):
        scripted.db.c.find_one()
    assert len(server.commands("find")) == 2
    assert sleeps == [0.1]
    assert scripted.retry_stats()["retries"] == 1


# The options

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
    ("name", "option", "sent"),
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
def test_a_client_with_retries_off_retries_nothing(
    deployment: Deployment, connect: Callable[..., Client], sleeps: list[float], name: str, option: str, sent: int
) -> None:
    client = connect(deployment, **{option: False})
    client.db.c.insert_many([{} for _ in range(3)])
    fail(deployment, name, times=2)
    if sent == 1:
        with pytest.raises(OperationFailure):
            RUN[name](client)
    else:
        RUN[name](client)
    assert len(deployment.commands.named(name)) == sent


# Time


@pytest.mark.requirement("BP-15", "BP-34", "BP-46")
def test_no_wait_that_would_end_too_late(deployment: Deployment, client: Client) -> None:
    fail(deployment, "ping")
    with gmongo.timeout(0.09), pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.code == 462, "it is the server's error that the user sees (BP-A17)"
    assert len(deployment.commands.named("ping")) == 1
    assert bucket(client) == 1000
    assert client.retry_stats()["slept"] == 0


@pytest.mark.requirement("BP-15", "BP-34")
def test_the_waits_that_fit_are_made(
    virtual_time: VirtualTime, deployment: Deployment, connect: Callable[..., Client]
) -> None:
    client = connect(deployment, timeoutMS=250)
    fail(deployment, "ping")
    begin = virtual_time.monotonic()
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert virtual_time.monotonic() - begin == pytest.approx(0.1)
    assert len(deployment.commands.named("ping")) == 2
    assert bucket(client) == 999


@pytest.mark.requirement("BP-19", "BP-14")
def test_a_long_time_limit_allows_no_more_tries(
    deployment: Deployment, connect: Callable[..., Client], sleeps: list[float]
) -> None:
    client = connect(deployment, timeoutMS=60_000)
    fail(deployment, "find")
    with pytest.raises(OperationFailure):
        client.db.c.find_one()
    assert len(deployment.commands.named("find")) == 6
    assert len(sleeps) == 5


@pytest.mark.requirement("BP-19", "BP-41")
def test_regular_retries_have_no_limit_but_the_time(
    server: ScriptedServer, connect: Callable[..., Client], sleeps: list[float]
) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=10_000)
    server.fail("find", *[cut(0)] * 9)
    client.db.c.find_one()
    assert len(server.commands("find")) == 10
    assert (sleeps, client.retry_stats()["retries"]) == ([], 0)


# Tokens


@pytest.mark.requirement("BP-16", "BP-35", "BP-47")
def test_no_try_without_a_token(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    set_tokens(client, 0.9)
    fail(deployment, "ping")
    with pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.code == 462
    assert len(deployment.commands.named("ping")) == 1
    assert sleeps == [], "it fails at once, without a wait for nothing (BP-A04)"
    assert bucket(client) == 0.9
    assert client.retry_stats()["exhausted"] == 1


@pytest.mark.requirement("BP-16", "BP-47")
def test_the_last_token_is_spent(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    set_tokens(client, 2)
    fail(deployment, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert len(deployment.commands.named("ping")) == 3
    assert bucket(client) == 0


@pytest.mark.requirement("BP-16", "BP-08")
def test_ten_successes_pay_for_a_retry(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    set_tokens(client, 0)
    for _ in range(10):
        client.db.command("ping")
    fail(deployment, "ping", times=1)
    client.db.command("ping")
    assert sleeps == [0.1]


@pytest.mark.requirement("BP-41")
def test_regular_retries_need_no_token(server: ScriptedServer, scripted: Client) -> None:
    set_tokens(scripted, 0)
    server.fail("find", cut(0))
    scripted.db.c.find_one()
    assert len(server.commands("find")) == 2
