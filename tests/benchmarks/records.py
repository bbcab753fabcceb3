"""Runs that were not measured, for tests of what is made of them."""

from __future__ import annotations

from benchmarks import contest, crowd, latency, service, stall
from benchmarks.record import Record
from benchmarks.rounds import Row


def record() -> Record:
    """Two rounds: ``find_one`` reaches its target, ``insert_one`` misses it, the floor failed in a row."""
    operations = [
        Row("find_one", 10, "µs", {"gmongo": [26.0, 30.0], "pymongo": [200.0, 200.0], "floor": [20.0, 20.0]}, {}),
        Row("insert_one", 10, "µs", {"gmongo": [60.0, 60.0], "pymongo": [200.0, 200.0], "floor": []}, {"floor": "no"}),
    ]
    crowds = [
        Row(crowd.THROUGHPUT, size, "operations / s", {"gmongo": [number, number]}, {})
        for size, number in [(100, 1000.0), (1000, 800.0), (10_000, 700.0)]
    ]
    crowds += [Row(crowd.COST, size, "µs", {"gmongo": [50.0, 50.0]}, {}) for size in (100, 1000, 10_000)]
    stalls = [
        Row(stall.READ, None, "ms", {"gmongo": [4.0, 4.5], "pymongo": [60.0, 70.0]}, {}),
        Row(stall.FIRST, None, "ms", {"gmongo": [40.0, 40.0], "pymongo": [80.0, 80.0]}, {}),
    ]
    tables = {"operations": operations, "crowd": crowds, "stall": stalls}
    return Record({"python": "3.12"}, {"rounds": 2}, tables)


def of_all_contenders() -> Record:
    """Two rounds, in which gmongo costs as much as Rust, and one service."""
    numbers = {"gmongo": [20.0, 22.0], "go": [30.0, 30.0], "rust": [21.0, 21.0], "floor": [16.0, 16.0]}
    rows = [Row(contest.name(kind), contest.CALLERS, "µs", numbers, {}) for kind in contest.SHARES]
    quantities = [service.COST, service.SATURATION, service.MEMORY]
    quantities += [f"{what}, {each}" for what in (service.HALF, service.EQUAL) for each in latency.QUANTILES]
    name = next(iter(service.SERVICES))
    services = [Row(f"/one: {quantity}", None, "", {name: [7.0]}, {}) for quantity in quantities]
    return Record({"python": "3.12"}, {"rounds": 2}, {"operations": [], "contenders": rows, "service": services})
