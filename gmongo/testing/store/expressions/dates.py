"""The expression operators of dates: parts of dates, formatted dates and date arithmetic."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from bson.int64 import Int64

from gmongo.testing.store.expressions.compiling import Compiler, Expression, Scope, compile_expression, fold
from gmongo.testing.store.expressions.operands import (
    compile_fields,
    create_named_operator,
    create_operator,
    is_null,
    propagate_null,
    require_type,
)
from gmongo.testing.store.expressions.timezones import (
    DAY,
    MILLISECONDS,
    MONTHS,
    from_local,
    parse_time_zone,
    parse_weekday,
    require_unit,
    to_date,
    to_local,
)
from gmongo.testing.store.values import create_date, to_millis
from gmongo.testing.unsupported import not_supported


def check_format(date_format: Any) -> None:
    """Check that a format is a string, and the simulation supports the specifiers, such as ``%Y``."""
    specifiers = require_type(str, date_format).replace("%%", "").split("%")[1:]
    if any(specifier[:1] not in _FORMATTERS for specifier in specifiers):
        raise not_supported("$dateToString with unsupported format specifiers", date_format)


def format_date(date: datetime.datetime, date_format: str) -> str:
    """Return a local time as text."""
    text, characters = "", iter(date_format)
    for character in characters:
        text += _FORMATTERS[next(characters)](date) if character == "%" else character
    return text


_FORMATTERS: Mapping[str, Callable[[datetime.datetime], str]] = {
    "%": lambda date: "%",
    "H": lambda date: f"{date.hour:02}",
    "L": lambda date: f"{date.microsecond // 1000:03}",
    "M": lambda date: f"{date.minute:02}",
    "S": lambda date: f"{date.second:02}",
    "Y": lambda date: f"{date.year:04}",
    "d": lambda date: f"{date.day:02}",
    "m": lambda date: f"{date.month:02}",
}


def _create_part_operator(select_part: Callable[[datetime.datetime], Any]) -> Compiler:
    @propagate_null
    def compute_part(date: Any, timezone: Any = "UTC") -> Any:
        return select_part(to_local(to_date(date), parse_time_zone(timezone)))

    def compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
        if isinstance(operand, dict) and not next(iter(operand), "").startswith("$"):
            return create_named_operator("date", "timezone", compute_part)(name, operand, scope)
        return create_operator(compute_part, 1)(name, operand, scope)

    return compile_operator


def _compile_date_to_string(name: str, operand: Any, scope: Scope) -> Expression:
    fields = compile_fields(name, operand, scope, "date", "format timezone onNull")
    on_null = fields.pop("onNull", compile_expression(None, scope))

    def run(variables: Any) -> Any:
        values = {field: expression(variables) for field, expression in fields.items()}
        date_format, timezone = values.get("format", "%Y-%m-%dT%H:%M:%S.%LZ"), values.get("timezone", "UTC")
        if not is_null(date_format):
            check_format(date_format)
        zone = None if is_null(timezone) else parse_time_zone(timezone)
        if is_null(values["date"]):
            return on_null(variables)
        if zone is None or is_null(date_format):
            return None
        return format_date(to_local(to_date(values["date"]), zone), date_format)

    return fold(run, [*fields.values(), on_null])


@propagate_null
def _truncate_date(date: Any, unit: Any, timezone: Any = "UTC", binSize: Any = 1, startOfWeek: Any = "sunday") -> Any:
    zone, date, unit = parse_time_zone(timezone), to_date(date), require_unit(unit)
    if binSize != 1:
        raise not_supported("$dateTrunc with a binSize above 1")
    if unit in MILLISECONDS:
        start = to_millis(from_local(datetime.datetime(2000, 1, 1), zone))
        return create_date(to_millis(date) - (to_millis(date) - start) % MILLISECONDS[unit])
    local = to_local(date, zone).replace(tzinfo=None)
    day = local.date() - (local.weekday() - parse_weekday(startOfWeek)) % 7 * DAY if unit == "week" else local.date()
    if unit in MONTHS:
        day = datetime.date(local.year, (local.month - 1) // MONTHS[unit] * MONTHS[unit] + 1, 1)
    return from_local(datetime.datetime.combine(day, datetime.time()), zone)


OPERATORS: Mapping[str, Compiler] = {
    "$dateToString": _compile_date_to_string,
    "$dateTrunc": create_named_operator("date unit", "timezone binSize startOfWeek", _truncate_date),
    "$dayOfMonth": _create_part_operator(lambda date: date.day),
    "$dayOfWeek": _create_part_operator(lambda date: date.isoweekday() % 7 + 1),
    "$dayOfYear": _create_part_operator(lambda date: date.timetuple().tm_yday),
    "$hour": _create_part_operator(lambda date: date.hour),
    "$isoDayOfWeek": _create_part_operator(lambda date: date.isoweekday()),
    "$isoWeek": _create_part_operator(lambda date: date.isocalendar()[1]),
    "$isoWeekYear": _create_part_operator(lambda date: Int64(date.isocalendar()[0])),
    "$millisecond": _create_part_operator(lambda date: date.microsecond // 1000),
    "$minute": _create_part_operator(lambda date: date.minute),
    "$month": _create_part_operator(lambda date: date.month),
    "$second": _create_part_operator(lambda date: date.second),
    "$week": _create_part_operator(lambda date: int(date.strftime("%U"))),  # the first Sunday begins week 1
    "$year": _create_part_operator(lambda date: date.year),
}
