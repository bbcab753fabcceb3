"""Parts of a pool: generations, report of checked-out connections, pins, background, late replies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from weakref import ref

import gevent
import pytest
from bson import ObjectId
from gevent import GreenletExit

from gmongo import _clock
from gmongo.cmap import background, pending_replies
from gmongo.cmap.checked_out_report import checked_out, greenlet_name
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.generation import Generations
from gmongo.cmap.pin import PinnedConnection
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.cmap.pool_state import PoolState, StateMachine
from gmongo.errors import AutoReconnect, InvalidOperation
from gmongo.execution.late_reply import LateReply

ONE, OTHER = ObjectId(), ObjectId()


def test_service_has_own_generation_while_it_has_connections() -> None:
    found = Generations()
    found.advance(ONE)  # the service is unknown
    assert (found.current, found.of(None), found.of(ONE)) == (0, 0, 0)
    found.advance()
    assert (found.current, found.of(None), found.of(ONE)) == (1, 1, 0)
    assert [found.join(ONE), found.join(ONE), found.join(OTHER)] == [0, 0, 0]
    for _ in range(2):
        found.advance(ONE)
    assert (found.of(ONE), found.of(OTHER), found.current, found.join(ONE)) == (2, 0, 1, 2)
    for _ in range(2):
        found.leave(ONE)
        assert found.of(ONE) == 2
    found.leave(ONE)
    assert found.of(ONE) == 0 and found.join(ONE) == 0
    found.leave(None)
    found.leave(ObjectId())
    found.advance(OTHER)
    assert found.of(OTHER) == 1


def checked_out_connection(number: int, since: float, holder: Any, **more: Any) -> Connection:
    connection = Connection(("h", 1))
    connection.id, connection.checked_out_at, connection.holder = number, since, holder
    for name, value in more.items():
        setattr(connection, name, value)
    return connection


def test_report_lists_checked_out_connections_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 100.0)
    me = ref(gevent.getcurrent())
    first = checked_out_connection(1, 10.0, me, last_command="find", purpose=Purpose.CURSOR)
    second, third = checked_out_connection(2, 20.0, me), checked_out_connection(3, 5.0, None)
    shown = checked_out({first, second, third})
    assert [each["connection"] for each in shown] == [1, 2]
    assert shown[0] == {
        "connection": 1, "greenlet": greenlet_name(me()), "operation": "find", "purpose": "cursors", "seconds": 90.0,
    }  # fmt: skip
    assert (shown[1]["operation"], shown[1]["purpose"]) == (None, "other operations")
    assert [each["connection"] for each in checked_out([second, first], 1)] == [1]
    assert checked_out([second, first], 0) == [] == checked_out([])
    assert checked_out([Connection(("h", 1))]) == []  # a waiter takes the connection next


def test_greenlet_name_shows_state_and_function() -> None:
    assert greenlet_name(None) == "a greenlet that is gone"
    working = gevent.spawn(gevent.sleep, 10)
    name = str(working.name)
    assert greenlet_name(working) == f"{name} (sleep)"
    working.kill()
    assert greenlet_name(working) == f"{name}, which has ended"
    main = gevent.get_hub().parent
    assert greenlet_name(main) == "main"
    named: Any = SimpleNamespace(name="n", dead=False)
    assert greenlet_name(named) == "n"
    raw: Any = SimpleNamespace(parent=main)
    assert greenlet_name(raw) == "SimpleNamespace"


def test_last_release_of_shared_pin_checks_in_connection() -> None:
    pool, connection = Mock(), Connection(("h", 1))
    pin = PinnedConnection(pool, connection, Purpose.TRANSACTION)
    assert connection.purpose is Purpose.TRANSACTION and pin.share() is pin
    pin.release(AutoReconnect("first"))
    assert connection.purpose is Purpose.TRANSACTION and not pool.check_in.called
    error = AutoReconnect("last")
    pin.release(error)
    assert connection.purpose is Purpose.OTHER
    pool.check_in.assert_called_once_with(connection, error)
    soon = PinnedConnection(pool, connection, Purpose.CURSOR)
    soon.release_soon()
    assert pool.check_in.call_count == 1
    gevent.sleep(0.01)
    assert pool.check_in.call_count == 2


def test_pin_in_use_rejects_other_greenlet() -> None:
    connection = Connection(("h", 1))
    pin = PinnedConnection(Mock(), connection, Purpose.CURSOR)
    with pin as used:
        assert used is connection
        pin.check_free()
        other = gevent.spawn(pin.check_free)
        other.join()
        assert isinstance(other.exception, InvalidOperation)
        assert str(other.exception) == (
            "the connection that is pinned to this cursor or transaction is in use by another greenlet; "
            "one greenlet at a time may use it"
        )
    gevent.spawn(pin.check_free).get()
    for mid_message in (False, True):
        connection.mid_message = mid_message
        with pytest.raises(GreenletExit), pin:
            raise GreenletExit
        assert (connection.error is not None) is mid_message
    gevent.spawn(pin.check_free).get()


@pytest.mark.parametrize(
    ("options", "state", "rest", "pause"),
    [
        ((10.0, None), PoolState.READY, 0.0, 10.0),
        ((10.0, None), PoolState.PAUSED, 0.0, 10.0),
        ((10.0, 5.0), PoolState.READY, 0.0, 5.0),
        ((10.0, 0.01), PoolState.READY, 0.0, 0.1),
        ((10.0, 20.0), PoolState.READY, 0.0, 10.0),
        ((10.0, 5.0), PoolState.READY, 2.0, 2.0),
        ((10.0, None), PoolState.READY, 20.0, 10.0),
        ((0.0, None), PoolState.READY, 0.0, 0.0),
        ((-1.0, None), PoolState.READY, 0.0, None),
        ((10.0, None), PoolState.CLOSED, 0.0, None),
    ],
)
@pytest.mark.parametrize("short", [False, True])
def test_background_run_removes_perished_and_populates_short_pool(
    monkeypatch: pytest.MonkeyPatch, options: Any, state: PoolState, rest: float, pause: float | None, short: bool
) -> None:
    spawned: list[Any] = []
    monkeypatch.setattr(background, "spawn", lambda function, reference: spawned.append((function, reference())))
    pool = Mock(state=state, options=SimpleNamespace(background_interval=options[0], max_idle_time=options[1]))
    pool.machine.needs_connection.return_value, pool.machine.remaining_backoff.return_value = short, rest
    assert background.background_run(pool) == (background.END if pause is None else pause)
    assert pool.remove_perished.called is (pause is not None)
    assert spawned == ([(background._populate, pool)] if short and pause is not None else [])


@pytest.mark.parametrize("raised", [None, AutoReconnect("x"), GreenletExit()])
def test_background_connection_is_kept_if_established(raised: BaseException | None) -> None:
    pool, connection = Mock(), Mock()
    pool.machine.begin_populating.return_value = connection
    pool.establisher.establish.side_effect = raised
    if isinstance(raised, GreenletExit):
        with pytest.raises(GreenletExit):
            background._populate(ref(pool))
    else:
        background._populate(ref(pool))
    pool.establisher.establish.assert_called_once_with(connection, ref=False)
    holds = [call.args for call in connection.set_ref.call_args_list]
    assert holds == ([(False,), (True,)] if raised is None else [(False,)])
    assert pool.machine.make_available.called is (raised is None) and pool.finish.call_count == 1
    pool.machine.begin_populating.return_value = None
    background.populate(pool)
    assert pool.finish.call_count == 1 == pool.establisher.establish.call_count
    background._populate(lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("raised", [None, AutoReconnect("x"), "killed before start"])
@pytest.mark.parametrize("left", [False, True])
def test_end_of_drain_returns_or_closes_connection(monkeypatch: pytest.MonkeyPatch, raised: Any, left: bool) -> None:
    made: list[Any] = []
    greenlet = gevent.Greenlet
    monkeypatch.setattr(pending_replies, "Greenlet", lambda *arguments: made.append(greenlet(*arguments)) or made[-1])
    pool: Any = Mock(options=SimpleNamespace(drains=True, drain_time=2.0, drain_bytes=100))
    connection = Mock(inherited=left)
    connection.read_late_reply.side_effect = raised if isinstance(raised, Exception) else None
    pending_replies.start_reading_late_reply(pool, connection)
    if isinstance(raised, str):
        made[0].kill()
    gevent.joinall(made)
    gevent.sleep(0)
    assert connection.close.called is left
    assert [call.args for call in pool.end_draining.call_args_list] == ([] if left else [(connection,)])
    if not isinstance(raised, str):
        connection.read_late_reply.assert_called_once_with(2.0, 100)
    pending_replies._end_draining(lambda: None, gone := Mock(inherited=False))  # type: ignore[arg-type]
    assert gone.close.called


@pytest.mark.parametrize("cursor", [None, "cursor"])
@pytest.mark.parametrize("takes", [False, True])
def test_cursor_of_late_reply_goes_to_cursor_killer(cursor: Any, takes: bool) -> None:
    taken: list[Any] = []
    operation: Any = Mock()
    operation.late_cursor.return_value = cursor
    session = Mock()
    LateReply(operation, ("h", 1), lambda: taken.append if takes else None, session)(b"body")
    assert session.answered.call_count == 1
    operation.late_cursor.assert_called_once_with(b"body", ("h", 1))
    assert taken == ([cursor] if takes and cursor else [])


@pytest.mark.parametrize("state", PoolState)
@pytest.mark.parametrize("drains", [False, True])
@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("due", [False, True])
def test_only_ready_pool_awaits_late_reply(state: PoolState, drains: bool, stale: bool, late: bool, due: bool) -> None:
    options = PoolSettings(drains=drains)
    machine = StateMachine(("h", 1), options, ConnectionSettings(), Mock())
    machine.state = state
    connection = Connection(("h", 1))
    connection.generation = -1 if stale else 0
    connection.late_reply = Mock() if late else None
    connection.reply_is_due = due
    assert machine._may_drain(connection) is (state is PoolState.READY and (drains or due) and late and not stale)


def test_forked_child_may_populate_despite_pending_connection_of_parent() -> None:
    machine = StateMachine(("h", 1), PoolSettings(min_pool_size=1), ConnectionSettings(), Mock())
    machine.ready()
    machine._allow_populating(machine.generations.current)
    assert machine.begin_populating() is not None and machine.begin_populating() is None
    machine.mark_forked(OSError)
    machine.reset_after_fork()
    machine.ready()
    machine._allow_populating(machine.generations.current)
    assert machine.begin_populating() is not None


def test_purposes_have_documented_names() -> None:
    assert [each.value for each in Purpose] == ["cursors", "transactions", "other operations"]


def test_fork_marks_each_connection_with_same_error() -> None:
    machine = StateMachine(("h", 1), PoolSettings(), ConnectionSettings(), Mock())
    everything = {name: [Mock(), Mock()] for name in ("pending", "available", "in_use", "draining")}
    for name, found in everything.items():
        setattr(machine, name, found)
    errors: list[Exception] = []

    def make_error() -> Exception:
        errors.append(OSError(str(len(errors))))
        return errors[-1]

    machine.mark_forked(make_error)
    for name, found in everything.items():
        assert [each.mark_forked.call_args.args for each in found] == [(errors[0],)] * 2, name
