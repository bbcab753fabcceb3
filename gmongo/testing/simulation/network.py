"""Network faults between clients and members."""

from __future__ import annotations

import random

from gevent.event import Event

from gmongo import _random


class Network:
    """The network of a deployment.

    :ivar random: the source of randomness; a seeded source makes a test repeatable.
    """

    def __init__(self) -> None:
        self._latency = 0.0
        self._loss = 0.0
        self.random = random.Random(_random.urandom(8))

    @property
    def latency(self) -> float:
        """Seconds of delay of each reply.

        :raises ValueError: the new value is not a number from 0 up.
        """
        return self._latency

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._latency = _within("latency", seconds, float("inf"))

    @property
    def loss(self) -> float:
        """The share of lost replies. The loss of a reply closes its connection.

        :raises ValueError: the new value is not a number from 0 to 1.
        """
        return self._loss

    @loss.setter
    def loss(self, share: float) -> None:
        self._loss = _within("loss", share, 1)

    def loses(self) -> bool:
        """Return True if the next reply is lost."""
        return self.loss > 0 and self.random.random() < self.loss


def _within(name: str, value: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ValueError(f"network.{name} is {value!r}, which is not a number from 0 to {most:g}")
    return value


class Faults:
    """The faults of the connections of a member."""

    def __init__(self) -> None:
        self.answering = Event()  # cleared while frozen
        self.clear()

    def clear(self) -> None:
        """End all faults."""
        self.delay = 0.0
        self.partitioned = False
        self._cut: tuple[int, str | None] | None = None
        self._garbage: tuple[str | None] | None = None
        self.answering.set()

    def cut_next(self, n_bytes: int, command: str | None) -> None:
        """Close the connection after the first `n_bytes` of the next reply (to `command`)."""
        self._cut = n_bytes, command

    def spoil_next(self, command: str | None) -> None:
        """Replace the next reply (to `command`) by garbage."""
        self._garbage = (command,)

    def take_cut(self, command: str) -> int | None:
        """Return the number of bytes of this reply before its connection closes, or None. Ends the fault."""
        if self._cut is None or self._cut[1] not in (None, command):
            return None
        n_bytes, self._cut = self._cut[0], None
        return n_bytes

    def take_garbage(self, command: str) -> bool:
        """Return True if this reply is garbage. Ends the fault."""
        if self._garbage is None or self._garbage[0] not in (None, command):
            return False
        self._garbage = None
        return True
