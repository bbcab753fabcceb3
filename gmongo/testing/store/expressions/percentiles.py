"""``$percentile`` and ``$median``: accumulators, window functions and expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gmongo.testing.store.errors import bad_value, location
from gmongo.testing.store.expressions.compiling import Expression, Make, Scope, compile_expression
from gmongo.testing.store.expressions.operands import Fields
from gmongo.testing.store.values import is_nan, is_number

_PERCENTILE = Fields({"input": 40414, "p": 40414, "method": 40414}, (), 7429703, 40415)
_MEDIAN = Fields({"input": 40414, "method": 40414}, (), 7436100, 40415)

# What is found of the numbers among some values.
Summary = Callable[[Iterable[Any]], Any]


def compile_percentiles(name: str, operand: Any, scope: Scope) -> tuple[Expression, Summary]:
    """The input, and the function that finds the percentiles of its values.

    :raises CommandError: if it is malformed.
    """
    median = name == "$median"
    fields = (_MEDIAN if median else _PERCENTILE).of(name, operand)
    if fields["method"] != "approximate":
        raise bad_value(f"{name} needs 'approximate' as its 'method', not {fields['method']!r}")
    shares = [0.5] if median else _shares(compile_expression(fields["p"], scope)({"ROOT": {}, "CURRENT": {}}))

    def summary(values: Iterable[Any]) -> Any:
        numbers = sorted(float(str(value)) for value in values if is_number(value) and not is_nan(value))
        found = [_at(numbers, share) for share in shares]
        return found[0] if median else found

    return compile_expression(fields["input"], scope), summary


def _shares(given: Any) -> list[float]:
    if not isinstance(given, list) or not given:
        raise location(7750301, f"The $percentile 'p' field must be an array of numbers, but found: {given!r}")
    for share in given:
        if not is_number(share):
            raise location(7750302, f"The $percentile 'p' field must be an array of numbers, but found: {share!r}")
        if not 0 <= float(str(share)) <= 1:
            raise location(
                7750303, f"The $percentile 'p' field must be an array of numbers from [0, 1], found: {share}"
            )
    return [float(str(share)) for share in given]


def _at(numbers: list[float], share: float) -> float | None:
    """The number that so large a share of them is not above; None if there are none."""
    return numbers[max(0, math.ceil(share * len(numbers)) - 1)] if numbers else None


def _expression(name: str, operand: Any, scope: Scope) -> Expression:
    source, summary = compile_percentiles(name, operand, scope)

    def run(variables: Any) -> Any:
        found = source(variables)
        return summary(scope.pace.through(found if isinstance(found, list) else [found]))

    return run


OPERATORS: Mapping[str, Make] = {"$median": _expression, "$percentile": _expression}
