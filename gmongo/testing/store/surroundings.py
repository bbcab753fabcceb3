"""What the stages of a pipeline share."""

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
# A stage, compiled.
Stage = Callable[[Documents, Variables], Documents]
# Gives those documents, and perhaps more, that have a value at a path, each with its place in natural order.
Finder = Callable[[Any], Iterable[tuple[int, Document]]]


class Foreign:
    """Another collection, as stages read it."""

    def documents(self) -> list[Document]:
        """All its documents."""
        raise NotImplementedError

    def finder(self, path: str, collation: Collation) -> Finder:
        """A fast way to the documents with values at a path."""
        raise NotImplementedError


def _no_collection(name: str) -> Foreign:
    raise not_supported("a collection of the server", name)


@dataclass(frozen=True)
class Surroundings:
    """What stages are compiled for.

    :param read: gives another collection of the database.
    :param most: how many documents of the stage are read at most; None for all.
    :param leading: whether the slot-based engine of a server runs the stage.
    """

    scope: Scope = field(default_factory=Scope)
    read: Callable[[str], Foreign] = _no_collection
    most: int | None = None
    leading: bool = False

    @property
    def pace(self) -> Pace:
        """How the command shares the time with others."""
        return self.scope.pace

    @property
    def collation(self) -> Collation:
        """How strings compare."""
        return self.scope.collation

    def within(self, names: Iterable[str]) -> Surroundings:
        """The same with more variables."""
        return replace(self, scope=self.scope.within(names))

    @classmethod
    def of(
        cls,
        variables: Mapping[str, Any],
        collation: Collation = BINARY,
        pace: Pace | None = None,
        **more: Any,
    ) -> Surroundings:
        """For these variables."""
        return cls(Scope(frozenset(variables), collation, pace or Pace()), **more)


def with_value(document: Document, parts: list[str], value: Any) -> Document:
    """The document with a value at a path; with MISSING without the field."""
    if len(parts) > 1:
        child = document.get(parts[0], {})
        return {**document, parts[0]: with_value(child if isinstance(child, dict) else {}, parts[1:], value)}
    if value is MISSING:
        return {name: part for name, part in document.items() if name != parts[0]}
    return {**document, parts[0]: value}


def with_last(document: Document, parts: list[str], value: Any) -> Document:
    """The document with a value at a path, behind the other fields, as the slot-based engine puts it."""
    return with_value(with_value(document, parts, MISSING) if _has(document, parts) else document, parts, value)


def _has(document: Any, parts: list[str]) -> bool:
    """Whether the document has a field at the path."""
    for part in parts:
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True
