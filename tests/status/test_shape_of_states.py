"""The form of a state, field by field: each has to be there, and to be what it is; anything else is left out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from gmongo.status.schema import picked
from tests.status.states import EVENT, LOST, OPERATION, SERVER, SLOW, client, state

WHOLE = state(
    client(servers=[SERVER, LOST], operations=[OPERATION], slow=[{**SLOW, "text": "{}", "error": "e"}], history=[EVENT])
)
OPTIONAL = {"server", "error", "text"}  # of a slow operation
NULLABLE = {"maxPoolSize", "oldestWaitMS", "roundTripMS", "pool", "connection"}


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each field."""
    for name, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(value, dict):
            yield (*path, name)
        yield from fields(each, (*path, name))


FIELDS = [*fields(WHOLE)]


def changed(path: tuple[Any, ...], **to: Any) -> dict[str, Any]:
    """The state with another value at a place, or without it."""
    copied: Any = copy.deepcopy(WHOLE)
    inside = copied
    for name in path[:-1]:
        inside = inside[name]
    if to:
        inside[path[-1]] = to["value"]
    else:
        del inside[path[-1]]
    whole: dict[str, Any] = copied
    return whole


def test_a_whole_state_is_shown_as_it_is() -> None:
    assert picked(WHOLE, True) == WHOLE
    without = copy.deepcopy(WHOLE)
    del without["clients"][0]["slow"][0]["text"]
    assert picked(WHOLE, False) == without
    assert len(FIELDS) > 60


@pytest.mark.parametrize("path", FIELDS, ids=str)
def test_a_field(path: tuple[Any, ...]) -> None:
    name = path[-1]
    is_optional = "slow" in path and name in OPTIONAL
    if "inUseBy" in path[:-1] or is_optional:
        assert picked(changed(path), True) == changed(path)
    else:
        with pytest.raises(ValueError, match=f" has no {name}$"):
            picked(changed(path), True)
    for wrong in ([5], {"x": [] if name == "inUseBy" else 5}, True, float("inf"), 2.0**54):
        with pytest.raises(ValueError, match=r" must be | has no "):
            picked(changed(path, value=wrong), True)
    if name in NULLABLE:
        assert picked(changed(path, value=None), True) == changed(path, value=None)
    else:
        with pytest.raises(ValueError, match=" must be "):
            picked(changed(path, value=None), True)


def test_what_is_no_field_is_left_out() -> None:
    more = copy.deepcopy(WHOLE)
    for each in (more, more["clients"][0], more["clients"][0]["servers"][0], more["clients"][0]["slow"][0]):
        each["more"] = "secret"
    assert picked(more, True) == WHOLE


@pytest.mark.parametrize("number", [0, -1.5, 2**53, -(2**53)])
def test_numbers_that_a_page_can_show(number: float) -> None:
    assert picked(changed(("requests",), value=number), True)["requests"] == number
    for too_large in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(ValueError, match="requests of the state must be a number"):
            picked(changed(("requests",), value=too_large), True)


def test_text_commands_no_terminal() -> None:
    assert picked(changed(("version",), value="a\x1bb"), True)["version"] == r"a\x1bb"
    assert picked(changed(("clients", 0, "servers", 0, "pool", "inUseBy"), value={"\x1b": 1}), True) == changed(
        ("clients", 0, "servers", 0, "pool", "inUseBy"), value={r"\x1b": 1}
    )
