"""The fields of commands that callers may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_none(fields: Mapping[str, Any], /, **optional: Any) -> dict[str, Any]:
    """`fields`, and those of `optional` that are not None."""
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}
