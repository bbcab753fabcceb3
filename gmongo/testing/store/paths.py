"""Find the values at a dotted path, for queries, indexes, sorts and joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gmongo.testing.store.errors import malformed
from gmongo.testing.store.values import EMPTY_ARRAY, MISSING


def step(value: Any, part: str) -> Any:
    """Return the field or the array element that a part of a path selects, or MISSING."""
    if isinstance(value, dict):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return MISSING


def value_at(document: Any, parts: Sequence[str]) -> Any:
    """Return the value at the path. Return MISSING if the document has no such path."""
    for part in parts:
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


class ParallelArrays(Exception):
    """Two paths lead through different arrays."""


def leaves_at(document: Any, paths: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the values that an index with several paths stores for a document.

    Each tuple has one value for each path. If a path leads to an array, there is a tuple for each element. MISSING is
    the value of a missing field, and EMPTY_ARRAY is the value of an empty array.

    :raises ParallelArrays: two paths lead through different arrays.
    """
    if len(paths) == 1 and isinstance(document, dict) and "." not in paths[0]:  # the usual case needs no recursion
        value = document.get(paths[0], MISSING)
        if not isinstance(value, list):
            return [(value,)]
        return [(element,) for element in value] or [(EMPTY_ARRAY,)]
    return list(_leaves(document, [path.split(".") for path in paths], [None] * len(paths)))


def _leaves(document: Any, rests: list[list[str]], leaves: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the values at several paths, with one tuple for each element of the array on the paths."""
    rests, leaves = list(rests), list(leaves)
    array: Any = None
    through: list[int] = []
    for number, rest in enumerate(rests):
        if not rest:
            continue
        value, rests[number] = _follow(document, rest)
        if not isinstance(value, list):
            leaves[number] = value
            continue
        if through and value is not array:
            raise ParallelArrays
        array = value
        through.append(number)
    if not through:
        yield tuple(leaves)
        return
    for element in array or [EMPTY_ARRAY]:
        leaves = [element if number in through and not rests[number] else leaf for number, leaf in enumerate(leaves)]
        yield from _leaves(element, rests, leaves)


def _follow(value: Any, rest: list[str]) -> tuple[Any, list[str]]:
    """Follow a path by at least one part, until the next array. Return the reached value and the remaining parts."""
    for number, part in enumerate(rest, 1):
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
        if isinstance(value, list):
            if rest[number:] and rest[number].isdigit():
                raise malformed(f"the number {rest[number]} in the path of a sort, an index or a join")
            return value, rest[number:]
    return value, []
