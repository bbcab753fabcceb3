"""The trace of an operation: which second goes where, and which observer is told of what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from gevent import GreenletExit

from gmongo import _clock
from gmongo.errors import AutoReconnect
from gmongo.execution.attempt import Attempt
from gmongo.execution.operation_trace import Observer, Observers, OperationTrace, Phase
from gmongo.execution.traced_executor import TracedCommands, trace_of
from gmongo.monitoring import CommandListener

ADDRESS = ("h", 1)
TIMES = ("selecting", "checking_out", "backing_off", "connecting", "exchanging", "decoding", "round_trip")


class Clock:
    """Time passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_clock, "monotonic", clock)
    return clock


@pytest.fixture
def trace(clock: Clock) -> OperationTrace:
    return OperationTrace("find", "shop", "orders", Mock())


def times_of(trace: OperationTrace) -> dict[str, float]:
    """Those that are not 0."""
    return {name: getattr(trace, name) for name in TIMES if getattr(trace, name)}


def topology(round_trip: float | None, known: bool = True) -> Any:
    described = {ADDRESS: SimpleNamespace(round_trip_time=round_trip)} if known else {}
    return SimpleNamespace(description=described)


def connection(established_in: float, last_command: str | None) -> Any:
    return SimpleNamespace(established_in=established_in, last_command=last_command)


def test_a_new_account_is_empty(trace: OperationTrace, clock: Clock) -> None:
    assert times_of(trace) == {} and trace.notes == {}
    assert (trace.address, trace.cursor_id, trace.waits_for, trace.wait_started) == (None, None, None, 0.0)
    assert (trace.sensitive, trace.tries, trace.commands) == (False, 0, 0)
    assert (trace.started, trace.elapsed()) == (1000.0, 0.0)
    clock.now += 3
    assert trace.elapsed() == 3
    assert trace.summary == "find shop.orders"
    assert OperationTrace("ping", "shop", "", Mock()).summary == "ping shop"
    assert not [name for name in OperationTrace.__slots__ if not hasattr(trace, name)]


@pytest.mark.parametrize("round_trip", [None, 0.25])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("established", "used", "connecting"), [(1.0, False, 1.0), (9.0, False, 2.0), (1.0, True, 0.0)]
)
def test_every_second_goes_somewhere(
    trace: OperationTrace,
    clock: Clock,
    round_trip: float | None,
    known: bool,
    established: float,
    used: bool,
    connecting: float,
) -> None:
    for number in (1, 2):
        trace.begin_try()
        assert (trace.tries, trace.waits_for, trace.wait_started) == (number, Phase.SELECTION, clock.now)
        clock.now += 1
        trace.selected(ADDRESS, topology(round_trip, known))
        assert (trace.address, trace.waits_for, trace.wait_started) == (ADDRESS, Phase.CHECK_OUT, clock.now)
        clock.now += 2
        trace.checked_out(connection(established, "ping" if used else None))
        assert trace.waits_for is None
        began = clock.now
        clock.now += 4
        trace.waited(Phase.BACK_OFF, began, None)
    expected = {"selecting": 2.0, "checking_out": 4.0, "backing_off": 8.0, "connecting": 2 * connecting}
    if known and round_trip:
        expected["round_trip"] = round_trip
    assert times_of(trace) == {name: seconds for name, seconds in expected.items() if seconds}
    told: Any = trace.observer.waited
    assert [call.args[1:] for call in told.call_args_list] == [
        (Phase.SELECTION, 1.0, 0.0, None),
        (Phase.CHECK_OUT, 2.0, connecting, None),
        (Phase.BACK_OFF, 4.0, 0.0, None),
    ] * 2


