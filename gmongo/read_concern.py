"""Read concern: the consistency and isolation of the data that reads return."""

from __future__ import annotations

from gmongo._documents import DocumentDict
from gmongo._truncated_repr import short

__all__ = ["DEFAULT_READ_CONCERN", "ReadConcern"]


class ReadConcern:
    """Isolation level of reads.

    ::

        orders.with_options(read_concern=ReadConcern("majority")).find_one(1)

    Specification: Read and Write Concern, "Read Concern".

    :param level: ``"local"``, ``"available"``, ``"majority"``, ``"linearizable"``, ``"snapshot"``
        (MongoDB 5.0) or another level. None (the default) uses the server's default.
    :raises TypeError: `level` is neither a string nor None.
    """

    __slots__ = ("__level",)

    def __init__(self, level: str | None = None) -> None:
        if level is not None and not isinstance(level, str):
            raise TypeError(f"level must be a string or None, not {short(level)}")
        self.__level = level

    @property
    def level(self) -> str | None:
        """The isolation level, or None for the server's default."""
        return self.__level

    @property
    def ok_for_legacy(self) -> bool:
        """True if the level is ``"local"`` or None. Servers without read concerns support both."""
        return self.__level is None or self.__level == "local"

    @property
    def document(self) -> DocumentDict:
        """The document that commands contain as ``readConcern``. The document is empty for the server's default."""
        return {"level": self.__level} if self.__level else {}

    def __eq__(self, other: object) -> bool:
        return self.document == other.document if isinstance(other, ReadConcern) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ReadConcern({self.__level!r})" if self.__level else "ReadConcern()"


DEFAULT_READ_CONCERN = ReadConcern()
"""The read concern of a client that sets no read concern."""
