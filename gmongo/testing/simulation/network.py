"""Simulate faults of the network between clients and members."""

from __future__ import annotations

import random

from gevent.event import Event

from gmongo import _random


class Network:
    """The network between the clients and the members of a deployment.

    :ivar random: the random number generator that selects the lost replies. A generator with a seed
        makes a test repeatable.
    """

    def __init__(self) -> None:
        self._latency = 0.0
        self._loss = 0.0
        self.random = random.Random(_random.urandom(8))

    @property
    def latency(self) -> float:
        """The delay of each reply in seconds.

        :raises ValueError: the new value is negative or is not a number.
        """
        return self._latency

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._latency = _check_range("latency", seconds, float("inf"))

    @property
    def loss(self) -> float:
        """The share of replies that are lost, from 0 to 1. The member closes the connection of a lost reply.

        :raises ValueError: the new value is not a number from 0 to 1.
        """
        return self._loss

    @loss.setter
    def loss(self, share: float) -> None:
        self._loss = _check_range("loss", share, 1)

    def loses(self) -> bool:
        """Decide at random if the next reply is lost. Return True if the reply is lost."""
        return self.loss > 0 and self.random.random() < self.loss


def _check_range(name: str, value: float, maximum: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= maximum:
        raise ValueError(f"network.{name} is {value!r}, which is not a number from 0 to {maximum:g}")
    return value


class Faults:
    """The current faults of a member: delay, partition, freeze, incomplete reply and garbage."""

    def __init__(self) -> None:
        self.not_frozen = Event()  # set while the member is not frozen
        self.clear()

    def clear(self) -> None:
        self.delay = 0.0
        self.partitioned = False
        self.cut: tuple[int, str | None] | None = None  # the length to send, and the command
        self.garbage: tuple[str | None] | None = None  # the command whose next reply is garbage
        self.not_frozen.set()

    def take_cut(self, command: str) -> int | None:
        """Remove the cut. Return the length to send, or None if no cut applies to `command`."""
        if self.cut is None or self.cut[1] not in (None, command):
            return None
        n_bytes, self.cut = self.cut[0], None
        return n_bytes

    def take_garbage(self, command: str) -> bool:
        """If garbage replaces the next reply to `command`, remove the fault and return True."""
        if self.garbage is None or self.garbage[0] not in (None, command):
            return False
        self.garbage = None
        return True
