"""What is left to do with a reply that comes after its operation was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gmongo.execution.operation import Operation, Result
from gmongo.execution.server_session import ServerSession
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer

OrphanTaker: TypeAlias = Callable[[], Callable[[Result], None] | None]


class LateReply:
    """Ends the cursor that such a reply opens, as no cursor object refers to it, and makes the session available.

    It refers to nothing of the client but weakly, so that a client that is dropped is not kept by a late reply.

    :param operation: that was interrupted.
    :param address: of the server.
    :param orphan_taker: finds what takes such cursors.
    :param session: of the operation, if it has one and only this reply is missing in it.
    """

    __slots__ = ("_address", "_operation", "_orphan_taker", "_session")

    def __init__(
        self, operation: Operation, address: Address, orphan_taker: OrphanTaker, session: ServerSession | None
    ) -> None:
        self._operation = operation
        self._address = address
        self._orphan_taker = orphan_taker
        self._session = session

    def __call__(self, body: Buffer) -> None:
        """Look at the body of the reply. Does not switch.

        :raises ProtocolError: it is no good reply; :class:`bson.errors.BSONError` if it cannot be decoded.
        """
        cursor = self._operation.late_cursor(body, self._address)
        take = self._orphan_taker()
        if cursor is not None and take is not None:
            take(cursor)
        if self._session is not None:
            self._session.answered()
