"""Messages of timeout errors and pool errors (CMAP-232 to CMAP-236).

The message of a timeout error states the length and the source of the time limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

import gmongo
from gmongo import MongoClient
from gmongo.errors import (
    AutoReconnect,
    ConnectionFailure,
    NetworkTimeout,
    PoolClearedError,
    PoolClosedError,
    PyMongoError,
    WaitQueueTimeoutError,
)
from gmongo.testing import VirtualTime
from tests.cmap.harness import make_pool
from tests.support.cases import with_cases
from tests.support.server import ScriptedServer, send_no_reply


@with_cases
@pytest.mark.parametrize("operation", ["command", "find_one", "next_batch"])
def test_timeout_error_of_operation_names_option(
    options: dict[str, Any], timeout_of_block: float | None, source: str, operation: str
) -> None:
    reply = {"cursor": {"id": 5, "ns": "db.c", "firstBatch": [{}]}, "ok": 1}
    with (
        ScriptedServer({"find": reply}) as server,
        MongoClient(server.name, retryReads=False, **options) as client,
    ):
        client.db.command("ping")
        cursor = client.db.c.find()
        next(cursor)
        for name in ("find", "ping", "getMore"):
            server.fail(name, send_no_reply)
        calls: dict[str, Callable[[], Any]] = {
            "command": lambda: client.db.command("ping"),
            "find_one": client.db.c.find_one,
            "next_batch": lambda: next(cursor),
        }
        with gevent.Timeout(5), pytest.raises(NetworkTimeout) as caught:
            if timeout_of_block is None:
                calls[operation]()
            else:
                with gmongo.timeout(timeout_of_block):
                    calls[operation]()
        text = str(caught.value)
        assert text.startswith(f"{server.name}: timed out (no complete reply within ") and source in text
        assert caught.value.timeout


@pytest.mark.requirement("CMAP-232", "CMAP-233")
def test_pool_errors_are_connection_failures() -> None:
    for kind in (PoolClosedError, PoolClearedError, WaitQueueTimeoutError):
        assert issubclass(kind, ConnectionFailure)
        assert issubclass(kind, PyMongoError)
    assert issubclass(PoolClearedError, AutoReconnect)


@pytest.mark.requirement("CMAP-232", "CMAP-236")
def test_check_out_timeout_names_option_and_oldest_check_out(new_pool: Any, server: Any) -> None:
    pool = new_pool(max_pool_size=1, wait_queue_timeout=20.0)
    pool.check_out().last_command = "find"
    with pytest.raises(WaitQueueTimeoutError) as raised:
        pool.check_out()
    assert raised.value.message == "Timed out while checking out a Connection from connection pool"
    text = str(raised.value)
    assert text.startswith(raised.value.message + ". maxPoolSize: 1, connections in use by cursors: 0, ")
    assert "being established: 0 (maxConnecting: 2), waitQueueTimeoutMS: 20000 ms, longest held for 20" in text
    assert text.endswith(": find")
    assert (raised.value.address, raised.value.timeout) == (server.address, True)


@pytest.mark.parametrize("has_listener", [False, True])
def test_pool_report_shows_seconds_since_last_check_out(
    has_listener: bool, virtual_time: VirtualTime, server: Any, recorder: Any
) -> None:
    pool = make_pool(server.address, recorder if has_listener else None)
    pool.check_in(pool.check_out())
    virtual_time.advance(0.5)
    pool.check_out()
    virtual_time.advance(0.25)
    assert pool.stats()["held"][0]["seconds"] == pytest.approx(0.25, abs=0.01)
    pool.close()


@pytest.mark.requirement("CMAP-232")
def test_wait_queue_timeout_error_names_operation_time_limit(new_client: Any) -> None:
    client = new_client(maxPoolSize=1)
    client.db.c.find_one()
    client._topology.pools()[0].check_out()
    with (
        pytest.raises(WaitQueueTimeoutError, match=r"rest of the limit of 20 ms \(gmongo.timeout\): \d"),
        gmongo.timeout(0.02),
    ):
        client.db.c.find_one()
