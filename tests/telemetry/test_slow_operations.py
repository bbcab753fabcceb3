"""Log messages of slow operations contain the parts of the duration, but no values of commands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import gevent
import pytest
from opentelemetry import trace

from gmongo import MongoClient, _clock, errors
from gmongo._telemetry.slow import SlowOperations
from gmongo.execution.operation_trace import OperationTrace
from gmongo.read_preferences import Secondary
from gmongo.testing import Deployment
from tests.support.pools import checked_out
from tests.telemetry.conftest import SpanCollector, fail_once

Connect = Callable[..., MongoClient[Any]]
PART_NAMES = {"selection", "checkOut", "connecting", "server", "network", "decoding", "backOff", "driver"}


@pytest.fixture
def connect_with_slow_log(deployment: Deployment) -> Iterator[Connect]:
    """Yield a function that creates a client. The client logs operations that take at least `limit`
    milliseconds.
    """
    clients: list[MongoClient[Any]] = []

    def create_client(limit: float = 50, **options: Any) -> MongoClient[Any]:
        clients.append(MongoClient(deployment.uri, slow_operation_ms=limit, **options))
        return clients[-1]

    yield create_client
    for client in clients:
        client.close()


def slow_operation_records(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name == "gmongo.slow"]


def test_slow_operation_is_logged_without_values(
    connect_with_slow_log: Connect, deployment: Deployment, caplog: Any
) -> None:
    client = connect_with_slow_log()
    client.shop.orders.insert_one({"_id": 1})
    caplog.clear()
    fail_once(deployment, failCommands=["find"], blockConnection=True, blockTimeMS=80)
    client.shop.orders.find_one({"secret": "hunter2"})
    (record,) = slow_operation_records(caplog)
    address = deployment.members[0].address
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"Slow operation: find shop.orders on {address} took ")
    fields = record.structured
    assert fields["operation"] == "find shop.orders"
    assert fields["serverMS"] + fields["networkMS"] >= 79
    assert fields["durationMS"] >= fields["serverMS"]
    assert sum(fields[f"{part}MS"] for part in PART_NAMES) == pytest.approx(fields["durationMS"], abs=1)
    assert "hunter2" not in record.getMessage() + str(fields)


def phase_durations(record: Any) -> dict[str, int]:
    """Return the logged parts of the duration in whole milliseconds. Omit parts that round to 0."""
    return {part: duration for part in PART_NAMES if (duration := round(record.structured[f"{part}MS"]))}


def test_failed_or_interrupted_wait_is_part_of_logged_duration(
    connect_with_slow_log: Connect, deployment: Deployment, caplog: Any
) -> None:
    client = connect_with_slow_log(
        50, maxPoolSize=1, waitQueueTimeoutMS=200, serverSelectionTimeoutMS=300, baseBackoffMS=400
    )
    client._executor.overload.jitter = lambda: 1.0
    client.shop.orders.insert_one({"_id": 1})
    caplog.clear()
    (pool,) = client._topology.pools()
    with checked_out(pool), pytest.raises(errors.WaitQueueTimeoutError):
        client.shop.orders.find_one()
    labels = ["SystemOverloadedError", "RetryableError"]
    fail_once(deployment, failCommands=["find"], errorCode=462, errorLabels=labels)
    with gevent.Timeout(0.1, False):
        client.shop.orders.find_one()
    with pytest.raises(errors.ServerSelectionTimeoutError):
        client.shop.orders.with_options(read_preference=Secondary()).find_one()
    logged = [(record.structured["tries"], phase_durations(record)) for record in slow_operation_records(caplog)]
    assert logged == [(1, {"checkOut": 200}), (1, {"backOff": 100}), (1, {"selection": 300})]


def test_failed_attempt_on_pinned_connection_logs_no_wait(caplog: Any) -> None:
    with (
        Deployment.load_balanced() as deployment,
        MongoClient(deployment.uri, slow_operation_ms=0) as client,
        client.start_session() as session,
        session.start_transaction(),
    ):
        client.shop.orders.insert_one({"_id": 1}, session=session)
        fail_once(deployment, failCommands=["find"], blockConnection=True, blockTimeMS=80, errorCode=2)
        caplog.clear()
        with pytest.raises(errors.OperationFailure):
            client.shop.orders.find_one(session=session)
        logged = phase_durations(slow_operation_records(caplog)[0])
    assert logged.keys() <= {"server", "network", "driver"} and sum(logged.values()) >= 80


@pytest.mark.real_time
def test_decoding_of_reply_below_64_kb_is_part_of_logged_duration(connect_with_slow_log: Connect, caplog: Any) -> None:
    client = connect_with_slow_log(0)
    client.shop.orders.insert_one({"_id": 1, "many": [{"n": n} for n in range(2000)]})  # smaller than 64 KB
    caplog.clear()
    client.shop.orders.find_one()
    (record,) = slow_operation_records(caplog)
    assert record.structured["decodingMS"] > 0.1
    assert "decoding" in record.getMessage()


def test_failed_slow_operation_is_logged_without_values(connect_with_slow_log: Connect, caplog: Any) -> None:
    client = connect_with_slow_log(0)
    client.shop.orders.insert_one({"_id": "hunter2"})
    caplog.clear()
    with pytest.raises(errors.DuplicateKeyError):
        client.shop.orders.insert_one({"_id": "hunter2"})
    (record,) = slow_operation_records(caplog)
    assert record.getMessage().endswith("; failed: DuplicateKeyError (code 11000)")


def test_operation_interrupted_by_gevent_timeout_is_logged(
    connect_with_slow_log: Connect, deployment: Deployment, caplog: Any
) -> None:
    client = connect_with_slow_log()
    client.shop.orders.find_one()
    deployment.members[0].freeze()
    with gevent.Timeout(0.06, False):
        client.shop.orders.find_one()
    (record,) = slow_operation_records(caplog)
    assert record.getMessage().endswith("; failed: Timeout")
    deployment.members[0].thaw()


TRACE_TIMES = {"selection_time": 0.001, "check_out_time": 0.01, "connecting_time": 0.004, "backoff_time": 0.1,
               "exchange_time": 0.4, "decoding_time": 0.05, "round_trip_time": 0.02, "command_count": 3,
               "attempt_count": 2}  # fmt: skip
PART_DURATIONS = {"selection": 1, "checkOut": 6, "connecting": 4, "server": 290, "network": 60, "decoding": 50,
                  "backOff": 100, "driver": 489}  # fmt: skip
PARTS_TEXT = (
    "server selection 1, check-out 6, connecting 4, server 290, network 60, decoding 50, back-off 100, "
    "the driver itself 489; 2 tries"
)


@pytest.mark.parametrize(
    ("changed_times", "expected_parts", "message"),
    [
        ({}, PART_DURATIONS, PARTS_TEXT),
        ({"attempt_count": 1}, PART_DURATIONS, PARTS_TEXT.removesuffix("; 2 tries")),
        ({"round_trip_time": 0.0, "selection_time": 0.0},
         {**PART_DURATIONS, "selection": 0, "server": 350, "network": 0, "driver": 490},
         "check-out 6, connecting 4, server 350, network 0, decoding 50, back-off 100, the driver itself 490; 2 tries"),
        ({"round_trip_time": 9.0}, {**PART_DURATIONS, "server": 0, "network": 350}, None),
        ({"connecting_time": 0.02}, {**PART_DURATIONS, "checkOut": 0, "connecting": 20}, None),
        ({"decoding_time": 0.5}, {**PART_DURATIONS, "server": 0, "network": 0, "decoding": 500}, None),
        ({"exchange_time": 1.0}, {**PART_DURATIONS, "server": 890, "driver": 0}, None),
    ],
)  # fmt: skip
def test_measured_times_are_divided_into_logged_parts(
    caplog: Any, monkeypatch: pytest.MonkeyPatch, changed_times: Any, expected_parts: Any, message: str | None
) -> None:
    operations = SlowOperations(1.0, 0)
    monkeypatch.setattr(_clock, "monotonic", lambda: 100.0)
    operation_trace = OperationTrace("find", "shop", "orders", operations)  # type: ignore[arg-type]
    operation_trace.address = ("h", 1)
    for name, value in {**TRACE_TIMES, **changed_times}.items():
        setattr(operation_trace, name, value)
    monkeypatch.setattr(_clock, "monotonic", lambda: 100.999)
    operations.operation_ended(operation_trace, None)
    assert slow_operation_records(caplog) == []
    monkeypatch.setattr(_clock, "monotonic", lambda: 101.0)
    operations.operation_ended(operation_trace, None)
    (record,) = slow_operation_records(caplog)
    assert {name: record.structured[f"{name}MS"] for name in PART_NAMES} == expected_parts
    if message is not None:
        assert record.getMessage() == f"Slow operation: find shop.orders on h:1 took 1000 ms: {message}"
    assert [each["moment"] for each in operations.entries] == [101.0]


def test_client_keeps_last_fifty_slow_operations() -> None:
    operations = SlowOperations(0.0, 100)
    for number in range(60):
        operation_trace = OperationTrace("find", "shop", f"c{number}", operations)  # type: ignore[arg-type]
        operations.command_started(operation_trace, Mock(is_sensitive=number % 2, command={"x": number}))
        operations.operation_ended(operation_trace, None)
    assert [each["operation"] for each in operations.entries] == [f"find shop.c{number}" for number in range(10, 60)]
    assert [each.get("text") for each in operations.entries][:4] == ['{"x": 10}', None, '{"x": 12}', None]


def test_log_handler_of_slow_operation_runs_in_operation_span(deployment: Deployment) -> None:
    spans = SpanCollector()
    current_spans = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            current_spans.append(trace.get_current_span())

    handler = Handler()
    logging.getLogger("gmongo.slow").addHandler(handler)
    try:
        tracing = {"enabled": True, "tracer_provider": spans.provider}
        with MongoClient(deployment.uri, slow_operation_ms=0, tracing=tracing) as client:
            client.shop.orders.find_one()
            assert [span.name for span in current_spans] == ["find shop.orders"]  # type: ignore[attr-defined]
    finally:
        logging.getLogger("gmongo.slow").removeHandler(handler)


@pytest.mark.parametrize("limit", [-1, "soon", True])
def test_invalid_slow_operation_ms_raises_error(limit: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="slow_operation_ms must be a number of milliseconds"):
        MongoClient(connect=False, slow_operation_ms=limit)
    assert MongoClient(connect=False, slow_operation_ms=None)._executor.observers is None
