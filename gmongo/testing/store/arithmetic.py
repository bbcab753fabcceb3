"""Arithmetic with the numeric types of BSON.

If the operands have different types, the result has the widest type of the operands. The types from
the widest to the narrowest are decimal, double, int64 and int32.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from bson.decimal128 import Decimal128, create_decimal128_context
from bson.int64 import Int64

from gmongo.testing.store.errors import bad_value, type_mismatch
from gmongo.testing.store.values import MISSING, compare, is_number, type_name

DECIMAL_CONTEXT = create_decimal128_context()
INT64_RANGE = range(-(2**63), 2**63)


def to_decimal(value: Any) -> Decimal:
    """Convert a number to a decimal of at most 34 digits. A double becomes a decimal of 15 digits."""
    if isinstance(value, Decimal128):
        return value.to_decimal()
    if isinstance(value, float):
        return DECIMAL_CONTEXT.create_decimal(f"{value:.14e}" if value and math.isfinite(value) else value)
    return DECIMAL_CONTEXT.create_decimal(int(value))


def to_bson_decimal(value: Decimal) -> Decimal128:
    """Convert a decimal to a BSON decimal, and round the result to 34 digits."""
    return Decimal128(DECIMAL_CONTEXT.create_decimal(value))


def to_integer(value: int, *operands: Any) -> Any:
    """Convert a result to the widest type of the operands. If int64 is too small, return a double."""
    if value not in INT64_RANGE:
        return float(value)
    return Int64(value) if any(isinstance(operand, Int64) for operand in operands) else int(value)


def combine(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the sum, difference or product of two numbers, which `function` computes."""
    if isinstance(left, Decimal128) or isinstance(right, Decimal128):
        decimal_function = _DECIMAL_FUNCTIONS[function]
        return Decimal128(decimal_function(to_decimal(left), to_decimal(right)))
    result = function(left, right)
    return float(result) if isinstance(result, float) else to_integer(result, left, right)


_DECIMAL_FUNCTIONS: dict[Any, Callable[[Decimal, Decimal], Decimal]] = {
    operator.add: DECIMAL_CONTEXT.add,
    operator.sub: DECIMAL_CONTEXT.subtract,
    operator.mul: DECIMAL_CONTEXT.multiply,
}


def add(left: Any, right: Any) -> Any:
    """Return the sum of two numbers."""
    return combine(operator.add, left, right)


def multiply(left: Any, right: Any) -> Any:
    """Return the product of two numbers."""
    return combine(operator.mul, left, right)


def compute_update(name: str, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result of the operator `name`, which is ``$inc`` or ``$mul``."""
    for value in (left, right):
        if not is_number(value):
            raise type_mismatch(f"only numbers are allowed in an arithmetic expression, not {type_name(value)}")
    result = function(left, right)
    if isinstance(result, float) and not isinstance(left, (float, Decimal128)) and not isinstance(right, float):
        raise bad_value(f"Failed to apply {name} operations to current value ({left}) with an argument of {right}")
    return result


def sum_values(values: Iterable[Any]) -> Any:
    """Return the sum of the values that are numbers. If no value is a number, return 0."""
    return _sum_numbers([value for value in values if is_number(value)])


def _sum_numbers(numbers: list[Any]) -> Any:
    types = set(map(type, numbers))
    if any(issubclass(kind, Decimal128) for kind in types):
        decimals = [number for number in numbers if isinstance(number, Decimal128)]
        doubles = [number for number in numbers if not isinstance(number, Decimal128)]
        exact_sum = Decimal128(_sum_exactly(doubles))
        return functools.reduce(add, decimals, exact_sum) if doubles else functools.reduce(add, decimals)
    if any(issubclass(kind, float) for kind in types):
        return sum_doubles(numbers)
    return to_integer(sum(numbers), *(kind() for kind in types))


def _sum_exactly(numbers: list[Any]) -> Decimal:
    if not all(map(math.isfinite, numbers)):
        return Decimal(float(sum(numbers)))
    exact_sum = sum(map(Fraction, numbers), Fraction())
    return DECIMAL_CONTEXT.divide(Decimal(exact_sum.numerator), Decimal(exact_sum.denominator))


def sum_doubles(numbers: list[Any]) -> float:
    """Return the sum of numbers as a double. Round only once, unless a partial sum overflows."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # a partial sum overflows, or both infinities are among the numbers
        return float(sum(numbers))


def compute_average(values: Iterable[Any]) -> Any:
    """Return the mean of the values that are numbers. If no value is a number, return None."""
    numbers = [value for value in values if is_number(value)]
    if not numbers:
        return None
    total = _sum_numbers(numbers)
    if isinstance(total, Decimal128):
        return Decimal128(DECIMAL_CONTEXT.divide(total.to_decimal(), Decimal(len(numbers))))
    return sum(numbers) / len(numbers) if not isinstance(total, float) else total / len(numbers)


def find_extreme(values: Iterable[Any], direction: int, fold: Callable[[Any], Any] = lambda value: value) -> Any:
    """Skip null and missing values, and return the lowest (direction 1) or highest (-1) value."""
    best: Any = None
    for value in values:
        if value is None or value is MISSING:
            continue
        if best is None or compare(fold(value), fold(best)) * direction < 0:
            best = value
    return best
