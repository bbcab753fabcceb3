"""The log of the commands that a deployment has received."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from gmongo.testing.command import Request


@dataclass
class ReceivedCommand(Request):
    """A command that arrived.

    :param time: when, as :func:`time.monotonic` tells it.
    """

    time: float = 0.0


class CommandLog(list[ReceivedCommand]):
    """The commands received by all members, in their order. ``clear()`` forgets them.

    :ivar enabled: whether commands are kept.
    """

    enabled = True

    def add(self, request: Request) -> None:
        """Keep a command, unless the log is off."""
        if self.enabled:
            fields = request.name, request.body, request.database, request.member, request.connection
            self.append(ReceivedCommand(*fields, time=monotonic()))

    def named(self, *names: str) -> list[ReceivedCommand]:
        """Those with one of the names, such as ``"find"``."""
        return [each for each in self if each.name in names]
