"""Handler of a late reply: a reply that arrives after its operation was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gmongo.execution.operation import Operation, Result
from gmongo.execution.server_session import ServerSession
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer

OrphanTaker: TypeAlias = Callable[[], Callable[[Result], None] | None]


class LateReply:
    """Handler that kills the cursor in a late reply, and records in the server session that the reply arrived.

    The handler has no strong reference to the client, so that a connection that waits for the reply does not keep a
    deleted client alive.
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
        """Handle the body of the reply, without a switch. Raise an error if the reply is malformed."""
        cursor = self._operation.late_cursor(body, self._address)
        take = self._orphan_taker()
        if cursor is not None and take is not None:
            take(cursor)
        if self._session is not None:
            self._session.answered(self._address)
