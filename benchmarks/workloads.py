"""Workloads: the operations of the benchmark, and the greenlets that run the operations."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gevent
from gevent.event import Event

from benchmarks.documents import (
    BATCH_SIZE,
    CHANGE,
    DATABASE,
    HUNDRED,
    MANY_COUNT,
    MEGABYTE,
    ONE,
    QUERY,
    SAVED,
    UNSAVED,
    ZIPF,
    documents_without_id,
)

Operation = Callable[[], Any]


class Times(NamedTuple):
    """Times of all measured operations of a turn, in seconds.

    :param processor: the CPU time of the process.
    :param clock: the wall clock time from the common start to the end of the last greenlet.
    """

    processor: float
    clock: float


class Workload(NamedTuple):
    """Operation of a table row, and its number of runs.

    :param operation: the name of the operation.
    :param share: the number of runs in a turn, divided by the number of runs of ``find_one``.
        Expensive operations have a low share.
    :param result: the result of a successful operation.
    :param greenlets: the numbers of greenlets in a standard run.
    :param max_greenlets: the maximum number of concurrent greenlets, to limit the memory; None means
        no limit.
    :param variant: the name of a variant in ``VARIANTS``. The baseline ``floor`` has no variants.
    """

    operation: str
    share: float
    result: Any
    greenlets: tuple[int, ...] = (1, 10, 100, 1000)
    max_greenlets: int | None = None
    variant: str | None = None


def _variant_workloads(variant: str, *names: str, greenlets: int = 10) -> Iterator[tuple[str, Workload]]:
    for name in names:
        result = SAVED if name == "find_one" else 1
        yield f"{name}+{variant}", Workload(name, 1, result, greenlets=(greenlets,), variant=variant)


WORKLOADS = {
    "find_one": Workload("find_one", 1, SAVED),
    "insert_one": Workload("insert_one", 1, 1),
    "update_one": Workload("update_one", 1, 1),
    "delete_one": Workload("delete_one", 1, 1),
    "find_100": Workload("find_100", 0.25, BATCH_SIZE),
    "find_zipf": Workload("find_zipf", 0.2, BATCH_SIZE, greenlets=(10, 100)),
    "insert_many": Workload("insert_many", 0.0006, MANY_COUNT, greenlets=(1, 10), max_greenlets=10),
    **dict(_variant_workloads("listener", "find_one")),
    **dict(_variant_workloads("debug", "find_one")),
    **dict(_variant_workloads("stable_api", "find_one", "insert_one", "update_one")),
    **dict(_variant_workloads("timeout", "find_one", "insert_one", "update_one")),
    **dict(_variant_workloads("tls", "find_one", "insert_one", "update_one")),
    **dict(_variant_workloads("replica_set", "find_one", "insert_one", "update_one")),
    **dict(_variant_workloads("secondary", "find_one")),
    **dict(_variant_workloads("10_connections", "find_one", "insert_one", "update_one", greenlets=100)),
}


def driver_operations(client: Any) -> dict[str, Operation]:
    """Return all operations except ``insert_many``, by name, for a client with the API of PyMongo."""
    database = client[DATABASE]
    one, hundred, zipf, megabyte = (database[name] for name in (ONE, HUNDRED, ZIPF, MEGABYTE))

    def insert_one() -> int:
        return int(one.insert_one(dict(UNSAVED)).acknowledged)

    def update_one() -> int:
        return int(one.update_one(QUERY, CHANGE).matched_count)

    def delete_one() -> int:
        return int(one.delete_one(QUERY).deleted_count)

    def iterate(collection: Any) -> int:
        count = 0
        for _document in collection.find():
            count += 1
        return count

    return {
        "find_one": lambda: one.find_one(QUERY),
        "insert_one": insert_one,
        "update_one": update_one,
        "delete_one": delete_one,
        "find_100": lambda: iterate(hundred),
        "find_zipf": lambda: iterate(zipf),
        "find_megabyte": lambda: iterate(megabyte),
    }


def bulk_operations(client: Any) -> dict[str, Operation]:
    """Return the operation ``insert_many`` by name, for a client with the API of PyMongo."""
    one = client[DATABASE][ONE]
    return {"insert_many": lambda: len(one.insert_many(documents_without_id()).inserted_ids)}


def check(name: str, operation: Operation) -> None:
    """Run an operation once, and check its result.

    :raises AssertionError: the operation returned an unexpected result.
    """
    expected, result = WORKLOADS[name].result, operation()
    if result != expected:
        raise AssertionError(f"{name} returned {result!r}, not {expected!r}")


class StartBarrier:
    """Barrier at which each greenlet waits after its warm-up, until the measurement starts."""

    def __init__(self, greenlet_count: int) -> None:
        self._running_count = greenlet_count
        self._all_wait = Event()
        self._start = Event()

    def wait(self) -> None:
        """Wait until the measurement starts. Each greenlet calls `wait` after its warm-up."""
        self._running_count -= 1
        if not self._running_count:
            self._all_wait.set()
        self._start.wait()

    def fail(self, _greenlet: gevent.Greenlet) -> None:
        """End the wait of :meth:`await_warm_up`, because a greenlet failed."""
        self._all_wait.set()

    def await_warm_up(self) -> None:
        self._all_wait.wait()

    def start(self) -> None:
        self._start.set()


def measure_times(operation: Operation, greenlet_count: int, count: int, warm_up_count: int) -> Times:
    """Run an operation in greenlets, and return the times of this process.

    Each greenlet first warms up. After the warm-up of all greenlets, the greenlets start the
    measured operations together.

    :param greenlet_count: the number of concurrent greenlets.
    :param count: the number of measured operations of each greenlet.
    :param warm_up_count: the number of operations of each greenlet before the measurement.
    :raises Exception: an operation failed.
    """
    barrier = StartBarrier(greenlet_count)
    greenlets = [gevent.spawn(_run, operation, count, warm_up_count, barrier) for _ in range(greenlet_count)]
    for greenlet in greenlets:
        greenlet.link_exception(barrier.fail)
    barrier.await_warm_up()
    gc.collect()
    processor, clock = time.process_time(), time.perf_counter()
    barrier.start()
    gevent.joinall(greenlets, raise_error=True)
    return Times(time.process_time() - processor, time.perf_counter() - clock)


def _run(operation: Operation, count: int, warm_up_count: int, barrier: StartBarrier) -> None:
    for _ in range(warm_up_count):
        operation()
    barrier.wait()
    for _ in range(count):
        operation()
