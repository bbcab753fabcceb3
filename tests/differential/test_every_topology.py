"""Every state of a topology of up to three members is that which PyMongo comes to; a difference would be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo.sdam import transitions

from .every_topology import STARTS, A, B, Start, explore


@pytest.mark.one_in(2)
@pytest.mark.parametrize("start", STARTS, ids=str)
def test_both_drivers_come_to_the_same_state(start: Start, record_property: Callable[..., None]) -> None:
    exploration = explore(start, depth=3)
    record_property("explored", f"{exploration.states} states, {exploration.steps} steps")
    print(f"{exploration.states} states, {exploration.steps} steps")
    assert not exploration.faults, exploration.faults


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    updated = transitions.updated

    def keeping(description: Any, new: Any) -> Any:
        """A member that fails stays what it was."""
        return description if new.server_type_name == "Unknown" else updated(description, new)

    monkeypatch.setattr(transitions, "updated", keeping)
    assert "the drivers differ" in explore(Start((A, B), "rs"), depth=2).faults
