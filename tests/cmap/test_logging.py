"""Log messages of pools and connections (CMAP-205 to CMAP-231)."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from gmongo.errors import AutoReconnect, PoolClearedError, PoolClosedError, WaitQueueTimeoutError
from tests.cmap.harness import fill_pool, make_pool
from tests.support.pools import checked_out
from tests.support.server import cut_reply

LOGGER_NAME = "gmongo.connection"
# For each event, the `message` field of the log record. The keys omit "Connection", "CheckOut" and
# "Event".
MESSAGES_BY_EVENT = {
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
def debug_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger=LOGGER_NAME)
    return caplog


def log_records(debug_log: Any, message: str = "") -> list[Any]:
    """Return the records of the logger `LOGGER_NAME` with the given `message` field.
    If `message` is empty, return all records of this logger.
    """
    pool_records = [record for record in debug_log.records if record.name == LOGGER_NAME]
    return [record for record in pool_records if message in ("", record.structured["message"])]


def log_fields(record: Any) -> dict[str, Any]:
    """Return the fields of a log record, except the message and the server address."""
    return {
        name: value for name, value in record.structured.items() if name not in ("message", "serverHost", "serverPort")
    }


def last_log_record(debug_log: Any, message: str) -> tuple[str, dict[str, Any]]:
    """Return the text and the fields of the last log record with the given `message` field."""
    record = log_records(debug_log, message)[-1]
    return record.getMessage(), log_fields(record)


@pytest.mark.requirement("CMAP-48", "CMAP-49", "CMAP-205", "CMAP-206", "CMAP-207", "CMAP-208", "CMAP-211", "CMAP-212")
def test_each_pool_event_has_a_log_message(new_pool: Any, server: Any, recorder: Any, debug_log: Any) -> None:
    pool = new_pool(clears_on_failure=True)
    fill_pool(pool, 1)
    server.fail("handshake", cut_reply(0))
    pool.check_out()
    with pytest.raises(AutoReconnect):
        pool.check_out()
    pool.close()
    messages = [record.structured["message"] for record in log_records(debug_log)]
    kinds = [
        type(event).__name__.removesuffix("Event").removeprefix("Connection").removeprefix("CheckOut")
        for event in recorder.events
    ]
    assert messages == [MESSAGES_BY_EVENT[kind] for kind in kinds]
    assert set(messages) == set(MESSAGES_BY_EVENT.values())
    assert {record.levelno for record in log_records(debug_log)} == {logging.DEBUG}
    for record in log_records(debug_log):
        assert (record.structured["serverHost"], record.structured["serverPort"]) == server.address
        assert type(record.structured["serverPort"]) is int


@pytest.mark.requirement("CMAP-211", "CMAP-212")
def test_log_messages_of_unix_domain_socket_have_no_port(tmp_path: Path, recorder: Any, debug_log: Any) -> None:
    path = str(tmp_path / "mongodb.sock")
    pool = make_pool((path, None), recorder)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        with pytest.raises(AutoReconnect):
            pool.check_out()  # fails, because no server listens on the socket
    pool.close()
    for record in log_records(debug_log):
        assert record.structured["serverHost"] == path
        assert "serverPort" not in record.structured
    assert log_records(debug_log)[0].getMessage() == f"Connection pool created for {path}"


@pytest.mark.requirement("CMAP-213")
def test_log_messages_contain_default_port(new_client: Any, debug_log: Any) -> None:
    new_client("mongodb://127.0.0.1")
    record = log_records(debug_log, "Connection pool created")[-1]
    assert (record.structured["serverHost"], record.structured["serverPort"]) == ("127.0.0.1", 27017)


@pytest.mark.requirement("CMAP-214", "CMAP-210")
def test_pool_created_message_has_specified_options(new_client: Any, server: Any, debug_log: Any) -> None:
    specified = {
        "maxIdleTimeMS": 5000,
        "minPoolSize": 0,
        "maxPoolSize": 100,
        "maxConnecting": 2,
        "waitQueueTimeoutMS": 500,
    }
    new_client(**dict(reversed(specified.items())))
    option_text = ", ".join(f"{name}={value}" for name, value in specified.items())
    assert last_log_record(debug_log, "Connection pool created") == (
        f"Connection pool created for {server.name} using options {option_text}",
        specified,
    )
    new_client()
    assert last_log_record(debug_log, "Connection pool created") == (
        f"Connection pool created for {server.name}",
        {},
    )


LogMessage = tuple[str, dict[str, Any]]  # text, fields
STALE_REASON = "Connection became stale because the pool was cleared"
IDLE_REASON = "Connection has been available but unused for longer than the configured max idle time"
TIMEOUT_REASON = "Wait queue timeout elapsed without a connection becoming available"
CLOSED_REASON = "Connection pool was closed"
STARTED_MESSAGE: LogMessage = ("Checkout started for connection to {name}", {})


def connection_message(number: int, action: str, suffix: str = "", **fields: Any) -> LogMessage:
    text = f"Connection {action}: address={{name}}, driver-generated ID={number}{suffix}"
    return text, {"driverConnectionId": number, **fields}


def new_connection_messages(number: int) -> list[LogMessage]:
    """Return the log messages of a check-out that creates a connection, except
    `STARTED_MESSAGE`.
    """
    return [
        connection_message(number, "created"),
        connection_message(number, "ready", ", established in={ms} ms"),
        connection_message(number, "checked out", ", duration={ms} ms"),
    ]


def closed_connection_message(number: int, reason: str) -> LogMessage:
    return connection_message(number, "closed", f". Reason: {reason}", reason=reason)


def failed_check_out_message(reason: str) -> LogMessage:
    return f"Checkout failed for connection to {{name}}. Reason: {reason}. Duration: {{ms}} ms", {"reason": reason}


EXPECTED_LOG: list[LogMessage] = [
    STARTED_MESSAGE,
    *new_connection_messages(1),
    ("Connection pool for {name} cleared", {}),
    connection_message(1, "checked in"),
    closed_connection_message(1, STALE_REASON),
    ("Connection pool ready for {name}", {}),
    STARTED_MESSAGE,
    *new_connection_messages(2),
    connection_message(2, "checked in"),
    STARTED_MESSAGE,
    closed_connection_message(2, IDLE_REASON),
    *new_connection_messages(3),
    STARTED_MESSAGE,
    failed_check_out_message(TIMEOUT_REASON),
    connection_message(3, "checked in"),
    closed_connection_message(3, CLOSED_REASON),
    ("Connection pool closed for {name}", {}),
    STARTED_MESSAGE,
    failed_check_out_message(CLOSED_REASON),
]


@pytest.mark.requirement("CMAP-215", "CMAP-216", "CMAP-217", "CMAP-218", "CMAP-219", "CMAP-220", "CMAP-221", "CMAP-222")
@pytest.mark.requirement("CMAP-224", "CMAP-225", "CMAP-226", "CMAP-227", "CMAP-229", "CMAP-230", "CMAP-231")
def test_pool_log_messages_have_specified_texts_and_fields(
    new_pool: Any, server: Any, recorder: Any, debug_log: Any
) -> None:
    pool = new_pool(max_pool_size=1, max_idle_time=60, wait_queue_timeout=0.01)
    debug_log.clear()
    connection = pool.check_out()
    pool.clear()
    pool.check_in(connection)
    pool.ready()
    (connection,) = fill_pool(pool, 1)
    connection.idle_since -= 1000
    connection = pool.check_out()
    with pytest.raises(WaitQueueTimeoutError):
        pool.check_out()
    pool.check_in(connection)
    pool.close()
    with pytest.raises(PoolClosedError):
        pool.check_out()
    durations = [int(event.duration * 1000) for event in recorder.events if hasattr(event, "duration")]
    expected = []
    for text, fields in EXPECTED_LOG:
        timing = {"durationMS": durations.pop(0)} if "{ms}" in text else {}
        expected.append((text.format(name=server.name, ms=timing.get("durationMS")), {**fields, **timing}))
    assert [(record.getMessage(), log_fields(record)) for record in log_records(debug_log)] == expected


@pytest.mark.requirement("CMAP-216")
def test_pool_cleared_message_names_service(new_pool: Any, server: Any, debug_log: Any) -> None:
    service = ObjectId()
    new_pool(load_balanced=True).clear(service_id=service)
    assert last_log_record(debug_log, "Connection pool cleared") == (
        f"Connection pool for {server.name} cleared for serviceId {service}",
        {"serviceId": str(service)},
    )


@pytest.mark.requirement("CMAP-220", "CMAP-223")
def test_connection_closed_message_contains_error(new_pool: Any, server: Any, debug_log: Any) -> None:
    pool, error = new_pool(), ConnectionError("lost")
    with checked_out(pool) as connection:
        connection.error = error
    reason = "An error occurred while using the connection"
    text, fields_of_record = last_log_record(debug_log, "Connection closed")
    assert fields_of_record == {"driverConnectionId": 1, "reason": reason, "error": error}
    assert text.startswith(
        f"Connection closed: address={server.name}, driver-generated ID=1. Reason: {reason}. Error: "
    )
    assert "lost" in text


@pytest.mark.requirement("CMAP-226", "CMAP-228", "CMAP-48")
@pytest.mark.parametrize("pool_is_paused", [False, True])
def test_check_out_failed_message_contains_error(
    new_pool: Any, server: Any, recorder: Any, debug_log: Any, pool_is_paused: bool
) -> None:
    pool = new_pool(ready=not pool_is_paused)
    server.fail("handshake", cut_reply(0))
    with pytest.raises(AutoReconnect) as raised:
        pool.check_out()
    assert isinstance(raised.value, PoolClearedError) is pool_is_paused
    reason = "An error occurred while trying to establish a new connection"
    duration = int(recorder.events_named("Failed")[0].duration * 1000)
    text, fields_of_record = last_log_record(debug_log, "Connection checkout failed")
    assert fields_of_record == {"reason": reason, "durationMS": duration, "error": raised.value}
    assert text.startswith(f"Checkout failed for connection to {server.name}. Reason: {reason}. Error: ")
    assert text.endswith(f". Duration: {duration} ms")
