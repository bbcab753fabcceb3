"""What an update changed, as change streams describe it."""

from __future__ import annotations

from typing import Any

from gmongo.testing.store.values import identical

Document = dict[str, Any]


def update_description(before: Document, after: Document, version: tuple[int, int]) -> Document:
    """The ``updateDescription`` of an event."""
    updated: Document = {}
    removed: list[str] = []
    truncated: list[Document] = []
    _compare(before, after, "", updated, removed, truncated)
    description: Document = {"updatedFields": updated, "removedFields": removed}
    if version >= (5, 0):
        description["truncatedArrays"] = truncated
    return description


def _compare(
    before: Document, after: Document, prefix: str, updated: Document, removed: list[str], truncated: list[Document]
) -> None:
    removed += [prefix + name for name in before if name not in after]
    for name, value in after.items():
        path = prefix + name
        if name not in before:
            updated[path] = value
        elif identical(before[name], value):
            continue
        elif isinstance(value, dict) and isinstance(before[name], dict) and value and before[name]:
            _compare(before[name], value, f"{path}.", updated, removed, truncated)
        elif isinstance(value, list) and isinstance(before[name], list) and value and before[name]:
            _compare_arrays(before[name], value, path, updated, truncated)
        else:
            updated[path] = value


def _compare_arrays(
    before: list[Any], after: list[Any], path: str, updated: Document, truncated: list[Document]
) -> None:
    changed = {
        f"{path}.{index}": value
        for index, value in enumerate(after)
        if index >= len(before) or not identical(before[index], value)
    }
    if len(changed) == len(after):
        updated[path] = after
        return
    if len(after) < len(before):
        truncated.append({"field": path, "newSize": len(after)})
    updated.update(changed)
