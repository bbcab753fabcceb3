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


def disambiguated(before: Document, after: Document, description: Document) -> Document:
    """The parts of those paths in a description that can be read in several ways: with a number, which may be that of
    an element or a name, or with a name that has a dot in it.
    """
    paths = [*description["updatedFields"], *description["removedFields"]]
    paths += [one["field"] for one in description.get("truncatedArrays", [])]
    found: Document = {}
    for path in paths:
        parts = _parts(path, after) or _parts(path, before) or [path]
        if any(isinstance(part, int) or "." in part or part.isdigit() for part in parts):
            found[path] = parts
    return found


def _parts(path: str, value: Any) -> list[Any] | None:
    """The names and the numbers of elements that the path is made of; None if it leads nowhere."""
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        if not head.isdigit() or int(head) >= len(value):
            return None
        tail = _parts(rest, value[int(head)]) if rest else []
        return None if tail is None else [int(head), *tail]
    if not isinstance(value, dict):
        return None
    for name, part in value.items():
        if path == name:
            return [name]
        if path.startswith(f"{name}."):
            tail = _parts(path[len(name) + 1 :], part)
            if tail is not None:
                return [name, *tail]
    return None


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
            _compare_arrays(before[name], value, path, updated, removed, truncated)
        else:
            updated[path] = value


def _compare_arrays(
    before: list[Any],
    after: list[Any],
    path: str,
    updated: Document,
    removed: list[str],
    truncated: list[Document],
) -> None:
    changed: Document = {}
    removed_inside: list[str] = []
    whole = 0  # elements of which nothing stays
    for index, value in enumerate(after):
        old = before[index] if index < len(before) else None
        if index < len(before) and identical(old, value):
            continue
        if isinstance(value, dict) and isinstance(old, dict) and value and old:
            _compare(old, value, f"{path}.{index}.", changed, removed_inside, truncated)
        else:
            changed[f"{path}.{index}"] = value
            whole += 1
    if whole == len(after):
        updated[path] = after
        return
    if len(after) < len(before):
        truncated.append({"field": path, "newSize": len(after)})
    updated.update(changed)
    removed += removed_inside
