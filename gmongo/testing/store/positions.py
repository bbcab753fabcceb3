"""Find the array element that a query matched, for the positional operator ``$`` of updates and projections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.paths import find_value


def find_matched_index(
    document: dict[str, Any],
    array_path: Sequence[str],
    query: Mapping[str, Any],
    variables: Mapping[str, Any],
    collation: Collation = BINARY,
) -> int | None:
    """Return the index of the first array element that matches the last condition on the array, or None."""
    path = ".".join(array_path)
    array = find_value(document, array_path)
    conditions = list(_find_conditions(query)) if isinstance(array, list) else []
    for condition_path, condition in reversed(conditions):
        if condition_path == path or condition_path.startswith(path + "."):
            match = compile_filter({condition_path: condition}, variables, collation)
            for index, element in enumerate(array):
                if match(_replace_value(document, list(array_path), [element])):
                    return index
    for condition_path, _ in _find_conditions(query):
        parts = condition_path.split(".")
        if any(isinstance(find_value(document, parts[:length]), list) for length in range(1, len(parts) + 1)):
            raise malformed(f"the positional operator in {path}, because no array element matches the condition")
    return None


def _find_conditions(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield pairs of a path and a condition. Enter ``$and``, and ``$or`` with a single clause."""
    for name, condition in query.items():
        if name == "$or" and len(condition) > 1:
            raise malformed("a positional operator with an $or of several clauses")
        elif name in ("$and", "$or"):
            for clause in condition:
                yield from _find_conditions(clause)
        elif not name.startswith("$"):
            yield name, condition


def _replace_value(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    if isinstance(document, list):
        return [
            _replace_value(element, path[1:], value) if str(i) == path[0] else element
            for i, element in enumerate(document)
        ]
    return {**document, path[0]: _replace_value(document[path[0]], path[1:], value)}