@pytest.mark.parametrize("when", ["selecting", "checking_out", "running", "pinned"])
def test_a_try_that_fails_ends_its_wait(trace: OperationTrace, clock: Clock, when: str) -> None:
    trace.begin_try()
    clock.now += 1
    if when != "selecting":
        trace.selected(ADDRESS, topology(None))
    if when == "running":
        trace.checked_out(connection(0.0, None))
    if when == "pinned":
        trace.pinned()
        assert trace.waits_for is None
    told: Any = trace.observer.waited
    told.reset_mock()
    clock.now += 2
    error = AutoReconnect("gone")
    for _ in range(2):
        trace.end_try(error)
    assert trace.waits_for is None
    if when == "selecting":
        told.assert_called_once_with(trace, Phase.SELECTION, 3.0, 0.0, error)
    elif when == "checking_out":
        told.assert_called_once_with(trace, Phase.CHECK_OUT, 2.0, 0.0, error)
    else:
        told.assert_not_called()


@pytest.mark.parametrize("fails", [False, True])
def test_decoding_is_timed(trace: OperationTrace, clock: Clock, fails: bool) -> None:
    def decode(body: Any) -> str:
        clock.now += 2
        if fails:
            raise ValueError
        return f"decoded {body}"

    for _ in range(2):
        if fails:
            with pytest.raises(ValueError):
                trace.decode(decode, b"")
        else:
            assert trace.decode(decode, "body") == "decoded body"  # type: ignore[arg-type]
    assert times_of(trace) == {"decoding": 4.0}


def test_an_account_is_that_of_its_operation() -> None:
    operation: Any = SimpleNamespace(
        title="getMore", context=SimpleNamespace(database="d"), collection="c", cursor_id=7
    )
    told: Any = Mock()
    trace = trace_of(operation, told)
    assert (trace.name, trace.database, trace.collection, trace.cursor_id) == ("getMore", "d", "c", 7)
    assert trace.observer is told
    del operation.cursor_id
    assert trace_of(operation, told).cursor_id is None


# Observers

TOLD: dict[str, tuple[Any, ...]] = {
    "operation_started": (1, 2),
    "operation_ended": (1, 2),
    "waited": (1, 2, 3, 4, 5),
    "command_started": (1, 2),
    "command_ended": (1, 2, 3, 4),
    "connection_used": (1, 2, 3),
    "connection_made": (1, 2),
    "try_failed": (1, 2),
    "transaction_started": (1,),
    "transaction_ended": (1, 2),
}


def observer(**members: Any) -> Observer:
    kind: type[Observer] = type("One", (Observer,), members)
    return kind()


def observing(heard: list[Any], name: str, what: str, raises: BaseException | None = None) -> Observer:
    """An observer of one thing."""

    def hear(self: Any, *arguments: Any) -> None:
        heard.append((name, *arguments))
        if raises is not None:
            raise raises

    return observer(**{what: hear})


