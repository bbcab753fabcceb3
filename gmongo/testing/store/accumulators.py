"""What ``$group`` makes of the values of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gmongo.testing.store import arithmetic
from gmongo.testing.store.errors import location, type_mismatch
from gmongo.testing.store.expressions import Expression, Scope, compile_expression
from gmongo.testing.store.expressions.arrays import count_of, extremes
from gmongo.testing.store.expressions.compiling import Constant
from gmongo.testing.store.expressions.operands import Fields
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.values import MISSING, key_of, type_name

_N = Fields({"n": 5787906, "input": 5787907}, (), 5787900, 5787901)
_TOP = Fields({"sortBy": 5788005, "output": 5788004}, (), 5788001, 5788002)
_TOP_N = Fields({"n": 5788003, "sortBy": 5788005, "output": 5788004}, (), 5788001, 5788002)


@dataclass(frozen=True)
class Accumulator:
    """An accumulator, compiled.

    :param value: what is kept of a document.
    :param result: what is made of all that was kept, and of the number of values that are wanted, if there is one.
    :param wanted: that number, which may depend on the ``_id`` of the group.
    """

    value: Expression
    result: Callable[..., Any]
    wanted: Expression | None = None

    def made(self, values: list[Any], group: Any = None) -> Any:
        """What is made of the values of a group.

        :param group: its ``_id``.
        """
        if self.wanted is None:
            return self.result(values)
        identity = group if isinstance(group, dict) else {}
        return self.result(values, count_of(self.wanted({"ROOT": identity, "CURRENT": identity})))


Make = Callable[[str, Any, Scope], Accumulator]


def _there(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not MISSING]


def _or_none(value: Any) -> Any:
    return None if value is MISSING else value


def _of_one(result: Callable[[list[Any], Scope], Any]) -> Make:
    """An accumulator of one expression."""

    def make(name: str, operand: Any, scope: Scope) -> Accumulator:
        if isinstance(operand, list):
            if len(operand) != 1:
                raise location(40237, f"The {name} accumulator is a unary operator")
            (operand,) = operand
        return Accumulator(compile_expression(operand, scope), lambda values: result(values, scope))

    return make


def _count(_name: str, operand: Any, scope: Scope) -> Accumulator:
    if operand != {}:
        raise type_mismatch("$count takes no arguments, i.e. $count:{}")
    return Accumulator(compile_expression(None, scope), len)


def _distinct(values: list[Any], scope: Scope) -> list[Any]:
    found: dict[Any, Any] = {}
    for value in scope.pace.through(values):
        if value is not MISSING:
            found.setdefault(key_of(scope.collation.folded(value)), value)
    return [found.pop(key) for key in scope.pace.through(list(found))]


def _merged(values: list[Any], scope: Scope) -> Any:
    merged: dict[str, Any] = {}
    for value in scope.pace.through(values):
        if value is None or value is MISSING:
            continue
        if not isinstance(value, dict):
            raise location(40400, f"$mergeObjects requires object inputs, but input {value!r} is of type "
                           f"{type_name(value)}")  # fmt: skip
        merged.update(value)
    return merged


def _so_many(choose: Callable[[list[Any], int, Scope], list[Any]]) -> Make:
    def make(name: str, operand: Any, scope: Scope) -> Accumulator:
        fields = _N.compiled(name, operand, scope)
        return Accumulator(fields["input"], lambda values, n: choose(values, n, scope), _checked(fields["n"]))

    return make


def _by_order(first: bool, several: bool) -> Make:
    """``$top`` and its relatives: the output of the first or last documents in an order."""

    def make(name: str, operand: Any, scope: Scope) -> Accumulator:
        fields = (_TOP_N if several else _TOP).of(name, operand)
        wanted = _checked(compile_expression(fields["n"], scope)) if several else None
        output = compile_expression(fields["output"], scope)
        compile_sort(fields["sortBy"], scope.collation)

        def result(values: list[Any], n: int = 1) -> Any:
            sort = compile_sort(fields["sortBy"], scope.collation, scope.pace, n if first else None)
            there = list(sort(values, lambda entry: entry[0]))
            chosen = [_or_none(value) for _, value in (there if first else there[-n:])]
            return chosen if several else chosen[0]

        return Accumulator(lambda variables: (variables["ROOT"], output(variables)), result, wanted)

    return make


def _checked(n: Expression) -> Expression:
    """The number of values that are wanted, looked at now if it is a constant."""
    if isinstance(n, Constant):
        count_of(n({}))
    return n


ACCUMULATORS: Mapping[str, Make] = {
    "$addToSet": _of_one(_distinct),
    "$avg": _of_one(lambda values, scope: arithmetic.average(scope.pace.through(values))),
    "$bottom": _by_order(first=False, several=False),
    "$bottomN": _by_order(first=False, several=True),
    "$count": _count,
    "$first": _of_one(lambda values, scope: _or_none(values[0])),
    "$firstN": _so_many(lambda values, n, scope: [_or_none(value) for value in values[:n]]),
    "$last": _of_one(lambda values, scope: _or_none(values[-1])),
    "$lastN": _so_many(lambda values, n, scope: [_or_none(value) for value in values[-n:]]),
    "$max": _of_one(lambda values, scope: arithmetic.extreme(scope.pace.through(values), -1, scope.collation.folded)),
    "$maxN": _so_many(partial(extremes, highest=True)),
    "$mergeObjects": _of_one(_merged),
    "$min": _of_one(lambda values, scope: arithmetic.extreme(scope.pace.through(values), 1, scope.collation.folded)),
    "$minN": _so_many(partial(extremes, highest=False)),
    "$push": _of_one(lambda values, scope: _there(scope.pace.through(values))),
    "$stdDevPop": _of_one(lambda values, scope: arithmetic.deviation(scope.pace.through(values), sample=False)),
    "$stdDevSamp": _of_one(lambda values, scope: arithmetic.deviation(scope.pace.through(values), sample=True)),
    "$sum": _of_one(lambda values, scope: arithmetic.total(scope.pace.through(values))),
    "$top": _by_order(first=True, several=False),
    "$topN": _by_order(first=True, several=True),
}
