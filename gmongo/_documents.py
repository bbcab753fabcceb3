"""Document types for type checkers, and functions for command documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from bson.raw_bson import RawBSONDocument

# An instance of the document class of the codec options, or a value of a BSON type or a custom type.
Value: TypeAlias = Any
Document: TypeAlias = Mapping[str, Value]  # a document that the driver does not change
DocumentDict: TypeAlias = dict[str, Value]  # a document that the driver has created or decoded


def without_none(fields: Document, /, **optional: Value) -> DocumentDict:
    """Return a copy of `fields` with the items of `optional` whose values are not None."""
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}


def plain(value: Value) -> Value:
    """Copy a mapping and its nested mappings to dicts. Return raw documents without a copy.

    If the mapping raises an exception, the function propagates the exception. The C encoder of
    ``bson`` would instead omit the ``_id`` or raise KeyError.
    """
    if isinstance(value, Mapping) and not isinstance(value, RawBSONDocument):
        return {name: plain(value[name]) for name in value}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value
