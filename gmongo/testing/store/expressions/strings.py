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
from gmongo.testing.store.expressions.compiling import Compiler
from gmongo.testing.store.expressions.operands import (
    create_named_operator,
    create_operator,
    is_null,
    propagate_null,
    require_integer,
    require_type,
)
from gmongo.testing.store.patterns import compile_pattern, is_pattern
from gmongo.testing.store.values import is_date, is_number
from gmongo.testing.unsupported import not_supported


def format_number(value: Any) -> str:
    """Convert a number to a string."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{value:g}"  # at most six significant digits
    return str(value) if isinstance(value, Decimal128) else str(int(value))


def format_date(value: Any) -> str:
    """Convert a date to a string in UTC, such as ``2000-01-01T00:00:00.000Z``."""
    if not isinstance(value, datetime.datetime):
        raise not_supported("a date beyond the years 1 to 9999")
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


# The characters that `$trim` removes by default.
_TRIMMED_CHARACTERS = "\0\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_TO_UPPER = {letter: letter - 32 for letter in range(ord("a"), ord("z") + 1)}
_TO_LOWER = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}


def _convert_to_string(value: Any) -> str:
    """Convert a value to a string. Null and missing values become an empty string."""
    if is_null(value):
        return ""
    if is_date(value):
        return format_date(value)
    if isinstance(value, Timestamp):
        return f"Timestamp({value.time}, {value.inc})"
    if is_number(value):
        return format_number(value)
    return str(require_type(str, value))


def _concatenate_strings(*values: Any) -> Any:
    texts = []
    for value in values:
        if is_null(value):
            return None
        texts.append(require_type(str, value))
    return "".join(texts)


def _select_substring(value: Any, start: Any, length: Any) -> str:
    start_index = require_integer(start, least=0)
    return _convert_to_string(value)[start_index : start_index + require_integer(length, least=0)]


def _split_string(value: Any, separator: Any) -> list[str]:
    if not require_type(str, separator):
        raise failed_expression("$split with an empty separator")
    parts: list[str] = require_type(str, value).split(separator)
    return parts


def _find_substring(text: Any, word: Any, *bounds: Any) -> Any:
    if is_null(text):
        return None
    indexes = [require_integer(value, least=0) for value in bounds]
    length = len(require_type(str, text))
    start, end = [*indexes, length][:2] if indexes else (0, length)
    return text.find(require_type(str, word), start, end) if start <= min(end, len(text)) else -1


def _create_trim_operator(trim: Callable[[str, str], str]) -> Compiler:
    def run(input: Any, chars: Any = _TRIMMED_CHARACTERS) -> Any:
        for value in (input, chars):
            if not is_null(value):
                require_type(str, value)
        return None if is_null(input) or is_null(chars) else trim(input, chars)

    return create_named_operator("input", "chars", run)


def _replace_all(input: Any, find: Any, replacement: Any) -> Any:
    for value in (input, find, replacement):
        if not is_null(value):
            require_type(str, value)
    return None if any(map(is_null, (input, find, replacement))) else input.replace(find, replacement)


def _match_regex(input: Any, regex: Any, options: Any = None) -> bool:
    for value in (input, options) if is_pattern(regex) else (input, regex, options):
        if not is_null(value):
            require_type(str, value)
    if is_null(regex):
        return False
    if is_pattern(regex) and not is_null(options) and int(regex.flags) & ~32:
        raise failed_expression("$regexMatch with options in both regex and options")
    try:
        pattern = compile_pattern(regex, None if is_null(options) else options)
    except CommandError as error:
        raise failed_expression(error.message) from None
    return not is_null(input) and pattern.search(input) is not None


OPERATORS: Mapping[str, Compiler] = {
    "$concat": create_operator(_concatenate_strings, 0, None),
    "$indexOfCP": create_operator(_find_substring, 2, 4),
    "$ltrim": _create_trim_operator(str.lstrip),
    "$regexMatch": create_named_operator("input regex", "options", _match_regex),
    "$replaceAll": create_named_operator("input find replacement", "", _replace_all),
    "$rtrim": _create_trim_operator(str.rstrip),
    "$split": create_operator(propagate_null(_split_string), 2),
    "$strLenCP": create_operator(lambda value: len(require_type(str, value)), 1),
    "$substrCP": create_operator(_select_substring, 3),
    "$toLower": create_operator(lambda value: _convert_to_string(value).translate(_TO_LOWER), 1),
    "$toUpper": create_operator(lambda value: _convert_to_string(value).translate(_TO_UPPER), 1),
    "$trim": _create_trim_operator(str.strip),
}
