"""The formats of ``$dateToString`` and ``$dateFromString``."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.values import type_name


def specifiers(form: Any) -> Iterator[str]:
    """Yield the parts of a format: single characters, and specifiers such as ``%Y``.

    :raises CommandError: the format is not a string, or a specifier is unknown.
    """
    if not isinstance(form, str):
        raise location(18533, f"$dateToString requires that 'format' be a string, found: {type_name(form)}")
    letters = iter(form)
    for letter in letters:
        if letter != "%":
            yield letter
            continue
        kind = next(letters, None)
        if kind is None:
            raise location(18535, "Unmatched '%' at end of format string")
        if kind not in _WRITTEN:
            raise location(18536, f"Invalid format character '%{kind}' in format string")
        yield f"%{kind}"


def formatted(date: datetime.datetime, form: Any) -> str:
    """Return a local time as text.

    :param date: the local time.
    :param form: the format, which contains specifiers such as ``%Y``.
    """
    return "".join(_WRITTEN[part[1]](date) if len(part) > 1 else part for part in specifiers(form))


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
