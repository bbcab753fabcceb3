"""The expression operator ``$dateFromString``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Compiler, Expression, Scope, compile_expression, fold
from gmongo.testing.store.expressions.operands import compile_fields, is_null, require_type
from gmongo.testing.store.expressions.timezones import from_local, parse_time_zone
from gmongo.testing.unsupported import not_supported

_ISO_PATTERN = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"([T ](?P<hour>\d\d):(?P<minute>\d\d)(:(?P<second>\d\d)([.](?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>[+-]\d\d:?\d\d|Z)?"
)
# The pattern of texts that contain no date in any format.
_NO_DATE_PATTERN = re.compile(r"[A-Za-z\s]*")


class ConversionError(Exception):
    """A server cannot convert the value."""


def parse_date(text: str) -> Any:
    """Return the date that a text in the format ISO 8601 contains."""
    match = _ISO_PATTERN.fullmatch(text)
    if match is None:
        raise (
            ConversionError
            if _NO_DATE_PATTERN.fullmatch(text)
            else not_supported("a date in a format other than ISO 8601", text)
        )
    groups = match.groupdict("0")
    offset = match["zone"]
    zone = parse_time_zone("UTC" if offset == "Z" else offset or "UTC")
    units = ("year", "month", "day", "hour", "minute", "second")
    year, month, day, hour, minute, second = (int(groups[unit]) for unit in units)
    fraction = int(groups["fraction"].ljust(3, "0")[:3])
    try:
        local_time = datetime.datetime(year, month, day, hour, minute, second, fraction * 1000)
    except ValueError:
        raise ConversionError from None
    return from_local(local_time, zone)


def _compile_date_from_string(name: str, operand: Any, scope: Scope) -> Expression:
    if isinstance(operand, dict) and "format" in operand:
        raise not_supported("a date in a format other than ISO 8601", "format")
    fields = compile_fields(name, operand, scope, "dateString", "onError onNull")
    null_expression = compile_expression(None, scope)
    on_error, on_null = fields.get("onError"), fields.get("onNull", null_expression)

    def run(variables: Any) -> Any:
        text = fields["dateString"](variables)
        if is_null(text):
            return on_null(variables)
        try:
            return parse_date(require_type(str, text))
        except ConversionError:
            if on_error is None:
                raise failed_expression(f"{name} of {text!r}") from None
            return on_error(variables)

    return fold(run, fields.values())


OPERATORS: Mapping[str, Compiler] = {"$dateFromString": _compile_date_from_string}
