"""Documents, for type checkers, and the fields of commands that callers may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

# A document of the class that codec options name, or what it holds: of a type of BSON or of a codec of the application.
Value: TypeAlias = Any
Document: TypeAlias = Mapping[str, Value]  # one that is only read
DocumentDict: TypeAlias = dict[str, Value]  # one that is built here or was decoded


def without_none(fields: Document, /, **optional: Value) -> DocumentDict:
    """`fields`, and those of `optional` that are not None."""
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}
