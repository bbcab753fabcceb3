"""The expression operators of dates: parts of dates, formatted dates and date arithmetic."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from bson.int64 import Int64

from gmongo.testing.store.expressions.compiling import Expression, Make, Scope, compile_expression, folded
from gmongo.testing.store.expressions.operands import compiled, is_null, null_for_null, of_fields, of_type, of_values
from gmongo.testing.store.expressions.timezones import (
    DAY,
    FIXED,
    MONTHS,
    from_local,
    to_date,
    to_local,
    unit_of,
    weekday_of,
    zone_of,
)
from gmongo.testing.store.values import date_of, milliseconds
from gmongo.testing.unsupported import not_supported


def check_format(form: Any) -> None:
    """Check that a format is a string, and that the simulation supports the specifiers, such as ``%Y``."""
    kinds = of_type(str, form).replace("%%", "").split("%")[1:]
    if any(kind[:1] not in _WRITTEN for kind in kinds):
        raise not_supported("$dateToString with another format", form)


def formatted(date: datetime.datetime, form: str) -> str:
    """Return a local time as text."""
    found, letters = "", iter(form)
    for letter in letters:
        found += _WRITTEN[next(letters)](date) if letter == "%" else letter
    return found


_WRITTEN: Mapping[str, Callable[[datetime.datetime], str]] = {
    "%": lambda date: "%",
    "H": lambda date: f"{date.hour:02}",
    "L": lambda date: f"{date.microsecond // 1000:03}",
    "M": lambda date: f"{date.minute:02}",
    "S": lambda date: f"{date.second:02}",
    "Y": lambda date: f"{date.year:04}",
    "d": lambda date: f"{date.day:02}",
    "m": lambda date: f"{date.month:02}",
}


def _part_operator(part: Callable[[datetime.datetime], Any]) -> Make:
    @null_for_null
    def function(date: Any, timezone: Any = "UTC") -> Any:
        return part(to_local(to_date(date), zone_of(timezone)))

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        if isinstance(operand, dict) and not next(iter(operand), "").startswith("$"):
            return of_fields("date", "timezone", function)(name, operand, scope)
        return of_values(function, 1)(name, operand, scope)

    return make


def _date_to_string(name: str, operand: Any, scope: Scope) -> Expression:
    fields = compiled(name, operand, scope, "date", "format timezone onNull")
    on_null = fields.pop("onNull", compile_expression(None, scope))

    def run(variables: Any) -> Any:
        values = {field: part(variables) for field, part in fields.items()}
        form, timezone = values.get("format", "%Y-%m-%dT%H:%M:%S.%LZ"), values.get("timezone", "UTC")
        if not is_null(form):
            check_format(form)
        zone = None if is_null(timezone) else zone_of(timezone)
        if is_null(values["date"]):
            return on_null(variables)
        if zone is None or is_null(form):
            return None
        return formatted(to_local(to_date(values["date"]), zone), form)

    return folded(run, [*fields.values(), on_null])


@null_for_null
def _date_trunc(date: Any, unit: Any, timezone: Any = "UTC", binSize: Any = 1, startOfWeek: Any = "sunday") -> Any:
    zone, date, unit = zone_of(timezone), to_date(date), unit_of(unit)
    if binSize != 1:
        raise not_supported("$dateTrunc with a bin of several units")
    if unit in FIXED:
        reference = milliseconds(from_local(datetime.datetime(2000, 1, 1), zone))
        return date_of(milliseconds(date) - (milliseconds(date) - reference) % FIXED[unit])
    shown = to_local(date, zone).replace(tzinfo=None)
    day = shown.date() - (shown.weekday() - weekday_of(startOfWeek)) % 7 * DAY if unit == "week" else shown.date()
    if unit in MONTHS:
        day = datetime.date(shown.year, (shown.month - 1) // MONTHS[unit] * MONTHS[unit] + 1, 1)
    return from_local(datetime.datetime.combine(day, datetime.time()), zone)


OPERATORS: Mapping[str, Make] = {
    "$dateToString": _date_to_string,
    "$dateTrunc": of_fields("date unit", "timezone binSize startOfWeek", _date_trunc),
    "$dayOfMonth": _part_operator(lambda date: date.day),
    "$dayOfWeek": _part_operator(lambda date: date.isoweekday() % 7 + 1),
    "$dayOfYear": _part_operator(lambda date: date.timetuple().tm_yday),
    "$hour": _part_operator(lambda date: date.hour),
    "$isoDayOfWeek": _part_operator(lambda date: date.isoweekday()),
    "$isoWeek": _part_operator(lambda date: date.isocalendar()[1]),
    "$isoWeekYear": _part_operator(lambda date: Int64(date.isocalendar()[0])),
    "$millisecond": _part_operator(lambda date: date.microsecond // 1000),
    "$minute": _part_operator(lambda date: date.minute),
    "$month": _part_operator(lambda date: date.month),
    "$second": _part_operator(lambda date: date.second),
    "$week": _part_operator(lambda date: int(date.strftime("%U"))),  # the first Sunday begins week 1
    "$year": _part_operator(lambda date: date.year),
}
