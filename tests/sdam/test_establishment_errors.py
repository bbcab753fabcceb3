"""How an error in each step of connection establishment affects the server description and the
pool.

Most network errors before the end of the hello have overload labels. Neither an error with overload
labels nor the end of a `gmongo.timeout` changes the server description or the pool. All other errors
mark the server Unknown and clear the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest
from bson.errors import BSONError

import gmongo
from gmongo.errors import AutoReconnect, NetworkTimeout, OperationFailure
from gmongo.wire.transport import TransportError
from tests.sdam.harness import pool_stats_of
from tests.support.clients import Client
from tests.support.proxies import Socks5Proxy
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cut_reply, send_malformed_reply, send_no_reply
from tests.support.wait import eventually

OVERLOAD_LABELS = {"SystemOverloadedError", "RetryableError"}
NO_USER = {"ok": 0, "code": 18, "errmsg": "no such user"}
LOGIN_OPTIONS = {"username": "ann", "password": "secret", "authMechanism": "PLAIN"}


@pytest.fixture
def server() -> Any:
    with ScriptedServer() as server:
        server.replies["saslStart"] = {"ok": 1, "conversationId": 1, "done": True, "payload": b""}
        yield server


def fail_hello_with_error(server: ScriptedServer) -> None:
    server.hello_edit = lambda _command, _reply: {"ok": 0, "code": 8000, "errmsg": "not now"}


def fail_hello_with_overload_error(server: ScriptedServer) -> None:
    labels = sorted(OVERLOAD_LABELS)
    server.hello_edit = lambda _command, _reply: {"ok": 0, "code": 462, "errmsg": "busy", "errorLabels": labels}


# For each step and fault: the function that causes the fault, and the class of the expected error.
# The flags state whether the error has overload labels, and whether the server becomes Unknown.
FAILURES: dict[str, tuple[Callable[[ScriptedServer], Any], type[Exception], bool, bool]] = {
    "connect: refused": (lambda server: server.stop(), AutoReconnect, True, False),
    "hello: closed": (lambda server: server.fail("handshake", cut_reply(0)), AutoReconnect, True, False),
    "hello: half": (lambda server: server.fail("handshake", cut_reply(20)), AutoReconnect, True, False),
    "hello: silent": (lambda server: server.fail("handshake", send_no_reply), NetworkTimeout, True, False),
    "hello: overload": (fail_hello_with_overload_error, OperationFailure, True, False),
    "hello: refused": (fail_hello_with_error, OperationFailure, False, True),
    "hello: garbage": (lambda server: server.fail("handshake", send_malformed_reply), BSONError, False, True),
    "authentication: closed": (lambda server: server.fail("saslStart", cut_reply(0)), AutoReconnect, False, True),
    "authentication: half": (lambda server: server.fail("saslStart", cut_reply(20)), AutoReconnect, False, True),
    "authentication: silent": (lambda server: server.fail("saslStart", send_no_reply), NetworkTimeout, False, True),
    "authentication: refused": (lambda server: server.replies.update(saslStart=NO_USER), OperationFailure, False, True),
}


def client_with_known_server(connect: Any, server: ScriptedServer, recorder: Recorder, **options: Any) -> Client:
    """Return a client that has discovered the server, and whose pool has no connections."""
    options = {"heartbeatFrequencyMS": 60_000, "maxAdaptiveRetries": 0, "retryReads": False, **LOGIN_OPTIONS, **options}
    client: Client = connect(server, **options)
    recorder.wait_for("PoolReady")
    return client


def server_events(recorder: Recorder) -> list[str]:
    return recorder.lines_starting_with("ServerDescriptionChanged Unknown", "PoolCleared", "HeartbeatFailed")


@pytest.mark.requirement("CMAP-96", "SM-31", "BP-05", "BP-06")
@pytest.mark.usefixtures("long_minimum_pause")
@pytest.mark.parametrize("failure", FAILURES)
def test_connection_error_of_operation_has_overload_labels_or_clears_pool(
    connect: Any, server: Any, recorder: Recorder, failure: str
) -> None:
    cause_failure, error_class, has_labels, clears_pool = FAILURES[failure]
    client = client_with_known_server(connect, server, recorder, connectTimeoutMS=150)
    cause_failure(server)
    with pytest.raises(error_class) as raised:
        client.db.c.find_one()
    assert (getattr(raised.value, "_error_labels", set()) >= OVERLOAD_LABELS) is has_labels
    assert server_events(recorder) == (["ServerDescriptionChanged Unknown", "PoolCleared"] if clears_pool else [])
    assert recorder.lines_starting_with("ConnectionClosed", "ConnectionCheckOutFailed") == [
        "ConnectionClosed",
        "ConnectionCheckOutFailed",
    ]
    stats = pool_stats_of(client, server)
    assert (stats["state"], stats["total"]) == ("paused" if clears_pool else "ready", 0)


@pytest.mark.requirement("CMAP-96", "SM-31")
@pytest.mark.usefixtures("long_minimum_pause")
@pytest.mark.parametrize("stage", ["handshake", "saslStart"])
def test_application_timeout_during_connection_establishment_keeps_server_known(
    connect: Any, server: Any, recorder: Recorder, stage: str
) -> None:
    client = client_with_known_server(connect, server, recorder)
    server.fail(stage, send_no_reply)
    with pytest.raises(NetworkTimeout) as raised, gmongo.timeout(0.05):
        client.db.c.find_one()
    assert not raised.value._error_labels & OVERLOAD_LABELS
    assert server_events(recorder) == []
    assert pool_stats_of(client, server)["state"] == "ready"
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@pytest.mark.requirement("BP-05")
@pytest.mark.usefixtures("long_minimum_pause")
def test_proxy_refusal_adds_no_overload_labels(connect: Any, server: Any, recorder: Recorder) -> None:
    with Socks5Proxy() as proxy:
        client = client_with_known_server(connect, server, recorder, proxyHost="127.0.0.1", proxyPort=proxy.port)
        proxy.refuse_with = 5
        with pytest.raises(AutoReconnect, match="SOCKS5") as raised:
            client.db.c.find_one()
    assert not raised.value._error_labels & OVERLOAD_LABELS
    assert server_events(recorder) == ["ServerDescriptionChanged Unknown", "PoolCleared"]


@pytest.mark.requirement("CMAP-85")
def test_connect_timeout_limits_sum_of_handshake_steps(connect: Any, server: Any, recorder: Recorder) -> None:
    """Check only that the find ends between two timers, because any timer may fire late."""
    client = client_with_known_server(connect, server, recorder, connectTimeoutMS=400)

    def reply_after_delay(peer: Any, message: bytes) -> None:
        gevent.sleep(0.3)
        peer.send(message)

    server.fail("handshake", reply_after_delay)
    server.fail("saslStart", send_no_reply)
    finding = gevent.spawn(client.db.c.find_one)
    ready_states: list[bool] = []
    gevent.spawn_later(0.38, lambda: ready_states.append(finding.ready()))
    gevent.spawn_later(0.6, lambda: ready_states.append(finding.ready()))
    eventually(lambda: len(ready_states) == 2)
    assert ready_states == [False, True]
    assert isinstance(finding.exception, NetworkTimeout)


@pytest.mark.requirement("BP-05")
@pytest.mark.usefixtures("long_minimum_pause")
@pytest.mark.parametrize("dns_error", ["unknown", "timeout"])
def test_dns_failure_or_timeout_adds_no_overload_labels(
    connect: Any, server: Any, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, dns_error: str
) -> None:
    client = client_with_known_server(connect, server, recorder, connectTimeoutMS=100)

    def resolve(*_arguments: Any) -> Any:
        if dns_error == "timeout":
            gevent.sleep(10)
        raise TransportError("Name or service not known")

    monkeypatch.setattr("gmongo.wire.connect.resolve", resolve)
    with pytest.raises(AutoReconnect) as raised:
        client.db.c.find_one()
    assert not raised.value._error_labels & OVERLOAD_LABELS
    assert server_events(recorder) == ["ServerDescriptionChanged Unknown", "PoolCleared"]
