"""The log of slow operations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from opentelemetry import trace

from gmongo import MongoClient, errors
from gmongo.testing import Deployment
from tests.support.wait import eventually
from tests.telemetry.conftest import Collected

Connect = Callable[..., MongoClient[Any]]
PARTS = {"selection", "checkOut", "connecting", "server", "network", "decoding", "backOff", "driver"}


@pytest.fixture
def slow(deployment: Deployment) -> Iterator[Connect]:
    """Makes clients that log slow operations."""
    clients: list[MongoClient[Any]] = []

    def make(limit: float = 50, **options: Any) -> MongoClient[Any]:
        clients.append(MongoClient(deployment.uri, slow_operation_ms=limit, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def delay_once(deployment: Deployment, command: str, milliseconds: int) -> None:
    data = {"failCommands": [command], "blockConnection": True, "blockTimeMS": milliseconds}
    deployment.set_fail_point("failCommand", {"times": 1}, data)


def lines(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name == "gmongo.slow"]


def test_a_slow_operation_is_one_line(slow: Connect, deployment: Deployment, caplog: Any) -> None:
    client = slow()
    client.shop.orders.insert_one({"_id": 1})
    caplog.clear()
    delay_once(deployment, "find", 80)
    client.shop.orders.find_one({"secret": "hunter2"})
    (record,) = lines(caplog)
    address = deployment.members[0].address
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"Slow operation: find shop.orders on {address} took ")
    found = record.structured
    assert found["operation"] == "find shop.orders"
    assert found["serverMS"] + found["networkMS"] >= 79
    assert found["durationMS"] >= found["serverMS"]
    assert sum(found[f"{part}MS"] for part in PARTS) == pytest.approx(found["durationMS"], abs=1)
    assert "hunter2" not in record.getMessage() + str(found)


def test_where_the_time_goes(slow: Connect, deployment: Deployment, caplog: Any) -> None:
    client = slow(maxPoolSize=1, baseBackoffMS=100)
    client._executor.overload.jitter = lambda: 1.0
    client.shop.orders.insert_one({"_id": 1})
    caplog.clear()
    delay_once(deployment, "insert", 80)
    inserting = gevent.spawn(client.shop.orders.insert_one, {})
    eventually(lambda: client.pool_stats()[0]["in_use"])
    client.shop.orders.find_one()
    inserting.get()
    by_name = {record.structured["operation"]: record.structured for record in lines(caplog)}
    assert by_name["find shop.orders"]["checkOutMS"] >= 50
    assert by_name["insert shop.orders"]["serverMS"] + by_name["insert shop.orders"]["networkMS"] >= 79
    caplog.clear()
    labels = ["SystemOverloadedError", "RetryableError"]
    data = {"failCommands": ["find"], "errorCode": 462, "errorLabels": labels}
    deployment.set_fail_point("failCommand", {"times": 1}, data)
    client.shop.orders.find_one()
    (record,) = lines(caplog)
    assert record.structured["backOffMS"] >= 100
    assert record.structured["tries"] == 2
    assert ", back-off 1" in record.getMessage()
    assert record.getMessage().endswith("; 2 tries")


def test_decoding_has_its_share(slow: Connect, caplog: Any) -> None:
    client = slow(0)
    client.shop.orders.insert_one({"_id": 1, "many": [{"n": n} for n in range(2000)]})  # below 64 KB
    caplog.clear()
    client.shop.orders.find_one()
    (record,) = lines(caplog)
    assert record.structured["decodingMS"] > 0.1
    assert "decoding" in record.getMessage()


def test_a_failure_is_named_without_what_it_quotes(slow: Connect, caplog: Any) -> None:
    client = slow(0)
    client.shop.orders.insert_one({"_id": "hunter2"})
    caplog.clear()
    with pytest.raises(errors.DuplicateKeyError):
        client.shop.orders.insert_one({"_id": "hunter2"})
    (record,) = lines(caplog)
    assert record.getMessage().endswith("; failed: DuplicateKeyError (code 11000)")


def test_a_time_out_of_the_applications_is_slow_too(slow: Connect, deployment: Deployment, caplog: Any) -> None:
    client = slow()
    client.shop.orders.find_one()
    deployment.members[0].freeze()
    with gevent.Timeout(0.06, False):
        client.shop.orders.find_one()
    (record,) = lines(caplog)
    assert record.getMessage().endswith("; failed: Timeout")
    deployment.members[0].thaw()


def test_what_is_quick_is_not_logged(slow: Connect, caplog: Any) -> None:
    client = slow(60_000)
    client.shop.orders.find_one()
    assert lines(caplog) == []
    assert list(client._executor.observers.all[0].last) == []


def test_the_line_is_in_the_span_of_its_operation(deployment: Deployment) -> None:
    spans = Collected()
    seen = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(trace.get_current_span())

    handler = Handler()
    logging.getLogger("gmongo.slow").addHandler(handler)
    try:
        tracing = {"enabled": True, "tracer_provider": spans.provider}
        with MongoClient(deployment.uri, slow_operation_ms=0, tracing=tracing) as client:
            client.shop.orders.find_one()
            assert [span.name for span in seen] == ["find shop.orders"]  # type: ignore[attr-defined]
    finally:
        logging.getLogger("gmongo.slow").removeHandler(handler)


@pytest.mark.parametrize("limit", [-1, "soon", True])
def test_the_option_is_checked(limit: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="slow_operation_ms must be a number of milliseconds"):
        MongoClient(connect=False, slow_operation_ms=limit)
    assert MongoClient(connect=False, slow_operation_ms=None)._executor.observers is None
