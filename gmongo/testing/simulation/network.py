"""What may go wrong between a client and a member."""

from __future__ import annotations

import random

from gevent.event import Event

from gmongo import _random


class Network:
    """The network of the whole deployment.

    :ivar random: where chance comes from; give a seeded one for a test that can be repeated.
    """

    def __init__(self) -> None:
        self._latency = 0.0
        self._loss = 0.0
        self.random = random.Random(_random.urandom(8))

    @property
    def latency(self) -> float:
        """Seconds that each reply is late.

        :raises ValueError: it is set to anything but a number from 0 up.
        """
        return self._latency

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._latency = _within("latency", seconds, float("inf"))

    @property
    def loss(self) -> float:
        """The share of replies that are lost, and their connection with them.

        :raises ValueError: it is set to anything but a number from 0 to 1.
        """
        return self._loss

    @loss.setter
    def loss(self, share: float) -> None:
        self._loss = _within("loss", share, 1)

    def loses(self) -> bool:
        """Whether the next reply is lost."""
        return self.loss > 0 and self.random.random() < self.loss


def _within(name: str, value: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ValueError(f"network.{name} is {value!r}, which is not a number from 0 to {most:g}")
    return value


class Faults:
    """What goes wrong with one member's connections."""

    def __init__(self) -> None:
        self.answering = Event()  # cleared while frozen
        self.clear()

    def clear(self) -> None:
        """Nothing is wrong any more."""
        self.delay = 0.0
        self.partitioned = False
        self._cut: tuple[int, str | None] | None = None
        self._garbage: tuple[str | None] | None = None
        self.answering.set()

    def cut_next(self, n_bytes: int, command: str | None) -> None:
        """Close the connection of the next reply (to `command`) after its first `n_bytes`."""
        self._cut = n_bytes, command

    def spoil_next(self, command: str | None) -> None:
        """Make the next reply (to `command`) garbage."""
        self._garbage = (command,)

    def take_cut(self, command: str) -> int | None:
        """After how many bytes this reply ends; None is not at all. Holds once."""
        if self._cut is None or self._cut[1] not in (None, command):
            return None
        n_bytes, self._cut = self._cut[0], None
        return n_bytes

    def take_garbage(self, command: str) -> bool:
        """Whether this reply is garbage. Holds once."""
        if self._garbage is None or self._garbage[0] not in (None, command):
            return False
        self._garbage = None
        return True
