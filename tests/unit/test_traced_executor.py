"""The executor of an observed client calls the observers. The executor creates no trace if no
observer is enabled.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from gevent import GreenletExit

from gmongo import _clock
from gmongo.errors import AutoReconnect
from gmongo.events.command import CommandEvents
from gmongo.execution import traced_executor as traced_executor_module
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation, OperationContext
from gmongo.execution.operation_trace import Observer, Observers, Phase
from gmongo.execution.retry import ExecutionSettings
from gmongo.execution.traced_executor import TracedExecutor, with_observers


class PingOperation(Operation):
    name = "ping"


class RecordingObserver(Observer):
    """An observer that records its calls. Calls with a name in ``errors_by_name`` raise the error."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.enabled = True
        self.errors_by_name: dict[str, BaseException] = {}

    def is_enabled(self) -> bool:
        return self.enabled

    def _record(self, callback: str, *arguments: Any) -> None:
        self.received.append((callback, *arguments))
        if callback in self.errors_by_name:
            raise self.errors_by_name[callback]

    def operation_started(self, trace: Any, transaction: Any) -> None:
        self._record("started", transaction)

    def operation_ended(self, trace: Any, error: Any) -> None:
        self._record("ended", error)

    def wait_ended(self, trace: Any, phase: Any, seconds: float, connecting: float, error: Any) -> None:
        self._record("wait_ended", phase, seconds, error)

    def attempt_failed(self, trace: Any, error: Any) -> None:
        self._record("failed", error)

    def transaction_started(self, transaction: Any) -> None:
        self._record("transaction started")

    def transaction_ended(self, transaction: Any, error: Any) -> None:
        self._record("transaction ended", error)


class TracedScenario:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.observer = RecordingObserver()
        kind = with_observers(Executor)
        assert kind.__name__ == "TracedExecutor" and issubclass(kind, TracedExecutor)
        self.executor = kind(Mock(epoch=0), ExecutionSettings(), CommandEvents((), silent=False))
        self.executor.observers = Observers((self.observer,))
        self.operation = PingOperation(OperationContext("db", "c"))
        self.outcome: Any = "result"
        self.traces: list[Any] = []
        monkeypatch.setattr(Executor, "run", self._run)
        monkeypatch.setattr(Executor, "_wait", self._wait)
        self.reaped: list[Any] = []
        monkeypatch.setattr(Executor, "reap", lambda _, operation, result: self.reaped.append(result))
        monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)

    def _run(self, operation: Any, session: Any = None, deadline: Any = None) -> Any:
        self.traces.append((operation.trace, session, deadline, "decode" in operation.__dict__))
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def _wait(self, seconds: float, operation: Any) -> None:
        self._run(operation)


@pytest.fixture
def scenario(monkeypatch: pytest.MonkeyPatch) -> TracedScenario:
    return TracedScenario(monkeypatch)


def session_with_transaction(in_transaction: bool) -> Any:
    return SimpleNamespace(transaction=SimpleNamespace(active=in_transaction, observer_data=None))


@pytest.fixture(autouse=True)
def use_session_as_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_executor_module, "state_of", lambda session: session)


def test_observer_receives_start_and_end_of_successful_operation(scenario: TracedScenario) -> None:
    assert scenario.executor.run(scenario.operation, None, 5.0) == "result"
    [(trace, session, deadline, times_decoding)] = scenario.traces
    assert (trace.name, trace.attempt_count, session, deadline, times_decoding) == ("ping", 1, None, 5.0, False)
    assert scenario.observer.received == [("started", None), ("ended", None)]
    assert scenario.operation.trace is None and scenario.executor.observers.active is True


@pytest.mark.parametrize("error", [AutoReconnect("x"), GreenletExit()])
def test_observer_receives_error_of_failed_operation(scenario: TracedScenario, error: BaseException) -> None:
    scenario.outcome = error
    with pytest.raises(type(error)):
        scenario.executor.run(scenario.operation)
    selection_ended = ("wait_ended", Phase.SELECTION, 0.0, error)
    assert scenario.observer.received == [("started", None), selection_ended, ("ended", error)]
    assert scenario.operation.trace is None and not scenario.reaped


