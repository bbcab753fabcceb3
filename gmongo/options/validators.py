"""Validators of plain values: flags, numbers, times and strings.

The argument of a validator is a Python value, or a string from a URI. The validator returns the
converted value, or raises :class:`Rejected` with the rule for the error message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

Validator = Callable[[object], Any]

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
_TOO_MANY_MILLISECONDS = 1_000_000_000
_INTEGER_PATTERN = re.compile(r"-?[0-9]{1,100}")  # int() raises ValueError for thousands of digits
_SERVICE_NAME_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,60}[A-Za-z0-9])?")
_MAX_APPNAME_BYTES = 128


class Rejected(Exception):
    """Exception for an invalid value. In the error message, the rule follows the words "must be"."""

    def __init__(self, rule: str, wrong_type: bool = False) -> None:
        super().__init__(rule)
        self.rule = rule
        self.wrong_type = wrong_type


def boolean(value: object) -> bool:
    """Convert True and False, or the strings ``true`` and ``false``."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in ("true", "false"):
            return value == "true"
        raise Rejected("'true' or 'false'")
    raise Rejected("True or False", wrong_type=True)


def optional_boolean(value: object) -> bool:
    """Convert a value as :func:`boolean` does. The result for None is False."""
    return False if value is None else boolean(value)


def optional(validator: Validator) -> Validator:
    """Return a validator that accepts None, and the values that `validator` accepts."""
    return lambda value: None if value is None else validator(value)


def integer(minimum: int, maximum: int = INT32_MAX) -> Validator:
    """Return a validator of integers from `minimum` to `maximum`."""
    rule = f"an integer from {minimum} to {maximum}"

    def validate(value: object) -> int:
        number = _as_integer(value, rule)
        if not minimum <= number <= maximum:
            raise Rejected(rule)
        return number

    return validate


def staleness(value: object) -> int:
    """Convert -1, which means no limit, or a positive number of seconds."""
    number = _as_integer(value, "an integer: a positive number of seconds, or -1")
    if number != -1 and not 0 < number <= INT32_MAX:
        raise Rejected("a positive integer number of seconds, or -1")
    return number


def milliseconds(value: object) -> float:
    """Convert a non-negative number of milliseconds to a float in milliseconds."""
    rule = f"a number of milliseconds from 0 to {_TOO_MANY_MILLISECONDS - 1}"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Rejected(rule, wrong_type=True)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise Rejected(rule) from None
    if not 0 <= number < _TOO_MANY_MILLISECONDS:  # also rejects NaN
        raise Rejected(rule)
    return number


def seconds(value: object) -> float:
    """Convert a non-negative number of milliseconds to seconds."""
    return milliseconds(value) / 1000


def positive_seconds(value: object) -> float:
    """Convert a positive number of milliseconds to seconds."""
    converted = seconds(value)
    if converted == 0:
        raise Rejected("a number of milliseconds above 0")
    return converted


def limit_in_seconds(value: object) -> float | None:
    """Convert a value as :func:`seconds` does. However, 0 and None mean no limit, and become None."""
    return None if value is None else seconds(value) or None


def string(value: object) -> str:
    """Check a string."""
    if isinstance(value, str):
        return value
    raise Rejected("a string", wrong_type=True)


def path(value: Any) -> str | None:
    """Convert the path of a file, which is a string or a path-like object, to a string. Do not open the file."""
    if value is None:
        return None
    try:
        text = os.fsdecode(value)
    except TypeError:
        raise Rejected("the path of a file", wrong_type=True) from None
    if not text or "\0" in text:
        raise Rejected("the path of a file")
    return text


def one_of(*choices: str) -> Validator:
    """Return a validator that accepts only the strings in `choices`."""
    rule = f"one of {', '.join(choices)}"

    def validate(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise Rejected(rule)
        return value

    return validate


def appname(value: object) -> str:
    """Check that the name of an application has at most 128 bytes in UTF-8."""
    name = string(value)
    if len(name.encode("utf-8")) > _MAX_APPNAME_BYTES:
        raise Rejected(f"at most {_MAX_APPNAME_BYTES} bytes of UTF-8")
    return name


def service_name(value: object) -> str:
    """Check the name of a service in an SRV record (RFC 6335, but up to 62 characters)."""
    name = string(value)
    if not _SERVICE_NAME_PATTERN.fullmatch(name):
        raise Rejected("a service name of 1 to 62 letters, digits and inner hyphens")
    return name


def _as_integer(value: object, rule: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise Rejected(rule, wrong_type=True)
    if isinstance(value, str) and not _INTEGER_PATTERN.fullmatch(value):
        raise Rejected(rule)
    return int(value)
