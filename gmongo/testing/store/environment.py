"""The context in which the stages of a pipeline are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.expressions.compiling import Scope, Variables
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import MISSING
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
Documents = Iterable[Document]
Stage = Callable[[Documents, Variables], Documents]


def _refuse_collection(name: str) -> list[Document]:
    raise not_supported("a system collection", name)


@dataclass(frozen=True)
class Environment:
    """The context in which a stage is compiled."""

    scope: Scope = field(default_factory=Scope)  # the collation, the pace and the variable names
    # A function that takes the name of a collection, and returns the documents of the collection.
    read: Callable[[str], list[Document]] = _refuse_collection

    @property
    def pace(self) -> Pace:
        return self.scope.pace

    @property
    def collation(self) -> Collation:
        return self.scope.collation

    def add_names(self, names: Iterable[str]) -> Environment:
        return replace(self, scope=self.scope.add_names(names))

    @classmethod
    def from_variables(
        cls, variables: Mapping[str, Any], collation: Collation = BINARY, pace: Pace | None = None, **fields: Any
    ) -> Environment:
        """Return a context in which expressions can use the names of `variables`."""
        return cls(Scope(frozenset(variables), collation, pace or Pace()), **fields)


def set_value(document: Document, parts: list[str], value: Any) -> Document:
    """Return a copy of a document with `value` at a path. The value MISSING removes the field."""
    if len(parts) > 1:
        child = document.get(parts[0], {})
        return {**document, parts[0]: set_value(child if isinstance(child, dict) else {}, parts[1:], value)}
    if value is MISSING:
        return {name: field_value for name, field_value in document.items() if name != parts[0]}
    return {**document, parts[0]: value}


def set_last_value(document: Document, parts: list[str], value: Any) -> Document:
    """Return a copy of a document with `value` at a path. This field becomes the last field."""
    return set_value(set_value(document, parts, MISSING) if has_path(document, parts) else document, parts, value)


def has_path(document: Any, parts: list[str]) -> bool:
    """Return True if the document has a value at the path."""
    for part in parts:
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True
