"""The table of CPU time per operation, for contenders in several languages and with several kinds of concurrency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import load
from benchmarks.processors import pinned_to_server_processor
from benchmarks.programs import Program, canned_uri, exchange, start_contender
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "contenders"
CALLER_COUNT = 10
#: For each operation, its number of runs in a turn, divided by the number of runs of ``find_one``.
SHARES = {"find_one": 1.0, "insert_one": 1.0, "update_one": 1.0, "find_100": 0.25}


def row_name(operation: str) -> str:
    """Return the name of the table row of an operation."""
    return f"{operation} of all contenders"


def measure_rows(settings: Settings) -> Iterator[Row]:
    """Measure each operation with all contenders in interleaved rounds."""
    if TABLE not in settings.only:
        return
    with ExitStack() as stack, pinned_to_server_processor():
        programs: dict[str, Program] = {}

        def measure(contender: str) -> float:
            if contender not in programs:
                uri = canned_uri(settings.servers.port("standalone"))
                programs[contender] = stack.enter_context(start_contender(contender, uri, CALLER_COUNT))
                _measure_cost(programs[contender], operation, count)  # the first requests open the connections
            return _measure_cost(programs[contender], operation, count)

        for operation, share in SHARES.items():
            settings.show_progress(f"{operation} of all contenders")
            count = max(1, round(settings.operations * share / CALLER_COUNT))
            costs, failures = take_turns(settings.contenders, settings.rounds, measure)
            yield Row(row_name(operation), CALLER_COUNT, "µs", costs, failures)


def _measure_cost(program: Program, operation: str, count: int) -> float:
    """Let each caller run an operation `count` times. Return the CPU time per run in microseconds."""
    before = program.processor_seconds
    load.send(program.streams, exchange(operation, count), CALLER_COUNT)
    return (program.processor_seconds - before) / (count * CALLER_COUNT) * 1e6
