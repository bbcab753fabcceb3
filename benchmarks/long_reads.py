"""``python -m benchmarks.long_reads``: the time to read 100,000 documents over a slow network.

The application works for 5 ms on each batch of 1000 documents. The work is either a wait, or a
computation that blocks the event loop. The benchmark measures the wall clock time from ``find()``
until the application has processed all batches, and the median time of a batch. Load by other
programs affects the median less than the total time. Each ratio divides a time of a reader by the
corresponding time of a gmongo cursor without read-ahead and without streaming.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.page import markdown
from benchmarks.processes import ROOT, _end_server, run_python
from benchmarks.processors import pin_client
from benchmarks.sheets import Sheet
from benchmarks.worker import open_client, patch_if_pymongo

WORK_SECONDS = 0.005  # seconds that the application works on a batch
WORK_KINDS = ("waits", "computes")
#: For each reader: the driver, and ``plain``, ``exhaust`` or the number of batches to read ahead.
READERS = {
    "gmongo": ("gmongo", "plain"),
    "gmongo, reading ahead": ("gmongo", "1"),
    "gmongo, reading two ahead": ("gmongo", "2"),
    "gmongo, exhaust": ("gmongo", "exhaust"),
    "PyMongo": ("pymongo", "plain"),
    "PyMongo, exhaust": ("pymongo", "exhaust"),
}
BASE_READER = "gmongo"
#: The reader with a target, and the target: the maximum ratio of batch times at 5 ms of latency, with
#: an application that waits.
JUDGED_READER, TARGET_RATIO = "gmongo, reading two ahead", 0.6


class Reading(NamedTuple):
    """Times of one run of a reader.

    :param seconds: the total time in seconds.
    :param batch_milliseconds: the median time of a batch, including the work of the application.
    """

    seconds: float
    batch_milliseconds: float


class ReaderTimes(NamedTuple):
    """Times of one reader and of the base reader, with one latency and one kind of work."""

    latency: float
    work: str
    reader: str
    readings: list[Reading]
    base_readings: list[Reading]

    def ratios(self, quantity: str) -> list[float]:
        """For each round, divide `quantity` of this reader by `quantity` of the base reader."""
        pairs = zip(self.readings, self.base_readings, strict=True)
        return [getattr(own, quantity) / getattr(base, quantity) for own, base in pairs]


@contextmanager
def far_server(latency: float) -> Iterator[int]:
    """Run a server behind a slow network, and yield the port of the server."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        port: int = listener.getsockname()[1]
        arguments = ["--fd", str(listener.fileno()), "--latency", str(latency)]
        command = [sys.executable, "-m", "benchmarks.far_server", *arguments]
        server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    try:
        yield port
    finally:
        _end_server(server)


def read(reader: str, port: int, work: str) -> Reading:
    """Read all documents once in this process, and return the times."""
    from benchmarks.far_server import BATCH_COUNT, BATCH_SIZE, COLLECTION, DATABASE

    driver, kind = READERS[reader]
    client = open_client(driver, port)
    collection = client[DATABASE][COLLECTION]
    client.admin.command("ping")
    cursor = collection.find(batch_size=BATCH_SIZE, cursor_type=64 if kind == "exhaust" else 0)
    if kind.isdigit():
        cursor = cursor.read_ahead(int(kind))
    work_on_batch = _work_functions()[work]
    count = 0
    moments = [time.perf_counter()]
    for _document in cursor:
        count += 1
        if not count % BATCH_SIZE:
            work_on_batch()
            moments.append(time.perf_counter())
    client.close()
    assert count == BATCH_COUNT * BATCH_SIZE, count
    batch_seconds = [after - before for before, after in pairwise(moments)]
    return Reading(moments[-1] - moments[0], statistics.median(batch_seconds) * 1000)


def _work_functions() -> dict[str, Callable[[], None]]:
    from gevent import sleep

    def compute() -> None:
        end = time.perf_counter() + WORK_SECONDS
        while time.perf_counter() < end:
            pass

    return {"waits": lambda: sleep(WORK_SECONDS), "computes": compute}


def measure(latencies: list[float], rounds: int, show_progress: Callable[[str], Any]) -> Iterator[ReaderTimes]:
    """Measure all readers in interleaved rounds."""
    for latency in latencies:
        with far_server(latency) as port:
            for work in WORK_KINDS:
                show_progress(f"{latency:g} ms, the application {work}")
                readings_of: dict[str, list[Reading]] = {reader: [] for reader in READERS}
                for _ in range(rounds):
                    for reader in READERS:
                        arguments = ["-m", "benchmarks.long_reads", "--reader", reader, "--port", str(port)]
                        readings_of[reader].append(Reading(*run_python([*arguments, "--work", work], 120)))
                for reader, readings in readings_of.items():
                    yield ReaderTimes(latency, work, reader, readings, readings_of[BASE_READER])


def print_table(all_times: list[ReaderTimes]) -> bool:
    """Print a table. Return False if the judged reader misses the target, and otherwise True."""
    rows = []
    for times in all_times:
        cells = [f"{times.latency:g} ms", times.work, times.reader]
        for quantity in Reading._fields:
            middle = statistics.median(getattr(each, quantity) for each in times.readings)
            cells += [f"{middle:.2f}", f"{statistics.median(times.ratios(quantity)):.2f}"]
        rows.append(cells)
    head = ["latency", "the application", "reader", "seconds", "ratio", "ms a batch", "ratio"]
    print(*markdown(Sheet("", head, [rows])), sep="\n")
    judged = [times for times in all_times if (times.latency, times.work, times.reader) == (5, "waits", JUDGED_READER)]
    return all(statistics.median(times.ratios("batch_milliseconds")) <= TARGET_RATIO for times in judged)


def main() -> int:
    """Measure all readers, or run only the reader of the option ``--reader``.

    :returns: the exit status, which is 1 if the target is missed, and otherwise 0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_reads", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="turns of every reader (default 5)")
    parser.add_argument("--latencies", default="1,5,20", help="milliseconds, separated by commas (default 1,5,20)")
    parser.add_argument("--json", help="write every number to a file")
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--work", choices=WORK_KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        patch_if_pymongo(READERS[options.reader][0])
        pin_client()
        json.dump(read(options.reader, options.port, options.work), sys.stdout)
        return 0
    latencies = [float(each) for each in options.latencies.split(",")]
    all_times = list(measure(latencies, options.rounds, lambda text: print(text, file=sys.stderr)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump([times._asdict() for times in all_times], file, indent=2)
    return 0 if print_table(all_times) else 1


if __name__ == "__main__":
    sys.exit(main())
