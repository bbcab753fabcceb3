"""Metrics according to OpenTelemetry's semantic conventions for databases.

Callbacks read the current counts when OpenTelemetry collects the metrics. The greenlet of an
operation records a duration when the operation, a check-out, or the use of a connection ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter_provider

from gmongo._fork import list_forkables
from gmongo._telemetry.text import error_type_of, operation_attributes, server_attributes
from gmongo._version import __version__
from gmongo.errors import WaitQueueTimeoutError
from gmongo.execution.executor import Executor
from gmongo.execution.operation_trace import Observer, OperationTrace, Phase
from gmongo.wire.address import Address, address_text

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider

    from gmongo.cmap.pool import Pool

_BUCKET_BOUNDARIES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)  # seconds
_Callback = Callable[[CallbackOptions], Iterable[Observation]]


class Metrics(Observer):
    """Observer that records the metrics of one client."""

    def __init__(self, provider: MeterProvider | None) -> None:
        self.instruments = _get_instruments(get_meter_provider() if provider is None else provider)

    def operation_ended(self, trace: OperationTrace, error: BaseException | None) -> None:
        attributes = operation_attributes(trace)
        if trace.address is not None:
            attributes |= server_attributes(trace.address)
        if error is not None:
            attributes["error.type"] = error_type_of(error)
            code = getattr(error, "code", None)
            if code is not None:
                attributes["db.response.status_code"] = str(code)
        self.instruments.duration.record(trace.elapsed(), attributes)

    def wait_ended(
        self, trace: OperationTrace, phase: Phase, seconds: float, connecting: float, error: BaseException | None
    ) -> None:
        if phase is not Phase.CHECK_OUT or trace.address is None:
            return
        attributes = _pool_attributes(trace.address)
        if error is None:
            self.instruments.wait_time.record(seconds, attributes)
        elif isinstance(error, WaitQueueTimeoutError):
            self.instruments.timeouts.add(1, attributes)

    def connection_used(self, trace: OperationTrace, address: Address, seconds: float) -> None:
        self.instruments.use_time.record(seconds, _pool_attributes(address))

    def connection_made(self, address: Address, seconds: float) -> None:
        self.instruments.create_time.record(seconds, _pool_attributes(address))


class Instruments:
    """Instruments of one meter provider. All clients with this provider share the instruments."""

    def __init__(self, meter: Meter) -> None:
        def create_histogram(name: str, description: str) -> Histogram:
            return meter.create_histogram(
                f"db.client.{name}", "s", description, explicit_bucket_boundaries_advisory=_BUCKET_BOUNDARIES
            )

        self.duration = create_histogram("operation.duration", "Duration of operations")
        self.create_time = create_histogram("connection.create_time", "Time to establish a connection")
        self.wait_time = create_histogram("connection.wait_time", "Time to check out a connection")
        self.use_time = create_histogram("connection.use_time", "Time between check-out and check-in of a connection")
        self.timeouts = meter.create_counter("db.client.connection.timeouts", "{timeout}", "Check-outs that timed out")
        for name, unit, description, read_counts in _POOL_INSTRUMENTS:
            callback = self._pool_callback(read_counts)
            meter.create_observable_up_down_counter(f"db.client.connection.{name}", [callback], unit, description)
        for name, unit, description, read_values in _CLIENT_INSTRUMENTS:
            meter.create_observable_counter(
                f"gmongo.client.{name}", [self._client_callback(read_values)], unit, description
            )
        tokens_callback = self._client_callback(lambda executor: {"": executor.overload.bucket.tokens})
        meter.create_observable_up_down_counter(
            "gmongo.client.retry.tokens", [tokens_callback], "{token}", "Tokens that are available for retries"
        )

    def _pool_callback(self, read_counts: Callable[[Pool], dict[str, int]]) -> _Callback:
        """Return a callback that sums the pool counts of all clients, by server and connection state.

        `read_counts` returns a dict for a pool: connection state -> count. For a count without a
        state, the key is an empty string.
        """

        def observe(_options: CallbackOptions) -> Iterator[Observation]:
            sums: Counter[tuple[Address, str]] = Counter()
            for executor in self._executors():
                for pool in executor.topology.pools():
                    for state, number in read_counts(pool).items():
                        sums[pool.address, state] += number
            for (address, state), number in sums.items():
                attributes = _pool_attributes(address)
                if state:
                    attributes["db.client.connection.state"] = state
                yield Observation(number, attributes)

        return observe

    def _client_callback(self, read_values: Callable[[Executor], dict[str, float]]) -> _Callback:
        def observe(_options: CallbackOptions) -> Iterator[Observation]:
            for executor in self._executors():
                for reason, value in read_values(executor).items():
                    attributes: dict[str, str | int] = {"gmongo.client.number": executor.number}
                    if reason:
                        attributes["gmongo.retry.reason"] = reason
                    yield Observation(value, attributes)

        return observe

    def _executors(self) -> Iterator[Executor]:
        for each in list_forkables():
            if not isinstance(each, Executor) or each.observers is None or each.topology.closed:
                continue
            if any(getattr(observer, "instruments", None) is self for observer in each.observers.all):
                yield each


def _read_max_pool_size(pool: Pool) -> dict[str, int]:
    """Return a dict: empty string -> maximum pool size. The dict is empty for an unlimited pool."""
    return {"": pool.options.max_pool_size} if pool.options.max_pool_size else {}


_POOL_INSTRUMENTS: tuple[tuple[str, str, str, Callable[[Pool], dict[str, int]]], ...] = (
    (
        "count",
        "{connection}",
        "Connections by state",
        lambda pool: {"idle": len(pool.machine.available), "used": len(pool.machine.in_use)},
    ),
    ("idle.max", "{connection}", "Maximum number of idle connections", _read_max_pool_size),
    ("idle.min", "{connection}", "Minimum number of open connections", lambda pool: {"": pool.options.min_pool_size}),
    ("max", "{connection}", "Maximum number of connections", _read_max_pool_size),
    (
        "pending_requests",
        "{request}",
        "Operations that wait for a connection or establish a connection",
        lambda pool: {"": len(pool.machine.queue.waiters) + len(pool.machine.pending)},
    ),
)
_CLIENT_INSTRUMENTS: tuple[tuple[str, str, str, Callable[[Executor], dict[str, float]]], ...] = (
    (
        "retries",
        "{retry}",
        "Retries, by reason",
        lambda executor: {"overload": executor.overload.retry_count, "other": executor.overload.other_retry_count},
    ),
    ("retry.backoff", "s", "Backoff time before retries", lambda executor: {"": executor.overload.slept_seconds}),
    (
        "retry.exhausted",
        "{operation}",
        "Operations that failed without a retry token",
        lambda executor: {"": executor.overload.no_token_count},
    ),
)
_instruments: WeakKeyDictionary[MeterProvider, Instruments] = WeakKeyDictionary()


def _get_instruments(provider: MeterProvider) -> Instruments:
    instruments = _instruments.get(provider)
    if instruments is None:
        instruments = _instruments[provider] = Instruments(provider.get_meter("gmongo", __version__))
    return instruments


def _pool_attributes(address: Address) -> dict[str, str]:
    return {"db.client.connection.pool.name": address_text(address)}
