"""The expression operators that are also accumulators of ``$group``, such as ``$sum``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.store import arithmetic
from gmongo.testing.store.expressions.compiling import Compiler, Expression, Scope, Variables, fold_constants
from gmongo.testing.store.expressions.operands import compile_arguments

Summary = Callable[[Any, Scope], Any]


def _create_summary_operator(summary: Summary) -> Compiler:
    """Return an operator that summarizes its arguments, or the elements of its only argument, an
    array.
    """

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        expressions = compile_arguments(name, operand, scope, 0, None)

        def run(variables: Variables) -> Any:
            values = [expression(variables) for expression in expressions]
            is_single_array = len(values) == 1 and isinstance(values[0], list)
            return summary(values[0] if is_single_array else values, scope)

        return fold_constants(run, expressions)

    return make


SUMMARIES: Mapping[str, Summary] = {
    "$avg": lambda values, scope: arithmetic.compute_average(scope.pace.through(values)),
    "$max": lambda values, scope: arithmetic.find_extreme(scope.pace.through(values), -1, scope.collation.folded),
    "$min": lambda values, scope: arithmetic.find_extreme(scope.pace.through(values), 1, scope.collation.folded),
    "$sum": lambda values, scope: arithmetic.sum_values(scope.pace.through(values)),
}
"""The functions that compute a result from values, for expression operators and accumulators."""
OPERATORS: Mapping[str, Compiler] = {name: _create_summary_operator(summary) for name, summary in SUMMARIES.items()}
