"""Parts of a pool: generations, the report of checked-out connections, pins, late replies.

A background run of the pool removes perished connections, and opens connections up to minPoolSize.
"""

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
from gmongo.cmap.checked_out_report import checked_out_report, greenlet_name
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.generation import Generations
from gmongo.cmap.pin import PinnedConnection
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.cmap.pool_state import PoolState, StateMachine
from gmongo.errors import AutoReconnect, InvalidOperation
from gmongo.execution.late_reply import LateReply

ONE, OTHER = ObjectId(), ObjectId()


def test_service_has_own_generation_while_pool_has_connections_to_it() -> None:
    found = Generations()
    found.advance(ONE)  # no effect, because the pool has no connection to the service
    assert (found.current, found.generation_of(None), found.generation_of(ONE)) == (0, 0, 0)
    found.advance()
    assert (found.current, found.generation_of(None), found.generation_of(ONE)) == (1, 1, 0)
    assert [found.join(ONE), found.join(ONE), found.join(OTHER)] == [0, 0, 0]
    for _ in range(2):
        found.advance(ONE)
    assert (found.generation_of(ONE), found.generation_of(OTHER), found.current, found.join(ONE)) == (2, 0, 1, 2)
    for _ in range(2):
        found.leave(ONE)
        assert found.generation_of(ONE) == 2
    found.leave(ONE)
    assert found.generation_of(ONE) == 0 and found.join(ONE) == 0
    found.leave(None)
    found.leave(ObjectId())
    found.advance(OTHER)
    assert found.generation_of(OTHER) == 1


def checked_out_connection(connection_id: int, checked_out_at: float, holder: Any, **attributes: Any) -> Connection:
    connection = Connection(("h", 1))
    connection.id, connection.checked_out_at, connection.checked_out_by = connection_id, checked_out_at, holder
    for name, value in attributes.items():
        setattr(connection, name, value)
    return connection


def test_report_lists_checked_out_connections_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 100.0)
    me = ref(gevent.getcurrent())
    first = checked_out_connection(1, 10.0, me, last_command="find", purpose=Purpose.CURSOR)
    second, third = checked_out_connection(2, 20.0, me), checked_out_connection(3, 5.0, None)
    shown = checked_out_report({first, second, third})
    assert [each["connection"] for each in shown] == [1, 2]
    assert shown[0] == {
        "connection": 1, "greenlet": greenlet_name(me()), "operation": "find", "purpose": "cursors", "seconds": 90.0,
    }  # fmt: skip
    assert (shown[1]["operation"], shown[1]["purpose"]) == (None, "other operations")
    assert [each["connection"] for each in checked_out_report([second, first], 1)] == [1]
    assert checked_out_report([second, first], 0) == [] == checked_out_report([])
    # The report excludes a connection that no greenlet has taken yet.
    assert checked_out_report([Connection(("h", 1))]) == []


def test_greenlet_name_shows_state_and_function() -> None:
    assert greenlet_name(None) == "a deleted greenlet"
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


def test_last_release_of_shared_pin_checks_connection_in() -> None:
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
    ("options", "state", "remaining_backoff", "next_pause"),
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
@pytest.mark.parametrize("needs_connection", [False, True])
def test_background_run_removes_perished_connections_and_populates_pool(
    monkeypatch: pytest.MonkeyPatch,
    options: Any,
    state: PoolState,
    remaining_backoff: float,
    next_pause: float | None,
    needs_connection: bool,
) -> None:
    spawned: list[Any] = []
    monkeypatch.setattr(background, "spawn", lambda function, reference: spawned.append((function, reference())))
    pool = Mock(state=state, options=SimpleNamespace(background_interval=options[0], max_idle_time=options[1]))
    pool.machine.needs_connection.return_value, pool.machine.remaining_backoff.return_value = (
        needs_connection,
        remaining_backoff,
    )
    assert background.background_run(pool) == (background.END if next_pause is None else next_pause)
    assert pool.remove_perished.called is (next_pause is not None)
    assert spawned == ([(background._populate, pool)] if needs_connection and next_pause is not None else [])


