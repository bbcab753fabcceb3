"""Compile aggregation expressions to functions of variables.

The value of a missing field is MISSING. MISSING is different from null.
"""

from __future__ import annotations

from typing import Any

from gmongo.testing.store.expressions import (
    arrays,
    compiling,
    conversions,
    dates,
    logic,
    numbers,
    objects,
    parsing_dates,
    strings,
    summaries,
)  # fmt: skip
from gmongo.testing.store.expressions.compiling import Scope, Variables, compile_expression

for _module in (logic, numbers, arrays, objects, strings, conversions, dates, parsing_dates, summaries):
    compiling.OPERATORS.update(_module.OPERATORS)


def with_document(variables: Variables, document: Any) -> dict[str, Any]:
    """Return `variables` with `document` as ROOT and CURRENT."""
    return {**variables, "ROOT": document, "CURRENT": document}


def evaluate(expression: Any, document: Any, variables: Variables) -> Any:
    """Compile an expression, and return its value for one document."""
    return compile_expression(expression, Scope(frozenset(variables)))(with_document(variables, document))
