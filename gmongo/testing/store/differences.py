"""Compare the document before and after an update, and describe the changes like a change stream."""

from __future__ import annotations

from typing import Any

import bson

from gmongo.testing.store.values import identical

Document = dict[str, Any]
# The size in bytes of an oplog entry for an update, without the changes of the document.
_DELTA_METADATA = 15
_FIELD = 7  # the size in bytes of the document {"": value} without the value


def update_description(before: Document, after: Document, whole: frozenset[str], version: tuple[int, int]) -> Document:
    """Return the ``updateDescription`` of an event."""
    changes = _Changes(whole)
    changes.compare(before, after, "")
    description: Document = {"updatedFields": changes.updated, "removedFields": changes.removed}
    if version >= (5, 0):
        description["truncatedArrays"] = changes.truncated
    return description


def is_replacement_shorter(before: Document, after: Document) -> bool:
    """Return True if the changes of an update pipeline are longer than the new document."""
    return len(bson.encode(_delta(before, after))) + _DELTA_METADATA > len(bson.encode(after))


def _delta(before: Any, after: Any) -> Document:
    """Return the changes between two documents or two arrays in the form of an oplog entry."""
    if isinstance(after, list):
        parts: Document = {"a": True} | ({"l": len(after)} if len(after) < len(before) else {})
        for index, value in enumerate(after):
            if index >= len(before):
                parts[f"u{index}"] = value
            elif not identical(before[index], value):
                parts |= _changes_within(str(index), before[index], value, f"u{index}", parts)
        return parts
    delta: Document = {"d": {name: False for name in before if name not in after}, "u": {}, "i": {}}
    for name, value in after.items():
        if name not in before:
            delta["i"][name] = value
        elif not identical(before[name], value):
            delta |= _changes_within(name, before[name], value, name, delta["u"])
    return {name: part for name, part in delta.items() if part}


def _changes_within(name: str, before: Any, after: Any, updated_name: str, updated: Document) -> Document:
    """Return the changes within the value of a field or an array element."""
    if before and after and any(isinstance(before, kind) and isinstance(after, kind) for kind in (dict, list)):
        delta = _delta(before, after)
        if len(bson.encode(delta)) < len(bson.encode({"": after})):
            return {f"s{name}": delta}
    updated[updated_name] = after
    return {}


def disambiguated_paths(before: Document, after: Document, description: Document) -> Document:
    """Return the field ``disambiguatedPaths`` of a description: the parts of each ambiguous path.

    A path is ambiguous if a part is a number, which may be an index or a name, or if a name contains a dot.
    """
    paths = [*description["updatedFields"], *description["removedFields"]]
    paths += [one["field"] for one in description.get("truncatedArrays", [])]
    found: Document = {}
    for path in paths:
        parts = _split_path(path, after) or _split_path(path, before) or [path]
        if any(isinstance(part, int) or "." in part or part.isdigit() for part in parts):
            found[path] = parts
    return found


def _split_path(path: str, value: Any) -> list[Any] | None:
    """Split a path into the names and indexes of a document. Return None if the document has no such path."""
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        if not head.isdigit() or int(head) >= len(value):
            return None
        tail = _split_path(rest, value[int(head)]) if rest else []
        return None if tail is None else [int(head), *tail]
    if not isinstance(value, dict):
        return None
    for name, part in value.items():
        if path == name:
            return [name]
        if path.startswith(f"{name}."):
            tail = _split_path(path[len(name) + 1 :], part)
            if tail is not None:
                return [name, *tail]
    return None


class _Changes:
    """The changes of a document, by path."""

    def __init__(self, whole: frozenset[str]) -> None:
        self.updated: Document = {}
        self.removed: list[str] = []
        self.truncated: list[Document] = []
        self._whole = whole

    def compare(self, before: Document, after: Document, prefix: str) -> None:
        self.removed += [prefix + name for name in before if name not in after]
        changed = {name: value for name, value in after.items() if name not in before or prefix + name in self._whole}
        changed |= {name: value for name, value in after.items() if not identical(before.get(name), value)}
        parts = {name for name, value in changed.items() if self._has_parts(prefix + name, before.get(name), value)}
        # A server shows first the existing fields, then the new fields, and then the parts of fields.
        for name in sorted((name for name in changed if name not in parts), key=lambda name: name not in before):
            self.updated[prefix + name] = changed[name]
        for name in (name for name in changed if name in parts):
            if isinstance(changed[name], dict):
                self.compare(before[name], changed[name], f"{prefix}{name}.")
            else:
                self._compare_arrays(before[name], changed[name], prefix + name)

    def _has_parts(self, path: str, old: Any, new: Any) -> bool:
        by_parts = "" in self._whole
        if (
            path in self._whole
            or (not by_parts and not (old and new))
            or not any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, list))
        ):
            return False
        return by_parts or len(bson.encode(_delta(old, new))) <= len(bson.encode({"": new})) - _FIELD

    def _compare_arrays(self, before: list[Any], after: list[Any], path: str) -> None:
        inside = _Changes(self._whole)
        for index, value in enumerate(after):
            old: Any
            place, old = f"{path}.{index}", before[index] if index < len(before) else None
            # An update of an element after the end of the array fills the array with null.
            is_filler = value is None and "" in self._whole and place not in self._whole
            if identical(old, value) and (index < len(before) or is_filler):
                continue
            if not self._has_parts(place, old, value):
                inside.updated[place] = value
            elif isinstance(value, dict):
                inside.compare(old, value, f"{place}.")
            else:
                inside._compare_arrays(old, value, place)
        if len(after) < len(before):
            self.truncated.append({"field": path, "newSize": len(after)})
        self.updated.update(inside.updated)
        self.removed += inside.removed
        self.truncated += inside.truncated
