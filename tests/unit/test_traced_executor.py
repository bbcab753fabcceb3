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
from gmongo.execution import traced_executor as observing
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation, OperationContext
from gmongo.execution.operation_trace import Observer, Observers, Phase
from gmongo.execution.retry import ExecutionSettings
from gmongo.execution.traced_executor import TracedExecutor, with_observers


class PingOperation(Operation):
    name = "ping"


class RecordingObserver(Observer):
    """An observer that records the calls of its methods, which raise the errors in ``raises``."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.enabled = True
        self.raises: dict[str, BaseException] = {}

    def is_enabled(self) -> bool:
        return self.enabled

    def _record(self, callback: str, *arguments: Any) -> None:
        self.received.append((callback, *arguments))
        if callback in self.raises:
            raise self.raises[callback]

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
def traced(monkeypatch: pytest.MonkeyPatch) -> TracedScenario:
    return TracedScenario(monkeypatch)


def session_with_transaction(in_transaction: bool) -> Any:
    return SimpleNamespace(transaction=SimpleNamespace(active=in_transaction, observer_data=None))


@pytest.fixture(autouse=True)
def use_session_as_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "state_of", lambda session: session)


def test_observer_receives_start_and_end_of_successful_operation(traced: TracedScenario) -> None:
    assert traced.executor.run(traced.operation, None, 5.0) == "result"
    [(trace, session, deadline, timed)] = traced.traces
    assert (trace.name, trace.attempts, session, deadline, timed) == ("ping", 1, None, 5.0, False)
    assert traced.observer.received == [("started", None), ("ended", None)]
    assert traced.operation.trace is None and traced.executor.observers.active is True


@pytest.mark.parametrize("error", [AutoReconnect("x"), GreenletExit()])
def test_observer_receives_error_of_failed_operation(traced: TracedScenario, error: BaseException) -> None:
    traced.outcome = error
    with pytest.raises(type(error)):
        traced.executor.run(traced.operation)
    selection_ended = ("wait_ended", Phase.SELECTION, 0.0, error)
    assert traced.observer.received == [("started", None), selection_ended, ("ended", error)]
    assert traced.operation.trace is None and not traced.reaped


def test_result_of_operation_is_reaped_if_observer_is_interrupted(traced: TracedScenario) -> None:
    traced.observer.raises["ended"] = GreenletExit()
    with pytest.raises(GreenletExit):
        traced.executor.run(traced.operation)
    assert traced.reaped.pop() == "result"
    traced.observer.raises.clear()
    first = iter([GreenletExit()])

    def raise_at_first_call(trace: Any, error: Any) -> None:
        for each in first:
            raise each

    traced.executor.observers.operation_ended = raise_at_first_call  # type: ignore[method-assign]
    with pytest.raises(GreenletExit):
        traced.executor.run(traced.operation)
    assert traced.reaped == ["result"]


def test_operation_has_no_trace_if_observer_is_disabled(traced: TracedScenario) -> None:
    traced.observer.enabled = False
    assert traced.executor.run(traced.operation) == "result"
    assert traced.traces == [(None, None, None, False)] and traced.executor.observers.active is False
    with traced.executor.operation_scope("x", traced.operation.context, None) as trace:
        assert trace is None
    traced.executor._wait(5.0, traced.operation)
    transaction: Any = SimpleNamespace(observer_data="old")
    traced.executor.transaction_started(transaction)
    assert transaction.observer_data is None
    traced.executor.transaction_ended(transaction, None)
    traced.executor._will_retry(traced.operation, AutoReconnect("x"))
    assert traced.observer.received == []


def test_operation_inside_scope_uses_trace_of_scope(traced: TracedScenario) -> None:
    session = session_with_transaction(True)
    with traced.executor.operation_scope("bulkWrite", traced.operation.context, session) as trace:
        assert trace is not None and trace.summary == "bulkWrite db.c"
        traced.operation.trace = trace
        traced.observer.enabled = False
        for number in (1, 2):
            traced.executor.run(traced.operation)
            assert trace.attempts == number
        assert traced.executor.observers.active is True
    assert traced.observer.received == [("started", session.transaction), ("ended", None)]
    traced.observer.enabled = True
    admin = OperationContext("admin", "$cmd.aggregate")
    with (
        pytest.raises(KeyError) as caught,
        traced.executor.operation_scope("bulkWrite", admin, session_with_transaction(False)) as trace,
    ):
        assert trace is not None and trace.summary == "bulkWrite admin"
        raise KeyError
    assert traced.observer.received[2:] == [("started", None), ("ended", caught.value)]


@pytest.mark.parametrize("seconds", [0.0, 2.0])
@pytest.mark.parametrize("interruption", [None, GreenletExit()])
def test_observer_receives_backoff_between_attempts(traced: TracedScenario, seconds: float, interruption: Any) -> None:
    with traced.executor.operation_scope("x", traced.operation.context, None) as trace:
        assert trace is not None
        traced.operation.trace = trace
        traced.observer.received.clear()
        error = AutoReconnect("x")
        trace.begin_attempt()
        traced.executor._will_retry(traced.operation, error)
        assert traced.observer.received == [("wait_ended", Phase.SELECTION, 0.0, error), ("failed", error)]
        traced.observer.received.clear()
        traced.outcome = interruption
        if interruption is None:
            traced.executor._wait(seconds, traced.operation)
            assert traced.observer.received == ([("wait_ended", Phase.BACK_OFF, 0.0, None)] if seconds else [])
            assert trace.attempts == 2 and trace.waits_for is Phase.SELECTION
        else:
            with pytest.raises(GreenletExit):
                traced.executor._wait(seconds, traced.operation)
            assert (
                traced.observer.received == [("wait_ended", Phase.BACK_OFF, 0.0, interruption)] and trace.attempts == 1
            )
