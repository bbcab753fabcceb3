"""Starts the programs of this folder, with either driver, and looks at them from outside."""

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
LIMIT = 60  # a few seconds are enough, but not if others keep the machine busy


class Player:
    """One program with one driver; use it in a ``with``.

    :param scene: the name of its module.
    :param arguments: its command line; the first is the driver.
    """

    def __init__(self, scene: str, *arguments: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by __exit__
        command = [sys.executable, "-W", "default", "-m", f"tests.gevent.beside.{scene}", *arguments]
        pipe = subprocess.PIPE
        self.process = gevent.subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, text=True)

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *outcome: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self._errors.close()

    @property
    def complaints(self) -> str:
        """What it has written to its standard error."""
        self._errors.seek(0)
        return self._errors.read()

    @property
    def warnings(self) -> dict[str, int]:
        """What it was warned of: how often, by kinds."""
        return warnings(self.complaints)

    def line(self) -> str:
        """The next line that it prints."""
        return self.process.stdout.readline().strip()

    def go_on(self, order: str = "go on") -> None:
        """Tell it to."""
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def rest(self) -> str:
        """Whatever else it prints until it ends."""
        text = self.process.stdout.read()
        self.process.wait()
        return text.strip()


def warnings(text: str) -> dict[str, int]:
    """The kinds of warnings in what a program has written, and how many there are of each."""
    return dict(Counter(re.findall(r"(\w+Warning): ", text)))


def play(scene: str, *arguments: str) -> str:
    """What a program prints that needs no more than its command line; its complaints, if it fails."""
    with Player(scene, *arguments) as player:
        text = player.rest()
        if player.process.returncode:
            raise AssertionError(player.complaints)
        return text


def beside(scene: Callable[[str], Any]) -> dict[str, Any]:
    """What comes of it with each driver, at the same time; printed, and so to be seen by ``pytest -rP``."""
    with gevent.Timeout(LIMIT):
        players = {driver: gevent.spawn(scene, driver) for driver in DRIVERS}
        try:
            gevent.joinall(list(players.values()), raise_error=True)
        finally:
            gevent.killall(list(players.values()))
    found = {driver: player.value for driver, player in players.items()}
    for driver, outcome in found.items():
        print(f"{driver}: {outcome}")
    return found