def test_result_of_operation_is_reaped_if_observer_is_interrupted(scenario: TracedScenario) -> None:
    scenario.observer.errors_by_name["ended"] = GreenletExit()
    with pytest.raises(GreenletExit):
        scenario.executor.run(scenario.operation)
    assert scenario.reaped.pop() == "result"
    scenario.observer.errors_by_name.clear()
    pending_errors = iter([GreenletExit()])

    def raise_at_first_call(trace: Any, error: Any) -> None:
        for each in pending_errors:
            raise each

    scenario.executor.observers.operation_ended = raise_at_first_call  # type: ignore[method-assign]
    with pytest.raises(GreenletExit):
        scenario.executor.run(scenario.operation)
    assert scenario.reaped == ["result"]


def test_operation_has_no_trace_if_observer_is_disabled(scenario: TracedScenario) -> None:
    scenario.observer.enabled, session = False, session_with_transaction(False)
    assert scenario.executor.run(scenario.operation, session, 5.0) == "result"
    assert scenario.traces == [(None, session, 5.0, False)] and scenario.executor.observers.active is False
    with scenario.executor.operation_scope("x", scenario.operation.context, None) as trace:
        assert trace is None
    scenario.executor._wait(5.0, scenario.operation)
    transaction: Any = SimpleNamespace(observer_data="old")
    scenario.executor.transaction_started(transaction)
    assert transaction.observer_data is None
    scenario.executor.transaction_ended(transaction, None)
    scenario.executor._will_retry(scenario.operation, AutoReconnect("x"))
    assert scenario.observer.received == []


def test_operation_inside_scope_uses_trace_of_scope(scenario: TracedScenario) -> None:
    session = session_with_transaction(True)
    with scenario.executor.operation_scope("bulkWrite", scenario.operation.context, session) as trace:
        assert trace is not None and trace.summary == "bulkWrite db.c"
        scenario.operation.trace = trace
        scenario.observer.enabled = False
        for number in (1, 2):
            scenario.executor.run(scenario.operation)
            assert trace.attempt_count == number
        assert scenario.executor.observers.active is True
    assert scenario.observer.received == [("started", session.transaction), ("ended", None)]
    scenario.observer.enabled = True
    admin = OperationContext("admin", "$cmd.aggregate")
    with (
        pytest.raises(KeyError) as caught,
        scenario.executor.operation_scope("bulkWrite", admin, session_with_transaction(False)) as trace,
    ):
        assert trace is not None and trace.summary == "bulkWrite admin"
        raise KeyError
    assert scenario.observer.received[2:] == [("started", None), ("ended", caught.value)]


@pytest.mark.parametrize("seconds", [0.0, 2.0])
@pytest.mark.parametrize("interruption", [None, GreenletExit()])
def test_observer_receives_backoff_before_retry(scenario: TracedScenario, seconds: float, interruption: Any) -> None:
    with scenario.executor.operation_scope("x", scenario.operation.context, None) as trace:
        assert trace is not None
        scenario.operation.trace = trace
        scenario.observer.received.clear()
        error = AutoReconnect("x")
        trace.begin_attempt()
        scenario.executor._will_retry(scenario.operation, error)
        assert scenario.observer.received == [("wait_ended", Phase.SELECTION, 0.0, error), ("failed", error)]
        scenario.observer.received.clear()
        scenario.outcome = interruption
        if interruption is None:
            scenario.executor._wait(seconds, scenario.operation)
            assert scenario.observer.received == ([("wait_ended", Phase.BACK_OFF, 0.0, None)] if seconds else [])
            assert trace.attempt_count == 2 and trace.waits_for is Phase.SELECTION
        else:
            with pytest.raises(GreenletExit):
                scenario.executor._wait(seconds, scenario.operation)
            assert trace.attempt_count == 1 and scenario.observer.received == [
                ("wait_ended", Phase.BACK_OFF, 0.0, interruption)
            ]
