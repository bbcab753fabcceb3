"""Find the values at a dotted path, for queries, indexes, sorts and joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gmongo.testing.store.errors import malformed
from gmongo.testing.store.values import EMPTY_ARRAY, MISSING


def select_child(value: Any, part: str) -> Any:
    """Return the field or the array element that a part of a path selects, or MISSING."""
    if isinstance(value, dict):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return MISSING


def find_value(document: Any, parts: Sequence[str]) -> Any:
    """Return the value at the path. Return MISSING if the document has no such path."""
    for part in parts:
        document = select_child(document, part)
    return document


class IndexedArray(list[Any]):
    """An array that the last part of a path selects by index. A query does not match the elements of this array."""


def find_values(document: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Yield all values that a query compares at a path. A path leads through all array elements.

    If a document does not have the path, yield MISSING. For an array element that is not a document,
    yield nothing. An array at the end of the path is one value.
    """
    if not parts:
        yield document
    elif isinstance(document, dict):
        yield from find_values(document.get(parts[0], MISSING), parts[1:])
    elif isinstance(document, list):
        if parts[0].isdigit() and int(parts[0]) < len(document):
            element = document[int(parts[0])]
            if len(parts) == 1 or isinstance(element, (dict, list)):
                is_last = len(parts) == 1 and type(element) is list
                yield from find_values(IndexedArray(element) if is_last else element, parts[1:])
        for element in document:
            if isinstance(element, dict):
                yield from find_values(element, parts)
    else:
        yield MISSING


class ParallelArrays(Exception):
    """Two paths lead through different arrays."""


def find_leaves(document: Any, paths: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the values that an index on the paths stores for a document.

    A tuple has one value for each path. If a path leads to or through an array, there is a tuple for
    each element. MISSING represents a missing field, and EMPTY_ARRAY represents an empty array.

    :raises ParallelArrays: two paths lead through different arrays.
    """
    if len(paths) == 1 and isinstance(document, dict) and "." not in paths[0]:  # a single field needs no recursion
        value = document.get(paths[0], MISSING)
        if not isinstance(value, list):
            return [(value,)]
        return [(element,) for element in value] or [(EMPTY_ARRAY,)]
    return list(_find_leaves(document, [path.split(".") for path in paths], [None] * len(paths)))


def _find_leaves(document: Any, tails: list[list[str]], leaves: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield tuples of the values at the paths: one tuple for each element of an array on a path."""
    tails, leaves = list(tails), list(leaves)
    array: Any = None
    positions: list[int] = []
    for position, parts in enumerate(tails):
        if not parts:
            continue
        value, tails[position] = _follow_path(document, parts)
        if not isinstance(value, list):
            leaves[position] = value
            continue
        if positions and value is not array:
            raise ParallelArrays
        array = value
        positions.append(position)
    if not positions:
        yield tuple(leaves)
        return
    for element in array or [EMPTY_ARRAY]:
        leaves = [
            element if position in positions and not tails[position] else leaf for position, leaf in enumerate(leaves)
        ]
        yield from _find_leaves(element, tails, leaves)


def _follow_path(value: Any, parts: list[str]) -> tuple[Any, list[str]]:
    """Follow a path to its end or the next array. Return the value there and the remaining parts."""
    for position, part in enumerate(parts, 1):
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
        if isinstance(value, list):
            if parts[position:] and parts[position].isdigit():
                raise malformed(f"the number {parts[position]} in the path of a sort, an index or a join")
            return value, parts[position:]
    return value, []
