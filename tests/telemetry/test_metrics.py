"""The driver records metrics that follow the semantic conventions of OpenTelemetry for databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gmongo import MongoClient, _clock, errors
from gmongo._telemetry.metrics import Metrics
from gmongo.execution.operation_trace import OperationTrace, Phase
from gmongo.testing import Deployment
from tests.support.cases import rows
from tests.support.wait import eventually
from tests.telemetry.conftest import fail_once

UNITS = {row["metric"]: (row["unit"], row["description"]) for row in rows(__file__, "units")}


class MetricCollector:
    """Collector of metrics: ``provider`` is a meter provider, and the methods read the recorded
    metrics.
    """

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def metrics(self) -> dict[str, Any]:
        data = self._reader.get_metrics_data()
        resources = [] if data is None else data.resource_metrics
        return {metric.name: metric for each in resources for scope in each.scope_metrics for metric in scope.metrics}

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        metric = self.metrics().get(name)
        return [] if metric is None else [(dict(point.attributes), point) for point in metric.data.data_points]

    def value(self, name: str, **required: str) -> Any:
        """Return the sum of the values of a metric. For a histogram, return the number of values.

        :param required: attributes of the values, without the prefix ``db.client.connection.``.
        """
        prefixed = {f"db.client.connection.{key}": value for key, value in required.items()}
        points = [point for attributes, point in self.points(name) if prefixed.items() <= attributes.items()]
        return sum(getattr(point, "count", None) or getattr(point, "value", 0) for point in points)


@pytest.fixture
def collector() -> MetricCollector:
    return MetricCollector()


@pytest.fixture
def connect(deployment: Deployment, collector: MetricCollector) -> Iterator[Callable[..., MongoClient[Any]]]:
    clients: list[MongoClient[Any]] = []

    def create_client(**options: Any) -> MongoClient[Any]:
        metrics = {"enabled": True, "meter_provider": collector.provider}
        clients.append(MongoClient(deployment.uri, metrics=metrics, **options))
        return clients[-1]

    yield create_client
    for client in clients:
        client.close()


def test_metrics_have_units_of_semantic_conventions(
    connect: Any, collector: MetricCollector, deployment: Deployment
) -> None:
    client = connect(maxPoolSize=1, waitQueueTimeoutMS=10)
    fail_once(deployment, failCommands=["find"], blockConnection=True, blockTimeMS=100)
    running_find = gevent.spawn(client.shop.orders.find_one)
    eventually(lambda: collector.value("db.client.connection.count", state="used"))
    with pytest.raises(errors.WaitQueueTimeoutError):
        client.shop.orders.find_one()
    running_find.get()
    assert {name: (metric.unit, metric.description) for name, metric in collector.metrics().items()} == UNITS


@pytest.mark.real_time
def test_operation_duration_metric_has_attributes(
    connect: Any,
    collector: MetricCollector,
) -> None:
    client = connect()
    client.shop.orders.insert_one({"_id": 1})
    with pytest.raises(errors.DuplicateKeyError):
        client.shop.orders.insert_one({"_id": 1})
    host, port = client.address
    common_attributes = {
        "db.system.name": "mongodb",
        "db.namespace": "shop",
        "db.collection.name": "orders",
        "db.operation.name": "insert",
        "server.address": host,
        "server.port": port,
    }
    error_attributes = {
        "error.type": "gmongo.errors.DuplicateKeyError",
        "db.response.status_code": "11000",
    }
    points = collector.points("db.client.operation.duration")
    assert [attributes for attributes, _ in points] == [
        common_attributes,
        {**common_attributes, **error_attributes},
    ]
    assert all(point.sum > 0 and point.explicit_bounds[0] == 0.001 for _, point in points)


@pytest.mark.parametrize(
    ("address", "server", "pool"),
    [
        (("h", 1), {"server.address": "h", "server.port": 1}, "h:1"),
        (("/tmp/x.sock", None), {"server.address": "/tmp/x.sock"}, "/tmp/x.sock"),
    ],
)
def test_measured_durations_are_recorded_with_attributes(
    collector: MetricCollector, monkeypatch: pytest.MonkeyPatch, address: Any, server: Any, pool: str
) -> None:
    metrics = Metrics(collector.provider)
    monkeypatch.setattr(_clock, "monotonic", lambda: 100.0)
    trace = OperationTrace("find", "shop", "", metrics)  # type: ignore[arg-type]
    monkeypatch.setattr(_clock, "monotonic", lambda: 102.0)
    # The metrics omit this wait, because the trace has no server address yet.
    metrics.wait_ended(trace, Phase.CHECK_OUT, 9.0, 0.0, None)
    metrics.operation_ended(trace, None)
    trace.address = address
    metrics.wait_ended(trace, Phase.CHECK_OUT, 0.25, 0.125, None)
    metrics.wait_ended(trace, Phase.CHECK_OUT, 9.0, 0.0, errors.WaitQueueTimeoutError("full"))
    metrics.wait_ended(trace, Phase.CHECK_OUT, 9.0, 0.0, errors.AutoReconnect("lost"))
    metrics.wait_ended(trace, Phase.SELECTION, 9.0, 0.0, None)
    metrics.wait_ended(trace, Phase.SELECTION, 9.0, 0.0, errors.WaitQueueTimeoutError("full"))
    metrics.connection_used(trace, address, 0.5)
    metrics.connection_made(address, 0.75)
    metrics.operation_ended(trace, errors.AutoReconnect("lost"))
    recorded = {
        name.removeprefix("db.client."): [
            (getattr(point, "sum", None) or point.value, attributes) for attributes, point in collector.points(name)
        ]
        for name in collector.metrics()
        if collector.points(name) and name.startswith("db.client.")
    }
    pool_attributes = {"db.client.connection.pool.name": pool}
    operation_attributes = {
        "db.system.name": "mongodb",
        "db.namespace": "shop",
        "db.operation.name": "find",
    }
    assert recorded == {
        "connection.wait_time": [(0.25, pool_attributes)],
        "connection.timeouts": [(1, pool_attributes)],
        "connection.use_time": [(0.5, pool_attributes)],
        "connection.create_time": [(0.75, pool_attributes)],
        "operation.duration": [
            (2.0, operation_attributes),
            (2.0, {**operation_attributes, **server, "error.type": "gmongo.errors.AutoReconnect"}),
        ],
    }
    for name in ("wait_time", "use_time", "create_time"):
        ((_, point),) = collector.points(f"db.client.connection.{name}")
        assert point.explicit_bounds == (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)


def test_connection_metrics_equal_pool_stats(connect: Any, collector: MetricCollector, deployment: Deployment) -> None:
    client = connect(maxPoolSize=2, minPoolSize=1)
    client.shop.orders.find_one()
    deployment.members[0].freeze()
    greenlets = [gevent.spawn(client.shop.orders.find_one) for _ in range(5)]
    eventually(lambda: collector.value("db.client.connection.pending_requests") == 4)
    (pool,) = client.pool_stats()
    assert collector.value("db.client.connection.count", state="used") == pool["in_use"] == 1
    assert pool["waiting"] + pool["pending"] == 4
    ((attributes, _),) = collector.points("db.client.connection.max")
    assert attributes == {"db.client.connection.pool.name": deployment.members[0].address}
    sizes = {name: collector.value(f"db.client.connection.{name}") for name in ("max", "idle.max", "idle.min")}
    assert sizes == {"max": 2, "idle.max": 2, "idle.min": 1}
    deployment.members[0].thaw()
    gevent.joinall(greenlets, raise_error=True)
    assert collector.value("db.client.connection.pending_requests") == 0
    assert collector.value("db.client.connection.count", state="idle") == client.pool_stats()[0]["available"]


def test_connection_metrics_sum_pools_of_open_clients_for_one_server(connect: Any, collector: MetricCollector) -> None:
    clients = [connect(maxPoolSize=3), connect(maxPoolSize=4)]
    for client in clients:
        client.admin.command("ping")
    assert collector.value("db.client.connection.max") == 7
    assert collector.value("db.client.connection.count", state="idle") == 2
    tokens_metric = "gmongo.client.retry.tokens"
    assert len(collector.points(tokens_metric)) == 2
    clients[0].close()
    assert collector.value("db.client.connection.max") == 4
    ((attributes, _),) = collector.points(tokens_metric)
    assert attributes == {"gmongo.client.number": clients[1]._executor.number}


def test_unlimited_pool_reports_no_metric_of_maximum_size(connect: Any, collector: MetricCollector) -> None:
    connect(maxPoolSize=0).admin.command("ping")
    assert collector.points("db.client.connection.max") == []


def test_connection_create_time_includes_connections_of_background_run(
    connect: Any, collector: MetricCollector
) -> None:
    client = connect(minPoolSize=3)
    eventually(lambda: collector.value("db.client.connection.create_time") == 3)
    before = collector.value("db.client.connection.wait_time")
    client.shop.orders.find_one()
    client.shop.orders.find_one()
    assert collector.value("db.client.connection.wait_time") == before + 2
    assert collector.value("db.client.connection.use_time") == before + 2
    assert collector.value("db.client.connection.create_time") == 3


def test_retry_metrics_report_retries_and_tokens(
    connect: Any, collector: MetricCollector, deployment: Deployment
) -> None:
    client = connect(baseBackoffMS=10)
    client._executor.overload.jitter = lambda: 1.0
    fail_once(deployment, failCommands=["find"], errorCode=89)
    client.shop.orders.find_one()
    labels = ["SystemOverloadedError", "RetryableError"]
    fail_once(deployment, failCommands=["find"], errorCode=462, errorLabels=labels)
    client.shop.orders.find_one()
    retries = {
        attributes["gmongo.retry.reason"]: point.value
        for attributes, point in collector.points("gmongo.client.retries")
    }
    assert retries == {"overload": 1, "other": 1}
    assert collector.value("gmongo.client.retry.exhausted") == 0
    client._executor.overload.bucket.missing_tenths = 10_000
    fail_once(deployment, failCommands=["find"], errorCode=462, errorLabels=labels)
    with pytest.raises(errors.OperationFailure):
        client.shop.orders.find_one()
    assert collector.value("gmongo.client.retry.exhausted") == 1
    assert collector.value("gmongo.client.retry.backoff") == pytest.approx(0.01)
    assert collector.value("gmongo.client.retry.tokens") == pytest.approx(client.retry_stats()["tokens"])


@pytest.mark.parametrize("metrics", [1, "yes", {"enable": True}, {"enabled": 1}, {"meter_provider": 1}])
def test_invalid_metrics_option_raises_error(metrics: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="metrics must be a mapping"):
        MongoClient(connect=False, metrics=metrics)
    assert MongoClient(connect=False, metrics=False)._executor.observers is None
