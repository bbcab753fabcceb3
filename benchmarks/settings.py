"""What a run was asked to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.processes import Measurement, Result, run_worker


class Settings(NamedTuple):
    """What all tables need to know.

    :param only: names of the operations and of the other tables that are measured.
    :param rounds: turns of every contender.
    :param operations: ``find_one`` operations in a turn.
    :param greenlets: how many run at once; None for what each operation has in the standard run.
    :param listener: register a command listener with the drivers, whatever is measured.
    :param port: of the canned server on 127.0.0.1.
    :param timeout: seconds for one turn.
    :param tell: is called with what is measured next.
    """

    only: list[str]
    contenders: list[str]
    rounds: int
    operations: int
    greenlets: list[int] | None
    listener: bool
    port: int
    timeout: float
    tell: Callable[[str], Any]

    def run(self, wanted: Measurement) -> Result:
        """Measure operations once.

        :raises WorkerFailed: it did not work.
        """
        return run_worker(wanted, self.port, self.timeout)
