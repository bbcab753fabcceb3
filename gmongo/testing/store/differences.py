"""Compare the document before and after an update, and describe the changes like a change stream."""

from __future__ import annotations

from typing import Any

import bson

from gmongo.testing.store.paths import step
from gmongo.testing.store.values import MISSING, identical
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
# The size in bytes of an oplog entry for an update, without the changes of the document.
_DELTA_METADATA = 15
_FIELD = 7  # the size in bytes of the document {"": value} without the value


def update_description(
    before: Document, after: Document, whole: frozenset[str] | None, version: tuple[int, int]
) -> Document:
    """Return the ``updateDescription`` of an event. `whole` is the result of ``Update.written_whole``."""
    if whole is None:
        raise not_supported("a change event of $[] or $[name]")
    updated: Document = {}
    removed: list[str] = []
    truncated: list[Document] = []
    if whole:
        _compare(before, after, "", whole, updated, removed)
    else:
        _compare_after_pipeline(before, after, updated, truncated)
        removed = [name for name in before if name not in after]
    description: Document = {"updatedFields": updated, "removedFields": removed}
    if version >= (5, 0):
        description["truncatedArrays"] = truncated
    return description


def _compare(
    before: Any, after: Any, prefix: str, whole: frozenset[str], updated: Document, removed: list[str]
) -> None:
    """Add the changes between two documents or two arrays to `updated` and `removed`."""
    old, new = (value if isinstance(value, dict) else dict(zip(map(str, range(len(value))), value, strict=True))
                for value in (before, after))  # fmt: skip
    removed += [prefix + name for name in old if name not in new]
    changed = [
        name
        for name, value in new.items()
        if prefix + name in whole
        # An update of an element after the end of the array fills the array with null.
        or (not identical(old[name], value) if name in old else isinstance(after, dict) or value is not None)
    ]
    parts = {name for name in changed if prefix + name not in whole and _are_containers(old.get(name), new[name])}
    if isinstance(after, dict):
        # A server shows first the existing fields, then the new fields, and then the parts of fields.
        changed.sort(key=lambda name: (name in parts, name not in old))
    for name in changed:
        if name in parts:
            _compare(old[name], new[name], f"{prefix}{name}.", whole, updated, removed)
        else:
            updated[prefix + name] = new[name]


def _are_containers(old: Any, new: Any) -> bool:
    return any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, list))


def _compare_after_pipeline(before: Document, after: Document, updated: Document, truncated: list[Document]) -> None:
    delta = _delta(before, after)
    if delta is None:
        raise not_supported("a change event of a pipeline inside a field")
    for name, value in {**delta.get("u", {}), **delta.get("i", {})}.items():
        updated[name] = value
    for name, value in after.items():
        part = delta.get(f"s{name}")
        if part is not None and len(bson.encode(part)) <= len(bson.encode({"": value})) - _FIELD:
            truncated.append({"field": name, "newSize": len(value)})
        elif part is not None:
            updated[name] = value


def is_replacement_shorter(before: Document, after: Document) -> bool:
    """Return True if a server logs a replacement, because the changes of a pipeline are longer than the document."""
    delta = _delta(before, after)
    return delta is not None and len(bson.encode(delta)) + _DELTA_METADATA > len(bson.encode(after))


def _delta(before: Document, after: Document) -> Document | None:
    """Return the changes of a pipeline in the form of an oplog entry, or None for changes inside of fields.

    The only supported change inside of a field is the removal of the last elements of an array.
    """
    delta: Document = {"d": {name: False for name in before if name not in after}, "u": {}, "i": {}}
    for name, value in after.items():
        old = before.get(name)
        if name not in before:
            delta["i"][name] = value
        elif identical(old, value):
            continue
        elif old and value and _are_containers(old, value):
            if isinstance(value, dict) or not identical(old[: len(value)], value):
                return None
            part = {"a": True, "l": len(value)}
            is_shorter = len(bson.encode(part)) < len(bson.encode({"": value}))
            delta |= {f"s{name}": part} if is_shorter else {"u": {**delta["u"], name: value}}
        else:
            delta["u"][name] = value
    return {name: part for name, part in delta.items() if part}


def disambiguated_paths(before: Document, after: Document, description: Document) -> Document:
    """Return the field ``disambiguatedPaths`` of a description: the parts of each ambiguous path.

    A path is ambiguous if a part is a number, which may be an index or a name.
    """
    paths: Document = dict.fromkeys(description["updatedFields"], after) | dict.fromkeys(
        description["removedFields"], before
    )
    found: Document = {}
    for path, value in paths.items():
        parts: list[Any] = []
        for part in path.split("."):
            parts.append(int(part) if isinstance(value, list) and part.isdigit() else part)
            value = step(value, part)
        if value is MISSING:
            raise not_supported("disambiguatedPaths of names with dots")
        if any(isinstance(part, int) or part.isdigit() for part in parts):
            found[path] = parts
    return found
