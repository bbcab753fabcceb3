"""Tests that a hash divides the cases of a test between the tiers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.tiers import default_tier


class Item:
    """Stand-in for a pytest item: `divisor` is the argument of the marker ``one_in``, or None."""

    def __init__(self, nodeid: str, divisor: int | None, is_long: bool) -> None:
        self.nodeid = nodeid
        one_in = None if divisor is None else SimpleNamespace(args=(divisor,))
        self._markers = {"one_in": one_in, "long": is_long or None}

    def get_closest_marker(self, name: str) -> Any:
        return self._markers[name]


@given(st.none() | st.integers(1, 50), st.lists(st.text(), unique=True, max_size=60), st.sets(st.integers(0, 59)))
def test_default_tier_contains_one_in_n_cases_and_at_least_one(
    divisor: int | None, names: list[str], long_numbers: set[int]
) -> None:
    items: Any = [Item(f"test_a.py::test[{name}]", divisor, i in long_numbers) for i, name in enumerate(names)]
    other = Item("test_b.py::test", None, False)
    selected = default_tier([*items, other]) - {other}
    case_count = sum(i not in long_numbers for i in range(len(items)))
    assert len(selected) == (case_count if divisor is None else (case_count + divisor - 1) // divisor)
    assert not any(item.get_closest_marker("long") for item in selected)
    assert default_tier([other, *reversed(items)]) - {other} == selected


def test_test_without_cases_belongs_to_default_tier_unless_long() -> None:
    items: Any = [Item("test_a.py::test_fast", 7, False), Item("test_a.py::test_slow", 7, True)]
    assert default_tier(items) == {items[0]}
