"""After each sequence of up to three server checks, gmongo and PyMongo have equal topology states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo.sdam import transitions

from .every_topology import STARTS, A, B, Start, explore


@pytest.mark.one_in(2)
@pytest.mark.parametrize("start", STARTS, ids=str)
def test_each_sequence_of_checks_leads_to_state_of_pymongo(start: Start, record_property: Callable[..., None]) -> None:
    exploration = explore(start, depth=3)
    record_property("explored", f"{exploration.state_count} states, {exploration.step_count} steps")
    print(f"{exploration.state_count} states, {exploration.step_count} steps")
    assert not exploration.violations, exploration.violations


def test_exploration_reports_difference_if_transition_is_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original_update = transitions.update_topology

    def ignore_errors(description: Any, new: Any) -> Any:
        return description if new.server_type_name == "Unknown" else original_update(description, new)

    monkeypatch.setattr(transitions, "update_topology", ignore_errors)
    assert "the drivers differ" in explore(Start((A, B), "rs"), depth=2).violations
