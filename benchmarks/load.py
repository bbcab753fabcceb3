"""Load on streams of which each takes a request, works, and answers: programs, and whole applications."""

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
    """What is sent, and what has to come: how the answer begins, and how long it is."""

    request: bytes
    beginning: bytes
    size: int


class Load(NamedTuple):
    """What became of some requests.

    :param latencies: in seconds, from when each was due, whether or not there was a stream for it. With an infinite
        rate: from when each was sent.
    :param clock: seconds from the first to the last answer.
    """

    latencies: list[float]
    clock: float


def arrivals(rate: float, count: int) -> Iterator[float]:
    """When requests are due, in seconds: at random, as those of many clients are, but the same for all contenders."""
    chance = Random(_SEED)
    return accumulate(repeat(0.0, count) if rate == inf else (chance.expovariate(rate) for _ in range(count)))


def put(
    streams: Sequence[socket],
    exchange: Exchange,
    count: int,
    rate: float = inf,
    beside: tuple[socket, Exchange] | None = None,
    timeout: float = 60,
) -> Load:
    """Send requests when they are due. Each takes the stream that has been idle longest, or waits for one.

    :param rate: requests in a second; infinite: each stream has its next one at once.
    :param beside: another stream that is kept busy meanwhile, and not measured.
    :raises WorkerFailed: a stream ends, an answer is another one, or they are not done in time.
    """
    by_number = {stream.fileno(): stream for stream in streams}
    idle, waiting, due = deque(by_number), deque[float](), deque(arrivals(rate, count))
    begun: dict[int, float] = {}
    latencies: list[float] = []
    with select.epoll() as poll:
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        if beside is not None:
            poll.register(beside[0], select.EPOLLIN)
            beside[0].sendall(beside[1].request)
        start = time.perf_counter()
        while len(latencies) < count:
            now = time.perf_counter() - start
            while due and due[0] <= now:
                waiting.append(due.popleft())
            while waiting and idle:
                number = idle.popleft()
                moment = waiting.popleft()
                begun[number] = time.perf_counter() - start if rate == inf else moment
                _write(number, exchange)
            # Not by the time limit of epoll, which has only milliseconds.
            select.select([poll], [], [], max(0.0, start + due[0] - time.perf_counter()) if due else 1)
            for number, _events in poll.poll(0):
                if beside is not None and number == beside[0].fileno():
                    _read(number, beside[1])
                    _write(number, beside[1])
                    continue
                _read(number, exchange)
                latencies.append(time.perf_counter() - start - begun.pop(number))
                idle.append(number)
            if now > timeout:
                raise WorkerFailed(f"only {len(latencies)} of {count} requests were answered in {timeout:g} seconds")
        clock = time.perf_counter() - start
        if beside is not None:
            _read(beside[0].fileno(), beside[1])
    return Load(latencies, clock)


def _write(number: int, exchange: Exchange) -> None:
    try:
        os.write(number, exchange.request)
    except OSError as error:
        raise WorkerFailed(f"ended: {error}")


def _read(number: int, exchange: Exchange) -> None:
    data = os.read(number, exchange.size)
    while 0 < len(data) < exchange.size:
        data += os.read(number, exchange.size - len(data))
    if not data.startswith(exchange.beginning):
        raise WorkerFailed(f"answered {data[:80]!r}, not {exchange.beginning!r}")
