"""What may go wrong between a client and a member."""

from __future__ import annotations

import random

from gevent.event import Event


class Network:
    """The network of the whole deployment.

    :ivar latency: seconds that each reply is late.
    :ivar loss: the share of replies, from 0 to 1, that are lost, and their connection with them.
    :ivar random: where chance comes from; give a seeded one for a test that can be repeated.
    """

    def __init__(self) -> None:
        self.latency = 0.0
        self.loss = 0.0
        self.random = random.Random()

    def loses(self) -> bool:
        """Whether the next reply is lost."""
        return self.loss > 0 and self.random.random() < self.loss


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
