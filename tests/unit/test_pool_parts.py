"""Parts of a pool: names of greenlets, pins, background runs and late replies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gevent
import pytest
from gevent import GreenletExit

from gmongo.cmap import pool as pool_module
from gmongo.cmap.checked_out_report import greenlet_name
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.pin import PinnedConnection
from gmongo.cmap.pool import Pool
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.cmap.pool_state import PoolState, StateMachine
from gmongo.errors import InvalidOperation
from tests.support.cases import with_cases


def test_greenlet_name_shows_state_and_function() -> None:
    assert greenlet_name(None) == "a deleted greenlet"
    working = gevent.spawn(gevent.sleep, 10)
    name = str(working.name)
    assert greenlet_name(working) == f"{name} (sleep)"
    working.kill()
    assert greenlet_name(working) == f"{name}, which has ended"
    main = gevent.get_hub().parent
    assert greenlet_name(main) == "main"
    named_greenlet: Any = SimpleNamespace(name="n", dead=False)
    assert greenlet_name(named_greenlet) == "n"
    unnamed_greenlet: Any = SimpleNamespace(parent=main)
    assert greenlet_name(unnamed_greenlet) == "SimpleNamespace"


def test_pin_in_use_rejects_other_greenlet() -> None:
    connection = Connection(("h", 1))
    pin = PinnedConnection(Mock(), connection, Purpose.CURSOR)
    with pin as pinned_connection:
        assert pinned_connection is connection
        pin.check_free()
        for use in (pin.check_free, pin.__enter__):
            other = gevent.spawn(use)
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
    for owner, purpose in ((pin.share(), Purpose.CURSOR), (pin, Purpose.OTHER)):
        owner.release()
        assert connection.purpose is purpose


@with_cases
@pytest.mark.parametrize("needs_connection", [False, True])
def test_background_run_removes_perished_connections_and_populates_pool(
    monkeypatch: pytest.MonkeyPatch,
    options: Any,
    state: PoolState,
    remaining_backoff: float,
    next_pause: float | None,
    needs_connection: bool,
) -> None:
    spawn_calls: list[Any] = []
    monkeypatch.setattr(pool_module, "spawn", lambda function, reference: spawn_calls.append((function, reference())))
    pool = Mock(options=SimpleNamespace(background_interval=options[0], max_idle_time=options[1]))
    pool.machine.state = state
    pool.machine.needs_connection.return_value, pool.machine.remaining_backoff.return_value = (
        needs_connection,
        remaining_backoff,
    )
    assert Pool.background_run(pool) == (pool_module._END if next_pause is None else next_pause)
    assert pool.remove_perished.called is (next_pause is not None)
    assert spawn_calls == ([(pool_module._populate, pool)] if needs_connection and next_pause is not None else [])


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
    connection.late_reply_handler = Mock() if awaits_late_reply else None
    connection.reply_is_due = reply_is_due
    assert machine._may_drain(connection) is (
        state is PoolState.READY and (drains_late_replies or reply_is_due) and awaits_late_reply and not is_stale
    )


def test_forked_child_continues_no_population_attempt_or_backoff_of_parent() -> None:
    machine = StateMachine(("h", 1), PoolSettings(min_pool_size=1), ConnectionSettings(), Mock())
    for fails in (True, False, True):
        machine.ready()
        machine._allow_populating(machine.generations.current)
        connection = machine.begin_populating()
        assert connection is not None
        if fails:
            machine.fail_establishing(connection)
        machine.mark_forked(AssertionError)
        machine.reset_after_fork()
