"""Index keys, sort orders, hints and projections: from what people write to what the server reads."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, Sequence, Set
from typing import TypeAlias

from gmongo._documents import Document
from gmongo._short_text import short

__all__ = [
    "ASCENDING",
    "DESCENDING",
    "GEO2D",
    "GEOSPHERE",
    "HASHED",
    "TEXT",
    "Direction",
    "KeyOrList",
    "fields_document",
    "index_document",
    "index_list",
    "index_name",
    "sort_document",
]

ASCENDING = 1
"""Ascending order, in an index or a sort."""
DESCENDING = -1
"""Descending order, in an index or a sort."""
GEO2D = "2d"
"""An index for points on a plane."""
GEOSPHERE = "2dsphere"
"""An index for shapes on a sphere."""
HASHED = "hashed"
"""An index of the hash of a field."""
TEXT = "text"
"""An index for text search."""

Direction: TypeAlias = int | str | Document
"""1, -1, the name of an index type, or a document such as ``{"$meta": "textScore"}``."""
KeyOrList: TypeAlias = str | Sequence[str | tuple[str, Direction]] | Document | ItemsView[str, Direction]
"""The forms in which keys may be given."""


def index_list(
    key_or_list: KeyOrList, direction: Direction | None = None, option: str = "keys"
) -> list[tuple[str, Direction]]:
    """The keys as a list of ``(field, direction)``.

    :param key_or_list: a field name, a list of names and ``(name, direction)`` pairs, or a mapping of names
        to directions. A name without a direction is ascending.
    :param direction: the direction of a single field name; not allowed with a list or a mapping.
    :param option: the name to call them by in an error message.

    Raises :class:`TypeError` if a name is not a string, a direction has no direction's type, or the whole is
    of another type, and :class:`ValueError` if there is no key at all or a pair has not two items.
    """
    if direction is not None or isinstance(key_or_list, str):
        return [_checked_pair(key_or_list, ASCENDING if direction is None else direction, option)]
    if isinstance(key_or_list, Mapping):
        pairs = [_checked_pair(name, value, option) for name, value in key_or_list.items()]
    elif isinstance(key_or_list, (list, tuple, ItemsView)):
        pairs = [_pair(item, option) for item in key_or_list]
    else:
        raise TypeError(
            f"{option} must be a string, a list of (name, direction) pairs or a mapping, not {short(key_or_list)}"
        )
    if not pairs:
        raise ValueError(f"{option} must name at least one field, was {short(key_or_list)}")
    return pairs


def index_document(keys: KeyOrList, option: str = "keys") -> dict[str, Direction]:
    """The keys as an ordered document, as ``createIndexes``, ``sort`` and ``hint`` take them.

    :param keys: any form that :func:`index_list` takes; raises what that raises.
    :param option: the name to call them by in an error message.
    """
    return dict(index_list(keys, option=option))


def sort_document(sort: KeyOrList) -> dict[str, Direction]:
    """A sort order as an ordered document.

    :param sort: any form that :func:`index_list` takes but a bare field name, which says nothing of the direction;
        raises what that raises.
    """
    if isinstance(sort, str):
        raise TypeError(f"sort must be a mapping or a list of (field, direction) pairs, not {short(sort)}")
    return index_document(sort, "sort")


def index_name(keys: KeyOrList, option: str = "keys") -> str:
    """The name that an index on `keys` has unless it is given another: ``a_1_b_-1``.

    :param keys: any form that :func:`index_list` takes; raises what that raises.
    :param option: the name to call them by in an error message.
    """
    return "_".join(f"{name}_{direction}" for name, direction in index_list(keys, option=option))


def fields_document(fields: Document | Sequence[str] | Set[str], option: str = "projection") -> Document:
    """A projection as a document.

    :param fields: the names of the fields to include, or the document itself, which is returned unchanged.
    :param option: the name to call it by in an error message.

    Raises :class:`TypeError` if `fields` is of another type or a name is not a string.
    """
    if isinstance(fields, Mapping):
        return fields
    if isinstance(fields, (str, bytes)) or not isinstance(fields, (Sequence, Set)):
        raise TypeError(f"{option} must be a list of field names or a mapping, not {short(fields)}")
    for name in fields:
        if not isinstance(name, str):
            raise TypeError(f"{option} must hold field names, which are strings, not {short(name)}")
    return dict.fromkeys(fields, 1)


def _pair(item: object, option: str) -> tuple[str, Direction]:
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
