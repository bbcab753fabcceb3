"""The expression operators of dates: parts of dates, formatted dates and date arithmetic."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from bson.int64 import Int64

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    compile_expression,
    folded,
)
from gmongo.testing.store.expressions.formatting_dates import formatted, specifiers
from gmongo.testing.store.expressions.operands import Fields, arguments, of_fields
from gmongo.testing.store.expressions.timezones import (
    DAY,
    DAYS,
    FIXED,
    MONTHS,
    at_month,
    from_local,
    month_number,
    to_date,
    to_local,
    unit_of,
    weekday_of,
    zone_of,
)
from gmongo.testing.store.values import MISSING, date_of, is_number, is_whole, milliseconds, type_name, whole
from gmongo.testing.unsupported import not_supported

_PART = Fields({"date": 40539}, ("timezone",), 40535, 40535)
_TEXT = Fields({"date": 18628}, ("format", "timezone", "onNull"), 18629, 18534)
_ADD = Fields({"startDate": 5166402, "unit": 5166402, "amount": 5166402}, ("timezone",), 5166400, 5166401)
_TRUNC = Fields({"date": 5439009, "unit": 5439010}, ("timezone", "binSize", "startOfWeek"), 5439007, 5439008)
# The date from which `$dateTrunc` counts bins of several units. The date is a Saturday.
_REFERENCE = datetime.datetime(2000, 1, 1)


def _any_null_or_missing(*values: Any) -> bool:
    """Return True if a value is null or missing."""
    return any(value is None or value is MISSING for value in values)


def _part_operator(part: Callable[[datetime.datetime], Any]) -> Make:
    def function(date: Any, timezone: Any = "UTC") -> Any:
        if _any_null_or_missing(date, timezone):
            return None
        return part(to_local(to_date(date), zone_of(timezone)))

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        if isinstance(operand, dict) and not next(iter(operand), "").startswith("$"):
            return of_fields(_PART, function)(name, operand, scope)
        if isinstance(operand, list) and len(operand) != 1:
            raise location(
                40536, f"{name} accepts exactly one argument if given an array, but was given {len(operand)}"
            )
        (only,) = arguments(name, operand, scope, 1, 1)
        return folded(lambda variables: function(only(variables)), [only])

    return make


def week_of(date: datetime.datetime) -> int:
    """Return the number of the week in the year. Week 1 begins on the first Sunday.

    The days before the first Sunday are in week 0.
    """
    return int(date.strftime("%U"))


def day_of_week(date: datetime.datetime) -> int:
    """Return the number of the day in the week: 1 for Sunday to 7 for Saturday."""
    return date.isoweekday() % 7 + 1


def _date_to_string(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _TEXT.compiled(name, operand, scope)
    on_null = fields.pop("onNull", compile_expression(None, scope))
    get = dict(fields)

    def run(variables: Any) -> Any:
        values = {field: part(variables) for field, part in get.items()}
        form = values.get("format", "%Y-%m-%dT%H:%M:%S.%LZ")
        if not _any_null_or_missing(form):
            list(specifiers(form))
        timezone = values.get("timezone", "UTC")
        zone = None if _any_null_or_missing(timezone) else zone_of(timezone)
        if _any_null_or_missing(values["date"]):
            return on_null(variables)
        if zone is None or _any_null_or_missing(form):
            return None
        return formatted(to_local(to_date(values["date"]), zone), form)

    return folded(run, [*get.values(), on_null])


def _whole_amount(name: str, amount: Any) -> int:
    if not is_number(amount) or not is_whole(amount):
        raise location(5166405, f"{name} expects integer amount of time units")
    return whole(amount)


def _addition_operator(name: str, sign: int) -> Make:
    def run(startDate: Any, unit: Any, amount: Any, timezone: Any = "UTC") -> Any:
        if _any_null_or_missing(startDate, unit, amount, timezone):
            return None
        zone = zone_of(timezone)
        start = _date(name, startDate, 5166403)
        if not isinstance(unit, str):
            raise location(5166404, f"{name} expects string defining the time unit")
        unit_name = unit_of(unit, name)
        return date_after(start, unit_name, sign * _whole_amount(name, amount), zone)

    return of_fields(_ADD, run)


def _date(name: str, value: Any, code: int) -> Any:
    if type_name(value) not in ("date", "timestamp", "objectId"):
        raise location(code, f"{name} requires a date, but got {type_name(value)}")
    return to_date(value)


def date_after(date: Any, unit: str, amount: int, zone: datetime.tzinfo) -> Any:
    """Return the date that is a number of units of time after another date.

    For days and longer units, the local time of day does not change.

    :param date: the date to which the function adds the units of time.
    :param unit: the unit of time, such as ``day``.
    :param amount: the number of units of time. If the number is negative, the result is an earlier
        date.
    :param zone: the time zone.
    """
    if unit in FIXED:
        number = milliseconds(date) + amount * FIXED[unit]
        if not -(2**63) <= number < 2**63:
            raise not_supported("a date beyond the years 1 to 9999")
        return date_of(number)
    shown = to_local(date, zone).replace(tzinfo=None)
    try:
        if unit in DAYS:
            moved = shown + amount * DAYS[unit] * DAY
        else:
            moved = datetime.datetime.combine(
                at_month(month_number(shown) + amount * MONTHS[unit], shown.day), shown.time()
            )
    except OverflowError:
        raise not_supported("a date beyond the years 1 to 9999") from None
    return from_local(moved, zone)


def _date_trunc(date: Any, unit: Any, timezone: Any = "UTC", binSize: Any = 1, startOfWeek: Any = "sunday") -> Any:
    if _any_null_or_missing(date, unit, timezone, binSize) or (unit == "week" and _any_null_or_missing(startOfWeek)):
        return None
    zone = zone_of(timezone)
    start = _date("$dateTrunc", date, 5439012)
    unit_name = unit_of(unit, "$dateTrunc")
    if not is_number(binSize) or not is_whole(binSize):
        raise location(5439017, f"$dateTrunc requires 'binSize' to be a 64-bit integer, but got {binSize!r}")
    size = whole(binSize)
    if size <= 0:
        raise location(5439018, f"$dateTrunc requires 'binSize' to be greater than 0, but got {size}")
    first = weekday_of(startOfWeek, "$dateTrunc") if unit_name == "week" else 0
    return _beginning_of_bin(start, unit_name, size, zone, first)


def _beginning_of_bin(date: Any, unit: str, size: int, zone: datetime.tzinfo, first_weekday: int) -> Any:
    shown = to_local(date, zone).replace(tzinfo=None)
    if unit in MONTHS:
        reference = month_number(_REFERENCE)
        length = MONTHS[unit] * size
        number = reference + (month_number(shown) - reference) // length * length
        return from_local(datetime.datetime.combine(at_month(number, 1), datetime.time()), zone)
    reference_day = _REFERENCE
    if unit == "week":
        reference_day += (first_weekday - _REFERENCE.weekday()) % 7 * DAY
    if unit in DAYS:
        length = DAYS[unit] * size
        return from_local(reference_day + (shown - reference_day).days // length * length * DAY, zone)
    reference_time = milliseconds(from_local(_REFERENCE, zone))
    length = FIXED[unit] * size
    return date_of(reference_time + (milliseconds(date) - reference_time) // length * length)


OPERATORS: Mapping[str, Make] = {
    "$dateAdd": _addition_operator("$dateAdd", 1),
    "$dateSubtract": _addition_operator("$dateSubtract", -1),
    "$dateToString": _date_to_string,
    "$dateTrunc": of_fields(_TRUNC, _date_trunc),
    "$dayOfMonth": _part_operator(lambda date: date.day),
    "$dayOfWeek": _part_operator(day_of_week),
    "$dayOfYear": _part_operator(lambda date: date.timetuple().tm_yday),
    "$hour": _part_operator(lambda date: date.hour),
    "$isoDayOfWeek": _part_operator(lambda date: date.isoweekday()),
    "$isoWeek": _part_operator(lambda date: date.isocalendar()[1]),
    "$isoWeekYear": _part_operator(lambda date: Int64(date.isocalendar()[0])),
    "$millisecond": _part_operator(lambda date: date.microsecond // 1000),
    "$minute": _part_operator(lambda date: date.minute),
    "$month": _part_operator(lambda date: date.month),
    "$second": _part_operator(lambda date: date.second),
    "$week": _part_operator(week_of),
    "$year": _part_operator(lambda date: date.year),
}
