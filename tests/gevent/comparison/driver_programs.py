"""Start the programs of this folder with both drivers."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import gevent
import gevent.subprocess

DRIVERS = ("gmongo", "pymongo")
LIMIT = 60  # seconds, for a busy machine


class DriverProgram:
    """A program with a driver, as a context manager.

    :param scenario: the name of the module.
    :param arguments: the command line, with the driver first.
    """

    def __init__(self, scenario: str, *arguments: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by __exit__
        command = [sys.executable, "-W", "default", "-m", f"tests.gevent.comparison.{scenario}", *arguments]
        pipe = subprocess.PIPE
        self.process = gevent.subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, text=True)

    def __enter__(self) -> DriverProgram:
        return self

    def __exit__(self, *outcome: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self._errors.close()

    @property
    def stderr(self) -> str:
        """Return the standard error output."""
        self._errors.seek(0)
        return self._errors.read()

    @property
    def warnings(self) -> dict[str, int]:
        """Return the number of warnings of each kind."""
        return warnings(self.stderr)

    def line(self) -> str:
        """Return the next printed line."""
        return self.process.stdout.readline().strip()

    def send_line(self, line_to_send: str = "proceed") -> None:
        """Send a line, which the program waits for."""
        self.process.stdin.write(f"{line_to_send}\n")
        self.process.stdin.flush()

    def remaining_output(self) -> str:
        """Return the remaining output at the end of the program."""
        text = self.process.stdout.read()
        self.process.wait()
        return text.strip()


def warnings(text: str) -> dict[str, int]:
    """Count the warnings of each kind in the output of a program."""
    return dict(Counter(re.findall(r"(\w+Warning): ", text)))


def run_program(scenario: str, *arguments: str) -> str:
    """Run a program, and return its output. Raise with its standard error if the program fails."""
    with DriverProgram(scenario, *arguments) as program:
        text = program.remaining_output()
        if program.process.returncode:
            raise AssertionError(program.stderr)
        return text


def run_both(scenario: Callable[[str], Any]) -> dict[str, Any]:
    """Run a scenario with both drivers concurrently, and print the outcomes for ``pytest -rP``."""
    with gevent.Timeout(LIMIT):
        programs = {driver: gevent.spawn(scenario, driver) for driver in DRIVERS}
        try:
            gevent.joinall(list(programs.values()), raise_error=True)
        finally:
            gevent.killall(list(programs.values()))
    outcomes = {driver: program.value for driver, program in programs.items()}
    for driver, outcome in outcomes.items():
        print(f"{driver}: {outcome}")
    return outcomes
