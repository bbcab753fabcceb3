"""Log messages (CMAP-205 to CMAP-231)."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from gmongo.cmap.pool import Pool
from gmongo.cmap.pool_settings import PoolSettings
from gmongo.errors import AutoReconnect, PoolClearedError, PoolClosedError, WaitQueueTimeoutError
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from tests.cmap.harness import NO_UPKEEP, Owner, filled, make_pool
from tests.support.pools import checked_out
from tests.support.server import cut

LOGGER = "gmongo.connection"
# Which event each message stands for.
OF_EVENTS = {
    "PoolCreated": "Connection pool created",
    "PoolReady": "Connection pool ready",
    "PoolCleared": "Connection pool cleared",
    "PoolClosed": "Connection pool closed",
    "Created": "Connection created",
    "Ready": "Connection ready",
    "Closed": "Connection closed",
    "Started": "Connection checkout started",
    "Failed": "Connection checkout failed",
    "CheckedOut": "Connection checked out",
    "CheckedIn": "Connection checked in",
}


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger=LOGGER)
    return caplog


def records(log: Any, message: str = "") -> list[Any]:
    """The records of that message; of all."""
    ours = [record for record in log.records if record.name == LOGGER]
    return [record for record in ours if message in ("", record.structured["message"])]


def fields(record: Any) -> dict[str, Any]:
    """What a record says beyond its message and the address."""
    return {
        name: value for name, value in record.structured.items() if name not in ("message", "serverHost", "serverPort")
    }


def last(log: Any, message: str) -> tuple[str, dict[str, Any]]:
    """Text and fields of the last record of that message."""
    record = records(log, message)[-1]
    return record.getMessage(), fields(record)


@pytest.mark.requirement("CMAP-48", "CMAP-49", "CMAP-205", "CMAP-206", "CMAP-207", "CMAP-208", "CMAP-211", "CMAP-212")
def test_a_message_for_every_event(new_pool: Any, server: Any, recorder: Any, log: Any) -> None:
    pool = new_pool(clears=True)
    filled(pool, 1)
    server.fail("handshake", cut(0))
    pool.check_out()
    with pytest.raises(AutoReconnect):
        pool.check_out()
    pool.close()
    messages = [record.structured["message"] for record in records(log)]
    kinds = [
        type(event).__name__.removesuffix("Event").removeprefix("Connection").removeprefix("CheckOut")
        for event in recorder.events
    ]
    assert messages == [OF_EVENTS[kind] for kind in kinds]
    assert set(messages) == set(OF_EVENTS.values())
    assert {record.levelno for record in records(log)} == {logging.DEBUG}
    for record in records(log):
        assert (record.structured["serverHost"], record.structured["serverPort"]) == server.address
        assert type(record.structured["serverPort"]) is int


@pytest.mark.requirement("CMAP-206")
def test_nothing_is_logged_unless_it_is_wanted(new_pool: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO, logger=LOGGER)
    filled(new_pool(), 1)
    assert not records(caplog)


@pytest.mark.requirement("CMAP-205", "CMAP-49")
def test_messages_need_no_listener(server: Any, log: Any) -> None:
    owner = Owner()
    from gmongo.cmap.pool_settings import ConnectionSettings

    pool = Pool(
        server.address,
        PoolSettings(upkeep_interval=NO_UPKEEP),
        ConnectionSettings(metadata={"driver": {"name": "tests"}}),
        PoolEvents(server.address, (), Delivery(), None, silent=False),
        owner,
    )
    owner.pool = pool
    pool.ready()
    filled(pool, 1)
    pool.close()
    assert [record.structured["message"] for record in records(log)] == [
        OF_EVENTS[kind]
        for kind in ("PoolCreated", "PoolReady", "Started", "Created", "Ready", "CheckedOut", "CheckedIn", "Closed",
                     "PoolClosed")
    ]  # fmt: skip


@pytest.mark.requirement("CMAP-211", "CMAP-212")
def test_a_unix_domain_socket_has_no_port(tmp_path: Path, recorder: Any, log: Any) -> None:
    path = str(tmp_path / "mongodb.sock")
    pool = make_pool((path, None), recorder)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        with pytest.raises(AutoReconnect):
            pool.check_out()  # there is no listener yet
    pool.close()
    for record in records(log):
        assert record.structured["serverHost"] == path
        assert "serverPort" not in record.structured
    assert records(log)[0].getMessage() == f"Connection pool created for {path}"


@pytest.mark.requirement("CMAP-213")
def test_the_default_port_is_shown(new_client: Any, log: Any) -> None:
    new_client("mongodb://127.0.0.1")
    record = records(log, "Connection pool created")[-1]
    assert (record.structured["serverHost"], record.structured["serverPort"]) == ("127.0.0.1", 27017)


@pytest.mark.requirement("CMAP-214", "CMAP-210")
def test_the_pool_was_created(new_client: Any, server: Any, log: Any) -> None:
    given = {"maxIdleTimeMS": 5000, "minPoolSize": 0, "maxPoolSize": 100, "maxConnecting": 2, "waitQueueTimeoutMS": 500}
    new_client(**given)
    assert last(log, "Connection pool created")[1] == given
    new_client()
    assert last(log, "Connection pool created") == (f"Connection pool created for {server.name}", {})


@pytest.mark.requirement("CMAP-214")
def test_the_text_of_the_creation(new_client: Any, server: Any, log: Any) -> None:
    new_client(waitQueueTimeoutMS=500, maxConnecting=2, maxPoolSize=100, minPoolSize=0, maxIdleTimeMS=5000)
    assert last(log, "Connection pool created")[0] == (
        f"Connection pool created for {server.name} using options maxIdleTimeMS=5000, minPoolSize=0, "
        "maxPoolSize=100, maxConnecting=2, waitQueueTimeoutMS=500"
    )


@pytest.mark.requirement("CMAP-215", "CMAP-216", "CMAP-217")
def test_ready_cleared_closed(new_pool: Any, server: Any, log: Any) -> None:
    pool = new_pool()
    pool.clear()
    pool.close()
    assert last(log, "Connection pool ready") == (f"Connection pool ready for {server.name}", {})
    assert last(log, "Connection pool cleared") == (f"Connection pool for {server.name} cleared", {})
    assert last(log, "Connection pool closed") == (f"Connection pool closed for {server.name}", {})


@pytest.mark.requirement("CMAP-216")
def test_a_service_was_cleared(new_pool: Any, server: Any, log: Any) -> None:
    service = ObjectId()
    new_pool(load_balanced=True).clear(service_id=service)
    assert last(log, "Connection pool cleared") == (
        f"Connection pool for {server.name} cleared for serviceId {service}",
        {"serviceId": str(service)},
    )


@pytest.mark.requirement("CMAP-218", "CMAP-219", "CMAP-225", "CMAP-230", "CMAP-231")
def test_the_life_of_a_connection(new_pool: Any, server: Any, recorder: Any, log: Any) -> None:
    filled(new_pool(), 1)
    where = f"address={server.name}, driver-generated ID=1"
    ready, out = (int(recorder.of(kind)[0].duration * 1000) for kind in ("Ready", "CheckedOut"))
    assert last(log, "Connection created") == (f"Connection created: {where}", {"driverConnectionId": 1})
    assert last(log, "Connection ready") == (
        f"Connection ready: {where}, established in={ready} ms",
        {"driverConnectionId": 1, "durationMS": ready},
    )
    assert last(log, "Connection checkout started") == (f"Checkout started for connection to {server.name}", {})
    assert last(log, "Connection checked out") == (
        f"Connection checked out: {where}, duration={out} ms",
        {"driverConnectionId": 1, "durationMS": out},
    )
    assert last(log, "Connection checked in") == (f"Connection checked in: {where}", {"driverConnectionId": 1})


def _stale(pool: Pool) -> None:
    connection = pool.check_out()
    pool.clear()
    pool.check_in(connection)


def _idle(pool: Pool) -> None:
    (connection,) = filled(pool, 1)
    connection.idle_since -= 1000
    pool.check_out()


def _closed(pool: Pool) -> None:
    filled(pool, 1)
    pool.close()


REASONS = [
    (_stale, "Connection became stale because the pool was cleared"),
    (_idle, "Connection has been available but unused for longer than the configured max idle time"),
    (_closed, "Connection pool was closed"),
]


@pytest.mark.requirement("CMAP-220", "CMAP-221", "CMAP-222", "CMAP-224")
@pytest.mark.parametrize(("act", "reason"), REASONS)
def test_why_a_connection_was_closed(new_pool: Any, server: Any, log: Any, act: Any, reason: str) -> None:
    act(new_pool(max_idle_time=60))
    assert last(log, "Connection closed") == (
        f"Connection closed: address={server.name}, driver-generated ID=1. Reason: {reason}",
        {"driverConnectionId": 1, "reason": reason},
    )


@pytest.mark.requirement("CMAP-220", "CMAP-223")
def test_an_error_closed_a_connection(new_pool: Any, server: Any, log: Any) -> None:
    pool, error = new_pool(), ConnectionError("lost")
    with checked_out(pool) as connection:
        connection.error = error
    reason = "An error occurred while using the connection"
    text, found = last(log, "Connection closed")
    assert found == {"driverConnectionId": 1, "reason": reason, "error": error}
    assert text.startswith(
        f"Connection closed: address={server.name}, driver-generated ID=1. Reason: {reason}. Error: "
    )
    assert "lost" in text


@pytest.mark.requirement("CMAP-226", "CMAP-227")
def test_a_check_out_timed_out(new_pool: Any, server: Any, recorder: Any, log: Any) -> None:
    pool = new_pool(max_pool_size=1, wait_queue_timeout=0.01)
    pool.check_out()
    with pytest.raises(WaitQueueTimeoutError):
        pool.check_out()
    reason = "Wait queue timeout elapsed without a connection becoming available"
    duration = int(recorder.of("Failed")[0].duration * 1000)
    assert last(log, "Connection checkout failed") == (
        f"Checkout failed for connection to {server.name}. Reason: {reason}. Duration: {duration} ms",
        {"reason": reason, "durationMS": duration},
    )


@pytest.mark.requirement("CMAP-226", "CMAP-228", "CMAP-48")
@pytest.mark.parametrize("paused", [False, True])
def test_a_check_out_met_an_error(new_pool: Any, server: Any, recorder: Any, log: Any, paused: bool) -> None:
    pool = new_pool(ready=not paused)
    server.fail("handshake", cut(0))
    with pytest.raises(AutoReconnect) as raised:
        pool.check_out()
    assert isinstance(raised.value, PoolClearedError) is paused
    reason = "An error occurred while trying to establish a new connection"
    duration = int(recorder.of("Failed")[0].duration * 1000)
    text, found = last(log, "Connection checkout failed")
    assert found == {"reason": reason, "durationMS": duration, "error": raised.value}
    assert text.startswith(f"Checkout failed for connection to {server.name}. Reason: {reason}. Error: ")
    assert text.endswith(f". Duration: {duration} ms")


@pytest.mark.requirement("CMAP-226", "CMAP-229")
def test_a_check_out_met_a_closed_pool(new_pool: Any, log: Any) -> None:
    pool = new_pool()
    pool.close()
    with pytest.raises(PoolClosedError):
        pool.check_out()
    text, found = last(log, "Connection checkout failed")
    assert found == {"reason": "Connection pool was closed", "durationMS": found["durationMS"]}
    assert "Reason: Connection pool was closed. Duration: " in text
