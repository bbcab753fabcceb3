"""Explorations of all interleavings of the greenlets of a pool find no violation of an invariant.

If a test seeds a fault in the pool, the exploration finds the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from greenlet import getcurrent

from gmongo.cmap import establishing
from gmongo.cmap.pool_state import StateMachine
from gmongo.cmap.wait_queue import Waiter, WaitQueue
from gmongo.events.delivery import Delivery
from tests.cmap.every_interleaving import ALL_OPTIONAL_STEPS, PoolLimits, PoolSystem
from tests.support.exploration import Exploration, explore
from tests.support.scheduler import scheduled


@pytest.fixture(autouse=True)
def critical_sections() -> None:
    """Disable the fixture that detects switches in critical sections.

    The fixture needs gevent, and the explorer runs greenlets without gevent.
    """


def run_exploration(limits: PoolLimits, depth: int, until_violation: str | None = None) -> Exploration:
    with scheduled(), patch.object(establishing, "establish", lambda *args: PoolSystem.current.establish(*args)):
        return explore(lambda: PoolSystem(limits), depth, until_violation)


SMALL = PoolLimits(2, 1, 1, 1)
SWITCHING_LISTENERS = PoolLimits(
    *(2, 1, 0, 1, frozenset(("interrupt", "close"))),
    listener_switches=frozenset(("ConnectionCreated", "ConnectionClosed", "ConnectionCheckedIn")),
)
# One waiter receives the connection that the pool opens in the background.
TWO_WAITERS = PoolLimits(3, 3, 1, 1, frozenset())
UPKEEP_ONLY = PoolLimits(0, 1, 1, 1, frozenset(("clear",)), frozenset(("ConnectionClosed",)))


@pytest.mark.requirement("CMAP-38", "CMAP-39", "CMAP-97", "CMAP-102")
@pytest.mark.parametrize(
    ("limits", "depth", "minimum_states"),
    [
        (PoolLimits(3, 2, 2, 1), 6, 1000),
        (PoolLimits(3, 3, 3, 2, ALL_OPTIONAL_STEPS - {"broken", "clear interrupting"}), 6, 500),
        (SWITCHING_LISTENERS, 8, 1000),
        (TWO_WAITERS, 9, 50),
        (UPKEEP_ONLY, 14, 100),
    ],
)
def test_interleavings_violate_no_invariant(
    limits: PoolLimits, depth: int, minimum_states: int, record_property: Callable[..., None]
) -> None:
    exploration = run_exploration(limits, depth)
    record_property("explored", str(exploration))
    print(exploration)
    assert not exploration.violations, exploration
    assert exploration.states >= minimum_states


@pytest.mark.long
@pytest.mark.parametrize("limits", [PoolLimits(3, 2, 2, 1), PoolLimits(3, 3, 3, 2), SWITCHING_LISTENERS])
def test_interleavings_of_8_steps_violate_no_invariant(limits: PoolLimits) -> None:
    exploration = run_exploration(limits, 8)
    print(exploration)
    assert not exploration.violations, exploration


def skip_wakeup_of_background_run(patch: pytest.MonkeyPatch) -> None:
    def leave(self: StateMachine, connection: Any) -> None:
        self.pending.discard(connection)
        self._serve_waiters()

    patch.setattr(StateMachine, "_leave_pending", leave)


def keep_connection_of_interrupted_check_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "give_up", lambda self, found: self.queue.leave(found))


def wake_running_check_out(patch: pytest.MonkeyPatch) -> None:
    def sleep(self: Any) -> None:
        self._asleep = True
        while self.item is None and self.error is None:
            self._hub.switch()

    patch.setattr(Waiter, "_sleep", sleep)


def skip_eviction_at_close(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WaitQueue, "evict", lambda *arguments: None)


def skip_confirmation_after_hand_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "confirm", lambda self, connection: None)


def deliver_events_out_of_order(patch: pytest.MonkeyPatch) -> None:
    def deliver(self: Any, wait: bool = True) -> None:
        turn = self._events_by_greenlet.get(getcurrent())
        own = [each for each in self._events if each[0] is turn]
        for each in own:
            self._events.remove(each)
            turn.size -= 1
            each[1](*each[2])

    patch.setattr(Delivery, "deliver", deliver)


def drop_events_of_interrupted_greenlet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delivery, "_leave", lambda self, turn: None)


def exceed_max_connecting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "has_room", lambda self: len(self.pending) < 2 and self.total < 2)


def exceed_max_pool_size(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "has_room", lambda self: len(self.pending) < 1 and self.total < 2)


def serve_last_waiter_first(patch: pytest.MonkeyPatch) -> None:
    def hand_over(self: Any, item: Any) -> None:
        waiter, _ = self.waiters.popitem(last=True)
        self._update_keep_alive()
        waiter.item = item
        waiter.wake()

    patch.setattr(WaitQueue, "hand_over", hand_over)


def take_connection_before_waiters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "request", lambda self: self._take() or self.queue.join())


def serve_no_waiter_after_failed_handshake(patch: pytest.MonkeyPatch) -> None:
    def leave(self: StateMachine, connection: Any) -> None:
        self.pending.discard(connection)
        self._wake_background()

    patch.setattr(StateMachine, "_leave_pending", leave)


def add_checked_out_connection_to_available(patch: pytest.MonkeyPatch) -> None:
    release = StateMachine._release

    def release_and_add(self: StateMachine, connection: Any) -> None:
        release(self, connection)
        if connection in self.in_use:
            self.available.append(connection)

    patch.setattr(StateMachine, "_release", release_and_add)


def keep_broken_connections(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "_broken_reason", lambda self, connection: None)


@pytest.mark.parametrize(
    ("seed_fault", "limits", "expected_violation"),
    [
        (skip_wakeup_of_background_run, PoolLimits(2, 2, 2, 1), "minPoolSize is not reached"),
        (keep_connection_of_interrupted_check_out, SMALL, "no greenlet will check a connection in"),
        (wake_running_check_out, SMALL, "a greenlet that establishes a connection is woken too early"),
        (skip_eviction_at_close, SMALL, "a check-out waits for ever"),
        (skip_confirmation_after_hand_over, SMALL, "a check-out gets a broken connection"),
        (deliver_events_out_of_order, SWITCHING_LISTENERS, "events are out of order"),
        (drop_events_of_interrupted_greenlet, SWITCHING_LISTENERS, "events are not delivered"),
        (exceed_max_connecting, PoolLimits(2, 2, 0, 1), "the pool establishes more connections than maxConnecting"),
        (exceed_max_pool_size, PoolLimits(2, 1, 0, 1), "there are more connections than maxPoolSize"),
        (serve_last_waiter_first, PoolLimits(3, 1, 0, 1), "a check-out is overtaken"),
        (take_connection_before_waiters, TWO_WAITERS, "a check-out is overtaken"),
        (serve_no_waiter_after_failed_handshake, PoolLimits(2, 2, 0, 1), "a waiter sleeps that could be served"),
        (add_checked_out_connection_to_available, PoolLimits(2, 2, 1, 1), "a connection is in two sets"),
        (keep_broken_connections, SMALL, "a closed pool has available connections"),
        (keep_broken_connections, SMALL, "a stale connection is kept"),
    ],
)
def test_exploration_finds_seeded_fault(
    monkeypatch: pytest.MonkeyPatch, seed_fault: Callable[..., None], limits: PoolLimits, expected_violation: str
) -> None:
    seed_fault(monkeypatch)
    assert expected_violation in run_exploration(limits, 10, expected_violation).violations
