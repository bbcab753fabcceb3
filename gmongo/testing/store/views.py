"""Checks of views: no cycles and no mixed collations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.access import Access
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import location
from gmongo.testing.store.values import is_number


def check_view(access: Access, database: str, name: str, options: Document) -> None:
    """Check the sources of a view."""
    collation = Collation.of(options.get("collation"))
    for read in _read_by(options):
        other = access.find(database, read)
        if other is not None and other.is_view and other.collation != collation:
            raise CommandError(167, "OptionNotSupportedOnView", f"View {name} has conflicting collation with view "
                               f"{other.namespace}")  # fmt: skip
    ahead, seen = list(_read_by(options)), set()
    while ahead:
        read = ahead.pop()
        if read == name:
            raise CommandError(5, "GraphContainsCycle", f"View cycle detected: {database}.{name} reads itself")
        other = access.find(database, read)
        if read not in seen and other is not None:
            ahead += _read_by(other.options)
        seen.add(read)


def _read_by(options: Document) -> Iterator[str]:
    if "viewOn" in options:
        yield options["viewOn"]
        yield from _read_in(options.get("pipeline", []))


def _read_in(part: Any) -> Iterator[str]:
    """Yield the collections in the stages of a pipeline and nested pipelines."""
    if isinstance(part, list):
        for one in part:
            yield from _read_in(one)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in ("$lookup", "$graphLookup") and isinstance(value, dict) and isinstance(value.get("from"), str):
                yield value["from"]
            elif name == "$unionWith":
                yield value if isinstance(value, str) else value.get("coll", "")
            yield from _read_in(value)


def check_find_of_view(body: Document) -> None:
    """Check that an aggregation can execute a ``find``."""
    for name in ("returnKey", "showRecordId"):
        if body.get(name):
            raise CommandError(168, "InvalidPipelineOperator", f"Option {name} not supported in aggregation")
    for path, value in (body.get("projection") or {}).items():
        if path.endswith(".$"):
            raise location(31324, "Cannot use positional projection in aggregation projection")
        if isinstance(value, dict) and "$elemMatch" in value:
            raise CommandError(168, "InvalidPipelineOperator", "Unrecognized expression '$elemMatch'")
        if isinstance(value, dict) and is_number(value.get("$slice")):
            raise location(28667, "Expression $slice takes at least 2 arguments, and at most 3, but 1 were passed in.")
