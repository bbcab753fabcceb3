"""In all orders of a limited number of steps, the greenlets of a pool violate no invariant.

If a test seeds a fault in the pool, the exploration finds the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from greenlet import getcurrent

from gmongo.cmap import pool
from gmongo.cmap.pool_state import StateMachine
from gmongo.cmap.wait_queue import Waiter, WaitQueue
from gmongo.events.delivery import Delivery
from tests.cmap.every_interleaving import ALL_OPTIONAL_STEPS, PoolLimits, PoolSystem
from tests.support.exploration import Exploration, explore
from tests.support.scheduler import scheduled


@pytest.fixture(autouse=True)
def no_switch_in_critical_sections() -> None:
    """Disable the check of critical sections. The explorer runs greenlets without gevent."""


def run_exploration(limits: PoolLimits, depth: int, until_violation: str | None = None) -> Exploration:
    with (
        scheduled(),
        patch.object(pool, "establish", lambda *args: PoolSystem.current.establish(*args)),
    ):
        return explore(lambda: PoolSystem(limits), depth, until_violation)


SMALL_LIMITS = PoolLimits(2, 1, 1, 1)
SWITCHING_LIMITS = PoolLimits(
    max_check_outs=2,
    max_pool_size=1,
    min_pool_size=0,
    max_connecting=1,
    steps_allowed=frozenset(("interrupt", "close")),
    switching_event_names=frozenset(("ConnectionCreated", "ConnectionClosed", "ConnectionCheckedIn")),
)
# One of two waiters receives the connection that the pool opens in the background.
TWO_WAITERS = PoolLimits(3, 3, 1, 1, frozenset())
ONLY_BACKGROUND_CONNECTIONS = PoolLimits(0, 1, 1, 1, frozenset(("clear",)), frozenset(("ConnectionClosed",)))


@pytest.mark.one_in(3)
@pytest.mark.requirement("CMAP-38", "CMAP-39", "CMAP-97", "CMAP-102")
@pytest.mark.parametrize(
    ("limits", "depth", "min_state_count"),
    [
        (PoolLimits(3, 2, 2, 1), 6, 1000),
        (PoolLimits(3, 3, 3, 2, ALL_OPTIONAL_STEPS - {"broken", "clear interrupting"}), 6, 500),
        (SWITCHING_LIMITS, 8, 1000),
        (TWO_WAITERS, 9, 50),
        (ONLY_BACKGROUND_CONNECTIONS, 14, 100),
    ],
)
def test_interleavings_violate_no_invariant(
    limits: PoolLimits, depth: int, min_state_count: int, record_property: Callable[..., None]
) -> None:
    exploration = run_exploration(limits, depth)
    record_property("explored", str(exploration))
    print(exploration)
    assert not exploration.violations, exploration
    assert exploration.state_count >= min_state_count


@pytest.mark.long
@pytest.mark.parametrize("limits", [PoolLimits(3, 2, 2, 1), PoolLimits(3, 3, 3, 2), SWITCHING_LIMITS])
def test_interleavings_of_8_steps_violate_no_invariant(limits: PoolLimits) -> None:
    exploration = run_exploration(limits, 8)
    print(exploration)
    assert not exploration.violations, exploration


# Faulty methods that replace methods of the pool


def remove_pending_without_wakeup_of_background_run(self: StateMachine, connection: Any) -> None:
    self.pending.discard(connection)
    self._serve_waiters()


def remove_pending_without_service_of_waiters(self: StateMachine, connection: Any) -> None:
    self.pending.discard(connection)
    self._wake_background()


def sleep_although_greenlet_runs(self: Any) -> None:
    self._asleep = True
    while self.item is None and self.error is None:
        self._hub.switch()


def deliver_events_out_of_order(self: Any, wait: bool = True) -> None:
    turn = self._events_by_greenlet.get(getcurrent())
    own_events = [each for each in self._events if each[0] is turn]
    for each in own_events:
        self._events.remove(each)
        turn.size -= 1
        each[1](*each[2])


def hand_over_to_last_waiter(self: Any, item: Any) -> None:
    waiter, _ = self.waiters.popitem(last=True)
    self._update_keep_alive()
    waiter.item = item
    waiter.wake()


def release_and_keep_checked_out(
    self: StateMachine,
    connection: Any,
    release: Callable[..., None] = StateMachine._release_connection,
) -> None:
    release(self, connection)
    if connection in self.in_use:
        self.available.append(connection)


def limit_room(max_pending: int, max_total: int) -> Callable[[StateMachine], bool]:
    return lambda self: len(self.pending) < max_pending and self.total < max_total


def return_none(*_arguments: Any) -> None:
    pass


def only_leave_queue(self: StateMachine, waiter: Any) -> Any:
    return self.queue.leave(waiter)


def take_connection_before_waiters(self: StateMachine) -> Any:
    return self._take_connection() or self.queue.join()


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("owner", "method", "fault", "limits", "expected_violation"),
    [
        (StateMachine, "_remove_pending", remove_pending_without_wakeup_of_background_run, PoolLimits(2, 2, 2, 1),
         "minPoolSize is not reached"),
        (StateMachine, "return_offer", only_leave_queue, SMALL_LIMITS, "no greenlet will check a connection in"),
        (Waiter, "_sleep", sleep_although_greenlet_runs, SMALL_LIMITS,
         "a greenlet that establishes a connection is woken too early"),
        (WaitQueue, "evict", return_none, SMALL_LIMITS, "a check-out waits for ever"),
        (StateMachine, "confirm_connection", return_none, SMALL_LIMITS, "a check-out gets a broken connection"),
        (Delivery, "deliver", deliver_events_out_of_order, SWITCHING_LIMITS, "events are out of order"),
        (Delivery, "_hand_to_substitute", return_none, SWITCHING_LIMITS, "events are not delivered"),
        (StateMachine, "has_room", limit_room(2, 2), PoolLimits(2, 2, 0, 1),
         "the pool establishes more connections than maxConnecting"),
        (StateMachine, "has_room", limit_room(1, 2), PoolLimits(2, 1, 0, 1),
         "there are more connections than maxPoolSize"),
        (WaitQueue, "hand_over", hand_over_to_last_waiter, PoolLimits(3, 1, 0, 1), "a check-out is overtaken"),
        (StateMachine, "request_connection", take_connection_before_waiters, TWO_WAITERS, "a check-out is overtaken"),
        (StateMachine, "_remove_pending", remove_pending_without_service_of_waiters, PoolLimits(2, 2, 0, 1),
         "a waiter that could be served sleeps"),
        (StateMachine, "_release_connection", release_and_keep_checked_out, PoolLimits(2, 2, 1, 1),
         "a connection is in two sets"),
        (StateMachine, "_get_broken_reason", return_none, SMALL_LIMITS, "a closed pool has available connections"),
        (StateMachine, "_get_broken_reason", return_none, SMALL_LIMITS, "a stale connection is kept"),
    ],
)  # fmt: skip
def test_exploration_finds_seeded_fault(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    fault: Any,
    limits: PoolLimits,
    expected_violation: str,
) -> None:
    monkeypatch.setattr(owner, method, fault)
    assert expected_violation in run_exploration(limits, 10, expected_violation).violations
