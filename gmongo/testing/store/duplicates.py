"""Find duplicate values of unique indexes, and create duplicate key errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from bson.binary import UUID_SUBTYPE, Binary
from bson.datetime_ms import DatetimeMS
from bson.objectid import ObjectId

from gmongo.testing.command import CommandError, error
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.index import Index
from gmongo.testing.store.values import EMPTY_ARRAY, MISSING, Key

_UUID_LENGTH = 16


def find_new_entries(collection: Collection, document: Document, old: Document | None) -> Iterator[tuple[str, Key]]:
    """Yield (index name, entry) for each entry that a write adds to a unique index except ``_id``."""
    for index in collection.indexes.values():
        if index.needs_duplicate_check:
            old_entries = {entry for entry, _ in index.entries(old)} if old is not None else ()
            yield from ((index.name, entry) for entry, _ in index.entries(document) if entry not in old_entries)


def check_unique(
    collection: Collection, key: Key, document: Document, records: Mapping[Key, Record], new_keys: Iterable[Key] = ()
) -> None:
    """Check that no other record has an equal value in a unique index. ``_id`` needs no check."""
    for index in collection.indexes.values():
        if not index.needs_duplicate_check:
            continue
        values_by_entry = dict(index.entries(document))
        entry_keys = (other_key for entry in values_by_entry for other_key in index.find_record_keys(entry))
        other_keys = {*new_keys, *entry_keys} - {key}
        for other_key in other_keys & records.keys():
            for entry, _ in index.entries(records[other_key].document):
                if entry in values_by_entry:
                    raise create_duplicate_error(collection, index, values_by_entry[entry])


def create_duplicate_error(collection: Collection, index: Index, values: tuple[Any, ...]) -> CommandError:
    """Return the error of a write that would store a duplicate value in a unique index."""
    values_by_path = dict(zip(index.keys, map(_convert_missing_to_none, values), strict=True))
    text = ", ".join(f"{path}: {_format(value)}" for path, value in values_by_path.items())
    return error(11000, f"E11000 duplicate key error collection: {collection.namespace} index: {index.name} dup key: "
                 f"{{ {text} }}", keyPattern=dict(index.keys), keyValue=values_by_path)  # fmt: skip


def _convert_missing_to_none(value: Any) -> Any:
    return None if value is MISSING or value is EMPTY_ARRAY else value


def _format(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, ObjectId):
        return f"ObjectId('{value}')"
    if isinstance(value, bytes):
        subtype = value.subtype if isinstance(value, Binary) else 0
        is_uuid = subtype == UUID_SUBTYPE and len(value) == _UUID_LENGTH
        return f'UUID("{UUID(bytes=value)}")' if is_uuid else f"BinData({subtype}, {value.hex().upper()})"
    if isinstance(value, datetime):
        return f"new Date({int(DatetimeMS(value))})"
    if isinstance(value, list):
        return "[ " + ", ".join(map(_format, value)) + " ]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {_format(item)}" for name, item in value.items()) + " }"
    return str(value)
