"""``$bucketAuto``: buckets of about as many documents each."""

from __future__ import annotations

import math
from typing import Any

from bson.decimal128 import Decimal128

from gmongo.testing.store.arithmetic import decimal, to_decimal
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions import Variables, compile_expression, with_document
from gmongo.testing.store.grouping import compile_accumulators
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.surroundings import Document, Documents, Stage, Surroundings
from gmongo.testing.store.values import MISSING, compare, is_nan, is_number, is_whole, key_of, type_name, whole

_OPTIONS = frozenset({"groupBy", "buckets", "output", "granularity"})
_RENARD_5 = (1.0, 1.6, 2.5, 4.0, 6.3)
_RENARD_10 = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
_RENARD_20 = (1.0, 1.12, 1.25, 1.4, 1.6, 1.8, 2.0, 2.24, 2.5, 2.8, 3.15, 3.55, 4.0, 4.5, 5.0, 5.6, 6.3, 7.1, 8.0, 9.0)
_RENARD_40 = (
    1.0, 1.06, 1.12, 1.18, 1.25, 1.32, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.12, 2.24, 2.36, 2.5, 2.65, 2.8, 3.0, 3.15,
    3.35, 3.55, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0, 5.3, 5.6, 6.0, 6.3, 6.7, 7.1, 7.5, 8.0, 8.5, 9.0, 9.5,
)  # fmt: skip
_RENARD_80 = (
    1.03, 1.06, 1.09, 1.12, 1.15, 1.18, 1.22, 1.25, 1.28, 1.32, 1.36, 1.4, 1.45, 1.5, 1.55, 1.6, 1.65, 1.7, 1.75, 1.8,
    1.85, 1.9, 1.95, 2.0, 2.06, 2.12, 2.18, 2.24, 2.3, 2.36, 2.43, 2.5, 2.58, 2.65, 2.72, 2.8, 2.9, 3.0, 3.07, 3.15,
    3.25, 3.35, 3.45, 3.55, 3.65, 3.75, 3.87, 4.0, 4.12, 4.25, 4.37, 4.5, 4.62, 4.75, 4.87, 5.0, 5.15, 5.3, 5.45, 5.6,
    5.8, 6.0, 6.15, 6.3, 6.5, 6.7, 6.9, 7.1, 7.3, 7.5, 7.75, 8.0, 8.25, 8.5, 8.75, 9.0, 9.25, 9.5, 9.75, 10.0,
)  # fmt: skip
# The values of IEC 60063 that a formula does not give.
_E24 = (
    1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.7, 3.0, 3.3, 3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8, 7.5,
    8.2, 9.1,
)  # fmt: skip


def _e_series(number: int) -> tuple[float, ...]:
    """Those of three digits; 9.20 of E192 is the only one that is not the rounded root."""
    found = tuple(round(10 ** (place / number), 2) for place in range(number))
    return tuple(9.2 if value == 9.19 else value for value in found)


SERIES = {
    "R5": _RENARD_5,
    "R10": _RENARD_10,
    "R20": _RENARD_20,
    "R40": _RENARD_40,
    "R80": _RENARD_80,
    "1-2-5": (1.0, 2.0, 5.0),
    "E6": _E24[::4],
    "E12": _E24[::2],
    "E24": _E24,
    "E48": _e_series(48),
    "E96": _e_series(96),
    "E192": _e_series(192),
    "POWERSOF2": (),
}


def bucket_auto(spec: Any, around: Surroundings) -> Stage:
    """``$bucketAuto``.

    :raises CommandError: if it is malformed.
    """
    _check(spec)
    output = spec.get("output", {"count": {"$sum": 1}})
    if not isinstance(output, dict):
        raise location(40244, f"The $bucketAuto 'output' field must be an object, but found type: {type_name(output)}.")
    scope = around.scope
    by, accumulators = compile_expression(spec["groupBy"], scope), compile_accumulators(output, scope)
    number, granularity = whole(spec["buckets"]), spec.get("granularity")

    def run(documents: Documents, variables: Variables) -> Documents:
        keyed = ((by(with_document(variables, document)), document) for document in documents)
        valued = ((None if value is MISSING else value, document) for value, document in keyed)
        found = list(scope.pace.in_order(valued, lambda entry: key_of(scope.collation.folded(entry[0]))))
        for value, _ in scope.pace.through(found if granularity else ()):
            _check_number(value)
        for low, high, members in _buckets(found, number, granularity, scope.pace):
            kept: dict[str, list[Any]] = {name: [] for name in accumulators}
            for _, document in scope.pace.through(members):
                for name, one in accumulators.items():
                    kept[name].append(one.value(with_document(variables, document)))
            made = {name: one.made(kept[name]) for name, one in accumulators.items()}
            yield {"_id": {"min": low, "max": high}, **made}

    return run


