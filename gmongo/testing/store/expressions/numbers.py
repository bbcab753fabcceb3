"""The expression operators of numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_EVEN, Decimal
from typing import Any

from bson.decimal128 import Decimal128
from bson.int64 import Int64

from gmongo.testing.store import arithmetic
from gmongo.testing.store.arithmetic import CONTEXT, decimal, to_decimal
from gmongo.testing.store.errors import bad_value, location, type_mismatch
from gmongo.testing.store.expressions.compiling import Make
from gmongo.testing.store.expressions.operands import null_for_null, of_iterator, of_values
from gmongo.testing.store.values import MISSING, date_of, is_date, is_number, is_whole, milliseconds, type_name, whole


def is_decimal(*values: Any) -> bool:
    """Return True if one of the values is a decimal. The result of an operator with a decimal operand is a decimal."""
    return any(isinstance(value, Decimal128) for value in values)


def as_double(value: Any) -> float:
    """Convert a number to a double, which may lose precision."""
    return float(str(value)) if isinstance(value, Decimal128) else float(value)


def _add(values: Iterable[Any]) -> Any:
    date: Any = None
    numbers = []
    for value in values:
        if value is None or value is MISSING:
            return None
        if is_number(value):
            numbers.append(value)
        elif not is_date(value):
            raise location(16554, f"$add only supports numeric or date types, not {type_name(value)}")
        elif date is not None:
            raise location(16612, "only one date allowed in an $add expression")
        else:
            date = value
    total = arithmetic.total(numbers)
    return total if date is None else _add_to_date(date, total)


def _add_to_date(date: Any, amount: Any) -> Any:
    if not _is_finite(amount):
        raise location(10056, "can't add a number that is not finite to a date")
    exact, rounding = (Decimal(amount), ROUND_HALF_DOWN) if isinstance(amount, float) else (to_decimal(amount), None)
    return date_of(int(CONTEXT.add(Decimal(milliseconds(date)), exact).to_integral_value(rounding or ROUND_HALF_EVEN)))


def _is_finite(number: Any) -> bool:
    return bool(to_decimal(number).is_finite())


def _rounded(number: Any) -> int:
    return int(to_decimal(number).to_integral_value()) if not isinstance(number, int) else int(number)


def _subtract(left: Any, right: Any) -> Any:
    if is_number(left) and is_number(right):
        return arithmetic.combine(operator.sub, left, right)
    if is_date(left) and is_date(right):
        return Int64(milliseconds(left) - milliseconds(right))
    if is_date(left) and is_number(right):
        taken = int(right) if isinstance(right, float) and math.isfinite(right) else _rounded(right)
        return date_of(milliseconds(left) - taken)
    raise type_mismatch(f"can't $subtract {type_name(right)} from {type_name(left)}")


def _multiply(values: Iterable[Any]) -> Any:
    result: Any = 1
    for value in values:
        if value is None or value is MISSING:
            return None
        if not is_number(value):
            raise type_mismatch(f"$multiply only supports numeric types, not {type_name(value)}")
        result = arithmetic.multiply(result, value)
    return result


def _divide(dividend: Any, divisor: Any) -> Any:
    if not is_number(dividend) or not is_number(divisor):
        raise type_mismatch(f"$divide only supports numeric types, not {type_name(dividend)} and {type_name(divisor)}")
    if to_decimal(divisor) == 0:
        raise bad_value("can't $divide by zero")
    if is_decimal(dividend, divisor):
        return Decimal128(CONTEXT.divide(to_decimal(dividend), to_decimal(divisor)))
    return dividend / divisor


def _mod(left: Any, right: Any) -> Any:
    if not is_number(left) or not is_number(right):
        raise location(16611, f"$mod only supports numeric types, not {type_name(left)} and {type_name(right)}")
    if to_decimal(right) == 0:
        raise location(16610, "can't $mod by zero")
    if is_decimal(left, right):
        return Decimal128(CONTEXT.remainder(to_decimal(left), to_decimal(right)))
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right) if math.isfinite(left) else math.nan
    return arithmetic.integer(abs(left) % abs(right) * (1 if left >= 0 else -1), left, right)


def _number(name: str, value: Any, code: int = 28765) -> Any:
    if not is_number(value):
        raise location(code, f"{name} only supports numeric types, not {type_name(value)}")
    return value


def unary(name: str, of_doubles: Callable[[Any], Any], of_decimals: Callable[[Decimal], Decimal]) -> Make:
    """Return an operator with one numeric argument. The result for null is null.

    :param name: the name of the operator.
    :param of_doubles: the function for ints, longs and doubles.
    :param of_decimals: the function for decimals.
    """

    def run(value: Any) -> Any:
        _number(name, value)
        if isinstance(value, Decimal128):
            return decimal(of_decimals(value.to_decimal()))
        return of_doubles(value)

    return of_values(null_for_null(run), 1)


def _absolute(value: Any) -> Any:
    if isinstance(value, float):
        return abs(value)
    if value == -(2**63):
        raise location(28680, "can't take $abs of long long min")
    return arithmetic.integer(abs(int(value)), value)


def _rounding_doubles(function: Callable[[float], int]) -> Callable[[Any], Any]:
    """Return a function that rounds doubles to doubles without a fractional part, and does not change integers."""

    def run(value: Any) -> Any:
        return float(function(value)) if isinstance(value, float) and math.isfinite(value) else value

    return run


def _rounding_decimals(rounding: str) -> Callable[[Decimal], Decimal]:
    return lambda value: value.to_integral_value(rounding) if value.is_finite() else value


def _with_lower_limit(name: str, code: int, least: float, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that checks the argument, and calls `function` with the argument.

    :param name: the name of the operator in the error message.
    :param code: the error code for an argument that is not allowed.
    :param least: 0 if the argument must be at least 0; 1 if the argument must be above 0.
    :param function: the function of the operator.
    """

    def run(value: Any) -> Any:
        if value != value:
            return value
        if value < 0 or (value == 0 and least > 0):
            raise location(code, f"{name}'s argument must be {'a positive number' if least else 'at least 0'}, but is "
                           f"{value}")  # fmt: skip
        return function(value)

    return run


