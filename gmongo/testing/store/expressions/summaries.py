"""The expression operators ``$avg``, ``$max``, ``$min`` and ``$sum``, which are also accumulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.store import arithmetic
from gmongo.testing.store.expressions.compiling import Compiler, Expression, Scope, Variables, fold
from gmongo.testing.store.expressions.operands import compile_arguments

Summary = Callable[[Any, Scope], Any]


def _create_summary_operator(summary: Summary) -> Compiler:
    """Return a compiler of an operator. A single array argument holds the values to summarize."""

    def compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
        expressions = compile_arguments(name, operand, scope, 0, None)

        def run(variables: Variables) -> Any:
            values = [expression(variables) for expression in expressions]
            is_single_array = len(values) == 1 and isinstance(values[0], list)
            return summary(values[0] if is_single_array else values, scope)

        return fold(run, expressions)

    return compile_operator


SUMMARIES: Mapping[str, Summary] = {
    "$avg": lambda values, scope: arithmetic.compute_average(scope.pace.iterate(values)),
    "$max": lambda values, scope: arithmetic.find_extreme(scope.pace.iterate(values), -1, scope.collation.apply),
    "$min": lambda values, scope: arithmetic.find_extreme(scope.pace.iterate(values), 1, scope.collation.apply),
    "$sum": lambda values, scope: arithmetic.sum_values(scope.pace.iterate(values)),
}
"""The functions that compute a result from values, for expression operators and accumulators."""
OPERATORS: Mapping[str, Compiler] = {name: _create_summary_operator(summary) for name, summary in SUMMARIES.items()}
