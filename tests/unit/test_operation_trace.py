"""The trace of an operation measures the phases of the operation, and calls the observers of the
client.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from gevent import GreenletExit

from gmongo import _clock
from gmongo.errors import AutoReconnect
from gmongo.execution.operation_trace import Observer, Observers, OperationTrace, Phase
from gmongo.execution.traced_executor import TracedCommands
from gmongo.monitoring import CommandListener

ADDRESS = ("h", 1)
TIME_NAMES = (
    "selection_time", "check_out_time", "backoff_time", "connecting_time", "exchange_time", "decoding_time",
    "round_trip_time",
)  # fmt: skip


class AdjustableClock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> AdjustableClock:
    clock = AdjustableClock()
    monkeypatch.setattr(_clock, "monotonic", clock)
    return clock


@pytest.fixture
def trace(clock: AdjustableClock) -> OperationTrace:
    return OperationTrace("find", "shop", "orders", Mock())


def nonzero_durations(trace: OperationTrace) -> dict[str, float]:
    """Return the durations of a trace that are not 0."""
    return {name: getattr(trace, name) for name in TIME_NAMES if getattr(trace, name)}


def topology_with_round_trip_time(round_trip_time: float | None, server_is_known: bool = True) -> Any:
    description = {ADDRESS: SimpleNamespace(round_trip_time=round_trip_time)} if server_is_known else {}
    return SimpleNamespace(description=description)


def connection_established_in(establishment_seconds: float, last_command: str | None) -> Any:
    return SimpleNamespace(establishment_seconds=establishment_seconds, last_command=last_command)


@pytest.mark.parametrize("round_trip_time", [None, 0.25])
@pytest.mark.parametrize("server_is_known", [True, False])
@pytest.mark.parametrize(
    ("establishment_seconds", "connection_was_used", "connecting_time"),
    [(1.0, False, 1.0), (9.0, False, 2.0), (1.0, True, 0.0)],
)
def test_each_second_of_operation_counts_for_one_phase(
    trace: OperationTrace,
    clock: AdjustableClock,
    round_trip_time: float | None,
    server_is_known: bool,
    establishment_seconds: float,
    connection_was_used: bool,
    connecting_time: float,
) -> None:
    for number in (1, 2):
        trace.begin_attempt()
        assert (trace.attempt_count, trace.waits_for, trace.wait_started) == (number, Phase.SELECTION, clock.now)
        clock.now += 1
        trace.end_selection(ADDRESS, topology_with_round_trip_time(round_trip_time, server_is_known))
        assert (trace.address, trace.waits_for, trace.wait_started) == (ADDRESS, Phase.CHECK_OUT, clock.now)
        clock.now += 2
        trace.end_check_out(connection_established_in(establishment_seconds, "ping" if connection_was_used else None))
        assert trace.waits_for is None
        start = clock.now
        clock.now += 4
        trace.wait_ended(Phase.BACK_OFF, start, None)
    expected = {
        "selection_time": 2.0, "check_out_time": 4.0, "backoff_time": 8.0, "connecting_time": 2 * connecting_time,
    }  # fmt: skip
    if server_is_known and round_trip_time:
        expected["round_trip_time"] = round_trip_time
    assert nonzero_durations(trace) == {name: seconds for name, seconds in expected.items() if seconds}
    calls: Any = trace.observer.wait_ended
    assert [call.args[1:] for call in calls.call_args_list] == [
        (Phase.SELECTION, 1.0, 0.0, None),
        (Phase.CHECK_OUT, 2.0, connecting_time, None),
        (Phase.BACK_OFF, 4.0, 0.0, None),
    ] * 2


@pytest.mark.parametrize("failing_phase", ["selecting", "checking_out", "running", "pinned"])
def test_failed_attempt_ends_current_phase_of_trace(
    trace: OperationTrace, clock: AdjustableClock, failing_phase: str
) -> None:
    trace.begin_attempt()
    clock.now += 1
    if failing_phase != "selecting":
        trace.end_selection(ADDRESS, topology_with_round_trip_time(None))
    if failing_phase == "running":
        trace.end_check_out(connection_established_in(0.0, None))
    if failing_phase == "pinned":
        trace.record_pin()
        assert trace.waits_for is None
    calls: Any = trace.observer.wait_ended
    calls.reset_mock()
    clock.now += 2
    error = AutoReconnect("gone")
    for _ in range(2):
        trace.end_attempt(error)
    assert trace.waits_for is None
    if failing_phase == "selecting":
        calls.assert_called_once_with(trace, Phase.SELECTION, 3.0, 0.0, error)
    elif failing_phase == "checking_out":
        calls.assert_called_once_with(trace, Phase.CHECK_OUT, 2.0, 0.0, error)
    else:
        calls.assert_not_called()


# Observers

CALLBACK_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "operation_started": (1, 2), "operation_ended": (1, 2), "wait_ended": (1, 2, 3, 4, 5),
    "command_started": (1, 2), "command_ended": (1, 2, 3, 4), "connection_used": (1, 2, 3),
    "connection_made": (1, 2), "attempt_failed": (1, 2), "transaction_started": (1,),
    "transaction_ended": (1, 2),
}  # fmt: skip


def make_observer(**members: Any) -> Observer:
    kind: type[Observer] = type("One", (Observer,), members)
    return kind()


def recording_observer(
    received_events: list[Any], name: str, method: str, error: BaseException | None = None
) -> Observer:
    def receive(self: Any, *arguments: Any) -> None:
        received_events.append((name, *arguments))
        if error is not None:
            raise error

    return make_observer(**{method: receive})


@pytest.mark.parametrize("method", CALLBACK_ARGUMENTS)
def test_each_observer_is_called_despite_error_of_another(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    received_events: list[Any] = []
    arguments = CALLBACK_ARGUMENTS[method]
    first, second = (
        recording_observer(received_events, "first", method, ValueError("mine")),
        recording_observer(received_events, "second", method),
    )
    for observers, names in (
        ((), []),
        ((Observer(),), []),
        ((first,), ["first"]),
        ((first, Observer(), second), ["first", "second"]),
    ):
        received_events.clear()
        getattr(Observers(observers), method)(*arguments)
        assert received_events == [(name, *arguments) for name in names]
        assert ("ValueError: mine" in capsys.readouterr().err) is ("first" in names)
    for each in (
        (recording_observer(received_events, "x", method, GreenletExit()),),
        (recording_observer(received_events, "x", method, GreenletExit()), second),
    ):
        with pytest.raises(GreenletExit):
            getattr(Observers(each), method)(*arguments)


class RecordingListener(CommandListener):
    def __init__(self, received_events: list[Any]) -> None:
        self.started = self.succeeded = self.failed = received_events.append  # type: ignore[method-assign, assignment]


@pytest.fixture
def sent_command(trace: OperationTrace) -> Iterator[Any]:
    hello = SimpleNamespace(connection_id=5)
    connection = SimpleNamespace(address=ADDRESS, hello=hello, id=3, service_id=None)
    yield Mock(
        trace=trace, is_sensitive=False, connection=connection, command={"find": "c"}, name="find", database="d",
        request_id=1, operation_id=2, started=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("has_listener", [False, True])
@pytest.mark.parametrize("has_trace", [False, True])
@pytest.mark.parametrize("is_sensitive", [False, True])
def test_listeners_and_observer_receive_events_of_traced_command(
    sent_command: Any, trace: OperationTrace, has_listener: bool, has_trace: bool, is_sensitive: bool
) -> None:
    received_events: list[Any] = []
    observers: Any = Mock(active=False)
    commands = TracedCommands((RecordingListener(received_events),) if has_listener else (), observers)
    assert commands.is_enabled() is has_listener
    observers.active = True
    assert commands.is_enabled() is True
    sent_command.is_sensitive = is_sensitive
    if not has_trace:
        sent_command.trace = None
    error, reply = AutoReconnect("gone"), {"ok": 1}
    commands.started(sent_command)
    commands.succeeded(sent_command, 0.5, reply)
    commands.failed(sent_command, 0.25, error)
    assert [type(event).__name__ for event in received_events] == (
        ["CommandStartedEvent", "CommandSucceededEvent", "CommandFailedEvent"] if has_listener else []
    )
    calls: Any = trace.observer
    if has_trace:
        assert (trace.command_count, trace.is_sensitive, trace.exchange_time) == (1, is_sensitive, 0.75)
        calls.command_started.assert_called_once_with(trace, sent_command)
        assert [call.args for call in calls.command_ended.call_args_list] == [
            (trace, sent_command, reply, None),
            (trace, sent_command, None, error),
        ]
    else:
        assert not calls.mock_calls


def test_trace_stays_sensitive_after_sensitive_command(sent_command: Any, trace: OperationTrace) -> None:
    commands = TracedCommands((), Mock(active=True))
    for sensitive in (False, True, False):
        sent_command.is_sensitive = sensitive
        commands.started(sent_command)
    assert trace.is_sensitive and trace.command_count == 3
