"""Every interleaving of a pool's greenlets is tried, and a fault of each kind would be found."""

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
from tests.cmap.every_interleaving import EVERYTHING, Play, World
from tests.support.exploration import Exploration, explore
from tests.support.scheduler import scheduled


@pytest.fixture(autouse=True)
def critical_sections() -> None:
    """The greenlets here are not gevent's."""


def explored(play: Play, depth: int, until: str | None = None) -> Exploration:
    with scheduled(), patch.object(establishing, "establish", lambda *given: World.current.establish(*given)):
        return explore(lambda: World(play), depth, until)


SMALL = Play(2, 1, 1, 1)
TALKING = Play(
    *(2, 1, 0, 1, frozenset(("interrupt", "close"))),
    listener_switches=frozenset(("ConnectionCreated", "ConnectionClosed", "ConnectionCheckedIn")),
)
WAITING = Play(3, 3, 1, 1, frozenset())  # a populated connection goes to a waiter, and a second waiter may connect
ALONE = Play(0, 1, 1, 1, frozenset(("clear",)), frozenset(("ConnectionClosed",)))


@pytest.mark.requirement("CMAP-38", "CMAP-39", "CMAP-97", "CMAP-102")
@pytest.mark.parametrize(
    ("play", "depth", "least"),
    [
        (Play(3, 2, 2, 1), 6, 1000),
        (Play(3, 3, 3, 2, EVERYTHING - {"broken", "clear interrupting"}), 6, 500),
        (TALKING, 8, 1000),
        (WAITING, 9, 50),
        (ALONE, 14, 100),
    ],
)
def test_no_interleaving_leads_to_a_fault(
    play: Play, depth: int, least: int, record_property: Callable[..., None]
) -> None:
    exploration = explored(play, depth)
    record_property("explored", str(exploration))
    print(exploration)
    assert not exploration.faults, exploration
    assert exploration.states >= least


@pytest.mark.long
@pytest.mark.parametrize("play", [Play(3, 2, 2, 1), Play(3, 3, 3, 2), TALKING])
def test_no_longer_interleaving_does(play: Play) -> None:
    exploration = explored(play, 8)
    print(exploration)
    assert not exploration.faults, exploration


def wakes_nothing_when_a_place_is_free(patch: pytest.MonkeyPatch) -> None:
    def leave(self: StateMachine, connection: Any) -> None:
        self.pending.discard(connection)
        self._serve()

    patch.setattr(StateMachine, "_leave_pending", leave)


def keeps_what_is_handed_to_an_interrupted_check_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "give_up", lambda self, found: self.queue.leave(found))


def wakes_a_check_out_that_has_gone_on(patch: pytest.MonkeyPatch) -> None:
    def sleep(self: Any) -> None:
        self._asleep = True
        while self.item is None and self.error is None:
            self._hub.switch()

    patch.setattr(Waiter, "_sleep", sleep)


def leaves_waiters_asleep_when_it_is_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WaitQueue, "evict", lambda *given: None)


def uses_what_was_interrupted_after_the_hand_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "confirm", lambda self, connection: None)


def delivers_out_of_turn(patch: pytest.MonkeyPatch) -> None:
    def deliver(self: Any, wait: bool = True) -> None:
        turn = self._turns.get(getcurrent())
        own = [each for each in self._events if each[0] is turn]
        for each in own:
            self._events.remove(each)
            turn.size -= 1
            each[1](*each[2])

    patch.setattr(Delivery, "deliver", deliver)


def leaves_events_of_the_interrupted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delivery, "_leave", lambda self, turn: None)


def two_establish_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "has_room", lambda self: len(self.pending) < 2 and self.total < 2)


def has_room_for_one_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "has_room", lambda self: len(self.pending) < 1 and self.total < 2)


def serves_the_last_first(patch: pytest.MonkeyPatch) -> None:
    def hand(self: Any, item: Any) -> None:
        waiter, _ = self.waiters.popitem(last=True)
        self._hold_hub()
        waiter.item = item
        waiter.wake()

    patch.setattr(WaitQueue, "hand", hand)


def lets_a_newcomer_pass_the_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "request", lambda self: self._take() or self.queue.join())


def serves_nothing_when_a_place_is_free(patch: pytest.MonkeyPatch) -> None:
    def leave(self: StateMachine, connection: Any) -> None:
        self.pending.discard(connection)
        self._wake_upkeep()

    patch.setattr(StateMachine, "_leave_pending", leave)


def adds_what_it_hands_on_twice(patch: pytest.MonkeyPatch) -> None:
    release = StateMachine._release

    def releasing(self: StateMachine, connection: Any) -> None:
        release(self, connection)
        if connection in self.in_use:
            self.available.append(connection)

    patch.setattr(StateMachine, "_release", releasing)


def finds_every_connection_good(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "_broken_reason", lambda self, connection: None)


@pytest.mark.parametrize(
    ("seed", "play", "fault"),
    [
        (wakes_nothing_when_a_place_is_free, Play(2, 2, 2, 1), "minPoolSize is not reached"),
        (keeps_what_is_handed_to_an_interrupted_check_out, SMALL, "nothing will give a connection back"),
        (wakes_a_check_out_that_has_gone_on, SMALL, "a greenlet that establishes a connection is woken too early"),
        (leaves_waiters_asleep_when_it_is_closed, SMALL, "a check-out waits for ever"),
        (uses_what_was_interrupted_after_the_hand_over, SMALL, "a check-out gets a broken connection"),
        (delivers_out_of_turn, TALKING, "events are out of order"),
        (leaves_events_of_the_interrupted, TALKING, "events are not delivered"),
        (two_establish_at_once, Play(2, 2, 0, 1), "more are being established than maxConnecting"),
        (has_room_for_one_more, Play(2, 1, 0, 1), "there are more connections than maxPoolSize"),
        (serves_the_last_first, Play(3, 1, 0, 1), "a check-out is overtaken"),
        (lets_a_newcomer_pass_the_queue, WAITING, "a check-out is overtaken"),
        (serves_nothing_when_a_place_is_free, Play(2, 2, 0, 1), "a waiter sleeps that could be served"),
        (adds_what_it_hands_on_twice, Play(2, 2, 1, 1), "a connection is in two sets"),
        (finds_every_connection_good, SMALL, "a closed pool has available connections"),
        (finds_every_connection_good, SMALL, "a stale connection is kept"),
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, seed: Callable[..., None], play: Play, fault: str) -> None:
    seed(monkeypatch)
    assert fault in explored(play, 10, fault).faults
