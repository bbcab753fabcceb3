"""The table of latencies of ``find_one`` in an open loop: due times do not depend on replies.

A latency is the time from the due time of a request to the arrival of its reply. The latencies
include a round trip through a Unix socket between this process and the contender.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import quantiles
from typing import NamedTuple

from benchmarks import load
from benchmarks.processes import WorkerFailed
from benchmarks.processors import pinned_to_server_processor
from benchmarks.programs import canned_uri, exchange, start_contender
from benchmarks.rounds import Row
from benchmarks.settings import Settings

TABLE = "latency"
#: Requests per second that every contender can answer.
EQUAL_RATE = 1000
SATURATION, BESIDE_LARGE_READS = "saturation", f"{EQUAL_RATE} / s beside 1 MB reads"
RATE_SHARES = {"20 %": 0.2, "50 %": 0.5, "80 %": 0.8}
LOADS = [*RATE_SHARES, f"{EQUAL_RATE} / s", BESIDE_LARGE_READS]
QUANTILES = {"p50": 500, "p99": 990, "p99.9": 999}
#: The duration of a load in seconds, divided by the ``operations`` of the settings.
SECONDS_PER_OPERATION = 0.002


class LoadSetup(NamedTuple):
    """Numbers of callers and of contender processes. All contender processes share one processor."""

    caller_count: int
    process_count: int


SETUPS = [LoadSetup(caller_count, process_count) for process_count in (1, 4) for caller_count in (100, 1000)]


def measure_rows(settings: Settings) -> Iterator[Row]:
    """For each setup, yield a saturation row, and for each measured load a row for each quantile."""
    if TABLE not in settings.only:
        return
    for setup in SETUPS:
        results: dict[str, dict[str, dict[str, float]]] = {}
        failures: dict[str, str] = {}
        for contender in settings.contenders:
            size = f"{setup.caller_count} callers in {setup.process_count} processes"
            settings.show_progress(f"latency of {contender}, {size}")
            try:
                with pinned_to_server_processor():
                    results[contender] = _measure_contender(contender, setup, settings)
            except WorkerFailed as failure:
                failures[contender] = str(failure)
        yield from _rows(setup, results, failures)


def row_name(load_name: str, setup: LoadSetup, quantile: str = "") -> str:
    """Return the name of the table row for a load, a setup and a quantile."""
    return ", ".join(filter(None, (load_name, f"{setup.process_count} processes", quantile)))


def _rows(setup: LoadSetup, results: dict[str, dict[str, dict[str, float]]], failures: dict[str, str]) -> Iterator[Row]:
    loads = next(iter(results.values()), {})
    for load_name, quantities in loads.items():
        for quantity in quantities:
            numbers = {contender: [each[load_name][quantity]] for contender, each in results.items()}
            unit = "/ s" if load_name == SATURATION else "ms"
            yield Row(row_name(load_name, setup, quantity), setup.caller_count, unit, numbers, failures)


def _measure_contender(contender: str, setup: LoadSetup, settings: Settings) -> dict[str, dict[str, float]]:
    """Measure one contender. Return the numbers by load and quantity."""
    one, megabyte = exchange("find_one"), exchange("find_megabyte")
    uri = canned_uri(settings.servers.port("standalone"))
    with start_contender(contender, uri, setup.caller_count + setup.process_count, setup.process_count) as program:
        streams, background_stream = program.streams[: setup.caller_count], program.streams[-1]

        def quantiles_at(rate: float, with_large_reads: bool = False) -> dict[str, float]:
            count = max(2, round(rate * settings.operations * SECONDS_PER_OPERATION))
            background = (background_stream, megabyte) if with_large_reads else None
            return quantiles_of(load.send(streams, one, count, rate, background).latencies)

        count = max(4 * settings.operations, setup.caller_count)
        load.send(streams, one, count)  # the first requests of the contender open the connections
        saturation = count / load.send(streams, one, count).clock
        results = {SATURATION: {"": saturation}}
        results |= {name: quantiles_at(share * saturation) for name, share in RATE_SHARES.items()}
        results[f"{EQUAL_RATE} / s"] = quantiles_at(EQUAL_RATE)
        if setup == SETUPS[0]:
            results[BESIDE_LARGE_READS] = quantiles_at(EQUAL_RATE, with_large_reads=True)
        return results


def quantiles_of(latencies: list[float]) -> dict[str, float]:
    """Return the quantiles by name. Convert the latencies from seconds to milliseconds."""
    thousandths = quantiles(latencies, n=1000, method="inclusive")
    return {name: thousandths[thousandth - 1] * 1e3 for name, thousandth in QUANTILES.items()}
