"""The expression operators that convert types: ``$convert``, and short forms such as ``$toInt``."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from bson.binary import UUID_SUBTYPE, Binary
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from gmongo.testing.command import CommandError
from gmongo.testing.store.arithmetic import CONTEXT, INT64, to_decimal
from gmongo.testing.store.errors import bad_value, failed_to_parse, location
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    Variables,
    compile_expression,
    folded,
)
from gmongo.testing.store.expressions.operands import Fields, arguments
from gmongo.testing.store.expressions.parsing_dates import parse_date
from gmongo.testing.store.expressions.text import date_text, number_text
from gmongo.testing.store.expressions.timezones import to_date
from gmongo.testing.store.values import (
    MISSING,
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

_CONVERT = Fields({"input": 9, "to": 9}, ("onError", "onNull", "format"), 9, 9)
_NUMBERS = {number: name for name, number in TYPE_NAMES}
_NAMES = {name for name, _ in TYPE_NAMES}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)


class _Unsupported(Exception):
    """A server has no conversion between the two types."""


def _conversion_error(reason: str) -> CommandError:
    return CommandError(241, "ConversionFailure", f"{reason} in $convert with no onError value")


def _number_in(value: Any) -> Any:
    """Convert a boolean or a number to an int, a float or a Decimal.

    :raises _Unsupported: the value has another type.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal128):
        return value.to_decimal()
    if isinstance(value, (int, float)):
        return value
    raise _Unsupported


def _integer(value: Any, allowed: range) -> int:
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise _conversion_error(f"Failed to parse number '{value}'")
        number: Any = int(value)
    else:
        number = _number_in(value)
        if isinstance(number, Decimal) and not number.is_finite():
            raise _conversion_error("Attempt to convert NaN or infinity value to integer type")
        if isinstance(number, float) and not math.isfinite(number):
            raise _conversion_error("Attempt to convert NaN or infinity value to integer type")
    if int(number) not in allowed:
        raise _conversion_error(f"Conversion would overflow target type: {value}")
    return int(number)


def _to_int(value: Any) -> int:
    return _integer(value, range(-(2**31), 2**31))


def _to_long(value: Any) -> Int64:
    return Int64(milliseconds(value) if is_date(value) else _integer(value, INT64))


def _to_double(value: Any) -> float:
    if is_date(value):
        return float(milliseconds(value))
    if isinstance(value, str):
        if not _REAL.fullmatch(value):
            raise _conversion_error(f"Failed to parse number '{value}'")
        return float(value)
    number = float(_number_in(value))
    if math.isinf(number) and isinstance(value, Decimal128) and value.to_decimal().is_finite():
        raise _conversion_error(f"Conversion would overflow target type: {value}")
    return number


def _to_decimal(value: Any) -> Decimal128:
    if is_date(value):
        return Decimal128(str(milliseconds(value)))
    if isinstance(value, str):
        if not _REAL.fullmatch(value):
            raise _conversion_error(f"Failed to parse number '{value}'")
        return Decimal128(CONTEXT.create_decimal(value))
    if isinstance(value, Decimal128):
        return value
    _number_in(value)
    if isinstance(value, float) and value and math.isfinite(value):
        return Decimal128(f"{value:.14e}")  # a double becomes a decimal of 15 digits, even if the last digits are zeros
    return Decimal128(to_decimal(value))


def _to_bool(value: Any) -> bool:
    return is_true(value) if is_number(value) or isinstance(value, bool) else True


def _to_date(value: Any) -> Any:
    if isinstance(value, str):
        return parse_date(value)
    if is_date(value) or isinstance(value, (ObjectId, Timestamp)):
        return to_date(value)
    if type_name(value) in ("long", "double", "decimal"):
        return date_of(_integer(value, INT64))
    raise _Unsupported