def _exponential(value: Any) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _log(number: Any, base: Any) -> Any:
    for value, code, word in ((number, 28756, "argument"), (base, 28757, "base")):
        if not is_number(value):
            raise location(code, f"$log's {word} must be numeric, not {type_name(value)}")
    if as_double(number) <= 0:
        raise location(28758, f"$log's argument must be a positive number, but is {number}")
    if as_double(base) <= 0 or as_double(base) == 1:
        raise location(28759, f"$log's base must be a positive number not equal to 1, but is {base}")
    if is_decimal(number, base):
        return Decimal128(CONTEXT.divide(CONTEXT.ln(to_decimal(number)), CONTEXT.ln(to_decimal(base))))
    return math.log(number) / math.log(base)


def _power(base: Any, exponent: Any) -> Any:
    for value, code, word in ((base, 28762, "base"), (exponent, 28763, "exponent")):
        if not is_number(value):
            raise location(code, f"$pow's {word} must be numeric, not {type_name(value)}")
    if as_double(base) == 0 and as_double(exponent) < 0:
        raise location(28764, "$pow cannot take a base of 0 and a negative exponent")
    if is_decimal(base, exponent):
        return Decimal128(CONTEXT.power(to_decimal(base), to_decimal(exponent)))
    if isinstance(base, float) or isinstance(exponent, float):
        return _power_of_doubles(float(base), float(exponent))
    if exponent >= 0 or base in (1, -1):
        # The computation of an exact integer far outside the range of a long takes too much time.
        if abs(base) < 2 or exponent <= 64:
            return arithmetic.integer(int(base) ** abs(int(exponent)), base, exponent)
        return _power_of_doubles(float(base), float(exponent))
    return float(base) ** int(exponent)


def _power_of_doubles(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.nan


def _rounding_operator(name: str, rounding: str) -> Make:
    def run(value: Any, places: Any = 0) -> Any:
        _number(name, value, 51081)
        if not is_number(places) or not is_whole(places):
            raise location(
                51082 if is_number(places) else 16004, f"precision argument to {name} must be an integral value"
            )
        if not -20 <= whole(places) <= 100:
            raise location(51083, f"cannot apply {name} with precision value {places} value must be in [-20, 100]")
        return _round_to_places(name, value, whole(places), rounding)

    return of_values(null_for_null(run), 1, 2)


def _round_to_places(name: str, value: Any, places: int, rounding: str) -> Any:
    unit = Decimal(1).scaleb(-places)
    if isinstance(value, Decimal128):
        number = value.to_decimal()
        return decimal(number.quantize(unit, rounding, CONTEXT) if _needs_rounding(number, places) else number)
    if isinstance(value, float):
        if not math.isfinite(value) or not _needs_rounding(Decimal(value), places):
            return value
        return float(Decimal(value).quantize(unit, rounding, _WIDE))
    if places >= 0:
        return value
    found = int(Decimal(int(value)).quantize(unit, rounding, _WIDE))
    if found not in arithmetic.INT64:
        raise location(51080, f"invalid conversion from Decimal128 result in {name} resulting from arguments: "
                       f"[{value}, {places}]")  # fmt: skip
    return arithmetic.integer(found, value)


def _needs_rounding(number: Decimal, places: int) -> bool:
    """Return True if the number has digits after the last decimal place of the result."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent < -places


_WIDE = CONTEXT.copy()
_WIDE.prec = 1200


OPERATORS: Mapping[str, Make] = {
    "$abs": unary("$abs", _absolute, abs),
    "$add": of_iterator(_add, commutes=True),
    "$ceil": unary("$ceil", _rounding_doubles(math.ceil), _rounding_decimals(ROUND_CEILING)),
    "$divide": of_values(null_for_null(_divide), 2),
    "$exp": unary("$exp", _exponential, CONTEXT.exp),
    "$floor": unary("$floor", _rounding_doubles(math.floor), _rounding_decimals(ROUND_FLOOR)),
    "$ln": unary("$ln", _with_lower_limit("$ln", 28766, 1, math.log), _with_lower_limit("$ln", 28766, 1, CONTEXT.ln)),
    "$log": of_values(null_for_null(_log), 2),
    "$log10": unary(
        "$log10",
        _with_lower_limit("$log10", 28761, 1, math.log10),
        _with_lower_limit("$log10", 28761, 1, CONTEXT.log10),
    ),
    "$mod": of_values(null_for_null(_mod), 2),
    "$multiply": of_iterator(_multiply, commutes=True),
    "$pow": of_values(null_for_null(_power), 2),
    "$round": _rounding_operator("$round", ROUND_HALF_EVEN),
    "$sqrt": unary(
        "$sqrt", _with_lower_limit("$sqrt", 28714, 0, math.sqrt), _with_lower_limit("$sqrt", 28714, 0, CONTEXT.sqrt)
    ),
    "$subtract": of_values(null_for_null(_subtract), 2),
    "$trunc": _rounding_operator("$trunc", ROUND_DOWN),
}
