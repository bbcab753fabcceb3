"""Servers that shed connections: what the handshake says, and what a failed one is taken for."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo.cmap.connect_error_labels import label_connect_error
from gmongo.errors import AutoReconnect, OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import BOTH, OVERLOADED, RETRYABLE, bucket, in_turn, rejected
from tests.support.clients import Client
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut, silent
from tests.support.wait import eventually


def hellos(deployment: Deployment) -> list[dict[str, Any]]:
    return [each.body for each in deployment.commands.named("hello", "ismaster", "isMaster") if "client" in each.body]


# The handshake


@pytest.mark.requirement("BP-61")
@pytest.mark.parametrize("kind", ["standalone", "replica_set", "sharded", "load_balanced"])
def test_every_handshake_says_so(kind: str) -> None:
    with getattr(Deployment, kind)() as deployment, MongoClient[Any](deployment.uri) as client:
        with gevent.Timeout(5):
            gevent.joinall([gevent.spawn(client.db.c.insert_one, {}) for _ in range(4)], raise_error=True)
        connections = {command.connection for command in deployment.commands}
        eventually(lambda: len(hellos(deployment)) >= len(connections))
        assert all(command["backpressure"] is True for command in hellos(deployment))


@pytest.mark.requirement("BP-61")
def test_monitors_say_so_at_first_only() -> None:
    with ScriptedServer(streams=True) as server, MongoClient[Any](server.name) as client:
        client.admin.command("ping")
        eventually(lambda: len(server.commands("handshake")) >= 3)  # monitor, round trips, pool
        assert all(command["backpressure"] is True for command in server.commands("handshake"))
        assert server.commands("hello")
        assert all("backpressure" not in command for command in server.commands("hello"))


@pytest.mark.requirement("BP-62")
@pytest.mark.parametrize("answer", [{}, {"backpressure": True}, {"backpressure": False}])
def test_the_answer_changes_nothing(
    connect: Callable[..., Client], sleeps: list[float], answer: dict[str, Any]
) -> None:
    with ScriptedReplicaSet(1) as members:
        (server,) = members.members
        server.hello_extra.update(answer)
        client = connect(f"mongodb://{server.name}")
        in_turn(server, "ping", rejected())
        client.db.command("ping")
        assert sleeps == [0.1]


# Connections that are not let in


@pytest.mark.requirement("BP-05", "BP-07", "BP-72")
@pytest.mark.parametrize(
    "run",
    [
        lambda client: client.db.command("ping"),
        lambda client: client.db.c.insert_one({"_id": 1}),
        lambda client: client.db.c.find_one(),
    ],
    ids=["ping", "insert", "find"],
)
def test_it_is_tried_again(
    server: ScriptedServer, connect: Callable[..., Client], sleeps: list[float], run: Callable[[Client], Any]
) -> None:
    client = connect(f"mongodb://{server.name}", serverMonitoringMode="poll")
    eventually(lambda: client.nodes)
    server.fail("handshake", cut(0))
    run(client)
    assert sleeps == [0.1]
    assert bucket(client) == 1000
    assert client.retry_stats()["retries"] == 1


@pytest.mark.requirement("BP-05", "BP-06", "BP-72")
@pytest.mark.parametrize("fault", [cut(0), silent], ids=["closed", "silent"])
def test_a_streaming_monitor_does_not_hold_it_up(
    server: ScriptedServer, connect: Callable[..., Client], sleeps: list[float], fault: Any
) -> None:
    client = connect(f"mongodb://{server.name}", connectTimeoutMS=200)
    eventually(lambda: client.nodes)
    eventually(lambda: len(server.commands("handshake")) >= 2)  # those of the monitors are done
    server.fail("handshake", fault)
    with gevent.Timeout(2):
        client.db.command("ping")
    assert sleeps == [0.1]


@pytest.mark.requirement("BP-05")
def test_a_tls_handshake_that_is_cut_off(connect: Callable[..., Client], sleeps: list[float]) -> None:
    pytest.importorskip("trustme")
    with Deployment.standalone(tls=True) as deployment:
        client = connect(deployment, maxAdaptiveRetries=0)
        client.db.command("ping")
        deployment.rate_limit(connections=1e-6, burst=0)
        deployment.members[0].drop_connections()
        for _ in range(3):
            with pytest.raises(AutoReconnect) as raised:
                client.db.command("ping")
            if raised.value.has_error_label(OVERLOADED):
                break
        assert raised.value.has_error_label(OVERLOADED)
        assert raised.value.has_error_label(RETRYABLE)


@pytest.mark.requirement("BP-05")
@pytest.mark.parametrize("cause", [ConnectionResetError(), TimeoutError(), EOFError(), ssl.SSLEOFError()])
def test_what_is_labelled(cause: Exception) -> None:
    error = AutoReconnect("connection closed")
    error.__cause__ = cause
    label_connect_error(error)
    assert all(error.has_error_label(label) for label in BOTH)


@pytest.mark.requirement("BP-05")
@pytest.mark.parametrize(
    "error",
    [OperationFailure("authentication failed", 18), KeyboardInterrupt(), gevent.Timeout()],
    ids=["authentication", "interrupt", "foreign time-out"],
)
def test_what_is_not_labelled(error: BaseException) -> None:
    label_connect_error(error)
    assert not getattr(error, "_error_labels", None)


def test_a_password_that_is_wrong_is_tried_once(connect: Callable[..., Client], sleeps: list[float]) -> None:
    with Deployment.standalone(users={"u": "p"}) as deployment:
        client = connect(f"mongodb://u:wrong@{deployment.members[0].address}/")
        with pytest.raises(OperationFailure) as raised:
            client.db.command("ping")
        assert not raised.value.has_error_label(OVERLOADED)
        assert (sleeps, client.retry_stats()["retries"]) == ([], 0)
