"""The expression operators of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Make
from gmongo.testing.store.expressions.operands import (
    integer,
    is_null,
    null_for_null,
    of_iterator,
    of_type,
    of_values,
    under_collation,
)
from gmongo.testing.store.values import MISSING, equal


def _element(array: Any, index: Any) -> Any:
    place = integer(index)
    return array[place] if -len(of_type(list, array)) <= place < len(array) else MISSING


def _in(collation: Collation, searched: Any, array: Any) -> bool:
    searched = collation.folded(searched)
    return any(equal(searched, collation.folded(element)) for element in of_type(list, array))


def _is_array(value: Any) -> bool:
    return isinstance(value, list)


def _size(value: Any) -> int:
    return len(of_type(list, value))


def _concatenated(arrays: Iterable[Any]) -> Any:
    found: list[Any] = []
    for array in arrays:
        if is_null(array):
            return None
        found += of_type(list, array)
    return found


def _range(start: Any, end: Any, step: Any = 1) -> list[int]:
    if not integer(step):
        raise failed_expression("the step of $range is 0")
    return list(range(integer(start), integer(end), integer(step)))


def _reversed(array: Any) -> list[Any]:
    return list(of_type(list, array)[::-1])


def _slice(array: Any, first: Any, count: Any = None) -> list[Any]:
    found: list[Any] = of_type(list, array)
    place = integer(first)
    if count is None:
        return found[:place] if place >= 0 else found[place:]
    start = place if place >= 0 else max(0, len(found) + place)
    return found[start : start + integer(count, least=1)]


OPERATORS: Mapping[str, Make] = {
    "$arrayElemAt": of_values(null_for_null(_element), 2),
    "$concatArrays": of_iterator(_concatenated),
    "$first": of_values(null_for_null(lambda array: _element(array, 0)), 1),
    "$in": under_collation(_in, 2),
    "$isArray": of_values(_is_array, 1),
    "$last": of_values(null_for_null(lambda array: _element(array, -1)), 1),
    "$range": of_values(_range, 2, 3),
    "$reverseArray": of_values(null_for_null(_reversed), 1),
    "$size": of_values(_size, 1),
    "$slice": of_values(null_for_null(_slice), 2, 3),
}
