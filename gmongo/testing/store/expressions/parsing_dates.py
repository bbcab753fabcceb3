"""The expression operators ``$dateFromParts`` and ``$dateFromString``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    compile_expression,
    folded,
)
from gmongo.testing.store.expressions.formatting_dates import specifiers
from gmongo.testing.store.expressions.operands import Fields
from gmongo.testing.store.expressions.timezones import DAY, at_month, from_local, zone_of
from gmongo.testing.store.values import MISSING, is_number, is_whole, type_name, whole
from gmongo.testing.unsupported import not_supported

_CALENDAR = ("year", "month", "day")
_ISO = ("isoWeekYear", "isoWeek", "isoDayOfWeek")
_TIME = ("hour", "minute", "second", "millisecond")
_FROM_PARTS = Fields({}, (*_CALENDAR, *_ISO, *_TIME, "timezone"), 40519, 40518)
_FROM_TEXT = Fields({"dateString": 40542}, ("format", "timezone", "onError", "onNull"), 40540, 40541)
_ISO_TEXT = re.compile(
    r"\s*(?P<year>\d{4})(?P<dash>-)?(?P<month>(?(dash)\d\d?|\d\d))(-?(?P<day>(?(dash)\d\d?|\d\d)))?"
    r"([T ]\s*(?P<hour>\d\d?):?(?P<minute>\d\d)(:?(?P<second>\d\d)([.,](?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<zone>(?:GMT)?[+-]\d\d(:?\d\d)?|[A-Z]{1,4}|z)?\s*"
)
_LONG_YEAR = re.compile(r"\s*\d{5,}-")
# The UTC offsets in hours by the abbreviation of the time zone. The single letters are the military time zones.
_NAMED: Mapping[str, int] = {
    **{"GMT": 0, "UTC": 0, "Z": 0, "z": 0, "CET": 1, "CEST": 2, "BST": 1},
    **{"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7},
    **{letter: hours for hours, letter in enumerate("ABCDEFGHIKLM", 1)},
    **{letter: -hours for hours, letter in enumerate("NOPQRSTUVWXY", 1)},
}
_READ: Mapping[str, str] = {
    "%": "%",
    "G": r"(?P<G>\d{4})",
    "H": r"(?P<H>\d{1,2})",
    "L": r"(?P<L>\d{1,3})",
    "M": r"(?P<M>\d{1,2})",
    "S": r"(?P<S>\d{1,2})",
    "V": r"(?P<V>\d{1,2})",
    "Y": r"(?P<Y>\d{4})",
    "Z": r"(?P<Z>[+-]\d{1,4})",
    "d": r"(?P<d>\d{1,2})",
    "m": r"(?P<m>\d{1,2})",
    "u": r"(?P<u>\d)",
    "z": r"(?P<z>Z|[+-]\d\d:?(\d\d)?)",
}


def _is_null_or_missing(value: Any) -> bool:
    """Return True if the value is null or missing."""
    return value is None or value is MISSING


def _from_parts(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _FROM_PARTS.of(name, operand)
    mixed = [field for field in _ISO if field in fields]
    if "year" not in fields and "isoWeekYear" not in fields:
        raise location(40516, f"{name} requires either 'year' or 'isoWeekYear' to be present")
    if mixed and set(_CALENDAR) & set(fields):
        code = 40489 if "year" in fields else 40525
        raise location(code, f"{name} does not allow mixing natural dates with ISO dates")
    parts = _FROM_PARTS.compiled(name, operand, scope)

    def run(variables: Any) -> Any:
        values = {field: part(variables) for field, part in parts.items()}
        if any(map(_is_null_or_missing, values.values())):
            return None
        zone = zone_of(values.pop("timezone", "UTC"))
        numbers = {field: _integer(name, field, value) for field, value in values.items()}
        first = numbers.get("year", numbers.get("isoWeekYear", 1))
        if not 1 <= first <= 9999:
            raise location(40523, f"{name}'s year must be between 1 and 9999, found: {first}")
        return _date_from_numbers(numbers, zone)

    return folded(run, parts.values())


def _integer(name: str, field: str, value: Any) -> int:
    if not is_number(value) or not is_whole(value):
        raise location(40515, f"'{field}' must evaluate to an integer, found {type_name(value)} with value {value!r}")
    if field not in ("second", "millisecond") and not -32768 <= whole(value) <= 32767:
        raise location(31034, f"'{field}' must evaluate to a value in the range [-32768, 32767]; got {value}")
    return whole(value)


def _date_from_numbers(numbers: Mapping[str, int], zone: datetime.tzinfo) -> Any:
    """Return the date that has the given parts.

    A part may be above the usual range. For example, month 13 is the first month of the next year.
    """
    try:
        if "isoWeekYear" in numbers:
            start = datetime.date.fromisocalendar(numbers["isoWeekYear"], 1, 1)
            day = start + ((numbers.get("isoWeek", 1) - 1) * 7 + numbers.get("isoDayOfWeek", 1) - 1) * DAY
        else:
            day = at_month(numbers["year"] * 12 + numbers.get("month", 1) - 1, 1) + (numbers.get("day", 1) - 1) * DAY
        time = datetime.timedelta(
            hours=numbers.get("hour", 0),
            minutes=numbers.get("minute", 0),
            seconds=numbers.get("second", 0),
            milliseconds=numbers.get("millisecond", 0),
        )
        return from_local(datetime.datetime.combine(day, datetime.time()) + time, zone)
    except (OverflowError, ValueError):
        raise not_supported("a date beyond the years 1 to 9999") from None


def _parsing_error(text: Any, reason: str) -> CommandError:
    return CommandError(241, "ConversionFailure", f"Error parsing date string {text!r}; {reason}")


def parse_date(text: str, timezone: str | None = None, form: Any = None) -> Any:
    """Return the date that a text contains.

    :param text: the text that contains the date.
    :param timezone: the time zone of a date whose text has no time zone; None means UTC.
    :param form: the format of the text; None means ISO 8601.
    :raises CommandError: the text contains no date (code 241), or contains a date in words, which only a server
        supports (code 115).
    """
    match = _pattern_of_format(form).fullmatch(text) if form is not None else _ISO_TEXT.fullmatch(text)
    if match is None:
        if form is None and not _LONG_YEAR.match(text) and re.search(r"[A-Za-z].*\d|\d.*[A-Za-z]|\d[/.]\d", text):
            raise not_supported("a date in words", text)
        raise _parsing_error(text, "Format literal not found" if form is not None else "Unexpected character")
    parts = {name: value for name, value in match.groupdict().items() if value is not None}
    try:
        return _date_from_format(parts, timezone, text) if form is not None else _date_from_iso(parts, timezone, text)
    except ValueError as error:
        raise _parsing_error(text, str(error)) from None


def _zone(offset: str | None, timezone: str | None, text: str) -> datetime.tzinfo:
    if offset is None:
        return zone_of(timezone or "UTC")
    if timezone is not None:
        raise CommandError(241, "ConversionFailure", "you cannot pass in a date/time string with time zone information "
                           f"('{offset}') together with a timezone argument")  # fmt: skip
    offset = offset.removeprefix("GMT") or "GMT"
    if offset[0] in "+-":
        return zone_of(offset)
    if offset not in _NAMED:
        raise not_supported("a date in words", offset)
    return datetime.timezone(datetime.timedelta(hours=_NAMED[offset]))


def _date_from_iso(parts: Mapping[str, str], timezone: str | None, text: str) -> Any:
    fraction = int(parts.get("fraction", "0").ljust(3, "0")[:3])
    local = datetime.datetime(
        int(parts["year"]),
        int(parts["month"]),
        int(parts.get("day", 1)),
        int(parts.get("hour", 0)),
        int(parts.get("minute", 0)),
        int(parts.get("second", 0)),
        fraction * 1000,
    )
    return from_local(local, _zone(parts.get("zone"), timezone, text))


def _pattern_of_format(form: Any) -> re.Pattern[str]:
    try:
        parts = [_READ[part[1]] if len(part) > 1 else re.escape(part) for part in specifiers(form)]
        return re.compile("".join(parts))
    except (KeyError, re.error):
        raise location(18536, f"Invalid format character in format string {form!r}") from None


def _date_from_format(parts: Mapping[str, str], timezone: str | None, text: str) -> Any:
    hour, minute, second = (int(parts.get(letter, 0)) for letter in "HMS")
    if "G" in parts:
        day = datetime.date.fromisocalendar(int(parts["G"]), int(parts.get("V", 1)), int(parts.get("u", 1)))
    elif {"Y", "m", "d"} <= set(parts):
        day = datetime.date(int(parts["Y"]), int(parts["m"]), int(parts["d"]))
    else:
        raise ValueError("an incomplete date/time string has been found")
    if "Z" in parts:
        zone: datetime.tzinfo = datetime.timezone(datetime.timedelta(minutes=int(parts["Z"])))
    else:
        zone = _zone(parts.get("z"), timezone, text)
    milliseconds = int(parts.get("L", "0").ljust(3, "0"))
    return from_local(datetime.datetime.combine(day, datetime.time(hour, minute, second, milliseconds * 1000)), zone)


def _from_text(name: str, operand: Any, scope: Scope) -> Expression:
    parts = _FROM_TEXT.compiled(name, operand, scope)
    null = compile_expression(None, scope)
    on_error, on_null = parts.pop("onError", None), parts.pop("onNull", null)

    def run(variables: Any) -> Any:
        values = {field: part(variables) for field, part in parts.items()}
        text, form = values.pop("dateString"), values.get("format")
        if not _is_null_or_missing(form):
            _pattern_of_format(form)
        if _is_null_or_missing(text):
            return on_null(variables)
        if any(map(_is_null_or_missing, values.values())):
            return None
        if "timezone" in values:
            zone_of(values["timezone"])
        try:
            if not isinstance(text, str):
                raise CommandError(241, "ConversionFailure", "$dateFromString requires that 'dateString' be a string, "
                                   f"found: {type_name(text)} with value {text!r}")  # fmt: skip
            return parse_date(text, values.get("timezone"), form)
        except CommandError as error:
            if error.code != 241 or on_error is None:
                raise
            return on_error(variables)

    return folded(run, [*parts.values(), on_null, *([on_error] if on_error else [])])


OPERATORS: Mapping[str, Make] = {"$dateFromParts": _from_parts, "$dateFromString": _from_text}
