"""Time zones, and the units of time that dates are added to and compared in."""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from gmongo.testing.store.errors import failed_to_parse, location
from gmongo.testing.store.values import date_of, is_date, milliseconds, type_name
from gmongo.testing.unsupported import not_supported

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)
DAY = datetime.timedelta(days=1)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)?")
# How many milliseconds the units have that are always as long.
FIXED = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000}
DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def zone_of(value: Any) -> datetime.tzinfo:
    """The time zone of a name, or of an offset from UTC.

    :raises CommandError: 40533, it is no string; 40485, there is no such zone; 115, there are none at all here.
    """
    if not isinstance(value, str):
        raise location(40517, f"timezone must evaluate to a string, found {type_name(value)}")
    return _zone(value)


@lru_cache(maxsize=128)
def _zone(name: str) -> datetime.tzinfo:
    if name in ("UTC", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        delta = datetime.timedelta(hours=int(hours), minutes=int(minutes or 0))
        if delta >= DAY:
            raise not_supported("time zones without data", name)
        return datetime.timezone(-delta if sign == "-" else delta)
    zone = _known(name)
    if zone is None and _known("Etc/UTC") is None:
        raise not_supported("time zones without data", "pip install 'gmongo[testing]'")

    if zone is None:
        raise location(40485, f'unrecognized time zone identifier: "{name}"')
    return zone


def _known(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def to_date(value: Any) -> Any:
    """A date of what date operators take for one.

    :raises CommandError: 16006, for another type.
    """
    if is_date(value):
        return value
    if isinstance(value, Timestamp):
        return date_of(value.time * 1000)
    if isinstance(value, ObjectId):
        return date_of(int.from_bytes(value.binary[:4], "big", signed=True) * 1000)
    raise location(16006, f"can't convert from BSON type {type_name(value)} to Date")


def local(date: Any, zone: datetime.tzinfo) -> datetime.datetime:
    """The date as clocks in the zone show it, with the zone.

    :raises CommandError: 115, for years that Python does not know.
    """
    try:
        return (EPOCH + datetime.timedelta(milliseconds=milliseconds(date))).replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:
        raise not_supported("a date beyond the years 1 to 9999") from None


def from_local(shown: datetime.datetime, zone: datetime.tzinfo) -> Any:
    """The date at which clocks in the zone show this."""
    try:
        return shown.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise not_supported("a date beyond the years 1 to 9999") from None


def unit_of(value: Any, name: str) -> str:
    """A unit of time.

    :raises CommandError: if it is none: 5439014 of expressions that compare or truncate, else 9.
    """
    if not isinstance(value, str):
        raise location(5439013, f"{name} requires 'unit' to be a string, but got {type_name(value)}")
    if value not in FIXED and value not in DAYS and value not in MONTHS:
        message = f"{name} parameter 'unit' value cannot be recognized as a time unit: {value}"
        raise location(5439014, message) if name in ("$dateDiff", "$dateTrunc") else failed_to_parse(message)
    return value


def weekday_of(value: Any, name: str) -> int:
    """The number of a day of the week, 0 for Monday; a day may be given by its first three letters.

    :raises CommandError: it is none.
    """
    if not isinstance(value, str):
        raise location(5439015, f"{name} requires 'startOfWeek' to be a string, but got {type_name(value)}")
    for number, day in enumerate(WEEKDAYS):
        if value.lower() in (day, day[:3]):
            return number
    raise location(5439016, f"{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {value}")


def month_number(date: datetime.datetime) -> int:
    """How many months the date is after the beginning of the calendar."""
    return date.year * 12 + date.month - 1


def at_month(number: int, day: int) -> datetime.date:
    """A day of a month, or the month's last day if it is not as long.

    :raises CommandError: 115, for a year beyond the calendar.
    """
    year, month = divmod(number, 12)
    try:
        first = datetime.date(year, month + 1, 1)
        following = datetime.date(year + (month == 11), (month + 1) % 12 + 1, 1)
    except ValueError:
        raise not_supported("a date beyond the years 1 to 9999") from None
    return min(first + datetime.timedelta(days=day - 1), following - DAY)
