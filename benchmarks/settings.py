"""Settings of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.processes import CannedServers, Workers

MAX_FRESH_ROUNDS = 11


class Settings(NamedTuple):
    """Settings of all tables.

    :param only: the names of the measured operations and tables.
    :param rounds: the number of turns of every contender. If each turn needs a new process, the
        maximum is :data:`MAX_FRESH_ROUNDS`.
    :param operations: the number of ``find_one`` operations in a turn.
    :param greenlets: the numbers of greenlets; None uses the numbers of each operation in the
        standard run.
    :param servers: the canned servers.
    :param timeout: the time limit of a turn in seconds.
    :param show_progress: the function that the benchmark calls with the name of the next
        measurement.
    """

    only: list[str]
    contenders: list[str]
    rounds: int
    operations: int
    greenlets: list[int] | None
    servers: CannedServers
    timeout: float
    show_progress: Callable[[str], Any]

    @property
    def fresh_rounds(self) -> int:
        """The number of turns of every contender if each turn needs a new process."""
        return min(self.rounds, MAX_FRESH_ROUNDS)

    def workers(self) -> Workers:
        """Return the worker processes, as a context manager."""
        return Workers(self.servers, self.timeout)
