"""Unique indexes: find duplicate values and make their errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bson.objectid import ObjectId

from gmongo.testing.command import CommandError
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.index import Index
from gmongo.testing.store.values import EMPTY_ARRAY, MISSING, Key


def new_entries(collection: Collection, document: Document, before: Document | None) -> Iterator[tuple[str, Key]]:
    """Yield the new entries of a document in unique indexes, each with the name of the index.

    :param before: the document before its replacement.
    """
    for index in collection.indexes.values():
        if index.guards:
            known = {entry for entry, _ in index.entries(before)} if before is not None else ()
            yield from ((index.name, entry) for entry, _ in index.entries(document) if entry not in known)


def check_unique(collection: Collection, key: Key, document: Document) -> None:
    """Check a document against the stored documents, without ``_id``."""
    for index in collection.indexes.values():
        if not index.guards:
            continue
        for entry, values in index.entries(document):
            if any(holder != key for holder in index.holders(entry)):
                raise duplicate_key(collection, index, values)


def check_unique_among(
    collection: Collection, key: Key, document: Document, records: Mapping[Key, Record], written: Iterable[Key]
) -> None:
    """Check a document against the records of a transaction, without ``_id``.

    :param written: the keys of the records that the transaction has written.
    """
    for index in collection.indexes.values():
        if not index.guards:
            continue
        mine = dict(index.entries(document))
        others = {*written, *(holder for entry in mine for holder in index.holders(entry))} - {key}
        for other in others & records.keys():
            for entry, _ in index.entries(records[other].document):
                if entry in mine:
                    raise duplicate_key(collection, index, mine[entry])


def duplicate_key(collection: Collection, index: Index, values: tuple[Any, ...]) -> CommandError:
    """Return the error of a duplicate value."""
    found = {path: _plain(value) for path, value in zip(index.keys, values, strict=True)}
    shown = ", ".join(f"{path}: {_shown(value)}" for path, value in found.items())
    return CommandError(
        11000,
        "DuplicateKey",
        f"E11000 duplicate key error collection: {collection.namespace} index: {index.name} dup key: {{ {shown} }}",
        keyPattern=dict(index.keys),
        keyValue=found,
    )


def _plain(value: Any) -> Any:
    return None if value is MISSING or value is EMPTY_ARRAY else value


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, ObjectId):
        return f"ObjectId('{value}')"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {_shown(part)}" for name, part in value.items()) + " }"
    return str(value)
