"""The expression operators of numbers."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from bson.decimal128 import Decimal128
from bson.int64 import Int64

from gmongo.testing.store import arithmetic
from gmongo.testing.store.arithmetic import DECIMAL_CONTEXT, to_bson_decimal, to_decimal
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Compiler
from gmongo.testing.store.expressions.operands import create_operator, is_null, propagate_null, require_number
from gmongo.testing.store.values import create_date, is_date, is_integral, is_number, to_millis, trunc

_WIDE_CONTEXT = DECIMAL_CONTEXT.copy()
_WIDE_CONTEXT.prec = 1200


def _has_decimal(*values: Any) -> bool:
    """Return True if one of the values is a decimal. The result of an operator with a decimal operand is a decimal."""
    return any(isinstance(value, Decimal128) for value in values)


def _add(*operands: Any) -> Any:
    dates = [value for value in operands if is_date(value)]
    total = arithmetic.sum_values(
        [require_number(value) for value in operands if not is_date(value) and not is_null(value)]
    )
    if len(dates) > 1 or (dates and not is_integral(total)):
        raise failed_expression("$add of two dates, or of a date and a fraction")
    if any(map(is_null, operands)):
        return None
    return create_date(to_millis(dates[0]) + trunc(total)) if dates else total


def _subtract(left: Any, right: Any) -> Any:
    if is_date(left) and is_date(right):
        return Int64(to_millis(left) - to_millis(right))
    if is_date(left) and is_number(right):
        if not is_integral(right):
            raise failed_expression("$subtract of a date and a fraction")
        return create_date(to_millis(left) - trunc(right))
    return arithmetic.combine(operator.sub, require_number(left), require_number(right))


def _multiply(*operands: Any) -> Any:
    numbers = [require_number(value) for value in operands if not is_null(value)]
    return functools.reduce(arithmetic.multiply, numbers, 1) if len(numbers) == len(operands) else None


def _divide(dividend: Any, divisor: Any) -> Any:
    if to_decimal(require_number(divisor)) == 0:
        raise failed_expression("$divide by 0")
    if _has_decimal(require_number(dividend), divisor):
        return Decimal128(DECIMAL_CONTEXT.divide(to_decimal(dividend), to_decimal(divisor)))
    return dividend / divisor


def _mod(left: Any, right: Any) -> Any:
    if to_decimal(require_number(right)) == 0:
        raise failed_expression("$mod by 0")
    if _has_decimal(require_number(left), right):
        return Decimal128(DECIMAL_CONTEXT.remainder(to_decimal(left), to_decimal(right)))
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right) if math.isfinite(left) else math.nan
    return arithmetic.to_integer(abs(left) % abs(right) * (1 if left >= 0 else -1), left, right)


def create_unary_operator(compute: Callable[[Any], Any], compute_decimal: Callable[[Decimal], Decimal]) -> Compiler:
    """Return an operator with one numeric argument. The result for null is null."""

    def run(value: Any) -> Any:
        if _has_decimal(value):
            return to_bson_decimal(compute_decimal(value.to_decimal()))
        return compute(require_number(value))

    return create_operator(propagate_null(run), 1)


def _compute_absolute_value(value: Any) -> Any:
    if value == -(2**63):
        raise failed_expression("$abs of the least long")
    return abs(value) if isinstance(value, float) else arithmetic.to_integer(abs(int(value)), value)


def _round_doubles(function: Callable[[float], int]) -> Callable[[Any], Any]:
    """Return a function that rounds doubles to integral doubles, and returns integers unchanged."""

    def run(value: Any) -> Any:
        return math.copysign(function(value), value) if isinstance(value, float) and math.isfinite(value) else value

    return run


def _round_decimals(rounding: str) -> Callable[[Decimal], Decimal]:
    return lambda value: value.to_integral_value(rounding) if value.is_finite() else value


def _create_rounding_operator(name: str, rounding: str) -> Compiler:
    def run(value: Any, places: Any = 0) -> Any:
        if not is_integral(require_number(places)) or not 0 <= trunc(places) <= 100:
            raise failed_expression(f"{name} to {places} places")
        return _round_to_places(name, require_number(value), trunc(places), rounding)

    return create_operator(propagate_null(run), 1, 2)


def _round_to_places(name: str, value: Any, places: int, rounding: str) -> Any:
    unit = Decimal(1).scaleb(-places)
    if isinstance(value, Decimal128):
        decimal = value.to_decimal()
        return to_bson_decimal(
            decimal.quantize(unit, rounding, DECIMAL_CONTEXT) if _needs_rounding(decimal, places) else decimal
        )
    if isinstance(value, float):
        if not math.isfinite(value) or not _needs_rounding(Decimal(value), places):
            return value
        return float(Decimal(value).quantize(unit, rounding, _WIDE_CONTEXT))
    return value


def _needs_rounding(value: Decimal, places: int) -> bool:
    """Return True if the number has more than `places` decimal places."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent < -places


OPERATORS: Mapping[str, Compiler] = {
    "$abs": create_unary_operator(_compute_absolute_value, abs),
    "$add": create_operator(_add, 0, None, commutes=True),
    "$ceil": create_unary_operator(_round_doubles(math.ceil), _round_decimals(ROUND_CEILING)),
    "$divide": create_operator(propagate_null(_divide), 2),
    "$floor": create_unary_operator(_round_doubles(math.floor), _round_decimals(ROUND_FLOOR)),
    "$mod": create_operator(propagate_null(_mod), 2),
    "$multiply": create_operator(_multiply, 0, None, commutes=True),
    "$round": _create_rounding_operator("$round", ROUND_HALF_EVEN),
    "$subtract": create_operator(propagate_null(_subtract), 2),
    "$trunc": _create_rounding_operator("$trunc", ROUND_DOWN),
}
