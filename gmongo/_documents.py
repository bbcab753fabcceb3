"""Documents, for type checkers, and the fields of commands that callers may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from bson.raw_bson import RawBSONDocument

# A document of the class that codec options name, or what it holds: of a type of BSON or of a codec of the application.
Value: TypeAlias = Any
Document: TypeAlias = Mapping[str, Value]  # one that is only read
DocumentDict: TypeAlias = dict[str, Value]  # one that is built here or was decoded


def without_none(fields: Document, /, **optional: Value) -> DocumentDict:
    """`fields`, and those of `optional` that are not None."""
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}


def plain(value: Value) -> Value:
    """Copy the mappings of an application to dicts, also those inside of it. A raw document stays as it is.

    The C encoder of ``bson`` leaves out an ``_id`` whose look-up fails, and replaces other errors by KeyError. The copy
    raises the errors themselves.
    """
    if isinstance(value, Mapping) and not isinstance(value, RawBSONDocument):
        return {name: plain(value[name]) for name in value}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value
