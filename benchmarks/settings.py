"""What a run was asked to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.processes import CannedServers, Workers

FRESH = 11


class Settings(NamedTuple):
    """What all tables need to know.

    :param only: names of the operations and of the other tables that are measured.
    :param rounds: turns of every contender. Where each takes a new process, there are no more than :data:`FRESH`.
    :param operations: ``find_one`` operations in a turn.
    :param greenlets: how many run at once; None for what each operation has in the standard run.
    :param listener: register a command listener with the drivers, whatever is measured.
    :param servers: the canned servers.
    :param timeout: seconds for one turn.
    :param tell: is called with what is measured next.
    """

    only: list[str]
    contenders: list[str]
    rounds: int
    operations: int
    greenlets: list[int] | None
    listener: bool
    servers: CannedServers
    timeout: float
    tell: Callable[[str], Any]

    @property
    def fresh_rounds(self) -> int:
        """Turns of every contender where each takes a new process."""
        return min(self.rounds, FRESH)

    def workers(self) -> Workers:
        """Processes that take turns, as a context manager."""
        return Workers(self.servers, self.timeout)
