"""The `endSessions` command."""

from __future__ import annotations

from collections.abc import Iterator

from gmongo._documents import DocumentDict
from gmongo.cmap.hello import Hello
from gmongo.execution.context import OperationContext
from gmongo.execution.operation import Operation
from gmongo.read_preferences import PrimaryPreferred

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
