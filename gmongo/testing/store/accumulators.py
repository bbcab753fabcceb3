"""The accumulators of ``$group``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.store import arithmetic
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import Expression, Scope, compile_expression
from gmongo.testing.store.expressions.compiling import none_if_missing
from gmongo.testing.store.expressions.operands import is_null, of_type
from gmongo.testing.store.values import MISSING, key_of


@dataclass(frozen=True)
class Accumulator:
    """A compiled accumulator of ``$group``.

    :param value: the expression that the stage evaluates for each document.
    :param result: a function that computes the result of a group from the values of its documents.
    """

    value: Expression
    result: Callable[[list[Any]], Any]


Make = Callable[[str, Any, Scope], Accumulator]


def _without_missing(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not MISSING]


def _with_one_operand(result: Callable[[list[Any], Scope], Any]) -> Make:
    """Return a function that compiles an accumulator whose operand is one expression."""

    def make(name: str, operand: Any, scope: Scope) -> Accumulator:
        if isinstance(operand, list):
            raise malformed(name)
        return Accumulator(compile_expression(operand, scope), lambda values: result(values, scope))

    return make


def _count(_name: str, operand: Any, scope: Scope) -> Accumulator:
    if operand != {}:
        raise malformed("$count")
    return Accumulator(compile_expression(None, scope), len)


def _distinct_values(values: list[Any], scope: Scope) -> list[Any]:
    found: dict[Any, Any] = {}
    for value in scope.pace.through(values):
        if value is not MISSING:
            found.setdefault(key_of(scope.collation.folded(value)), value)
    return list(found.values())


def _merged_documents(values: list[Any], scope: Scope) -> Any:
    merged: dict[str, Any] = {}
    for value in scope.pace.through(values):
        if not is_null(value):
            merged.update(of_type(dict, value))
    return merged


ACCUMULATORS: Mapping[str, Make] = {
    "$addToSet": _with_one_operand(_distinct_values),
    "$avg": _with_one_operand(lambda values, scope: arithmetic.average(scope.pace.through(values))),
    "$count": _count,
    "$first": _with_one_operand(lambda values, scope: none_if_missing(values[0])),
    "$last": _with_one_operand(lambda values, scope: none_if_missing(values[-1])),
    "$max": _with_one_operand(
        lambda values, scope: arithmetic.extreme(scope.pace.through(values), -1, scope.collation.folded)
    ),
    "$mergeObjects": _with_one_operand(_merged_documents),
    "$min": _with_one_operand(
        lambda values, scope: arithmetic.extreme(scope.pace.through(values), 1, scope.collation.folded)
    ),
    "$push": _with_one_operand(lambda values, scope: _without_missing(scope.pace.through(values))),
    "$stdDevPop": _with_one_operand(
        lambda values, scope: arithmetic.deviation(scope.pace.through(values), sample=False)
    ),
    "$stdDevSamp": _with_one_operand(
        lambda values, scope: arithmetic.deviation(scope.pace.through(values), sample=True)
    ),
    "$sum": _with_one_operand(lambda values, scope: arithmetic.total(scope.pace.through(values))),
}
