"""Convert the results of a run into tables of text, for the terminal and for the pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks import contest, crowd, latency, operations, programs, service, stall, start
from benchmarks.record import Record
from benchmarks.rounds import Quartiles, Row, median_of, ratio, ratio_to_row, summary
from benchmarks.targets import TARGETS, Target, measured_number, target_of

TITLES = {"gmongo": "gmongo", "pymongo": "PyMongo", "floor": "floor"}
#: The titles of all contenders, for tables and plots that compare all contenders.
ALL_TITLES = {name: contender.title for name, contender in programs.CONTENDERS.items()}
#: The contenders in the numerator and the denominator of each ratio.
RATIOS = (("gmongo", "pymongo"), ("gmongo", "floor"), ("pymongo", "floor"))
REACHED_MARK, MISSED_MARK, NO_NUMBER = "✓", "✗", "-"


class Sheet(NamedTuple):
    """Table of texts.

    :param groups: groups of lines. Each line has a text for each column of `head`.
    """

    title: str
    head: list[str]
    groups: list[list[list[str]]]


def sheets(record: Record) -> Iterator[Sheet]:
    """Yield all tables of a run, and finally the table of the targets."""
    yield from sheets_of(record, _SHEET_FUNCTIONS)
    yield from targets(record)


def sheets_of(record: Record, names: Iterable[str]) -> Iterator[Sheet]:
    """Yield the tables in `names` that the run has measured."""
    for name in names:
        rows = record.tables.get(name)
        if rows:
            yield from _SHEET_FUNCTIONS[name](rows)


def targets(record: Record) -> Iterator[Sheet]:
    """Yield a table of the targets whose numbers the run has measured, if any."""
    rows = record.rows()
    units = {row.name: row.unit for row in rows}
    measured = [(target, number) for target in TARGETS if (number := measured_number(target, rows))]
    lines = [_target_line(target, number, units[target.row]) for target, number in measured]
    if lines:
        yield Sheet("Targets for gmongo", ["row", "greenlets", "quantity", "target", "measured"], [lines])


def _operations(rows: Sequence[Row]) -> Iterator[Sheet]:
    contenders = [name for name in TITLES if any(name in row.numbers for row in rows)]
    pairs = [pair for pair in RATIOS if set(pair) <= set(contenders)]
    head = ["operation", "greenlets"]
    head += [f"{TITLES[numerator]} / {TITLES[denominator]}" for numerator, denominator in pairs]
    head += [f"{TITLES[name]} µs" for name in contenders]
    names = dict.fromkeys(row.name for row in rows)
    groups = [[_operation_line(row, pairs, contenders) for row in rows if row.name == name] for name in names]
    yield Sheet("Client CPU time per operation: median of the ratios, ± half the interquartile range", head, groups)


def _operation_line(row: Row, pairs: Sequence[tuple[str, str]], contenders: Sequence[str]) -> list[str]:
    ratios = [_ratio(row, numerator, denominator) for numerator, denominator in pairs]
    return [row.name, str(row.greenlets), *ratios, *(_rounded(median_of(row, name)) for name in contenders)]


def _many_greenlets(rows: Sequence[Row]) -> Iterator[Sheet]:
    head = ["contender", "greenlets", crowd.THROUGHPUT, crowd.COST, "operations / s", "µs"]
    by_place = {(row.name, row.greenlets): row for row in rows}
    groups = [
        [_many_greenlets_line(by_place, name, size) for size in sizes]
        for name, sizes in crowd.SIZES.items()
        if any(name in row.numbers for row in rows)
    ]
    title = f"Many greenlets on 100 connections, relative to {crowd.BASE}: median, ± half of the interquartile range"
    yield Sheet(title, head, groups)


def _many_greenlets_line(rows: dict[tuple[str, int | None], Row], name: str, size: int) -> list[str]:
    ratios, numbers = [], []
    for quantity in (crowd.THROUGHPUT, crowd.COST):
        row = rows[quantity, size]
        target = target_of(row, crowd.BASE) if name == "gmongo" else None
        ratios.append(_number(ratio_to_row(row, rows[quantity, crowd.BASE], name), target))
        numbers.append(_rounded(median_of(row, name)))
    return [TITLES[name], str(size), *ratios, *numbers]


def _two_drivers(title: str, rows: Sequence[Row]) -> Iterator[Sheet]:
    lines = []
    for row in rows:
        numbers = [
            _number(summary(row.numbers.get(name, ())), target_of(row, None) if name == "gmongo" else None)
            for name in ("gmongo", "pymongo")
        ]
        ratio_text = _number(ratio(row, "gmongo", "pymongo"), target_of(row, "pymongo"))
        lines.append([row.name, row.unit, *numbers, ratio_text])
    yield Sheet(title, ["measurement", "unit", "gmongo", "PyMongo", "gmongo / PyMongo"], [lines])


def _contest(rows: Sequence[Row]) -> Iterator[Sheet]:
    head, lines = ["client"], []
    for kind in contest.SHARES:
        head += [f"{kind} µs", "gmongo / client"]
    for name in _measured_contenders(rows):
        numbers = []
        for row in rows:
            median = median_of(row, name)
            numbers.append(NO_NUMBER if median is None else f"{median:.1f}")
            numbers.append(NO_NUMBER if name == "gmongo" else _ratio(row, "gmongo", name))
        lines.append([ALL_TITLES[name], *numbers])
    yield Sheet(f"CPU time of each client per operation, with {contest.CALLER_COUNT} callers: medians", head, [lines])


def _measured_contenders(rows: Sequence[Row]) -> list[str]:
    return [name for name in ALL_TITLES if any(row.numbers.get(name) for row in rows)]


def _latency(rows: Sequence[Row]) -> Iterator[Sheet]:
    by_place = {(row.name, row.greenlets): row for row in rows}

    def cell(load: str, setup: latency.LoadSetup, name: str) -> str:
        places = [(latency.row_name(load, setup, quantile), setup.caller_count) for quantile in latency.QUANTILES]
        medians = [median_of(by_place[place], name) for place in places if place in by_place]
        return " · ".join(_significant_digits(number) for number in medians if number is not None) or NO_NUMBER

    for setup in latency.SETUPS:
        saturation = by_place.get((latency.row_name(latency.SATURATION, setup), setup.caller_count))
        if saturation:
            loads = [
                load for load in latency.LOADS if (latency.row_name(load, setup, "p50"), setup.caller_count) in by_place
            ]
            lines = [
                [ALL_TITLES[name], _rounded(median_of(saturation, name)), *(cell(load, setup, name) for load in loads)]
                for name in _measured_contenders([saturation])
            ]
            size = f"{setup.caller_count} callers, processes: {setup.process_count}"
            title = f"Latency of find_one in ms: p50 · p99 · p99.9. {size}"
            yield Sheet(title, ["client", "saturation / s", *loads], [lines])


def _service(rows: Sequence[Row]) -> Iterator[Sheet]:
    by_name = {row.name: row for row in rows}

    def cell(name: str, route: str, quantity: str) -> str:
        median = median_of(by_name[f"{route}: {quantity}"], name)
        return NO_NUMBER if median is None else _significant_digits(median)

    head = ["service", "requests / s", "CPU ms"]
    head += [f"{service.HALF_LATENCY}, ms", f"{service.EQUAL_LATENCY}, ms", "memory MB"]
    for route in service.ROUTE_SHARES:
        cost = by_name.get(f"{route}: {service.COST}")
        lines = []
        for name in [name for name in service.SERVICES if cost and median_of(cost, name)]:
            times = [
                " · ".join(cell(name, route, f"{what}, {quantile}") for quantile in latency.QUANTILES)
                for what in (service.HALF_LATENCY, service.EQUAL_LATENCY)
            ]
            numbers = [cell(name, route, what) for what in (service.SATURATION, service.COST)]
            lines.append([name, *numbers, *times, cell(name, route, service.MEMORY)])
        if lines:
            yield Sheet(f"The service, {route}: latency as p50 · p99 · p99.9", head, [lines])


_SHEET_FUNCTIONS = {
    operations.TABLE: _operations,
    crowd.TABLE: _many_greenlets,
    stall.TABLE: partial(_two_drivers, "Stalls of the event loop: medians"),
    start.TABLE: partial(
        _two_drivers, "Starting, in fresh interpreters: medians of CPU time and of growth of resident memory"
    ),
    contest.TABLE: _contest,
    latency.TABLE: _latency,
    service.TABLE: _service,
}


def _ratio(row: Row, numerator: str, denominator: str) -> str:
    """Return the text of a ratio.

    If the numerator is gmongo, the text includes the spread after ±. If the ratio also has a target,
    the text includes a mark for a reached or missed target.
    """
    result = ratio(row, numerator, denominator)
    if numerator == "gmongo":
        return _number(result, target_of(row, denominator))
    return NO_NUMBER if result is None else _three_digits(result.median)


def _target_line(target: Target, number: Quartiles, unit: str) -> list[str]:
    limit = f"{'≥' if target.at_least else '≤'} {target.limit:.2f}"
    name = _target_name(target.denominator, unit)
    return [target.row, str(target.greenlets or ""), name, limit, _number(number, target)]


def _target_name(denominator: str | int | None, unit: str) -> str:
    if denominator is None:
        return f"gmongo, {unit}"
    if isinstance(denominator, int):
        return f"gmongo / gmongo at {denominator}"
    return f"gmongo / {TITLES.get(denominator) or ALL_TITLES.get(denominator, denominator)}"


def _number(number: Quartiles | None, target: Target | None) -> str:
    if number is None:
        return NO_NUMBER
    spread = abs((number.high - number.low) / 2 / number.median) if number.median else 0.0
    mark = "" if target is None else f" {REACHED_MARK}" if target.is_reached(number.median) else f" {MISSED_MARK}"
    return f"{_three_digits(number.median)} ±{spread:.0%}{mark}"


def _three_digits(number: float) -> str:
    return f"{number:.2f}" if abs(number) < 100 else f"{number:.0f}"


def _significant_digits(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def _rounded(number: float | None) -> str:
    return NO_NUMBER if number is None else f"{number:.0f}"


def failures(rows: Iterable[Row]) -> list[str]:
    """Return a line for each error of a contender, with the names of the affected rows."""
    places: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for name, reason in row.failures.items():
            place = row.name if row.greenlets is None else f"{row.name} x{row.greenlets}"
            places.setdefault((name, reason), []).append(place)
    return [
        f"{TITLES.get(name) or ALL_TITLES.get(name, name)}: {why} ({', '.join(where)})"
        for (name, why), where in places.items()
    ]
