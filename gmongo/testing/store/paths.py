"""Values at dotted paths for queries, indexes, sorts and joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gmongo.testing.store.errors import location
from gmongo.testing.store.values import EMPTY_ARRAY, MISSING


def split(path: str) -> list[str]:
    """Return the parts of a dotted path."""
    return path.split(".")


def step(value: Any, part: str) -> Any:
    """Return the child of a document or array, or MISSING."""
    if isinstance(value, dict):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return MISSING


def value_at(document: Any, path: str) -> Any:
    """Return the value at the path, without the elements of arrays."""
    for part in split(path):
        document = step(document, part)
    return document


class Element(list[Any]):
    """An array at an index in a path. A query does not match its elements."""


def values_at(document: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Yield all values at the path for a query, which includes the elements of arrays in the path.

    A path that ends early yields MISSING. In an array, only objects yield MISSING. An array at the end is one value.
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
    """Yield all values at the path for a join, with the elements of arrays, and without MISSING."""
    for value in values_at(document, parts):
        if isinstance(value, list):
            yield from value
        elif value is not MISSING:
            yield value


class ParallelArrays(Exception):
    """Two paths lead through different arrays."""


class _Progress(NamedTuple):
    """The progress along a path.

    :param rest: the remaining parts, None at a leaf.
    """

    value: Any
    rest: tuple[str, ...] | None
    gone: int = 0


def leaves_at(document: Any, paths: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the tuples of values of the paths in an index, one tuple for each element of an array.

    MISSING stands for a missing value, EMPTY_ARRAY for an empty array at the end of a path.

    :raises ParallelArrays: if two paths lead through different arrays.
    :raises CommandError: 16746 if a number in a path is ambiguous: an index or a field name.
    """
    if len(paths) == 1 and isinstance(document, dict) and "." not in paths[0]:  # the usual case
        value = document.get(paths[0], MISSING)
        if not isinstance(value, list):
            return [(value,)]
        return [(element,) for element in value] or [(EMPTY_ARRAY,)]
    parts = [tuple(split(path)) for path in paths]
    return list(_leaves([_Progress(document, one) for one in parts], parts))


def _leaves(ways: list[_Progress], parts: Sequence[tuple[str, ...]]) -> Iterator[tuple[Any, ...]]:
    ways = [_follow(way) for way in ways]
    at_array = [number for number, way in enumerate(ways) if isinstance(way.value, list) and way.rest is not None]
    if not at_array:
        yield tuple(way.value for way in ways)
        return
    if len({parts[number][: ways[number].gone] for number in at_array}) > 1:
        raise ParallelArrays
    array = ways[at_array[0]].value
    for element in array or [MISSING]:
        inner = list(ways)
        for number in at_array:
            way = ways[number]
            if way.rest:
                inner[number] = _Progress(element if isinstance(element, dict) else MISSING, way.rest, way.gone)
            else:
                inner[number] = _Progress(element if array else EMPTY_ARRAY, None, way.gone)
        yield from _leaves(inner, parts)


def _check_unambiguous(array: list[Any], part: str) -> None:
    """Check that a number in a path is either an index or a field name of the elements."""
    if any(isinstance(element, dict) and part in element for element in array):
        raise location(16746, "Ambiguous field name found in array (do not use numeric field names in embedded "
                       f"elements in an array), field: '{part}'")  # fmt: skip


def _follow(way: _Progress) -> _Progress:
    value, rest, gone = way
    while rest:
        if not isinstance(value, dict) and step(value, rest[0]) is MISSING:
            break
        if isinstance(value, list):
            _check_unambiguous(value, rest[0])
        value, rest, gone = step(value, rest[0]), rest[1:], gone + 1
    if rest and not isinstance(value, list):
        return _Progress(MISSING, None, gone)
    return _Progress(value, rest, gone)
