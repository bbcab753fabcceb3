"""The context that the stages of a pipeline share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.expressions import Scope, Variables
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import MISSING
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
Documents = Iterable[Document]
Stage = Callable[[Documents, Variables], Documents]
# Returns at least the documents with a value at a path, each with its position in natural order.
Finder = Callable[[Any], Iterable[tuple[int, Document]]]


class Foreign:
    """Another collection that stages read."""

    def documents(self) -> list[Document]:
        raise NotImplementedError

    def finder(self, path: str, collation: Collation) -> Finder:
        """Return a fast finder of the documents with a value at a path."""
        raise NotImplementedError


def _no_collection(name: str) -> Foreign:
    raise not_supported("a collection of the server", name)


@dataclass(frozen=True)
class Environment:
    """The context of the compilation of stages.

    :param read: returns another collection of the database.
    :param most: the maximum number of documents to read from the stage, None for all.
    :param leading: True if the slot-based engine of a server runs the stage.
    """

    scope: Scope = field(default_factory=Scope)
    read: Callable[[str], Foreign] = _no_collection
    most: int | None = None
    leading: bool = False

    @property
    def pace(self) -> Pace:
        return self.scope.pace

    @property
    def collation(self) -> Collation:
        return self.scope.collation

    def within(self, names: Iterable[str]) -> Environment:
        return replace(self, scope=self.scope.within(names))

    @classmethod
    def of(
        cls,
        variables: Mapping[str, Any],
        collation: Collation = BINARY,
        pace: Pace | None = None,
        **more: Any,
    ) -> Environment:
        """Return a context with these variables."""
        return cls(Scope(frozenset(variables), collation, pace or Pace()), **more)


def with_value(document: Document, parts: list[str], value: Any) -> Document:
    """Return the document with a value at a path. MISSING removes the field."""
    if len(parts) > 1:
        child = document.get(parts[0], {})
        return {**document, parts[0]: with_value(child if isinstance(child, dict) else {}, parts[1:], value)}
    if value is MISSING:
        return {name: part for name, part in document.items() if name != parts[0]}
    return {**document, parts[0]: value}


def with_last(document: Document, parts: list[str], value: Any) -> Document:
    """Return the document with a value at a path, after the other fields as in the slot-based engine."""
    return with_value(with_value(document, parts, MISSING) if _has(document, parts) else document, parts, value)


def _has(document: Any, parts: list[str]) -> bool:
    for part in parts:
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True
