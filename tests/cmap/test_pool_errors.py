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
from gmongo.execution.retry import may_retry_read, may_retry_write


@pytest.mark.requirement("CMAP-232", "CMAP-233")
def test_pool_errors_are_connection_failures() -> None:
    for kind in (PoolClosedError, PoolClearedError, WaitQueueTimeoutError):
        assert issubclass(kind, ConnectionFailure)
        assert issubclass(kind, PyMongoError)
    assert issubclass(PoolClearedError, AutoReconnect)


@pytest.mark.requirement("CMAP-52", "CMAP-55", "CMAP-115", "CMAP-147", "CMAP-235")
def test_pool_cleared_error_is_retryable() -> None:
    error = PoolClearedError("cleared")
    assert may_retry_read(error)
    assert not error.timeout
    from gmongo.execution.retry import label_write_error

    label_write_error(error, 25, False)
    assert may_retry_write(error)


@pytest.mark.requirement("CMAP-232", "CMAP-235")
@pytest.mark.parametrize(("cause", "cause_text"), [(AutoReconnect("10.0.0.1: gone"), "10.0.0.1: gone"), (None, "None")])
def test_pool_cleared_error_names_cause(new_pool: Any, server: Any, cause: Any, cause_text: str) -> None:
    pool = new_pool()
    pool.clear(cause)
    with pytest.raises(PoolClearedError) as raised:
        pool.check_out()
    assert str(raised.value) == (
        f"Connection pool for {server.name} was cleared because another operation failed with: {cause_text}"
    )
    assert raised.value.address == server.address


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
