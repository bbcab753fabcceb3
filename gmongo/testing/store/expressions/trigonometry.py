"""Operators of angles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from bson.decimal128 import Decimal128

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import Make
from gmongo.testing.store.expressions.operands import null_of_null, of_values
from gmongo.testing.store.values import is_number, type_name
from gmongo.testing.unsupported import not_supported


def _angle(name: str, function: Callable[[float], float], low: float, high: float, open_ends: bool = False) -> Make:
    """An operator of one double between two bounds."""

    def run(value: Any) -> float:
        if not is_number(value):
            raise location(28765, f"{name} only supports numeric types, not {type_name(value)}")
        if isinstance(value, Decimal128):
            raise not_supported("an angle of a decimal", name)
        number = float(value)
        if math.isnan(number):
            return number
        if not low <= number <= high or (open_ends and number in (low, high)):
            raise location(50989, f"cannot apply {name} to {value}, value must be in "
                           f"{'(' if open_ends else '['}{low},{high}{')' if open_ends else ']'}")  # fmt: skip
        return function(number)

    return of_values(null_of_null(run), 1)


def _without_overflow(function: Callable[[float], float]) -> Callable[[float], float]:
    def run(number: float) -> float:
        try:
            return function(number)
        except OverflowError:
            return math.copysign(math.inf, number) if function is math.sinh else math.inf

    return run


def _inverse_tangent(number: float) -> float:
    return math.copysign(math.inf, number) if abs(number) == 1 else math.atanh(number)


def _tangent_of_two(y: Any, x: Any) -> float:
    for value, code in ((y, 51044), (x, 51045)):
        if not is_number(value):
            raise location(code, f"$atan2 only supports numeric types, not {type_name(value)}")
        if isinstance(value, Decimal128):
            raise not_supported("an angle of a decimal", "$atan2")
    return math.atan2(y, x)


_INFINITE = math.inf
OPERATORS: Mapping[str, Make] = {
    "$acos": _angle("$acos", math.acos, -1, 1),
    "$acosh": _angle("$acosh", math.acosh, 1, _INFINITE),
    "$asin": _angle("$asin", math.asin, -1, 1),
    "$asinh": _angle("$asinh", math.asinh, -_INFINITE, _INFINITE),
    "$atan": _angle("$atan", math.atan, -_INFINITE, _INFINITE),
    "$atan2": of_values(null_of_null(_tangent_of_two), 2),
    "$atanh": _angle("$atanh", _inverse_tangent, -1, 1),
    "$cos": _angle("$cos", math.cos, -_INFINITE, _INFINITE, True),
    "$cosh": _angle("$cosh", _without_overflow(math.cosh), -_INFINITE, _INFINITE),
    "$degreesToRadians": _angle("$degreesToRadians", math.radians, -_INFINITE, _INFINITE),
    "$radiansToDegrees": _angle("$radiansToDegrees", math.degrees, -_INFINITE, _INFINITE),
    "$sin": _angle("$sin", math.sin, -_INFINITE, _INFINITE, True),
    "$sinh": _angle("$sinh", _without_overflow(math.sinh), -_INFINITE, _INFINITE),
    "$tan": _angle("$tan", math.tan, -_INFINITE, _INFINITE, True),
    "$tanh": _angle("$tanh", math.tanh, -_INFINITE, _INFINITE),
}
