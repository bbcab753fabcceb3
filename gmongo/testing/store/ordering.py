"""Sorting documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gmongo.testing.command import not_supported
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.paths import sort_value
from gmongo.testing.store.values import sort_key

T = TypeVar("T")


def sorted_by(items: list[T], order: Mapping[str, Any], document_of: Callable[[T], Any]) -> list[T]:
    """The items in the order of their documents; a stable sort."""
    for path, wanted in reversed(list(order.items())):
        direction = direction_of(path, wanted)
        if path == "$natural":
            items = items if direction > 0 else items[::-1]
        else:
            items = _by_path(items, path, direction, document_of)
    return items


def _by_path(items: list[T], path: str, direction: int, document_of: Callable[[T], Any]) -> list[T]:
    return sorted(
        items,
        key=lambda item: sort_key(sort_value(document_of(item), path, direction)),
        reverse=direction < 0,
    )


def direction_of(path: str, wanted: Any) -> int:
    """1 or -1.

    :raises CommandError: if it is neither.
    """
    if isinstance(wanted, dict):
        raise not_supported(f"sorting by {wanted!r}")
    if isinstance(wanted, bool) or wanted not in (1, -1):
        raise bad_value(f"$sort key ordering must be 1 (for ascending) or -1 (for descending), not {path}: {wanted!r}")
    return int(wanted)
