"""The validation of a state checks each field, and removes unknown fields."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from gmongo.status.schema import select_fields
from tests.status.states import EVENT, OPERATION, SERVER, SLOW_ENTRY, UNKNOWN_SERVER, client, state

COMPLETE_STATE = state(
    client(
        servers=[SERVER, UNKNOWN_SERVER],
        operations=[OPERATION],
        slow=[{**SLOW_ENTRY, "text": "{}", "error": "e"}],
        history=[EVENT],
    )
)
OPTIONAL_FIELDS = {"server", "error", "text"}  # The optional fields of a slow operation.
NULLABLE_FIELDS = {"maxPoolSize", "oldestWaitMS", "roundTripMS", "pool", "connection"}


def field_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for name, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(value, dict):
            yield (*path, name)
        yield from field_paths(each, (*path, name))


FIELD_PATHS = [*field_paths(COMPLETE_STATE)]


def state_with(path: tuple[Any, ...], **new_value: Any) -> dict[str, Any]:
    """Return a copy of the complete state with a changed or removed field.

    :param path: the path of the field.
    :param new_value: the keyword argument `value` with the new value, or nothing to remove the field.
    """
    copied: Any = copy.deepcopy(COMPLETE_STATE)
    parent = copied
    for name in path[:-1]:
        parent = parent[name]
    if new_value:
        parent[path[-1]] = new_value["value"]
    else:
        del parent[path[-1]]
    result: dict[str, Any] = copied
    return result


def test_validation_removes_only_query_text_and_only_if_text_is_disabled() -> None:
    assert select_fields(COMPLETE_STATE, True) == COMPLETE_STATE
    without_text = copy.deepcopy(COMPLETE_STATE)
    del without_text["clients"][0]["slow"][0]["text"]
    assert select_fields(COMPLETE_STATE, False) == without_text
    assert len(FIELD_PATHS) > 60


@pytest.mark.parametrize("path", FIELD_PATHS, ids=str)
def test_missing_or_invalid_field_of_state_raises_unless_optional(path: tuple[Any, ...]) -> None:
    name = path[-1]
    is_optional = "slow" in path and name in OPTIONAL_FIELDS
    if "inUseBy" in path[:-1] or is_optional:
        assert select_fields(state_with(path), True) == state_with(path)
    else:
        with pytest.raises(ValueError, match=f" has no {name}$"):
            select_fields(state_with(path), True)
    for invalid in ([5], {"x": [] if name == "inUseBy" else 5}, True, float("inf"), 2.0**54):
        with pytest.raises(ValueError, match=r" must be | has no "):
            select_fields(state_with(path, value=invalid), True)
    if name in NULLABLE_FIELDS:
        assert select_fields(state_with(path, value=None), True) == state_with(path, value=None)
    else:
        with pytest.raises(ValueError, match=" must be "):
            select_fields(state_with(path, value=None), True)


def test_validation_removes_unknown_fields_of_state() -> None:
    extended_state = copy.deepcopy(COMPLETE_STATE)
    client_state = extended_state["clients"][0]
    for each in (extended_state, client_state, client_state["servers"][0], client_state["slow"][0]):
        each["more"] = "secret"
    assert select_fields(extended_state, True) == COMPLETE_STATE


@pytest.mark.parametrize("number", [0, -1.5, 2**53, -(2**53)])
def test_state_number_of_53_bits_is_accepted_and_larger_number_raises(number: float) -> None:
    assert select_fields(state_with(("requests",), value=number), True)["requests"] == number
    for too_large in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(ValueError, match="requests of the state must be a number"):
            select_fields(state_with(("requests",), value=too_large), True)


def test_control_characters_in_texts_of_state_are_escaped() -> None:
    assert select_fields(state_with(("version",), value="a\x1bb"), True)["version"] == r"a\x1bb"
    assert select_fields(
        state_with(("clients", 0, "servers", 0, "pool", "inUseBy"), value={"\x1b": 1}), True
    ) == state_with(("clients", 0, "servers", 0, "pool", "inUseBy"), value={r"\x1b": 1})
