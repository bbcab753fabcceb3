"""What the stages of a pipeline share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.expressions import Scope, Variables
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.text_search import TextSearch
from gmongo.testing.store.values import MISSING

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

    def text(self) -> Mapping[str, Any] | None:
        """The options of its text index, if there is one."""
        raise NotImplementedError

    def is_geographical(self) -> bool:
        """Whether it has an index of places."""
        raise NotImplementedError

    def finder(self, path: str, collation: Collation) -> Finder:
        """A fast way to the documents with values at a path."""
        raise NotImplementedError


def _no_collection(name: str) -> Foreign:
    raise not_supported(f"reading the collection {name} here")


def _lost(_document: Document) -> float | None:
    raise not_supported("the score of a text search behind a stage that makes other documents")


@dataclass(frozen=True)
class Surroundings:
    """What stages are compiled for.

    :param read: gives another collection of the database.
    :param most: how many documents of the stage are read at most; None for all.
    """

    scope: Scope = field(default_factory=Scope)
    read: Callable[[str], Foreign] = _no_collection
    most: int | None = None

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

    def of_collection(self, name: str) -> Surroundings:
        """The same for a pipeline over another collection."""
        return replace(self, scope=replace(self.scope, text=self.read(name).text(), score=None))

    def searched(self, spec: Any) -> Surroundings:
        """The same behind a search for a text."""
        return replace(self, scope=replace(self.scope, score=TextSearch(spec, self.scope.text).score))

    def changed(self) -> Surroundings:
        """The same behind a stage that makes other documents, of which the score is not known."""
        return self if self.scope.score is None else replace(self, scope=replace(self.scope, score=_lost))

    @classmethod
    def of(
        cls,
        variables: Mapping[str, Any],
        collation: Collation = BINARY,
        pace: Pace | None = None,
        text: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Surroundings:
        """For these variables."""
        return cls(Scope(frozenset(variables), collation, pace or Pace(), text), **more)


def with_value(document: Document, parts: list[str], value: Any) -> Document:
    """The document with a value at a path; with MISSING without the field."""
    if len(parts) > 1:
        child = document.get(parts[0], {})
        return {**document, parts[0]: with_value(child if isinstance(child, dict) else {}, parts[1:], value)}
    if value is MISSING:
        return {name: part for name, part in document.items() if name != parts[0]}
    return {**document, parts[0]: value}
