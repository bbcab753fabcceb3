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

from gmongo.testing.store.arithmetic import DECIMAL_CONTEXT, INT64_RANGE, to_decimal
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Compiler, Expression, Scope, Variables, compile_expression, fold
from gmongo.testing.store.expressions.operands import compile_fields, is_null
from gmongo.testing.store.expressions.parsing_dates import ConversionError, parse_date
from gmongo.testing.store.expressions.strings import format_date, format_number
from gmongo.testing.store.expressions.timezones import to_date
from gmongo.testing.store.values import (
    TYPE_NAMES_BY_NUMBER,
    create_date,
    is_date,
    is_integral,
    is_number,
    is_true,
    to_millis,
    trunc,
    type_name,
)
from gmongo.testing.unsupported import not_supported

_INTEGER_PATTERN = re.compile(r"[+-]?[0-9]+")
_NUMBER_PATTERN = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)


def _parse_number(value: Any) -> Any:
    """Convert a boolean or a number to an int, a float or a Decimal."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal128):
        return value.to_decimal()
    if isinstance(value, (int, float)):
        return value
    raise ConversionError


def _to_integer(value: Any, valid_range: range) -> int:
    if isinstance(value, str) and not _INTEGER_PATTERN.fullmatch(value):
        raise ConversionError
    number = int(value) if isinstance(value, str) else _parse_number(value)
    if not Decimal(number).is_finite() or int(number) not in valid_range:
        raise ConversionError
    return int(number)


def _convert_to_double(value: Any) -> float:
    if is_date(value):
        return float(to_millis(value))
    if isinstance(value, str):
        if not _NUMBER_PATTERN.fullmatch(value):
            raise ConversionError
        return float(value)
    number = float(_parse_number(value))
    if math.isinf(number) and isinstance(value, Decimal128) and value.to_decimal().is_finite():
        raise ConversionError
    return number


def _convert_to_decimal(value: Any) -> Decimal128:
    if is_date(value):
        return Decimal128(str(to_millis(value)))
    if isinstance(value, str):
        if not _NUMBER_PATTERN.fullmatch(value):
            raise ConversionError
        return Decimal128(DECIMAL_CONTEXT.create_decimal(value))
    if isinstance(value, Decimal128):
        return value
    _parse_number(value)
    if isinstance(value, float) and value and math.isfinite(value):
        return Decimal128(f"{value:.14e}")  # a double becomes a decimal of 15 digits, even if the last digits are zeros
    return Decimal128(to_decimal(value))


def _convert_to_date(value: Any) -> Any:
    if isinstance(value, str):
        return parse_date(value)
    if is_date(value) or isinstance(value, (ObjectId, Timestamp)):
        return to_date(value)
    if type_name(value) in ("long", "double", "decimal"):
        return create_date(_to_integer(value, INT64_RANGE))
    raise ConversionError


def _convert_to_object_id(value: Any) -> ObjectId:
    if isinstance(value, ObjectId):
        return value
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{24}", value):
        raise ConversionError
    return ObjectId(value)


def _convert_to_string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if is_date(value):
        return format_date(value)
    if isinstance(value, (str, ObjectId)):
        return str(value)
    if is_number(value):
        return format_number(value)
    if isinstance(value, (bytes, uuid.UUID)):
        raise not_supported("$convert of binary data")
    raise ConversionError


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "bool": lambda value: is_true(value) if is_number(value) or isinstance(value, bool) else True,
    "date": _convert_to_date,
    "decimal": _convert_to_decimal,
    "double": _convert_to_double,
    "int": lambda value: _to_integer(value, range(-(2**31), 2**31)),
    "long": lambda value: Int64(to_millis(value) if is_date(value) else _to_integer(value, INT64_RANGE)),
    "objectId": _convert_to_object_id,
    "string": _convert_to_string,
}


def _convert_value(value: Any, target: Any) -> Any:
    name = TYPE_NAMES_BY_NUMBER.get(trunc(target)) if is_number(target) and is_integral(target) else target
    convert = _CONVERSIONS.get(name) if type(name) is str else None
    if convert is None:
        raise not_supported("$convert of binary data", f"to {name}")
    return convert(value)


def _compile_convert(name: str, operand: Any, scope: Scope) -> Expression:
    fields = compile_fields(name, operand, scope, "input to", "onError onNull")
    input_expression, type_expression = fields["input"], fields["to"]
    on_error, on_null = fields.get("onError"), fields.get("onNull", compile_expression(None, scope))

    def run(variables: Variables) -> Any:
        value, target_type = input_expression(variables), type_expression(variables)
        if is_null(value):
            return on_null(variables)
        if is_null(target_type):
            return None
        try:
            return _convert_value(value, target_type)
        except ConversionError:
            if on_error is None:
                raise failed_expression(f"{name} of {type_name(value)} to {target_type}") from None
            return on_error(variables)

    return fold(run, fields.values())


def _create_short_form(target_type: str) -> Compiler:
    def compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
        operands = operand if isinstance(operand, list) else [operand]
        if len(operands) != 1:
            raise failed_expression(f"{name} with {len(operands)} arguments")
        return _compile_convert(name, {"input": operands[0], "to": target_type}, scope)

    return compile_operator


OPERATORS: Mapping[str, Compiler] = {
    "$convert": _compile_convert,
    **{f"$to{name[0].upper()}{name[1:]}": _create_short_form(name) for name in _CONVERSIONS},
}