@pytest.mark.parametrize("establishing_error", [None, AutoReconnect("x"), GreenletExit()])
def test_connection_of_background_run_becomes_available_if_established(
    establishing_error: BaseException | None,
) -> None:
    pool, connection = Mock(), Mock()
    pool.machine.begin_populating.return_value = connection
    pool.establisher.establish.side_effect = establishing_error
    if isinstance(establishing_error, GreenletExit):
        with pytest.raises(GreenletExit):
            background._populate(ref(pool))
    else:
        background._populate(ref(pool))
    pool.establisher.establish.assert_called_once_with(connection, ref=False)
    holds = [call.args for call in connection.set_ref.call_args_list]
    assert holds == ([(False,), (True,)] if establishing_error is None else [(False,)])
    assert pool.machine.make_available.called is (establishing_error is None) and pool.finish.call_count == 1
    pool.machine.begin_populating.return_value = None
    background.populate(pool)
    assert pool.finish.call_count == 1 == pool.establisher.establish.call_count
    background._populate(lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("reading_error", [None, AutoReconnect("x"), "killed before start"])
@pytest.mark.parametrize("is_inherited", [False, True])
def test_end_of_draining_returns_connection_or_closes_inherited_connection(
    monkeypatch: pytest.MonkeyPatch, reading_error: Any, is_inherited: bool
) -> None:
    made: list[Any] = []
    greenlet = gevent.Greenlet
    monkeypatch.setattr(pending_replies, "Greenlet", lambda *arguments: made.append(greenlet(*arguments)) or made[-1])
    pool: Any = Mock(options=SimpleNamespace(drains=True, drain_time=2.0, drain_bytes=100))
    connection = Mock(inherited=is_inherited)
    connection.read_late_reply.side_effect = reading_error if isinstance(reading_error, Exception) else None
    pending_replies.start_reading_late_reply(pool, connection)
    if isinstance(reading_error, str):
        made[0].kill()
    gevent.joinall(made)
    gevent.sleep(0)
    assert connection.close.called is is_inherited
    assert [call.args for call in pool.end_draining.call_args_list] == ([] if is_inherited else [(connection,)])
    if not isinstance(reading_error, str):
        connection.read_late_reply.assert_called_once_with(2.0, 100)
    pending_replies._end_draining(lambda: None, gone := Mock(inherited=False))  # type: ignore[arg-type]
    assert gone.close.called


@pytest.mark.parametrize("cursor", [None, "cursor"])
@pytest.mark.parametrize("has_killer", [False, True])
def test_cursor_killer_receives_cursor_of_late_reply(cursor: Any, has_killer: bool) -> None:
    taken: list[Any] = []
    operation: Any = Mock()
    operation.late_cursor.return_value = cursor
    session = Mock()
    LateReply(operation, ("h", 1), lambda: taken.append if has_killer else None, session)(b"body")
    assert session.answered.call_count == 1
    operation.late_cursor.assert_called_once_with(b"body", ("h", 1))
    assert taken == ([cursor] if has_killer and cursor else [])


@pytest.mark.parametrize("state", PoolState)
@pytest.mark.parametrize("drains_late_replies", [False, True])
@pytest.mark.parametrize("is_stale", [False, True])
@pytest.mark.parametrize("awaits_late_reply", [False, True])
@pytest.mark.parametrize("reply_is_due", [False, True])
def test_pool_drains_connection_only_if_ready_and_late_reply_is_awaited(
    state: PoolState, drains_late_replies: bool, is_stale: bool, awaits_late_reply: bool, reply_is_due: bool
) -> None:
    options = PoolSettings(drains=drains_late_replies)
    machine = StateMachine(("h", 1), options, ConnectionSettings(), Mock())
    machine.state = state
    connection = Connection(("h", 1))
    connection.generation = -1 if is_stale else 0
    connection.late_reply = Mock() if awaits_late_reply else None
    connection.reply_is_due = reply_is_due
    assert machine._may_drain(connection) is (
        state is PoolState.READY and (drains_late_replies or reply_is_due) and awaits_late_reply and not is_stale
    )


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


def test_connection_purposes_have_documented_names() -> None:
    assert [each.value for each in Purpose] == ["cursors", "transactions", "other operations"]


def test_fork_marks_all_connections_with_one_error() -> None:
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
