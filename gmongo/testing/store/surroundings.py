"""What the stages of a pipeline share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.values import MISSING

Document = dict[str, Any]
Documents = list[Document]


def _no_collection(name: str) -> Documents:
    raise not_supported(f"reading the collection {name} here")


@dataclass(frozen=True)
class Surroundings:
    """What stages know besides their documents.

    :param variables: of ``let``, and ``NOW``.
    :param read: the documents of another collection of the database.
    """

    variables: Mapping[str, Any]
    read: Callable[[str], Documents] = _no_collection
    collation: Collation = BINARY


def with_value(document: Document, parts: list[str], value: Any) -> Document:
    """The document with a value at a path; with MISSING without the field."""
    if len(parts) > 1:
        child = document.get(parts[0], {})
        return {**document, parts[0]: with_value(child if isinstance(child, dict) else {}, parts[1:], value)}
    if value is MISSING:
        return {name: part for name, part in document.items() if name != parts[0]}
    return {**document, parts[0]: value}
