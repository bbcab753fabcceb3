"""Values at dotted paths: as queries see them, going through arrays, and as indexes and sorts do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gmongo.testing.store.values import MISSING, compare


def split(path: str) -> list[str]:
    """The parts of a dotted path."""
    return path.split(".")


def step(value: Any, part: str) -> Any:
    """The child of a document or array; MISSING without one."""
    if isinstance(value, dict):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return MISSING


def value_at(document: Any, path: str) -> Any:
    """The value that the path leads to without spreading over arrays."""
    for part in split(path):
        document = step(document, part)
    return document


def values_at(document: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Every value that the path leads to, spreading over the arrays on its way; MISSING where it ends early.

    An array at the end is given as it is.
    """
    if not parts:
        yield document
    elif isinstance(document, dict):
        yield from values_at(document.get(parts[0], MISSING), parts[1:])
    elif isinstance(document, list):
        yield from _in_array(document, parts)
    else:
        yield MISSING


def _in_array(array: list[Any], parts: Sequence[str]) -> Iterator[Any]:
    found = False
    if parts[0].isdigit() and int(parts[0]) < len(array):
        found = True
        yield from values_at(array[int(parts[0])], parts[1:])
    for element in array:
        if isinstance(element, dict):
            found = True
            yield from values_at(element, parts)
    if not found:
        yield MISSING


def leaves_at(document: Any, path: str) -> Iterator[Any]:
    """The values that an index has of the document: arrays at the end are taken apart."""
    for value in values_at(document, split(path)):
        if isinstance(value, list) and value:
            yield from value
        else:
            yield value


def sort_value(document: Any, path: str, direction: int) -> Any:
    """The value that the document is sorted by: of an array the lowest, or highest when descending."""
    best: Any = None
    first = True
    for value in leaves_at(document, path):
        if first or compare(value, best) * direction < 0:
            best, first = value, False
    return best
