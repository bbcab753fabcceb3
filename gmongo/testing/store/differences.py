"""Describe the changes of an update in the format of change stream events."""

from __future__ import annotations

from typing import Any

import bson

from gmongo.testing.store.paths import select_child
from gmongo.testing.store.values import MISSING, are_identical
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
# The size in bytes of an oplog entry for an update, without the changes of the document.
_DELTA_BYTES = 15
_FIELD_BYTES = 7  # the size in bytes of the document {"": value} without the value


def describe_update(
    old: Document, new: Document, whole_paths: frozenset[str] | None, version: tuple[int, int]
) -> Document:
    """Return the ``updateDescription`` of an event. `whole_paths` is the result of ``Update.find_whole_paths``."""
    if whole_paths is None:
        raise not_supported("a change event of an update with $[] or $[name]")
    updated: Document = {}
    removed: list[str] = []
    truncated: list[Document] = []
    if whole_paths:
        _add_changes(old, new, "", whole_paths, updated, removed)
    else:
        _add_pipeline_changes(old, new, updated, truncated)
        removed = [name for name in old if name not in new]
    description: Document = {"updatedFields": updated, "removedFields": removed}
    if version >= (5, 0):
        description["truncatedArrays"] = truncated
    return description


def _add_changes(
    old: Any, new: Any, prefix: str, whole_paths: frozenset[str], updated: Document, removed: list[str]
) -> None:
    """Compare two documents or two arrays. Add the changes to `updated` and `removed`."""
    old_values, new_values = (
        value if isinstance(value, dict) else {str(index): element for index, element in enumerate(value)}
        for value in (old, new)
    )
    removed += [prefix + name for name in old_values if name not in new_values]
    changed_names = [
        name
        for name, value in new_values.items()
        if prefix + name in whole_paths
        # If an update sets an element beyond the end of the array, a server fills the gap with null.
        or (
            not are_identical(old_values[name], value)
            if name in old_values
            else isinstance(new, dict) or value is not None
        )
    ]
    compared_names = {
        name
        for name in changed_names
        if prefix + name not in whole_paths and _are_containers(old_values.get(name), new_values[name])
    }
    if isinstance(new, dict):
        # A server lists existing fields, then new fields, and then paths inside fields.
        changed_names.sort(key=lambda name: (name in compared_names, name not in old_values))
    for name in changed_names:
        if name in compared_names:
            values = old_values[name], new_values[name]
            _add_changes(*values, f"{prefix}{name}.", whole_paths, updated, removed)
        else:
            updated[prefix + name] = new_values[name]


def _are_containers(first: Any, second: Any) -> bool:
    return any(isinstance(first, kind) and isinstance(second, kind) for kind in (dict, list))


def _add_pipeline_changes(old: Document, new: Document, updated: Document, truncated: list[Document]) -> None:
    delta = _create_delta(old, new)
    if delta is None:
        raise not_supported("a change event of an update pipeline that changes part of a field")
    for name, value in {**delta.get("u", {}), **delta.get("i", {})}.items():
        updated[name] = value
    for name, value in new.items():
        change = delta.get(f"s{name}")
        size = len(bson.encode({"": value})) - _FIELD_BYTES
        if change is not None and len(bson.encode(change)) <= size:
            truncated.append({"field": name, "newSize": len(value)})
        elif change is not None:
            updated[name] = value


def is_replacement_shorter(old: Document, new: Document) -> bool:
    """Return True if a server logs the new document because the changes of a pipeline are longer."""
    delta = _create_delta(old, new)
    return delta is not None and len(bson.encode(delta)) + _DELTA_BYTES > len(bson.encode(new))


def _create_delta(old: Document, new: Document) -> Document | None:
    """Return the changes of a pipeline as an oplog entry, or None for an unsupported change.

    The only supported change inside of a field is the removal of the last elements of an array.
    """
    delta: Document = {"d": {name: False for name in old if name not in new}, "u": {}, "i": {}}
    for name, value in new.items():
        old_value = old.get(name)
        if name not in old:
            delta["i"][name] = value
        elif are_identical(old_value, value):
            continue
        elif old_value and value and _are_containers(old_value, value):
            if isinstance(value, dict) or not are_identical(old_value[: len(value)], value):
                return None
            change = {"a": True, "l": len(value)}
            is_shorter = len(bson.encode(change)) < len(bson.encode({"": value}))
            delta |= {f"s{name}": change} if is_shorter else {"u": {**delta["u"], name: value}}
        else:
            delta["u"][name] = value
    return {name: change for name, change in delta.items() if change}


def disambiguate_paths(old: Document, new: Document, description: Document) -> Document:
    """Return ``disambiguatedPaths`` of an ``updateDescription``: the parts of each ambiguous path.

    A path is ambiguous if a part is a number, which may be an index or a name.
    """
    paths: Document = dict.fromkeys(description["updatedFields"], new) | dict.fromkeys(
        description["removedFields"], old
    )
    parts_by_path: Document = {}
    for path, value in paths.items():
        parts: list[Any] = []
        for part in path.split("."):
            parts.append(int(part) if isinstance(value, list) and part.isdigit() else part)
            value = select_child(value, part)
        if value is MISSING:
            raise not_supported("disambiguatedPaths of field names with dots")
        if any(isinstance(part, int) or part.isdigit() for part in parts):
            parts_by_path[path] = parts
    return parts_by_path
