"""The expression operators of strings."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from typing import Any

from bson.decimal128 import Decimal128
from bson.timestamp import Timestamp

from gmongo.testing.command import CommandError
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Make
from gmongo.testing.store.expressions.operands import integer, is_null, null_for_null, of_fields, of_type, of_values
from gmongo.testing.store.patterns import compile_pattern, is_pattern
from gmongo.testing.store.values import is_date, is_number
from gmongo.testing.unsupported import not_supported


def number_text(value: Any) -> str:
    """Convert a number to a string."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{value:g}"  # at most six significant digits
    return str(value) if isinstance(value, Decimal128) else str(int(value))


def date_text(value: Any) -> str:
    """Convert a date to a string in UTC, such as ``2000-01-01T00:00:00.000Z``."""
    if not isinstance(value, datetime.datetime):
        raise not_supported("a date beyond the years 1 to 9999")
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


# The characters that `$trim` removes by default.
_WHITESPACE = "\0\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_UPPER = {letter: letter - 32 for letter in range(ord("a"), ord("z") + 1)}
_LOWER = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}


def _coerced(value: Any) -> str:
    """Convert a value to a string. Null and missing values become an empty string."""
    if is_null(value):
        return ""
    if is_date(value):
        return date_text(value)
    if isinstance(value, Timestamp):
        return f"Timestamp({value.time}, {value.inc})"
    if is_number(value):
        return number_text(value)
    return str(of_type(str, value))


def _concatenated(*values: Any) -> Any:
    found = []
    for value in values:
        if is_null(value):
            return None
        found.append(of_type(str, value))
    return "".join(found)


def _substring(value: Any, start: Any, length: Any) -> str:
    first = integer(start, least=0)
    return _coerced(value)[first : first + integer(length, least=0)]


def _split(value: Any, separator: Any) -> list[str]:
    if not of_type(str, separator):
        raise failed_expression("$split with an empty separator")
    parts: list[str] = of_type(str, value).split(separator)
    return parts


def _index(text: Any, expected: Any, *bounds: Any) -> Any:
    if is_null(text):
        return None
    limits = [integer(value, least=0) for value in bounds]
    first, last = [*limits, len(of_type(str, text))][:2] if limits else (0, len(of_type(str, text)))
    return text.find(of_type(str, expected), first, last) if first <= min(last, len(text)) else -1


def _trim_operator(trim: Callable[[str, str], str]) -> Make:
    def run(input: Any, chars: Any = _WHITESPACE) -> Any:
        for value in (input, chars):
            if not is_null(value):
                of_type(str, value)
        return None if is_null(input) or is_null(chars) else trim(input, chars)

    return of_fields("input", "chars", run)


def _replace_all(input: Any, find: Any, replacement: Any) -> Any:
    for value in (input, find, replacement):
        if not is_null(value):
            of_type(str, value)
    return None if any(map(is_null, (input, find, replacement))) else input.replace(find, replacement)


def _regex_match(input: Any, regex: Any, options: Any = None) -> bool:
    for value in (input, options) if is_pattern(regex) else (input, regex, options):
        if not is_null(value):
            of_type(str, value)
    if is_null(regex):
        return False
    if is_pattern(regex) and not is_null(options) and int(regex.flags) & ~32:
        raise failed_expression("$regexMatch with options twice")
    try:
        pattern = compile_pattern(regex, None if is_null(options) else options)
    except CommandError as error:
        raise failed_expression(error.message) from None
    return not is_null(input) and pattern.search(input) is not None


OPERATORS: Mapping[str, Make] = {
    "$concat": of_values(_concatenated, 0, None),
    "$indexOfCP": of_values(_index, 2, 4),
    "$ltrim": _trim_operator(str.lstrip),
    "$regexMatch": of_fields("input regex", "options", _regex_match),
    "$replaceAll": of_fields("input find replacement", "", _replace_all),
    "$rtrim": _trim_operator(str.rstrip),
    "$split": of_values(null_for_null(_split), 2),
    "$strLenCP": of_values(lambda value: len(of_type(str, value)), 1),
    "$substrCP": of_values(_substring, 3),
    "$toLower": of_values(lambda value: _coerced(value).translate(_LOWER), 1),
    "$toUpper": of_values(lambda value: _coerced(value).translate(_UPPER), 1),
    "$trim": _trim_operator(str.strip),
}