@pytest.mark.parametrize("what", TOLD)
def test_all_that_listen_are_told(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[Any] = []
    arguments = TOLD[what]
    first, second = observing(heard, "first", what, ValueError("mine")), observing(heard, "second", what)
    for observers, names in (
        ((), []),
        ((Observer(),), []),
        ((first,), ["first"]),
        ((first, Observer(), second), ["first", "second"]),
    ):
        heard.clear()
        getattr(Observers(observers), what)(*arguments)
        assert heard == [(name, *arguments) for name in names]
        assert ("ValueError: mine" in capsys.readouterr().err) is ("first" in names)
    for each in ((observing(heard, "x", what, GreenletExit()),), (observing(heard, "x", what, GreenletExit()), second)):
        with pytest.raises(GreenletExit):
            getattr(Observers(each), what)(*arguments)


def test_an_observer_that_says_nothing_does_nothing() -> None:
    plain = Observer()
    assert plain.wanted() is True and plain.times_decoding is False
    assert plain.carried(pytest.fail) is pytest.fail
    for what, arguments in TOLD.items():
        assert getattr(plain, what)(*arguments) is None


@pytest.mark.parametrize("wants", [(), (False,), (True,), (False, True), (True, False), (False, False)])
def test_observers_want_what_one_of_them_wants(wants: tuple[bool, ...]) -> None:
    each = tuple(observer(wanted=lambda _, want=want: want, times_decoding=want) for want in wants)
    observers = Observers(each)
    assert observers.wanted() is any(wants) is observers.times_decoding
    assert observers.active is False and observers.all is each


def test_what_works_for_a_greenlet_has_the_contexts_of_all_observers() -> None:
    def carrying(name: str) -> Any:
        def carried(run: Callable[[], None]) -> Callable[[], None]:
            return lambda: (ran.append(name), run())[0]  # type: ignore[func-returns-value]

        return observer(carried=lambda _, run: carried(run))

    ran: list[str] = []
    Observers((carrying("a"), carrying("b"))).carried(lambda: ran.append("run"))()
    assert ran == ["b", "a", "run"]


# Commands


class Hears(CommandListener):
    def __init__(self, heard: list[Any]) -> None:
        self.started = self.succeeded = self.failed = heard.append  # type: ignore[method-assign, assignment]


@pytest.fixture
def sent(trace: OperationTrace) -> Iterator[Any]:
    hello = SimpleNamespace(connection_id=5)
    link = SimpleNamespace(address=ADDRESS, hello=hello, id=3, service_id=None)
    yield Mock(
        trace=trace, sensitive=False, connection=link, command={"find": "c"}, name="find", database="d",
        request_id=1, operation_id=2, started=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("listens", [False, True])
@pytest.mark.parametrize("has_account", [False, True])
@pytest.mark.parametrize("sensitive", [False, True])
def test_commands_of_an_observed_client(
    sent: Any, trace: OperationTrace, listens: bool, has_account: bool, sensitive: bool
) -> None:
    heard: list[Any] = []
    observers: Any = Mock(active=False)
    commands = TracedCommands((Hears(heard),) if listens else (), observers)
    assert commands.wanted() is listens
    observers.active = True
    assert commands.wanted() is True
    sent.sensitive = sensitive
    if not has_account:
        sent.trace = None
    error, reply = AutoReconnect("gone"), {"ok": 1}
    commands.started(sent)
    commands.succeeded(sent, 0.5, reply)
    commands.failed(sent, 0.25, error)
    assert [type(event).__name__ for event in heard] == (
        ["CommandStartedEvent", "CommandSucceededEvent", "CommandFailedEvent"] if listens else []
    )
    told: Any = trace.observer
    if has_account:
        assert (trace.commands, trace.sensitive, trace.exchanging) == (1, sensitive, 0.75)
        told.command_started.assert_called_once_with(trace, sent)
        assert [call.args for call in told.command_ended.call_args_list] == [
            (trace, sent, reply, None),
            (trace, sent, None, error),
        ]
    else:
        assert not told.mock_calls


@pytest.mark.parametrize("how", ["succeeded", "failed"])
def test_an_observer_is_told_of_the_end_though_a_listener_is_interrupted(
    sent: Any, trace: OperationTrace, how: str
) -> None:
    def interrupted(event: Any) -> None:
        raise GreenletExit

    listener = Hears([])
    setattr(listener, how, interrupted)
    commands = TracedCommands((listener,), Mock(active=True))
    with pytest.raises(GreenletExit):
        getattr(commands, how)(sent, 0.5, {"ok": 1} if how == "succeeded" else AutoReconnect("gone"))
    assert trace.exchanging == 0.5 and trace.observer.command_ended.called  # type: ignore[attr-defined]


def test_a_secret_stays_one(sent: Any, trace: OperationTrace) -> None:
    commands = TracedCommands((), Mock(active=True))
    for sensitive in (False, True, False):
        sent.sensitive = sensitive
        commands.started(sent)
    assert trace.sensitive and trace.commands == 3


@pytest.mark.parametrize("pinned", [False, True])
def test_how_long_a_connection_was_in_use(trace: OperationTrace, clock: Clock, pinned: bool) -> None:
    """Until it is checked in; what holds it from now on checks it in later."""
    attempt = Attempt(Mock(trace=trace, is_write=True), None)
    used, pool = Mock(checked_out_at=clock.now, address=ADDRESS), Mock()
    clock.now += 7
    attempt._check_in(pool, used, pinned)
    assert pool.check_in.called is not pinned
    told = [call.args for call in trace.observer.connection_used.call_args_list]  # type: ignore[attr-defined]
    assert told == ([] if pinned else [(trace, ADDRESS, 7.0)])
