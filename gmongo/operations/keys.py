"""Conversion of index keys, sort orders, hints and projections to the form that commands need."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, Sequence, Set
from typing import TypeAlias

from gmongo._documents import Document
from gmongo._truncated_repr import short

ASCENDING = 1
DESCENDING = -1
GEO2D = "2d"  # index type for points on a plane
GEOSPHERE = "2dsphere"  # index type for shapes on a sphere
HASHED = "hashed"  # index type for the hash of a field
TEXT = "text"  # index type for text search

Direction: TypeAlias = int | str | Document
"""1, -1, the name of an index type, or a document such as ``{"$meta": "textScore"}``."""
KeyOrList: TypeAlias = str | Sequence[str | tuple[str, Direction]] | Document | ItemsView[str, Direction]
"""The accepted types of index keys and sort orders."""


def key_pairs(keys: KeyOrList, option: str) -> list[tuple[str, Direction]]:
    """Return index keys or a sort order as a list of ``(field, direction)`` pairs. The default direction is ascending.

    `option` is the parameter name in error messages.
    """
    if isinstance(keys, str):
        return [(keys, ASCENDING)]
    if isinstance(keys, Mapping):
        pairs = [_checked_pair(name, value, option) for name, value in keys.items()]
    elif isinstance(keys, (list, tuple, ItemsView)):
        pairs = [_parse_pair(item, option) for item in keys]
    else:
        raise TypeError(f"{option} must be a string, a list of (name, direction) pairs or a mapping, not {short(keys)}")
    if not pairs:
        raise ValueError(f"{option} must name at least one field, was {short(keys)}")
    return pairs


def index_document(keys: KeyOrList, option: str) -> dict[str, Direction]:
    """Return index keys or a sort order as a document for ``createIndexes``, ``sort`` or ``hint``."""
    return dict(key_pairs(keys, option))


def sort_document(sort: KeyOrList) -> dict[str, Direction]:
    """Return a sort order as a document. Raise TypeError for a single field name."""
    if isinstance(sort, str):
        raise TypeError(f"sort must be a mapping or a list of (field, direction) pairs, not {short(sort)}")
    return index_document(sort, "sort")


def index_name(keys: KeyOrList, option: str) -> str:
    """Return the default name of an index with these keys, such as ``a_1_b_-1``."""
    return "_".join(f"{name}_{direction}" for name, direction in key_pairs(keys, option))


def fields_document(fields: Document | Sequence[str] | Set[str]) -> Document:
    """Return a mapping unchanged, or a list of field names as a projection."""
    if isinstance(fields, Mapping):
        return fields
    if isinstance(fields, (str, bytes)) or not isinstance(fields, (Sequence, Set)):
        raise TypeError(f"projection must be a list of field names or a mapping, not {short(fields)}")
    for name in fields:
        if not isinstance(name, str):
            raise TypeError(f"projection must contain field names, which are strings, not {short(name)}")
    return dict.fromkeys(fields, 1)


def _parse_pair(item: object, option: str) -> tuple[str, Direction]:
    if isinstance(item, str):
        return item, ASCENDING
    if not isinstance(item, (list, tuple)):
        raise TypeError(f"{option}: each key must be a field name or a (name, direction) pair, not {short(item)}")
    if len(item) != 2:
        raise ValueError(f"{option}: each key must be a pair of field name and direction, was {short(item)}")
    name, direction = item
    return _checked_pair(name, direction, option)


def _checked_pair(name: object, direction: object, option: str) -> tuple[str, Direction]:
    if not isinstance(name, str):
        raise TypeError(f"{option}: the name of a key must be a string, not {short(name)}")
    if not isinstance(direction, (int, str, Mapping)):
        raise TypeError(
            f"{option}: the direction of {short(name)} must be 1, -1 or an index type, not {short(direction)}"
        )
    return name, direction
