"""The expression operator ``$meta``, which returns the metadata of a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.expressions.compiling import Expression, Make, Scope
from gmongo.testing.store.values import MISSING
from gmongo.testing.unsupported import not_supported


def _meta(_name: str, operand: Any, scope: Scope) -> Expression:
    score = scope.score
    if operand != "textScore" or score is None:
        raise not_supported("$meta", repr(operand))

    def run(variables: Mapping[str, Any]) -> Any:
        value = score(variables["ROOT"])
        return MISSING if value is None else value

    return run


OPERATORS: dict[str, Make] = {"$meta": _meta}
