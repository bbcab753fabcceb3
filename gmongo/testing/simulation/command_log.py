"""The log of the commands that a deployment has received."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from gmongo.testing.command import Request

# What is kept at most; of large commands fewer are.
MOST_COMMANDS = 10_000
MOST_BYTES = 32 * 1024 * 1024


@dataclass
class ReceivedCommand(Request):
    """A command that arrived.

    :param time: when, as :func:`time.monotonic` tells it.
    :param size: how many bytes its message had.
    """

    time: float = 0.0
    size: int = 0


class CommandLog(list[ReceivedCommand]):
    """The last commands that the members have received, in their order. ``clear()`` forgets them.

    It keeps 10,000 commands, or as many as fit in 32 MiB; when there are more, the older half is forgotten.

    :ivar enabled: whether commands are kept.
    :ivar forgotten: how many were, for others to be kept.
    """

    enabled = True
    forgotten = 0
    _bytes = 0

    def add(self, request: Request, size: int = 0) -> None:
        """Keep a command, unless the log is off.

        :param request: the command.
        :param size: how many bytes its message had.
        """
        if not self.enabled:
            return
        fields = request.name, request.body, request.database, request.member, request.connection
        self.append(ReceivedCommand(*fields, time=monotonic(), size=size))
        self._bytes += size
        while len(self) > 1 and (len(self) > MOST_COMMANDS or self._bytes > MOST_BYTES):
            half = len(self) // 2
            self.forgotten += half
            del self[:half]
            self._bytes = sum(each.size for each in self)

    def clear(self) -> None:
        """Forget all."""
        super().clear()
        self._bytes = 0

    def named(self, *names: str) -> list[ReceivedCommand]:
        """Those with one of some names.

        :param names: such as ``"find"``.
        """
        return [each for each in self if each.name in names]
