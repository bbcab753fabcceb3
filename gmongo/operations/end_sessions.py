"""The commands that end sessions: `endSessions` and `killSessions`."""

from __future__ import annotations

from collections.abc import Iterator

from gmongo._documents import DocumentDict
from gmongo.cmap.hello import Hello
from gmongo.execution.operation import Operation
from gmongo.execution.operation_context import OperationContext
from gmongo.read_preferences import PrimaryPreferred
from gmongo.wire.address import Address

_MAX_IDS = 10_000
ANY_SERVER = PrimaryPreferred()
_CONTEXT = OperationContext("admin", selector=ANY_SERVER)


class EndSessions(Operation):
    """`endSessions` command, which ends at most 10,000 unused sessions before the session timeout of the server."""

    name = "endSessions"
    takes_session = False
    retries_overload = False

    __slots__ = ("ids",)

    def __init__(self, ids: list[DocumentDict]) -> None:
        super().__init__(_CONTEXT)
        self.ids = ids

    @classmethod
    def batches(cls, ids: list[DocumentDict]) -> Iterator[EndSessions]:
        """Yield operations for any number of session identifiers: one operation for each 10,000 identifiers."""
        for start in range(0, len(ids), _MAX_IDS):
            yield cls(ids[start : start + _MAX_IDS])

    def command(self, hello: Hello) -> DocumentDict:
        return {"endSessions": self.ids}


class KillSessions(Operation):
    """`killSessions` command, which ends all commands, cursors and transactions of sessions on one server."""

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
