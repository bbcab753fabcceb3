"""The expression operators that convert types: ``$convert``, and short forms such as ``$toInt``."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from gmongo.testing.store.arithmetic import CONTEXT, INT64, to_decimal
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Expression, Make, Scope, Variables, compile_expression, folded
from gmongo.testing.store.expressions.operands import compiled, is_null
from gmongo.testing.store.expressions.parsing_dates import InvalidText, parse_date
from gmongo.testing.store.expressions.strings import date_text, number_text
from gmongo.testing.store.expressions.timezones import to_date
from gmongo.testing.store.values import (
    TYPE_NAMES,
    date_of,
    is_date,
    is_number,
    is_true,
    is_whole,
    milliseconds,
    type_name,
    whole,
)
from gmongo.testing.unsupported import not_supported

_NUMBERS = {number: name for name, number in TYPE_NAMES}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)


def _number_in(value: Any) -> Any:
    """Convert a boolean or a number to an int, a float or a Decimal."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal128):
        return value.to_decimal()
    if isinstance(value, (int, float)):
        return value
    raise InvalidText


def _integer(value: Any, allowed: range) -> int:
    if isinstance(value, str) and not _WHOLE.fullmatch(value):
        raise InvalidText
    number = int(value) if isinstance(value, str) else _number_in(value)
    if not Decimal(number).is_finite() or int(number) not in allowed:
        raise InvalidText
    return int(number)


def _to_double(value: Any) -> float:
    if is_date(value):
        return float(milliseconds(value))
    if isinstance(value, str):
        if not _REAL.fullmatch(value):
            raise InvalidText
        return float(value)
    number = float(_number_in(value))
    if math.isinf(number) and isinstance(value, Decimal128) and value.to_decimal().is_finite():
        raise InvalidText
    return number


def _to_decimal(value: Any) -> Decimal128:
    if is_date(value):
        return Decimal128(str(milliseconds(value)))
    if isinstance(value, str):
        if not _REAL.fullmatch(value):
            raise InvalidText
        return Decimal128(CONTEXT.create_decimal(value))
    if isinstance(value, Decimal128):
        return value
    _number_in(value)
    if isinstance(value, float) and value and math.isfinite(value):
        return Decimal128(f"{value:.14e}")  # a double becomes a decimal of 15 digits, even if the last digits are zeros
    return Decimal128(to_decimal(value))


def _to_date(value: Any) -> Any:
    if isinstance(value, str):
        return parse_date(value)
    if is_date(value) or isinstance(value, (ObjectId, Timestamp)):
        return to_date(value)
    if type_name(value) in ("long", "double", "decimal"):
        return date_of(_integer(value, INT64))
    raise InvalidText


def _to_object_id(value: Any) -> ObjectId:
    if isinstance(value, ObjectId):
        return value
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{24}", value):
        raise InvalidText
    return ObjectId(value)


def _to_string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if is_date(value):
        return date_text(value)
    if isinstance(value, (str, ObjectId)):
        return str(value)
    if is_number(value):
        return number_text(value)
    if isinstance(value, (bytes, uuid.UUID)):
        raise not_supported("$convert of binary data")
    raise InvalidText


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "bool": lambda value: is_true(value) if is_number(value) or isinstance(value, bool) else True,
    "date": _to_date,
    "decimal": _to_decimal,
    "double": _to_double,
    "int": lambda value: _integer(value, range(-(2**31), 2**31)),
    "long": lambda value: Int64(milliseconds(value) if is_date(value) else _integer(value, INT64)),
    "objectId": _to_object_id,
    "string": _to_string,
}


def _converted(value: Any, to: Any) -> Any:
    """Convert a value to another type."""
    name = _NUMBERS.get(whole(to)) if is_number(to) and is_whole(to) else to
    convert = _CONVERSIONS.get(name) if type(name) is str else None
    if convert is None:
        raise not_supported("$convert of binary data", f"to {name}")
    return convert(value)


def _convert(name: str, operand: Any, scope: Scope) -> Expression:
    fields = compiled(name, operand, scope, "input to", "onError onNull")
    source, to = fields["input"], fields["to"]
    on_error, on_null = fields.get("onError"), fields.get("onNull", compile_expression(None, scope))

    def run(variables: Variables) -> Any:
        value, target = source(variables), to(variables)
        if is_null(value):
            return on_null(variables)
        if is_null(target):
            return None
        try:
            return _converted(value, target)
        except InvalidText:
            if on_error is None:
                raise failed_expression(f"{name} of {type_name(value)} to {target}") from None
            return on_error(variables)

    return folded(run, fields.values())


def _short_form(to: str) -> Make:
    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = operand if isinstance(operand, list) else [operand]
        if len(parts) != 1:
            raise failed_expression(f"{name} with {len(parts)} arguments")
        return _convert(name, {"input": parts[0], "to": to}, scope)

    return make


OPERATORS: Mapping[str, Make] = {
    "$convert": _convert,
    **{f"$to{name[0].upper()}{name[1:]}": _short_form(name) for name in _CONVERSIONS},
}
