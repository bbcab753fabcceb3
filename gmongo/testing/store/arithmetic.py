"""Sums and products that keep BSON's number types: an int64 stays one, a decimal wins over a double."""

from __future__ import annotations

import datetime
import functools
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from bson.decimal128 import Decimal128, create_decimal128_context
from bson.int64 import Int64

from gmongo.testing.store.errors import CommandError, type_mismatch
from gmongo.testing.store.values import MISSING, compare, is_number, type_name

_CONTEXT = create_decimal128_context()
_INT64 = range(-(2**63), 2**63)


def add(left: Any, right: Any) -> Any:
    """The sum of two numbers."""
    return _combine(operator.add, left, right)


def subtract(left: Any, right: Any) -> Any:
    """The difference of two numbers, or of two dates in milliseconds, or a date so much earlier."""
    if isinstance(left, datetime.datetime):
        if isinstance(right, datetime.datetime):
            return Int64(round((left - right).total_seconds() * 1000))
        return left - datetime.timedelta(milliseconds=float(right))
    return _combine(operator.sub, left, right)


def multiply(left: Any, right: Any) -> Any:
    """The product of two numbers."""
    return _combine(operator.mul, left, right)


def total(values: Iterable[Any]) -> Any:
    """The sum of those values that are numbers; 0 of none."""
    return functools.reduce(add, (value for value in values if is_number(value)), 0)


def average(values: Iterable[Any]) -> Any:
    """The mean of those values that are numbers; None of none."""
    numbers = [value for value in values if is_number(value)]
    if not numbers:
        return None
    whole = total(numbers)
    if isinstance(whole, Decimal128):
        return Decimal128(_CONTEXT.divide(whole.to_decimal(), Decimal(len(numbers))))
    return whole / len(numbers)


def extreme(values: list[Any], direction: int) -> Any:
    """The lowest (1) or highest (-1) of the values that are there; None of none."""
    best: Any = None
    for value in values:
        if value is not None and value is not MISSING and (best is None or compare(value, best) * direction < 0):
            best = value
    return best


def _combine(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    for value in (left, right):
        if not is_number(value):
            raise type_mismatch(f"only numbers are allowed in an arithmetic expression, not {type_name(value)}")
    if isinstance(left, Decimal128) or isinstance(right, Decimal128):
        return Decimal128(_CONTEXT.create_decimal(function(_decimal(left), _decimal(right))))
    result = function(left, right)
    if isinstance(result, float):
        return result
    if result not in _INT64:
        raise CommandError(2, "BadValue", "long overflow in an arithmetic expression")
    return Int64(result) if isinstance(left, Int64) or isinstance(right, Int64) else result


def _decimal(value: Any) -> Decimal:
    return value.to_decimal() if isinstance(value, Decimal128) else Decimal(value)
