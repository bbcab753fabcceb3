"""Check that a view does not read itself, and that a view and the views it reads have the same collation."""

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
    """Check the collections and views that a view reads.

    :param access: the access to the catalog.
    :param database: the name of the database.
    :param name: the name of the view.
    :param options: the options of the view.
    :raises CommandError: the view reads itself, or reads a view with another collation.
    """
    collation = Collation.of(options.get("collation"))
    for read in _collections_read_by(options):
        other = access.find(database, read)
        if other is not None and other.is_view and other.collation != collation:
            raise CommandError(167, "OptionNotSupportedOnView", f"View {name} has conflicting collation with view "
                               f"{other.namespace}")  # fmt: skip
    unvisited, visited = list(_collections_read_by(options)), set()
    while unvisited:
        read = unvisited.pop()
        if read == name:
            raise CommandError(5, "GraphContainsCycle", f"View cycle detected: {database}.{name} reads itself")
        other = access.find(database, read)
        if read not in visited and other is not None:
            unvisited += _collections_read_by(other.options)
        visited.add(read)


def _collections_read_by(options: Document) -> Iterator[str]:
    if "viewOn" in options:
        yield options["viewOn"]
        yield from _collections_read_in(options.get("pipeline", []))


def _collections_read_in(part: Any) -> Iterator[str]:
    """Yield the names of the collections that the stages of a pipeline and its nested pipelines read."""
    if isinstance(part, list):
        for one in part:
            yield from _collections_read_in(one)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in ("$lookup", "$graphLookup") and isinstance(value, dict) and isinstance(value.get("from"), str):
                yield value["from"]
            elif name == "$unionWith":
                yield value if isinstance(value, str) else value.get("coll", "")
            yield from _collections_read_in(value)


def check_find_of_view(body: Document) -> None:
    """Check that a ``find`` of a view only has options that an aggregation supports.

    A server executes a ``find`` of a view as an aggregation.
    """
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
