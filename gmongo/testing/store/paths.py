"""Find the values at a dotted path, for queries, indexes, sorts and joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gmongo.testing.store.errors import location
from gmongo.testing.store.values import EMPTY_ARRAY, MISSING


def split(path: str) -> list[str]:
    """Return the parts of a dotted path."""
    return path.split(".")


def step(value: Any, part: str) -> Any:
    """Return the field of a document, or the element of an array, that a part of a path selects.

    Return MISSING if there is no such value.
    """
    if isinstance(value, dict):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return MISSING


def value_at(document: Any, path: str) -> Any:
    """Return the value at the path. A part of the path selects an array element only if the part is an index."""
    for part in split(path):
        document = step(document, part)
    return document


class Element(list[Any]):
    """An array that the last part of a path selects by index. A query does not match the elements of this array."""


def values_at(document: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Yield all values at a path that a query compares. A path leads through all elements of an array.

    If a document does not have the path, yield MISSING. For an array element that is not a document, yield nothing. An
    array at the end of the path is one value.
    """
    if not parts:
        yield document
    elif isinstance(document, dict):
        yield from values_at(document.get(parts[0], MISSING), parts[1:])
    elif isinstance(document, list):
        if parts[0].isdigit() and int(parts[0]) < len(document):
            element = document[int(parts[0])]
            if len(parts) == 1 or isinstance(element, (dict, list)):
                is_last = len(parts) == 1 and type(element) is list
                yield from values_at(Element(element) if is_last else element, parts[1:])
        for element in document:
            if isinstance(element, dict):
                yield from values_at(element, parts)
    else:
        yield MISSING


def joined_values(document: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Yield all values at a path that a join compares: the elements of arrays, and all other values except MISSING."""
    for value in values_at(document, parts):
        if isinstance(value, list):
            yield from value
        elif value is not MISSING:
            yield value


class ParallelArrays(Exception):
    """Two paths lead through different arrays."""


class _Progress(NamedTuple):
    """The progress along a path in a document.

    :param value: the value at the reached part of the path.
    :param rest: the remaining parts of the path; None if the path cannot be followed further.
    :param followed: the number of parts that have been followed.
    """

    value: Any
    rest: tuple[str, ...] | None
    followed: int = 0


def leaves_at(document: Any, paths: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the values that an index with several paths stores for a document.

    Each tuple has one value for each path. If a path leads to an array, there is a tuple for each element. MISSING is
    the value of a missing field, and EMPTY_ARRAY is the value of an empty array.

    :raises ParallelArrays: two paths lead through different arrays.
    :raises CommandError: a number in a path can be an index or a field name (code 16746).
    """
    if len(paths) == 1 and isinstance(document, dict) and "." not in paths[0]:  # the usual case needs no recursion
        value = document.get(paths[0], MISSING)
        if not isinstance(value, list):
            return [(value,)]
        return [(element,) for element in value] or [(EMPTY_ARRAY,)]
    parts = [tuple(split(path)) for path in paths]
    return list(_leaves([_Progress(document, one) for one in parts], parts))


def _leaves(states: list[_Progress], parts: Sequence[tuple[str, ...]]) -> Iterator[tuple[Any, ...]]:
    states = [_follow(state) for state in states]
    at_array = [
        number for number, state in enumerate(states) if isinstance(state.value, list) and state.rest is not None
    ]
    if not at_array:
        yield tuple(state.value for state in states)
        return
    if len({parts[number][: states[number].followed] for number in at_array}) > 1:
        raise ParallelArrays
    array = states[at_array[0]].value
    for element in array or [MISSING]:
        inner = list(states)
        for number in at_array:
            state = states[number]
            if state.rest:
                value = element if isinstance(element, dict) else MISSING
                inner[number] = _Progress(value, state.rest, state.followed)
            else:
                inner[number] = _Progress(element if array else EMPTY_ARRAY, None, state.followed)
        yield from _leaves(inner, parts)


def _check_unambiguous(array: list[Any], part: str) -> None:
    """Check that a number in a path is an index of an array, and not also a field name of an element."""
    if any(isinstance(element, dict) and part in element for element in array):
        raise location(16746, "Ambiguous field name found in array (do not use numeric field names in embedded "
                       f"elements in an array), field: '{part}'")  # fmt: skip


def _follow(state: _Progress) -> _Progress:
    """Follow a path until its end, or until an array whose elements the path leads through."""
    value, rest, followed = state
    while rest:
        if not isinstance(value, dict) and step(value, rest[0]) is MISSING:
            break
        if isinstance(value, list):
            _check_unambiguous(value, rest[0])
        value, rest, followed = step(value, rest[0]), rest[1:], followed + 1
    if rest and not isinstance(value, list):
        return _Progress(MISSING, None, followed)
    return _Progress(value, rest, followed)
