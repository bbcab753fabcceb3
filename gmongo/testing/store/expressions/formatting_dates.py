"""The formats of ``$dateToString``."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.operands import of_type


def check_format(form: Any) -> None:
    """Check that a format is a string, and that the format contains only known specifiers, such as ``%Y``."""
    kinds = of_type(str, form).replace("%%", "").split("%")[1:]
    if any(kind[:1] not in _WRITTEN for kind in kinds):
        raise failed_expression(f"$dateToString with the format {form!r}")


def formatted(date: datetime.datetime, form: str) -> str:
    """Return a local time as text.

    :param form: the format, which contains specifiers such as ``%Y``.
    """
    found, letters = "", iter(form)
    for letter in letters:
        found += _WRITTEN[next(letters)](date) if letter == "%" else letter
    return found


def _minutes(date: datetime.datetime) -> int:
    offset = date.utcoffset()
    return 0 if offset is None else int(offset.total_seconds() // 60)


def _offset(date: datetime.datetime) -> str:
    minutes = _minutes(date)
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}{rest:02}"


_WRITTEN: Mapping[str, Callable[[datetime.datetime], str]] = {
    "%": lambda date: "%",
    "G": lambda date: f"{date.isocalendar()[0]:04}",
    "H": lambda date: f"{date.hour:02}",
    "L": lambda date: f"{date.microsecond // 1000:03}",
    "M": lambda date: f"{date.minute:02}",
    "S": lambda date: f"{date.second:02}",
    "U": lambda date: date.strftime("%U"),
    "V": lambda date: f"{date.isocalendar()[1]:02}",
    "Y": lambda date: f"{date.year:04}",
    "Z": lambda date: str(_minutes(date)),
    "d": lambda date: f"{date.day:02}",
    "j": lambda date: f"{date.timetuple().tm_yday:03}",
    "m": lambda date: f"{date.month:02}",
    "u": lambda date: str(date.isoweekday()),
    "w": lambda date: str(date.isoweekday() % 7 + 1),
    "z": _offset,
}
