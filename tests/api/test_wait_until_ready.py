"""``MongoClient.wait_until_ready`` waits for connections, and raises an error after its timeout."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

import gmongo
from gmongo import MongoClient
from gmongo.errors import OperationFailure, ServerSelectionTimeoutError
from gmongo.testing import Deployment
from tests.support.fail_points import fail

TIMEOUT = 0.2
NOT_READY_PATTERN = r"not ready within the limit of 200 ms \(timeout of wait_until_ready\): "


def test_ready_client_has_min_pool_size_connections_to_each_available_server() -> None:
    with (
        Deployment.replica_set(3) as deployment,
        MongoClient(deployment.uri, minPoolSize=3, readPreference="secondary") as client,
    ):
        client.wait_until_ready()
        ready = [pool for pool in client.pool_stats() if pool["state"] == "ready"]
        assert ready and all(pool["available"] >= 3 for pool in ready)
        assert deployment.commands.named("ping")[0].member != deployment.members.primary.address


def test_wait_until_ready_ignores_ready_pool_of_unknown_server(monkeypatch: pytest.MonkeyPatch) -> None:
    # The pool of a former primary stays ready while the server is Unknown.
    former = {"address": ("b", 27017), "state": "ready", "total": 1, "pending": 1}
    with Deployment.standalone() as deployment, MongoClient(deployment.uri, minPoolSize=1) as client:
        pool_stats = client.pool_stats
        monkeypatch.setattr(client, "pool_stats", lambda: [*pool_stats(), former])
        client.wait_until_ready(timeout=5)


def test_wait_until_ready_counts_no_pending_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri, minPoolSize=1) as client:
        client.wait_until_ready()
        (stats,) = client.pool_stats()
        monkeypatch.setattr(client, "pool_stats", lambda: [{**stats, "total": 5, "pending": 5}])
        with pytest.raises(ServerSelectionTimeoutError, match="has 0 of them"):
            client.wait_until_ready(TIMEOUT)


def test_wait_until_ready_continues_until_server_starts() -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client:
        deployment.members[0].kill()
        gevent.spawn_later(0.05, deployment.members[0].restart)
        client.wait_until_ready()


def test_wait_until_ready_repeats_ping_after_network_error() -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client:
        fail(deployment, "ping", times=2, closeConnection=True)
        client.wait_until_ready()
        assert len(deployment.commands.named("ping")) == 3
        fail(deployment, "ping", times=1, closeConnection=True)
        client.wait_until_ready(timeout=0)  # 0 means no limit
        assert len(deployment.commands.named("ping")) == 5


def test_wrong_password_raises_operation_failure() -> None:
    with Deployment.standalone(users={"ada": "secret"}) as deployment:
        host = deployment.members[0].address
        with (
            MongoClient(f"mongodb://ada:wrong@{host}/", minPoolSize=2) as client,
            pytest.raises(OperationFailure, match=r"Authentication failed \(user 'ada'"),
        ):
            client.wait_until_ready()


@pytest.mark.parametrize(
    ("fault", "options", "message"),
    [
        ("kill", {}, r"of the limit of 200 ms \(timeout of wait_until_ready\)"),
        ("freeze", {}, f"{NOT_READY_PATTERN}.*no complete reply"),
        (
            "delay",
            {"minPoolSize": 50},
            rf"{NOT_READY_PATTERN}minPoolSize is 50 connections, and .*:\d+ has \d+ of them",
        ),
    ],
)
def test_timeout_error_of_wait_until_ready_contains_reason(fault: str, options: dict[str, Any], message: str) -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri, **options) as client:
        client.admin.command("ping")
        getattr(deployment.members[0], fault)(*([0.03] if fault == "delay" else []))
        with pytest.raises(ServerSelectionTimeoutError, match=rf"{message}(?!\w)"):
            client.wait_until_ready(timeout=TIMEOUT)


def test_default_timeout_of_wait_until_ready_is_server_selection_timeout() -> None:
    with (
        MongoClient("127.0.0.1", 1, serverSelectionTimeoutMS=50, timeoutMS=1) as client,
        pytest.raises(ServerSelectionTimeoutError, match=r"^127.*limit of 50 ms \(serverSelectionTimeoutMS\)"),
    ):
        client.wait_until_ready()


def test_shorter_timeout_block_limits_wait_until_ready() -> None:
    with (
        MongoClient("127.0.0.1", 1) as client,
        gmongo.timeout(0.05),
        pytest.raises(ServerSelectionTimeoutError, match=r"limit of 50 ms \(gmongo.timeout\)"),
    ):
        client.wait_until_ready(timeout=30)


@pytest.mark.parametrize(("value", "error_class"), [("5", TypeError), (True, TypeError), (-1, ValueError)])
def test_invalid_timeout_of_wait_until_ready_raises(value: Any, error_class: type[Exception]) -> None:
    with MongoClient("127.0.0.1", 1) as client, pytest.raises(error_class, match="timeout must be"):
        client.wait_until_ready(timeout=value)
