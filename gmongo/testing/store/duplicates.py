"""Find duplicate values of unique indexes, and create the errors of duplicate values."""

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


def new_entries(collection: Collection, document: Document, before: Document | None) -> Iterator[tuple[str, Key]]:
    """Yield the entries that a write of a document would add to unique indexes, each with the name of the index."""
    for index in collection.indexes.values():
        if index.needs_duplicate_check:
            known = {entry for entry, _ in index.entries(before)} if before is not None else ()
            yield from ((index.name, entry) for entry, _ in index.entries(document) if entry not in known)


def check_unique(
    collection: Collection, key: Key, document: Document, records: Mapping[Key, Record], written: Iterable[Key] = ()
) -> None:
    """Check that no other record in `records` has the key of `document` in a unique index, except ``_id``."""
    for index in collection.indexes.values():
        if not index.needs_duplicate_check:
            continue
        entries = dict(index.entries(document))
        others = {*written, *(other for entry in entries for other in index.record_keys(entry))} - {key}
        for other in others & records.keys():
            for entry, _ in index.entries(records[other].document):
                if entry in entries:
                    raise duplicate_key(collection, index, entries[entry])


def duplicate_key(collection: Collection, index: Index, values: tuple[Any, ...]) -> CommandError:
    """Return the error of a write that would store a duplicate value in a unique index."""
    found = {path: _none_if_missing(value) for path, value in zip(index.keys, values, strict=True)}
    shown = ", ".join(f"{path}: {_as_text(value)}" for path, value in found.items())
    return error(11000, f"E11000 duplicate key error collection: {collection.namespace} index: {index.name} dup key: "
                 f"{{ {shown} }}", keyPattern=dict(index.keys), keyValue=found)  # fmt: skip


def _none_if_missing(value: Any) -> Any:
    return None if value is MISSING or value is EMPTY_ARRAY else value


def _as_text(value: Any) -> str:
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
        return "[ " + ", ".join(map(_as_text, value)) + " ]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {_as_text(part)}" for name, part in value.items()) + " }"
    return str(value)
