"""Load generator: send requests to contenders and web services over streams.

A stream has at most one unanswered request.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat
from math import inf
from random import Random
from socket import socket
from typing import NamedTuple

from benchmarks.processes import WorkerFailed

_SEED = 39


class Exchange(NamedTuple):
    """Request, the first bytes of the expected answer, and the size of the answer in bytes."""

    request: bytes
    beginning: bytes
    size: int


class LoadResult(NamedTuple):
    """Result of a series of requests.

    :param latencies: the seconds from the due time of each request to its answer, including the wait
        for a stream. With an infinite rate, a latency starts when the request is sent.
    :param clock: the seconds from the start to the last answer.
    """

    latencies: list[float]
    clock: float


def arrivals(rate: float, count: int) -> Iterator[float]:
    """Yield the due times of requests in seconds.

    With a finite rate, the times are random, as with many clients. Equal arguments yield equal times.
    """
    random = Random(_SEED)
    return accumulate(repeat(0.0, count) if rate == inf else (random.expovariate(rate) for _ in range(count)))


def send(
    streams: Sequence[socket],
    exchange: Exchange,
    count: int,
    rate: float = inf,
    background: tuple[socket, Exchange] | None = None,
    timeout: float = 60,
) -> LoadResult:
    """Send each request at its due time, on the stream that has been idle longest.

    If all streams are busy, the request waits.

    :param rate: the requests per second; with infinity, each stream gets a request immediately after
        each answer.
    :param background: an additional stream and its exchange. The function repeats this exchange
        during all other exchanges, without a measurement.
    :raises WorkerFailed: a stream ended, an answer was wrong, or the timeout expired.
    """
    by_descriptor = {stream.fileno(): stream for stream in streams}
    idle, waiting, due = deque(by_descriptor), deque[float](), deque(arrivals(rate, count))
    begin_times: dict[int, float] = {}
    latencies: list[float] = []
    with select.epoll() as poll:
        for descriptor in by_descriptor:
            poll.register(descriptor, select.EPOLLIN)
        if background is not None:
            poll.register(background[0], select.EPOLLIN)
            background[0].sendall(background[1].request)
        start = time.perf_counter()
        while len(latencies) < count:
            now = time.perf_counter() - start
            while due and due[0] <= now:
                waiting.append(due.popleft())
            while waiting and idle:
                descriptor = idle.popleft()
                due_time = waiting.popleft()
                begin_times[descriptor] = time.perf_counter() - start if rate == inf else due_time
                _write(descriptor, exchange)
            # `select` accepts more precise timeouts than `epoll`, whose resolution is a millisecond.
            select.select([poll], [], [], max(0.0, start + due[0] - time.perf_counter()) if due else 1)
            for descriptor, _events in poll.poll(0):
                if background is not None and descriptor == background[0].fileno():
                    _read(descriptor, background[1])
                    _write(descriptor, background[1])
                    continue
                _read(descriptor, exchange)
                latencies.append(time.perf_counter() - start - begin_times.pop(descriptor))
                idle.append(descriptor)
            if now > timeout:
                raise WorkerFailed(f"only {len(latencies)} of {count} requests were answered in {timeout:g} seconds")
        clock = time.perf_counter() - start
        if background is not None:
            _read(background[0].fileno(), background[1])
    return LoadResult(latencies, clock)


def _write(descriptor: int, exchange: Exchange) -> None:
    try:
        os.write(descriptor, exchange.request)
    except OSError as error:
        raise WorkerFailed(f"the contender ended: {error}")


def _read(descriptor: int, exchange: Exchange) -> None:
    data = os.read(descriptor, exchange.size)
    while 0 < len(data) < exchange.size:
        data += os.read(descriptor, exchange.size - len(data))
    if not data.startswith(exchange.beginning):
        raise WorkerFailed(f"the contender answered {data[:80]!r}, not {exchange.beginning!r}")
