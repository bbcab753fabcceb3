"""The functions of ``$setWindowFields``, besides the accumulators: those of whole partitions, and of two axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from bson.decimal128 import Decimal128
from bson.int64 import Int64

from gmongo.testing.store.accumulators import ACCUMULATORS
from gmongo.testing.store.arithmetic import CONTEXT, combine, to_decimal
from gmongo.testing.store.errors import failed_to_parse, location
from gmongo.testing.store.expressions import Expression, Scope, compile_expression
from gmongo.testing.store.expressions.operands import arguments
from gmongo.testing.store.expressions.timezones import FIXED, unit_of
from gmongo.testing.store.ordering import key_by_one
from gmongo.testing.store.values import MISSING, is_date, is_number, is_whole, milliseconds, whole
from gmongo.testing.store.windows import compile_window

_WEEK = 7 * 24 * 3600 * 1000
_NO_DOCUMENTS = {"$addToSet": [], "$count": 0, "$push": [], "$sum": 0}


@dataclass(frozen=True)
class Partition:
    """A partition, sorted.

    :param variables: those of each document.
    :param places: the values that the documents are sorted by, if that is one field.
    """

    variables: Sequence[Mapping[str, Any]]
    places: Sequence[Any]


# Accumulators that are no window functions.
_OF_GROUPS = frozenset({"$mergeObjects"})
# The value for each document of a partition.
Function = Callable[[Partition], list[Any]]
# Makes one of the operand, the window and what is sorted by.
Make = Callable[[str, Any, Any, Mapping[str, Any], Scope], Function]


def compile_function(name: str, spec: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
    """The function of an output field.

    :raises CommandError: if it is malformed, or does not exist.
    """
    if not isinstance(spec, dict):
        raise failed_to_parse(f"The field '{name}' must be an object")
    functions = [one for one in spec if one != "window"]
    if len(functions) != 1 or not functions[0].startswith("$"):
        raise failed_to_parse(f"Expected a $-prefixed window function, and one only, in '{name}'")
    (function,) = functions
    make = _FUNCTIONS.get(function, _of_accumulator if function in ACCUMULATORS.keys() - _OF_GROUPS else None)
    if make is None:
        raise failed_to_parse(f"Unrecognized window function, {function}")
    return make(function, spec[function], spec.get("window"), sort, scope)


def _of_windows(
    value: Expression,
    summary: Callable[[list[Any], Partition, int], Any],
    window: Any,
    sort: Mapping[str, Any],
    scope: Scope,
) -> Function:
    """What is found of the values in each window."""
    windows = compile_window(window, sort, scope.pace)

    def run(partition: Partition) -> list[Any]:
        values = [value(variables) for variables in scope.pace.through(partition.variables)]
        found: list[Any] = []
        before: tuple[int, int] | None = None
        for bounds in scope.pace.through(windows(partition.places)):
            first, end = bounds
            found.append(found[-1] if bounds == before else summary(values[first:end], partition, first))
            before = bounds
        return found

    return run


def _of_accumulator(name: str, operand: Any, window: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
    accumulator = ACCUMULATORS[name](name, operand, scope)
    nothing = _NO_DOCUMENTS.get(name)

    def summary(values: list[Any], _partition: Partition, _first: int) -> Any:
        return accumulator.made(values) if values else nothing

    return _of_windows(accumulator.value, summary, window, sort, scope)


def _alone(make: Callable[[str, Any, Mapping[str, Any], Scope], Function], code: int) -> Make:
    """A function of whole partitions, that takes no window and needs an order."""

    def checked(name: str, operand: Any, window: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
        if window is not None:
            raise location(code, f"{name} does not accept a 'window' field")
        if not sort:
            raise location(5371602, f"{name} must be specified with a top level sortBy expression")
        return make(name, operand, sort, scope)

    return checked


# Ranks


def _rank(number: Callable[[int, int, int], int]) -> Make:
    """A rank, made of the place in the partition, that of the first equal one, and the number of values."""

    def make(name: str, operand: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
        if operand != {}:
            raise location(5371603, f"{name} must be specified with '{{}}' as the value")
        if name != "$documentNumber" and len(sort) != 1:
            raise location(5371602, f"{name} must be specified with a top level sortBy of exactly one element")

        key = key_by_one(*next(iter(sort.items())), scope.collation)

        def run(partition: Partition) -> list[Any]:
            found, first, values, before = [], 0, 0, None
            for place, variables in enumerate(scope.pace.through(partition.variables)):
                value = key(variables["ROOT"])
                if value != before:
                    first, values, before = place, values + 1, value
                found.append(Int64(number(place + 1, first + 1, values)))
            return found

        return run

    return _alone(make, 5371601)


# Others of whole partitions


def _shift(name: str, operand: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
    if not isinstance(operand, dict) or not {"output", "by"} <= set(operand) <= {"output", "by", "default"}:
        raise failed_to_parse(f"{name} needs 'output' and 'by', and may have 'default'")
    if not is_number(operand["by"]) or not is_whole(operand["by"]):
        raise failed_to_parse(f"'{name}:by' field must be an integer, but found {operand['by']!r}")
    output, by = compile_expression(operand["output"], scope), whole(operand["by"])
    default = compile_expression(operand.get("default"), Scope())({})

    def run(partition: Partition) -> list[Any]:
        count, paced = len(partition.variables), scope.pace.through
        places = (place + by for place in range(count))
        return [output(partition.variables[at]) if 0 <= at < count else default for at in paced(places)]

    return run


def _moving_average(name: str, operand: Any, _sort: Mapping[str, Any], scope: Scope) -> Function:
    if not isinstance(operand, dict) or set(operand) not in ({"input", "N"}, {"input", "alpha"}):
        raise failed_to_parse(f"{name} must have exactly two fields: an 'input' field, and either an 'N' field or "
                              "an 'alpha' field")  # fmt: skip
    given = operand.get("N", operand.get("alpha"))
    if "N" in operand and (not is_number(given) or not is_whole(given) or whole(given) < 1):
        raise failed_to_parse(f"'N' field must be an integer above 0, but found {given!r}")
    if "alpha" in operand and (not is_number(given) or not 0 < float(str(given)) < 1):
        raise failed_to_parse(f"'alpha' must be between 0 and 1 (exclusive), found alpha: {given!r}")
    alpha = CONTEXT.divide(Decimal(2), Decimal(whole(given) + 1)) if "N" in operand else to_decimal(given)
    source = compile_expression(operand["input"], scope)

    def run(partition: Partition) -> list[Any]:
        found: list[Any] = []
        average: Decimal | None = None
        exact = False
        for variables in scope.pace.through(partition.variables):
            value = source(variables)
            if is_number(value):
                number, exact = to_decimal(value), exact or isinstance(value, Decimal128)
                average = number if average is None else CONTEXT.add(number * alpha, average * (1 - alpha))
            found.append(None if average is None else Decimal128(average) if exact else float(average))
        return found

    return run


def _carried(name: str, operand: Any, _sort: Mapping[str, Any], scope: Scope) -> Function:
    source = compile_expression(operand, scope)

    def run(partition: Partition) -> list[Any]:
        found: list[Any] = []
        for variables in scope.pace.through(partition.variables):
            value = source(variables)
            nothing = value is None or value is MISSING
            found.append((found[-1] if found else None) if nothing else value)
        return found

    return run


def _linear(name: str, operand: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
    if len(sort) != 1:
        raise location(605001, f"{name} must be specified with a top level sortBy of exactly one element")
    source = compile_expression(operand, scope)

    def run(partition: Partition) -> list[Any]:
        places = [_on_axis(place) for place in scope.pace.through(partition.places)]
        for place, following in pairwise(places):
            if place == following:
                raise location(6605001, f"There can be no repeated values in the sort field of {name}")
        values = [source(variables) for variables in scope.pace.through(partition.variables)]
        known = [at for at, value in enumerate(values) if value is not None and value is not MISSING]
        found = [None if value is MISSING else value for value in values]
        for left, right in pairwise(known):
            rise, run_ = combine(operator.sub, values[right], values[left]), places[right] - places[left]
            for at in range(left + 1, right):
                share = (places[at] - places[left]) / run_
                found[at] = combine(operator.add, values[left], combine(operator.mul, rise, share))
        return found

    return run


def _on_axis(place: Any) -> Any:
    if is_date(place):
        return milliseconds(place)
    if not is_number(place):
        raise location(6605002, f"the sort field must be a number or a date, and not {place!r}")
    return float(str(place)) if isinstance(place, Decimal128) else place


# Of two axes


def _covariance(sample: bool) -> Make:
    def make(name: str, operand: Any, window: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
        left, right = arguments(name, operand, scope, 2, 2)

        def summary(values: list[Any], _partition: Partition, _first: int) -> Any:
            # Document by document, as a server does it: the last digits follow from that.
            mean_x = mean_y = total = 0.0
            count = 0
            for x, y in values:
                if is_number(x) and is_number(y):
                    count += 1
                    step = float(str(x)) - mean_x
                    mean_x, mean_y = mean_x + step / count, mean_y + (float(str(y)) - mean_y) / count
                    total += step * (float(str(y)) - mean_y)
            return total / (count - sample) if count > sample else None

        return _of_windows(lambda variables: (left(variables), right(variables)), summary, window, sort, scope)

    return make


def _rate(combined: Callable[[list[float], list[float], int], float | None], needs_window: bool) -> Make:
    """A function of the values, and of where they are on the axis that is sorted by."""

    def make(name: str, operand: Any, window: Any, sort: Mapping[str, Any], scope: Scope) -> Function:
        if not isinstance(operand, dict) or not {"input"} <= set(operand) <= {"input", "unit"}:
            raise failed_to_parse(f"{name} expects an object with 'input', and perhaps 'unit'")
        if len(sort) != 1:
            raise location(5371602, f"{name} requires a sortBy of one field")
        if needs_window and window is None:
            raise failed_to_parse(f"{name} requires explicit window bounds")
        unit = None if operand.get("unit") is None else _milliseconds(name, operand["unit"])

        def summary(values: list[Any], partition: Partition, first: int) -> Any:
            places = [_measured(name, place, unit) for place in partition.places[first : first + len(values)]]
            for value in values:
                if not is_number(value):
                    raise location(5423900, f"The input value of {name} must be a number, and not {value!r}")
            return combined(places, [float(str(value)) for value in values], unit or 1)

        return _of_windows(compile_expression(operand["input"], scope), summary, window, sort, scope)

    return make


def _milliseconds(name: str, unit: Any) -> int:
    wanted = unit_of(unit, name)
    lengths = {**FIXED, "day": _WEEK // 7, "week": _WEEK}
    if wanted not in lengths:
        raise location(5490710, "unit must be 'week' or smaller")
    return lengths[wanted]


def _measured(name: str, place: Any, unit: int | None) -> float:
    if unit is None and not is_number(place):
        raise location(5624901, f"{name} without 'unit' needs a sortBy of numbers, and not {place!r}")
    if unit is not None and not is_date(place):
        raise location(5624900, f"{name} with 'unit' needs a sortBy of dates, and not {place!r}")
    return float(str(place)) if unit is None else milliseconds(place)


def _derivative(places: list[float], values: list[float], unit: int) -> float | None:
    if len(places) < 2 or places[0] == places[-1]:
        return None
    return (values[-1] - values[0]) / (places[-1] - places[0]) * unit


def _integral(places: list[float], values: list[float], unit: int) -> float | None:
    if not places:
        return None
    steps = zip(pairwise(places), pairwise(values), strict=True)
    return math.fsum([(right - left) * (low + high) / 2 for (left, right), (low, high) in steps]) / unit


_FUNCTIONS: Mapping[str, Make] = {
    "$covariancePop": _covariance(sample=False),
    "$covarianceSamp": _covariance(sample=True),
    "$denseRank": _rank(lambda place, first, values: values),
    "$derivative": _rate(_derivative, needs_window=True),
    "$documentNumber": _rank(lambda place, first, values: place),
    "$expMovingAvg": _alone(_moving_average, 9),
    "$integral": _rate(_integral, needs_window=False),
    "$linearFill": _alone(_linear, 9),
    "$locf": _alone(_carried, 9),
    "$rank": _rank(lambda place, first, values: first),
    "$shift": _alone(_shift, 9),
}
