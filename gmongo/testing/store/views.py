"""Check that a view does not read itself, and that a view and the views it reads have the same collation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gmongo.testing.store.access import Access
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.values import is_number


def check_view(access: Access, database: str, name: str, options: Document) -> None:
    """Check the collections and views that a view reads."""
    collation = Collation.of(options.get("collation"))
    unvisited, visited = list(_collections_read_by(options)), set()
    while unvisited:
        read = unvisited.pop()
        other = access.find(database, read)
        if read == name or (other is not None and other.is_view and other.collation != collation):
            raise malformed("a view that reads itself, or a view with another collation")
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
            if name == "$lookup" and isinstance(value, dict) and isinstance(value.get("from"), str):
                yield value["from"]
            elif name == "$unionWith":
                yield value if isinstance(value, str) else value.get("coll", "")
            yield from _collections_read_in(value)


def check_find_of_view(body: Document) -> None:
    """Check that a ``find`` of a view only has options that an aggregation supports.

    A server executes a ``find`` of a view as an aggregation.
    """
    projection = body.get("projection") or {}
    operators = [value for value in projection.values() if isinstance(value, dict)]
    if (
        any(body.get(name) for name in ("returnKey", "showRecordId", "tailable"))
        or any(path.endswith(".$") for path in projection)
        or any("$elemMatch" in value or is_number(value.get("$slice")) for value in operators)
    ):
        raise malformed("a find of a view with options that aggregate does not have")
