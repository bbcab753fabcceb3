"""The log of the commands that the members of a deployment received."""

from __future__ import annotations

from dataclasses import dataclass

from gmongo.testing import clock
from gmongo.testing.command import Request

# The limits of the log: the number of commands, and the sum of the message sizes.
MAX_COMMANDS = 10_000
MAX_BYTES = 32 * 1024 * 1024


@dataclass
class ReceivedCommand(Request):
    """A command in the log, with time and size."""

    time: float = 0.0  # the time of arrival in seconds, on the monotonic clock of the deployment
    size: int = 0  # the size of the uncompressed message in bytes, without the header


class CommandLog(list[ReceivedCommand]):
    """The last commands that the members received, in the order of arrival. ``clear()`` removes all commands.

    The log keeps at most 10,000 commands and 32 MiB. Above a limit, the log removes the older half
    of the commands, but always keeps the last command.

    :ivar enabled: True if the log keeps the received commands.
    :ivar forgotten: the number of commands that the log removed because of a limit.
    :ivar first: the number of commands that the log has removed, because of a limit or a call of
        ``clear()``. The first command of the log has this index among all logged commands.
    """

    enabled = True
    forgotten = 0
    first = 0
    _byte_count = 0

    def add(self, request: Request, size: int = 0) -> None:
        """Add a command, if the log is enabled.

        :param request: the command.
        :param size: the size of the message in bytes, without the header; 0 by default.
        """
        if not self.enabled:
            return
        fields = request.name, request.body, request.database, request.member, request.connection
        self.append(ReceivedCommand(*fields, time=clock.monotonic(), size=size))
        self._byte_count += size
        while len(self) > 1 and (len(self) > MAX_COMMANDS or self._byte_count > MAX_BYTES):
            removed_count = len(self) // 2
            self.forgotten += removed_count
            self.first += removed_count
            del self[:removed_count]
            self._byte_count = sum(command.size for command in self)

    def clear(self) -> None:
        """Remove all commands."""
        self.first += len(self)
        super().clear()
        self._byte_count = 0

    def named(self, *names: str) -> list[ReceivedCommand]:
        """Return the commands that have one of the given names.

        :param names: names of commands, such as ``"find"``.
        """
        return [command for command in self if command.name in names]
