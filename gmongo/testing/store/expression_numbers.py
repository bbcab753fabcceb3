"""The expression operators for numbers, and those that convert values."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.objectid import ObjectId

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store import arithmetic
from gmongo.testing.store.errors import bad_value, type_mismatch
from gmongo.testing.store.expression_operators import flat
from gmongo.testing.store.values import is_number, is_true, type_name

if TYPE_CHECKING:
    from gmongo.testing.store.expressions import Evaluator


def _fold(function: Callable[[Any, Any], Any]) -> Callable[[Evaluator, Any], Any]:
    def run(evaluator: Evaluator, value: Any) -> Any:
        numbers = evaluator.arguments(value)
        if any(number is None for number in numbers):
            return None
        result = numbers[0]
        for number in numbers[1:]:
            result = function(result, number)
        return result

    return run


def _sum(evaluator: Evaluator, value: Any) -> Any:
    return arithmetic.total(flat(evaluator, value))


def _avg(evaluator: Evaluator, value: Any) -> Any:
    return arithmetic.average(flat(evaluator, value))


def _random(_evaluator: Evaluator, _value: Any) -> Any:
    return random.random()


def _divide(evaluator: Evaluator, value: Any) -> Any:
    numbers = evaluator.arguments(value)
    if any(number is None for number in numbers):
        return None
    if not all(is_number(number) for number in numbers):
        raise type_mismatch("$divide only supports numeric types")
    if any(isinstance(number, Decimal128) for number in numbers):
        raise not_supported("$divide of decimals")
    dividend, divisor = numbers
    if not divisor:
        raise bad_value("can't $divide by zero")
    return dividend / divisor


def _checked(name: str, number: Any) -> Any:
    if not is_number(number):
        raise type_mismatch(f"{name} only supports numeric types, not {type_name(number)}")
    if isinstance(number, Decimal128):
        raise not_supported(f"{name} of decimals")
    return number


def _whole(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function that leaves integers as they are, and makes a double of a double."""
    return lambda number: float(function(number)) if isinstance(number, float) else number


def _absolute(number: Any) -> Any:
    return Int64(abs(number)) if isinstance(number, Int64) else abs(number)


def _unary(name: str, function: Callable[[Any], Any]) -> Callable[[Evaluator, Any], Any]:
    def run(evaluator: Evaluator, value: Any) -> Any:
        (number,) = evaluator.arguments(value)
        return None if number is None else function(_checked(name, number))

    return run


def _binary(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Evaluator, Any], Any]:
    def run(evaluator: Evaluator, value: Any) -> Any:
        left, right = evaluator.arguments(value)
        if left is None or right is None:
            return None
        return function(_checked(name, left), _checked(name, right))

    return run


def _remainder(left: Any, right: Any) -> Any:
    if not right:
        raise bad_value("can't $mod by zero")
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    found = abs(left) % abs(right) * (1 if left >= 0 else -1)
    return Int64(found) if isinstance(left, Int64) or isinstance(right, Int64) else found


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float) or right < 0:
        return float(left) ** float(right)
    return arithmetic.multiply(left**right, Int64(1) if Int64 in (type(left), type(right)) else 1)


def _to_places(name: str, function: Callable[[float, int], float]) -> Callable[[Evaluator, Any], Any]:
    def run(evaluator: Evaluator, value: Any) -> Any:
        number, *places = evaluator.arguments(value)
        if number is None:
            return None
        rounded = function(_checked(name, number), places[0] if places else 0)
        return float(rounded) if isinstance(number, float) else type(number)(rounded)

    return run


def _truncated(number: float, places: int) -> float:
    return math.trunc(number * 10**places) / 10**places


def _converter(name: str, convert: Callable[[Any], Any]) -> Callable[[Evaluator, Any], Any]:
    def run(evaluator: Evaluator, value: Any) -> Any:
        (given,) = evaluator.arguments(value)
        if given is None:
            return None
        try:
            return convert(given)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise CommandError(241, "ConversionFailure", f"Failed to convert {given!r} with {name}: {error}") from None

    return run


def _integer(value: Any) -> int:
    if isinstance(value, Decimal128):
        return int(value.to_decimal())
    if isinstance(value, (bool, int, float, str)):
        return int(value)
    raise TypeError(f"{type_name(value)} is not converted to a whole number")


def _int(value: Any) -> int:
    number = _integer(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError("it would overflow")
    return number


def _long(value: Any) -> Int64:
    if isinstance(value, datetime.datetime):
        return Int64(_milliseconds(value))
    return Int64(_integer(value))


def _milliseconds(value: datetime.datetime) -> int:
    return (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)


def _double(value: Any) -> float:
    if isinstance(value, Decimal128):
        return float(value.to_decimal())
    return float(_milliseconds(value)) if isinstance(value, datetime.datetime) else float(value)


def _decimal(value: Any) -> Decimal128:
    if isinstance(value, bool):
        return Decimal128(str(int(value)))
    return value if isinstance(value, Decimal128) else Decimal128(Decimal(str(value)))


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (str, int, float, Decimal128, ObjectId)):
        return str(value)
    raise TypeError(f"{type_name(value)} is not converted to a string")


def _object_id(value: Any) -> ObjectId:
    return ObjectId(value)


def _is_number(evaluator: Evaluator, value: Any) -> Any:
    return is_number(evaluator.arguments(value)[0])


OPERATORS: Mapping[str, Callable[[Evaluator, Any], Any]] = {
    "$abs": _unary("$abs", _absolute),
    "$add": _fold(arithmetic.add),
    "$avg": _avg,
    "$ceil": _unary("$ceil", _whole(math.ceil)),
    "$divide": _divide,
    "$exp": _unary("$exp", math.exp),
    "$floor": _unary("$floor", _whole(math.floor)),
    "$isNumber": _is_number,
    "$ln": _unary("$ln", math.log),
    "$log": _binary("$log", math.log),
    "$log10": _unary("$log10", math.log10),
    "$mod": _binary("$mod", _remainder),
    "$multiply": _fold(arithmetic.multiply),
    "$pow": _binary("$pow", _power),
    "$rand": _random,
    "$round": _to_places("$round", round),
    "$sqrt": _unary("$sqrt", math.sqrt),
    "$subtract": _fold(arithmetic.subtract),
    "$sum": _sum,
    "$toBool": _converter("$toBool", is_true),
    "$toDecimal": _converter("$toDecimal", _decimal),
    "$toDouble": _converter("$toDouble", _double),
    "$toInt": _converter("$toInt", _int),
    "$toLong": _converter("$toLong", _long),
    "$toObjectId": _converter("$toObjectId", _object_id),
    "$toString": _converter("$toString", _string),
    "$trunc": _to_places("$trunc", _truncated),
}
