"""The commands that end sessions: `endSessions` and `killSessions`."""

from __future__ import annotations

from collections.abc import Iterator

from gmongo._documents import DocumentDict
from gmongo.cmap.hello import Hello
from gmongo.execution.context import OperationContext
from gmongo.execution.operation import Operation
from gmongo.read_preferences import PrimaryPreferred
from gmongo.wire.address import Address

_MOST_AT_ONCE = 10_000
ANY_SERVER = PrimaryPreferred()
_CONTEXT = OperationContext("admin", selector=ANY_SERVER)


class EndSessions(Operation):
    """Let the server forget sessions; it would do so by itself after half an hour.

    :param ids: at most 10,000 of them.
    """

    name = "endSessions"
    takes_session = False
    retries_overload = False

    __slots__ = ("ids",)

    def __init__(self, ids: list[DocumentDict]) -> None:
        super().__init__(_CONTEXT)
        self.ids = ids

    @classmethod
    def batches(cls, ids: list[DocumentDict]) -> Iterator[EndSessions]:
        """As many operations as it takes."""
        for start in range(0, len(ids), _MOST_AT_ONCE):
            yield cls(ids[start : start + _MOST_AT_ONCE])

    def command(self, hello: Hello) -> DocumentDict:
        return {"endSessions": self.ids}


class KillSessions(Operation):
    """End all commands, cursors and transactions of sessions.

    :param ids: of the sessions.
    :param address: of the server that runs their commands.
    """

    name = "killSessions"
    takes_session = False
    takes_max_time = False
    retries_overload = False
    waits_for_server = False
    in_background = True

    __slots__ = ("address", "ids")

    def __init__(self, ids: list[DocumentDict], address: Address) -> None:
        super().__init__(_CONTEXT)
        self.ids = ids
        self.address = address

    def command(self, hello: Hello) -> DocumentDict:
        return {"killSessions": self.ids}
