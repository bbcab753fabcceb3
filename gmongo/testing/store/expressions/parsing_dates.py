"""The expression operator ``$dateFromString``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Expression, Make, Scope, compile_expression, folded
from gmongo.testing.store.expressions.operands import compiled, is_null, of_type
from gmongo.testing.store.expressions.timezones import from_local, zone_of
from gmongo.testing.unsupported import not_supported

_ISO_TEXT = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"([T ](?P<hour>\d\d):(?P<minute>\d\d)(:(?P<second>\d\d)([.](?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>[+-]\d\d:?\d\d|Z)?"
)
# Texts that contain no date in any format.
_NO_DATE = re.compile(r"[A-Za-z\s]*")


class InvalidText(Exception):
    """A server cannot convert the value."""


def parse_date(text: str) -> Any:
    """Return the date that a text in the format ISO 8601 contains."""
    match = _ISO_TEXT.fullmatch(text)
    if match is None:
        raise InvalidText if _NO_DATE.fullmatch(text) else not_supported("a date in another format than ISO 8601", text)
    parts = match.groupdict("0")
    offset = match["zone"]
    zone = zone_of("UTC" if offset == "Z" else offset or "UTC")
    names = ("year", "month", "day", "hour", "minute", "second")
    year, month, day, hour, minute, second = (int(parts[name]) for name in names)
    fraction = int(parts["fraction"].ljust(3, "0")[:3])
    try:
        local = datetime.datetime(year, month, day, hour, minute, second, fraction * 1000)
    except ValueError:
        raise InvalidText from None
    return from_local(local, zone)


def _from_text(name: str, operand: Any, scope: Scope) -> Expression:
    if isinstance(operand, dict) and "format" in operand:
        raise not_supported("a date in another format than ISO 8601", "format")
    parts = compiled(name, operand, scope, "dateString", "onError onNull")
    null = compile_expression(None, scope)
    on_error, on_null = parts.get("onError"), parts.get("onNull", null)

    def run(variables: Any) -> Any:
        text = parts["dateString"](variables)
        if is_null(text):
            return on_null(variables)
        try:
            return parse_date(of_type(str, text))
        except InvalidText:
            if on_error is None:
                raise failed_expression(f"{name} of {text!r}") from None
            return on_error(variables)

    return folded(run, parts.values())


OPERATORS: Mapping[str, Make] = {"$dateFromString": _from_text}