def _to_object_id(value: Any) -> ObjectId:
    if isinstance(value, ObjectId):
        return value
    if not isinstance(value, str):
        raise _Unsupported
    if not re.fullmatch("[0-9a-fA-F]{24}", value):
        raise _conversion_error(f"Failed to parse objectId '{value}'")
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
    if isinstance(value, bytes) and getattr(value, "subtype", 0) == UUID_SUBTYPE and len(value) == 16:
        return str(uuid.UUID(bytes=bytes(value)))
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        raise not_supported("$convert of binary data")
    raise _Unsupported


def _to_uuid(value: Any) -> Any:
    if isinstance(value, (bytes, uuid.UUID)):
        raise not_supported("$convert of binary data")
    if not isinstance(value, str):
        raise _Unsupported
    if not re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        raise _conversion_error(f"Input string '{value}' is no UUID")
    return Binary(uuid.UUID(value).bytes, UUID_SUBTYPE)


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "bool": _to_bool,
    "date": _to_date,
    "decimal": _to_decimal,
    "double": _to_double,
    "int": _to_int,
    "long": _to_long,
    "objectId": _to_object_id,
    "string": _to_string,
}


def converted(value: Any, to: str, convert: Callable[[Any], Any] | None = None) -> Any:
    """Convert a value to another type.

    :param value: the value to convert.
    :param to: the name of the target type.
    :param convert: a function that converts the value; None means the function that ``$convert``
        uses for the type.
    :raises CommandError: the conversion is impossible (code 241).
    """
    function = convert or _CONVERSIONS.get(to)
    try:
        if function is None:
            raise _Unsupported
        return function(value)
    except _Unsupported:
        raise _conversion_error(f"Unsupported conversion from {type_name(value)} to {to}") from None


def _target_type(to: Any) -> str:
    if isinstance(to, dict):
        raise not_supported("$convert of binary data")
    if isinstance(to, str):
        if to not in _NAMES:
            raise bad_value(f"Unknown type name: {to}")
        name = to
    elif is_number(to) and is_whole(to):
        if whole(to) not in _NUMBERS:
            raise failed_to_parse(f"In $convert, numeric value for 'to' does not correspond to a BSON type: {to}")
        name = _NUMBERS[whole(to)]
    else:
        raise failed_to_parse(f"$convert's 'to' argument must be a string or number, but is {type_name(to)}")
    if name in ("binData", "object", "array"):
        raise not_supported("$convert of binary data", f"to {name}")
    return name


def _convert(name: str, operand: Any, scope: Scope) -> Expression:
    try:
        fields = _CONVERT.compiled(name, operand, scope)
    except CommandError as error:
        raise failed_to_parse(error.message) if error.code == 9 else error from None
    if "format" in fields:
        raise not_supported("$convert of binary data")
    source, to = fields["input"], fields["to"]
    on_error, on_null = fields.get("onError"), fields.get("onNull", compile_expression(None, scope))

    def run(variables: Variables) -> Any:
        value, target = source(variables), to(variables)
        name = None if target is None or target is MISSING else _target_type(target)
        if value is None or value is MISSING:
            return on_null(variables)
        if name is None:
            return None
        try:
            return converted(value, name)
        except CommandError as error:
            if error.code != 241 or on_error is None:
                raise
            return on_error(variables)

    return folded(run, fields.values())


def _short_form(to: str, convert: Callable[[Any], Any] | None = None) -> Make:
    def make(name: str, operand: Any, scope: Scope) -> Expression:
        if isinstance(operand, list) and len(operand) != 1:
            raise location(50723, f"{name} requires a single argument, got {len(operand)}")
        (only,) = arguments(name, operand, scope, 1, 1)

        def run(variables: Variables) -> Any:
            value = only(variables)
            return None if value is None or value is MISSING else converted(value, to, convert)

        return folded(run, [only])

    return make


OPERATORS: Mapping[str, Make] = {
    "$convert": _convert,
    "$toBool": _short_form("bool"),
    "$toDate": _short_form("date"),
    "$toDecimal": _short_form("decimal"),
    "$toDouble": _short_form("double"),
    "$toInt": _short_form("int"),
    "$toLong": _short_form("long"),
    "$toObjectId": _short_form("objectId"),
    "$toString": _short_form("string"),
    "$toUUID": _short_form("UUID", _to_uuid),
}