def _check(spec: Any) -> None:
    if not isinstance(spec, dict):
        raise location(40240, f"The argument to $bucketAuto must be an object, but found type: {type_name(spec)}.")
    if set(spec) - _OPTIONS:
        raise location(40245, f"Unrecognized option to $bucketAuto: {(set(spec) - _OPTIONS).pop()}.")
    if not {"groupBy", "buckets"} <= set(spec):
        raise location(40246, "The $bucketAuto stage requires 'groupBy' and 'buckets' to be specified.")
    by, buckets, granularity = spec["groupBy"], spec["buckets"], spec.get("granularity", "R5")
    if not (isinstance(by, str) and by.startswith("$")) and not (isinstance(by, dict) and by):
        raise location(40239, f"The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression "
                       f"object, but found: {by!r}.")  # fmt: skip
    if not is_number(buckets):
        raise location(40241, f"The $bucketAuto 'buckets' field must be a numeric value, but found {buckets!r}.")
    if not is_whole(buckets) or not -(2**31) <= whole(buckets) < 2**31:
        raise location(40242, f"The $bucketAuto 'buckets' field must be a 32-bit integer, but found {buckets!r}.")
    if whole(buckets) <= 0:
        raise location(40243, f"The $bucketAuto 'buckets' field must be greater than 0, but found: {buckets}.")
    if not isinstance(granularity, str):
        raise location(40261, f"The $bucketAuto 'granularity' field must be a string, but found {granularity!r}.")
    if granularity not in SERIES:
        raise location(40257, f"Unknown rounding granularity '{granularity}'")


def _check_number(value: Any) -> None:
    if not is_number(value):
        raise location(40258, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value "
                       f"with type: {type_name(value)}")  # fmt: skip
    if is_nan(value):
        raise location(40259, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN")
    if compare(value, 0) < 0:
        raise location(40260, "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a "
                       "negative number")  # fmt: skip


Entry = tuple[Any, Document]


def _buckets(
    found: list[Entry], number: int, granularity: str | None, pace: Pace
) -> list[tuple[Any, Any, list[Entry]]]:
    """The boundaries of each bucket, and what is in it."""
    size = max(1, math.floor(len(found) / number + 0.5))
    made: list[tuple[Any, Any, list[Entry]]] = []
    start = 0
    while start < len(found) and len(made) < number:
        end = len(found) if len(made) == number - 1 else min(start + size, len(found))
        while end < len(found) and compare(found[end][0], found[end - 1][0]) == 0:
            end += 1
            pace.breathe()
        low = made[-1][1] if made else found[start][0] if granularity is None else round_down(found[0][0], granularity)
        if granularity is None:
            high = found[end][0] if end < len(found) else found[-1][0]
        else:
            end, high = _rounded(found, end, granularity, pace)
        made.append((low, high, found[start:end]))
        start = end
    return made


def _rounded(found: list[Entry], end: int, granularity: str, pace: Pace) -> tuple[int, Any]:
    """The end and the upper boundary of a bucket that ends with a number of the series."""
    if found[end - 1][0] == 0 and end < len(found):
        return end, round_down(found[end][0], granularity)
    high = round_up(found[end - 1][0], granularity)
    while end < len(found) and compare(high, found[end][0]) > 0:
        end += 1
        pace.breathe()
    return end, high


def round_up(value: Any, granularity: str) -> Any:
    """The next higher number of a series."""
    if compare(value, 0) == 0:
        return value
    return _like(value, min(one for one in _around(value, granularity) if one > _plain(value)))


def round_down(value: Any, granularity: str) -> Any:
    """The next lower number of a series."""
    if compare(value, 0) == 0:
        return value
    return _like(value, max(one for one in _around(value, granularity) if one < _plain(value)))


def _plain(value: Any) -> float:
    return float(str(value))


def _around(value: Any, granularity: str) -> list[float]:
    """The numbers of the series that are near."""
    if granularity == "POWERSOF2":
        power = math.floor(math.log2(_plain(value)))
        return [2.0**near for near in (power - 1, power, power + 1)]
    power = math.floor(math.log10(_plain(value)))
    return [float(f"{one}e{near}") for near in range(power - 2, power + 3) for one in SERIES[granularity]]


def _like(value: Any, number: float) -> Any:
    return decimal(to_decimal(number)) if isinstance(value, Decimal128) else number
