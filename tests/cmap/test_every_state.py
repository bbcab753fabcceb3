"""Every state of a pool is tried, and a fault of each kind would be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo.cmap import state
from gmongo.cmap.state import StateMachine
from tests.cmap.every_state import Sizes, explore_states


@pytest.fixture(autouse=True)
def critical_sections() -> None:
    """There are no greenlets here."""


@pytest.mark.requirement("CMAP-39", "CMAP-97", "CMAP-102")
@pytest.mark.parametrize(
    ("sizes", "least"), [(Sizes(3, 2, 2, 1), 500), (Sizes(3, 3, 3, 2), 1500), (Sizes(3, 3, 1, 3), 500)]
)
def test_no_order_of_steps_leads_to_a_fault(sizes: Sizes, least: int, record_property: Callable[..., None]) -> None:
    exploration = explore_states(sizes, depth=14)
    record_property("explored", str(exploration))
    print(exploration)
    assert not exploration.faults, exploration
    assert exploration.states >= least


def wakes_nothing_when_a_place_is_free(patch: pytest.MonkeyPatch) -> None:
    def leave(self: StateMachine, connection: Any) -> None:
        self.pending.discard(connection)
        self._serve()

    patch.setattr(StateMachine, "_leave_pending", leave)


def serves_nothing_when_a_place_is_free(patch: pytest.MonkeyPatch) -> None:
    def leave(self: StateMachine, connection: Any) -> None:
        self.pending.discard(connection)
        self._wake_upkeep()

    patch.setattr(StateMachine, "_leave_pending", leave)


def serves_nothing_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    fail = StateMachine.fail

    def failing(self: StateMachine, connection: Any) -> None:
        serve, StateMachine._serve = StateMachine._serve, lambda _self: None  # type: ignore[method-assign]
        try:
            fail(self, connection)
        finally:
            StateMachine._serve = serve  # type: ignore[method-assign]

    patch.setattr(StateMachine, "fail", failing)


def has_room_for_one_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "has_room", lambda self: len(self.pending) < 1 and self.total <= 2)


def establishes_one_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "has_room", lambda self: len(self.pending) < 2 and self.total < 2)


def gives_a_connection_up_that_nothing_holds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "give_up", lambda self, found: None)


def keeps_what_was_in_use_when_it_is_closed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateMachine, "_broken_reason", lambda self, connection: None)


def adds_what_it_hands_on_twice(patch: pytest.MonkeyPatch) -> None:
    release = StateMachine._release

    def releasing(self: StateMachine, connection: Any) -> None:
        release(self, connection)
        if connection in self.in_use:
            self.available.append(connection)

    patch.setattr(StateMachine, "_release", releasing)


def forgets_that_it_is_short_after_a_backoff(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state, "_FIRST_BACKOFF", 0.0)
    patch.setattr(StateMachine, "_end_populating", lambda self, connection: setattr(self, "_populating", None))


@pytest.mark.parametrize(
    ("seed", "fault"),
    [
        (wakes_nothing_when_a_place_is_free, "the background sleeps, and minPoolSize is not reached"),
        (serves_nothing_when_a_place_is_free, "a waiter sleeps that could be served"),
        (serves_nothing_after_a_failure, "a waiter sleeps that could be served"),
        (has_room_for_one_more, "there are more connections than maxPoolSize"),
        (establishes_one_more, "more are being established than maxConnecting"),
        (gives_a_connection_up_that_nothing_holds, "nothing will give a connection back"),
        (keeps_what_was_in_use_when_it_is_closed, "a closed pool has available connections"),
        (adds_what_it_hands_on_twice, "a connection is in two sets"),
        (forgets_that_it_is_short_after_a_backoff, "the background sleeps, and minPoolSize is not reached"),
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, seed: Callable[..., None], fault: str) -> None:
    seed(monkeypatch)
    assert fault in explore_states(Sizes(3, 2, 2, 1), 9, fault).faults
