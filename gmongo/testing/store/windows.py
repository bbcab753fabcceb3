"""The windows of ``$setWindowFields``: which documents of a partition belong to that of each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gmongo.testing.store.arithmetic import add
from gmongo.testing.store.errors import failed_to_parse, location
from gmongo.testing.store.expressions.dates import later
from gmongo.testing.store.expressions.timezones import UTC, unit_of
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import Key, is_date, is_number, is_whole, key_of, whole

# The first document of each window, and the one behind its last, from the values that the partition is sorted by.
Windows = Callable[[Sequence[Any]], Iterator[tuple[int, int]]]
_NUMBERS, _DATES = key_of(float("-inf"))[0], 45


def compile_window(spec: Any, sort: Mapping[str, Any], pace: Pace) -> Windows:
    """The windows of a specification; None is for the whole partition.

    :param sort: what partitions are sorted by.
    :raises CommandError: if it is malformed.
    """
    if spec is None:
        return _whole
    if not isinstance(spec, dict) or set(spec) - {"documents", "range", "unit"}:
        raise failed_to_parse("'window' field must be an object with 'documents', or 'range' and 'unit'")
    if {"documents", "range"} <= set(spec):
        raise failed_to_parse("Window bounds can specify either 'documents' or 'range', not both.")
    if "documents" in spec:
        if "unit" in spec:
            raise failed_to_parse("Window bounds can only specify 'unit' with range-based bounds.")
        return _by_documents(spec["documents"], sort)
    if "range" in spec:
        return _by_range(spec["range"], spec.get("unit"), sort, pace)
    if spec:
        raise failed_to_parse("'unit' is of range-based bounds, and there are none")
    return _whole


def _whole(values: Sequence[Any]) -> Iterator[tuple[int, int]]:
    return ((0, len(values)) for _ in values)


def _bounds(spec: Any, kind: str, fits: Callable[[Any], bool]) -> tuple[Any, Any]:
    if not isinstance(spec, list) or len(spec) != 2:
        raise failed_to_parse(f"Window bounds must be a 2-element array, not '{kind}': {spec!r}")
    for bound in spec:
        if bound not in ("unbounded", "current") and (isinstance(bound, bool) or not fits(bound)):
            raise failed_to_parse(f"a bound of '{kind}' must be 'unbounded', 'current' or a number, not {bound!r}")
    low, high = (0 if bound == "current" else None if bound == "unbounded" else bound for bound in spec)
    if low is not None and high is not None and float(str(low)) > float(str(high)):
        raise location(5339900, f"Lower bound must not exceed upper bound: {spec!r}")
    return low, high


def _by_documents(spec: Any, sort: Mapping[str, Any]) -> Windows:
    low, high = _bounds(spec, "documents", lambda bound: is_number(bound) and is_whole(bound))
    if not sort and (low is not None or high is not None):
        raise location(5339901, "Document-based bounds require a sortBy")

    def windows(values: Sequence[Any]) -> Iterator[tuple[int, int]]:
        for place in range(len(values)):
            first = 0 if low is None else max(0, place + whole(low))
            end = len(values) if high is None else max(0, place + whole(high) + 1)
            yield min(first, len(values)), max(first, min(end, len(values)))

    return windows


def _by_range(spec: Any, unit: Any, sort: Mapping[str, Any], pace: Pace) -> Windows:
    wanted = None if unit is None else unit_of(unit, "$setWindowFields")
    low, high = _bounds(spec, "range", lambda bound: is_number(bound) and (unit is None or is_whole(bound)))
    if len(sort) != 1:
        raise location(5339902, "Range-based bounds require sortBy a single field")
    if next(iter(sort.values())) != 1:
        raise location(8947401, "Range-based bounds require an ascending sortBy")

    def windows(values: Sequence[Any]) -> Iterator[tuple[int, int]]:
        keys = [key_of(value) for value in pace.through(values)]
        kind = _NUMBERS if wanted is None else _DATES
        beginning, ending = bisect_left(keys, (kind,)), bisect_left(keys, (kind + 1,))
        for value in values:
            _check(value, wanted)
            first = 0 if low is None else bisect_left(keys, _moved(value, low, wanted), beginning, ending)
            end = len(keys) if high is None else bisect_right(keys, _moved(value, high, wanted), beginning, ending)
            yield first, max(first, end)

    return windows


def _check(value: Any, unit: str | None) -> None:
    if unit is None and not is_number(value):
        raise location(5429414, f"Invalid range: Expected the sortBy field to be a number, but it was {value!r}")
    if unit is not None and not is_date(value):
        raise location(5429513, f"Invalid range: Expected the sortBy field to be a date, but it was {value!r}")


def _moved(value: Any, by: Any, unit: str | None) -> Key:
    return key_of(add(value, by) if unit is None else later(value, unit, whole(by), UTC))
