"""Time zones, units of time, and conversions between dates and local times."""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.operands import require_type
from gmongo.testing.store.values import EPOCH, create_date, is_date, to_millis, type_name
from gmongo.testing.unsupported import not_supported

UTC = datetime.timezone.utc
DAY = datetime.timedelta(days=1)
_OFFSET_PATTERN = re.compile(r"([+-])(\d\d):?(\d\d)?")
# The lengths in milliseconds of the units of time that are shorter than a day.
MILLISECONDS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000}
# The lengths in days of the units `day` and `week`.
DAYS = {"day": 1, "week": 7}
# The lengths in months of the units of time that are longer than a week.
MONTHS = {"month": 1, "quarter": 3, "year": 12}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def parse_time_zone(value: Any) -> datetime.tzinfo:
    """Return the time zone that a name or a UTC offset denotes."""
    return _find_time_zone(require_type(str, value))


@lru_cache(maxsize=128)
def _find_time_zone(name: str) -> datetime.tzinfo:
    if name in ("UTC", "GMT"):
        return UTC
    offset = _OFFSET_PATTERN.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        utc_offset = datetime.timedelta(hours=int(hours), minutes=int(minutes or 0))
        if utc_offset >= DAY:
            raise not_supported("a time zone offset of a day or more", name)
        return datetime.timezone(-utc_offset if sign == "-" else utc_offset)
    zone = _load_time_zone(name)
    if zone is None and _load_time_zone("Etc/UTC") is None:
        raise not_supported("named time zones if no time zone database is installed", "pip install 'gmongo[testing]'")
    if zone is None:
        raise failed_expression(f"the time zone {name!r} is unknown")
    return zone


def _load_time_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def to_date(value: Any) -> Any:
    """Convert a Timestamp or an ObjectId to its date. Return a date unchanged."""
    if is_date(value):
        return value
    if isinstance(value, Timestamp):
        return create_date(value.time * 1000)
    if isinstance(value, ObjectId):
        return create_date(int.from_bytes(value.binary[:4], "big", signed=True) * 1000)
    raise failed_expression(f"a date operator with the type {type_name(value)}")


def to_local(date: Any, zone: datetime.tzinfo) -> datetime.datetime:
    """Convert a date to the local time of a time zone."""
    try:
        return (EPOCH + datetime.timedelta(milliseconds=to_millis(date))).replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:
        raise not_supported("a date beyond the years 1 to 9999") from None


def from_local(local_time: datetime.datetime, zone: datetime.tzinfo) -> Any:
    """Convert a local time of a time zone to a date."""
    try:
        return local_time.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise not_supported("a date beyond the years 1 to 9999") from None


def require_unit(value: Any) -> str:
    """Check that a value is the name of a unit of time, and return the name."""
    if require_type(str, value) not in MILLISECONDS and value not in DAYS and value not in MONTHS:
        raise failed_expression(f"the unit of time {value!r} is unknown")
    return str(value)


def parse_weekday(value: Any) -> int:
    """Return the number of a day of the week: 0 for Monday to 6 for Sunday."""
    for weekday, name in enumerate(WEEKDAYS):
        if require_type(str, value).lower() in (name, name[:3]):
            return weekday
    raise failed_expression(f"the day {value!r} is unknown")
