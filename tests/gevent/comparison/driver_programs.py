"""Start the programs of the folder ``comparison`` with gmongo and with PyMongo."""

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
TIME_LIMIT = 60  # seconds


class DriverProgram:
    """Context manager of a process that runs a comparison program with one driver."""

    def __init__(self, module_name: str, *arguments: str) -> None:
        self._stderr_file = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by __exit__
        command = [sys.executable, "-W", "default", "-m", f"tests.gevent.comparison.{module_name}", *arguments]
        pipe = subprocess.PIPE
        self.process = gevent.subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._stderr_file, text=True)

    def __enter__(self) -> DriverProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self._stderr_file.close()

    @property
    def stderr(self) -> str:
        """Return the text that the program has written to standard error."""
        self._stderr_file.seek(0)
        return self._stderr_file.read()

    @property
    def warning_counts(self) -> dict[str, int]:
        """Return the number of warnings on standard error, by warning class."""
        return count_warnings(self.stderr)

    def read_line(self) -> str:
        """Wait for the next line that the program prints, and return the line."""
        return self.process.stdout.readline().strip()

    def send_line(self, line_to_send: str = "proceed") -> None:
        """Send a line to the standard input of the program."""
        self.process.stdin.write(f"{line_to_send}\n")
        self.process.stdin.flush()

    def read_remaining_output(self) -> str:
        """Wait for the end of the program.

        Return the output, without the lines that :meth:`read_line` has returned.
        """
        text = self.process.stdout.read()
        self.process.wait()
        return text.strip()


def count_warnings(text: str) -> dict[str, int]:
    """Return the number of warnings in the output of a program, by warning class."""
    return dict(Counter(re.findall(r"(\w+Warning): ", text)))


def run_program(module_name: str, *arguments: str) -> str:
    """Run a program, and return its output.

    If the program fails, raise AssertionError with the text that the program has written to stderr.
    """
    with DriverProgram(module_name, *arguments) as program:
        text = program.read_remaining_output()
        if program.process.returncode:
            raise AssertionError(program.stderr)
        return text


def run_both(scenario: Callable[[str], Any]) -> dict[str, Any]:
    """Run a scenario with gmongo and concurrently with PyMongo.

    Print the outcomes, which ``pytest -rP`` shows. Return the outcomes, keyed by driver name.
    """
    with gevent.Timeout(TIME_LIMIT):
        greenlets = {driver: gevent.spawn(scenario, driver) for driver in DRIVERS}
        try:
            gevent.joinall(list(greenlets.values()), raise_error=True)
        finally:
            gevent.killall(list(greenlets.values()))
    outcomes = {driver: greenlet.value for driver, greenlet in greenlets.items()}
    for driver, outcome in outcomes.items():
        print(f"{driver}: {outcome}")
    return outcomes
