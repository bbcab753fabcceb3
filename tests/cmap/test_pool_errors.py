"""Classes and texts of pool errors (CMAP-232 to CMAP-236)."""

from __future__ import annotations

from typing import Any

import pytest

import gmongo
from gmongo.errors import (
    AutoReconnect,
    ConnectionFailure,
    PoolClearedError,
    PoolClosedError,
    PyMongoError,
    WaitQueueTimeoutError,
)


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


@pytest.mark.requirement("CMAP-232")
def test_wait_queue_timeout_error_names_operation_time_limit(new_client: Any) -> None:
    client = new_client(maxPoolSize=1)
    client.db.c.find_one()
    client._topology.pools()[0].check_out()
    with (
        pytest.raises(WaitQueueTimeoutError, match=r"left of the limit of 20 ms \(gmongo.timeout\): \d"),
        gmongo.timeout(0.02),
    ):
        client.db.c.find_one()
