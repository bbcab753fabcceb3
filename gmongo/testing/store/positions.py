"""Find the array element that a query matched, for the positional operator ``$`` of updates and projections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.paths import value_at


def positional_index(
    document: dict[str, Any],
    array_path: Sequence[str],
    query: Mapping[str, Any],
    variables: Mapping[str, Any],
    collation: Collation = BINARY,
) -> int | None:
    """Return the index of the first array element that matches the last condition of the query on it, or None."""
    path = ".".join(array_path)
    array = value_at(document, array_path)
    for name, condition in reversed(list(_conditions(query))) if isinstance(array, list) else ():
        if name == path or name.startswith(path + "."):
            match = compile_filter({name: condition}, variables, collation)
            for index, element in enumerate(array):
                if match(_with(document, list(array_path), [element])):
                    return index
    for name, _ in _conditions(query):
        parts = name.split(".")
        if any(isinstance(value_at(document, parts[:length]), list) for length in range(1, len(parts) + 1)):
            raise malformed(f"a positional operator for {path} with a condition on an array without a match there")
    return None


def _conditions(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the conditions of the query by path. The last condition on an array determines the index."""
    for name, condition in query.items():
        if name == "$or" and len(condition) > 1:
            raise malformed("a positional operator with an $or of several clauses")
        elif name in ("$and", "$or"):
            for part in condition:
                yield from _conditions(part)
        elif not name.startswith("$"):
            yield name, condition


def _with(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    if isinstance(document, list):
        return [_with(part, path[1:], value) if str(i) == path[0] else part for i, part in enumerate(document)]
    return {**document, path[0]: _with(document[path[0]], path[1:], value)}
