"""Document types for type checkers, and functions for command documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from bson.raw_bson import RawBSONDocument

# A document of the class in the codec options, or one of its values: a BSON type or a custom type.
Value: TypeAlias = Any
Document: TypeAlias = Mapping[str, Value]  # read only
DocumentDict: TypeAlias = dict[str, Value]  # built by the driver, or decoded


def without_none(fields: Document, /, **optional: Value) -> DocumentDict:
    """Return `fields`, and the items of `optional` that are not None."""
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}


def plain(value: Value) -> Value:
    """Copy an application's mappings, including nested mappings, to dicts. Raw documents are not copied.

    The C encoder of ``bson`` omits an ``_id`` whose look-up fails, and replaces other errors by KeyError. The copy
    raises the original errors.
    """
    if isinstance(value, Mapping) and not isinstance(value, RawBSONDocument):
        return {name: plain(value[name]) for name in value}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value
