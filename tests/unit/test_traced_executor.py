"""The executor of an observed client: what it tells its observers. It is the plain one when none wants to know."""

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
from gmongo.execution.operation import Operation
from gmongo.execution.operation_context import OperationContext
from gmongo.execution.operation_trace import Observer, Observers, Phase
from gmongo.execution.retry import ExecutionSettings
from gmongo.execution.traced_executor import TracedExecutor, observed


class Ping(Operation):
    name = "ping"


class Hears(Observer):
    """Hears everything, and is interrupted where a test says so."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.wants = True
        self.raises: dict[str, BaseException] = {}

    def wanted(self) -> bool:
        return self.wants

    def _hear(self, what: str, *more: Any) -> None:
        self.heard.append((what, *more))
        if what in self.raises:
            raise self.raises[what]

    def operation_started(self, trace: Any, transaction: Any) -> None:
        self._hear("started", transaction)

    def operation_ended(self, trace: Any, error: Any) -> None:
        self._hear("ended", error)

    def waited(self, trace: Any, wait: Any, seconds: float, connecting: float, error: Any) -> None:
        self._hear("waited", wait, seconds, error)

    def try_failed(self, trace: Any, error: Any) -> None:
        self._hear("failed", error)

    def transaction_started(self, transaction: Any) -> None:
        self._hear("transaction started")

    def transaction_ended(self, transaction: Any, error: Any) -> None:
        self._hear("transaction ended", error)


class Scene:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hears = Hears()
        kind = observed(Executor)
        assert kind.__name__ == "TracedExecutor" and issubclass(kind, TracedExecutor)
        self.executor = kind(Mock(epoch=0), ExecutionSettings(), CommandEvents((), silent=False))
        self.executor.observers = Observers((self.hears,))
        self.operation = Ping(OperationContext("db", "c"))
        self.outcome: Any = "result"
        self.accounts: list[Any] = []
        monkeypatch.setattr(Executor, "run", self._run)
        monkeypatch.setattr(Executor, "_wait", self._wait)
        self.reaped: list[Any] = []
        monkeypatch.setattr(Executor, "reap", lambda _, operation, result: self.reaped.append(result))
        monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)

    def _run(self, operation: Any, session: Any = None, deadline: Any = None) -> Any:
        self.accounts.append((operation.trace, session, deadline, "decode" in operation.__dict__))
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def _wait(self, seconds: float, operation: Any) -> None:
        self._run(operation)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def session_of(active: bool) -> Any:
    return SimpleNamespace(transaction=SimpleNamespace(active=active, observed=None))


@pytest.fixture(autouse=True)
def sessions_are_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "state_of", lambda session: session)


def test_an_operation_is_told(scene: Scene) -> None:
    assert scene.executor.run(scene.operation, None, 5.0) == "result"
    [(trace, session, deadline, timed)] = scene.accounts
    assert (trace.name, trace.tries, session, deadline, timed) == ("ping", 1, None, 5.0, False)
    assert scene.hears.heard == [("started", None), ("ended", None)]
    assert scene.operation.trace is None and scene.executor.observers.active is True


@pytest.mark.parametrize("error", [AutoReconnect("x"), GreenletExit()])
def test_an_operation_that_fails_is_told(scene: Scene, error: BaseException) -> None:
    scene.outcome = error
    with pytest.raises(type(error)):
        scene.executor.run(scene.operation)
    assert scene.hears.heard == [("started", None), ("waited", Phase.SELECTION, 0.0, error), ("ended", error)]
    assert scene.operation.trace is None and not scene.reaped


def test_what_is_thrown_after_the_result_has_it_reaped(scene: Scene) -> None:
    scene.hears.raises["ended"] = GreenletExit()
    with pytest.raises(GreenletExit):
        scene.executor.run(scene.operation)
    assert scene.reaped == []  # it was thrown again at the end of the end
    scene.hears.raises.clear()
    first = iter([GreenletExit()])

    def ended(trace: Any, error: Any) -> None:
        for each in first:
            raise each

    scene.executor.observers.operation_ended = ended  # type: ignore[method-assign]
    with pytest.raises(GreenletExit):
        scene.executor.run(scene.operation)
    assert scene.reaped == ["result"]


@pytest.mark.parametrize("times", [False, True])
def test_decoding_is_timed_if_an_observer_wants_that(scene: Scene, times: bool) -> None:
    scene.executor.observers.times_decoding = times
    scene.executor.run(scene.operation)
    assert scene.accounts[0][3] is times and "decode" not in scene.operation.__dict__


def test_an_operation_that_no_observer_wants_is_a_plain_one(scene: Scene) -> None:
    scene.hears.wants = False
    assert scene.executor.run(scene.operation) == "result"
    assert scene.accounts == [(None, None, None, False)] and scene.executor.observers.active is False
    with scene.executor.operation_scope("x", scene.operation.context, None) as trace:
        assert trace is None
    scene.executor._wait(5.0, scene.operation)
    transaction: Any = SimpleNamespace(observed="old")
    scene.executor.transaction_started(transaction)
    assert transaction.observed is None
    scene.executor.transaction_ended(transaction, None)
    scene.executor._will_retry(scene.operation, AutoReconnect("x"))
    assert scene.hears.heard == []


def test_a_part_of_an_operation_goes_into_its_account(scene: Scene) -> None:
    session = session_of(True)
    with scene.executor.operation_scope("bulkWrite", scene.operation.context, session) as trace:
        assert trace is not None and trace.summary == "bulkWrite db.c"
        scene.operation.trace = trace
        scene.hears.wants = False
        for number in (1, 2):
            scene.executor.run(scene.operation)
            assert trace.tries == number
        assert scene.executor.observers.active is True
    assert scene.hears.heard == [("started", session.transaction), ("ended", None)]
    scene.hears.wants = True
    admin = OperationContext("admin", "$cmd.aggregate")
    with (
        pytest.raises(KeyError) as caught,
        scene.executor.operation_scope("bulkWrite", admin, session_of(False)) as trace,
    ):
        assert trace is not None and trace.summary == "bulkWrite admin"
        raise KeyError
    assert scene.hears.heard[2:] == [("started", None), ("ended", caught.value)]


@pytest.mark.parametrize("where", ["operation", "scope"])
@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_the_transaction_of_a_bound_session(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, where: str, bound: bool, given: bool
) -> None:
    inside, own = session_of(True), session_of(True)
    monkeypatch.setattr(observing, "binding", lambda: inside if bound else None)
    monkeypatch.setattr(observing, "bound_session", lambda executor: inside if bound else None)
    session = own if given else None
    if where == "operation":
        scene.executor.run(scene.operation, session)
        assert scene.accounts[0][1] is (own if given else inside if bound else None)
    else:
        with scene.executor.operation_scope("x", scene.operation.context, session):
            pass
    expected = own.transaction if given else inside.transaction if bound else None
    assert scene.hears.heard[0] == ("started", expected)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("active", [False, True])
def test_what_belongs_to_a_transaction(scene: Scene, ends: bool, active: bool) -> None:
    session = session_of(active)
    assert observing._transaction_of(ends, session) is (session.transaction if ends or active else None)
    assert observing._transaction_of(ends, None) is None
    assert observing._transaction_of(ends, SimpleNamespace(transaction=None)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, 2.0])
@pytest.mark.parametrize("thrown", [None, GreenletExit()])
def test_a_wait_between_two_tries(scene: Scene, seconds: float, thrown: Any) -> None:
    with scene.executor.operation_scope("x", scene.operation.context, None) as trace:
        assert trace is not None
        scene.operation.trace = trace
        scene.hears.heard.clear()
        error = AutoReconnect("x")
        trace.begin_try()
        scene.executor._will_retry(scene.operation, error)
        assert scene.hears.heard == [("waited", Phase.SELECTION, 0.0, error), ("failed", error)]
        scene.hears.heard.clear()
        scene.outcome = thrown
        if thrown is None:
            scene.executor._wait(seconds, scene.operation)
            assert scene.hears.heard == ([("waited", Phase.BACK_OFF, 0.0, None)] if seconds else [])
            assert trace.tries == 2 and trace.waits_for is Phase.SELECTION
        else:
            with pytest.raises(GreenletExit):
                scene.executor._wait(seconds, scene.operation)
            assert scene.hears.heard == [("waited", Phase.BACK_OFF, 0.0, thrown)] and trace.tries == 1


def test_transactions_are_told(scene: Scene) -> None:
    transaction: Any = SimpleNamespace(observed="old")
    scene.executor.transaction_started(transaction)
    assert transaction.observed is None
    scene.executor.transaction_ended(transaction, None)
    transaction.observed = "span"
    scene.executor.transaction_ended(transaction, error := AutoReconnect("x"))
    assert scene.hears.heard == [("transaction started",), ("transaction ended", error)]


@pytest.mark.parametrize("listened", [False, True])
def test_without_a_listener_no_event_is_made(listened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    for name in ("started", "succeeded", "failed"):
        monkeypatch.setattr(CommandEvents, name, lambda *_, name=name: made.append(name))
    events = observing.TracedCommands((Mock(),) if listened else (), Observers((Hears(),)))
    sent: Any = Mock(trace=None)
    events.started(sent)
    events.succeeded(sent, 1.0, {})
    events.failed(sent, 1.0, OSError())
    assert made == (["started", "succeeded", "failed"] if listened else [])


def test_an_operation_that_is_not_observed_keeps_its_session_and_deadline(scene: Scene) -> None:
    scene.hears.wants = False
    session = session_of(False)
    assert scene.executor.run(scene.operation, session, 5.0) == "result"
    assert scene.accounts == [(None, session, 5.0, False)] and not scene.hears.heard
