"""Pooled connection, with usage data and a method that reads late replies to interrupted requests."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from enum import Enum

from greenlet import greenlet

from gmongo.cmap.server_connection import ServerConnection
from gmongo.errors import ProtocolError
from gmongo.wire.address import Address, address_text
from gmongo.wire.message import Buffer
from gmongo.wire.timeout import interrupt_after

LateReplyHandler = Callable[[Buffer], None]


class Purpose(Enum):
    """Kind of operation that uses a checked-out connection."""

    CURSOR = "cursors"
    TRANSACTION = "transactions"
    OTHER = "other operations"


class Connection(ServerConnection):
    """Connection of a pool, with usage data."""

    def __init__(self, address: Address, socket_timeout: float | None = None) -> None:
        super().__init__(address, socket_timeout)
        self.generation = 0
        self.idle_since = 0.0
        self.purpose = Purpose.OTHER
        self.checked_out_by: weakref.ref[greenlet] | None = None  # Greenlet that uses the connection, or None.
        self.checked_out_at = 0.0  # Time of the check-out, as measured by `_clock.monotonic()`.
        self.last_command: str | None = None  # Name of the last command on the connection.
        self.establishment_seconds: float  # Duration of the establishment.
        self.late_reply_handler: LateReplyHandler | None = None  # Callback for a late reply, or None.
        self.reply_is_due = False  # True if `maxTimeMS` has elapsed, so that the server replies soon.

    def __repr__(self) -> str:
        return f"<Connection {self.id} to {address_text(self.address)} generation={self.generation}>"

    def expect_late_reply(self, on_reply: LateReplyHandler, is_due: bool) -> None:
        """Allow the pool to read a late reply. `on_reply` raises an error for a malformed body."""
        if self.unanswered_request_id is not None and self.purpose is Purpose.OTHER:
            self.late_reply_handler = on_reply
            self.reply_is_due = is_due

    def read_late_reply(self, seconds: float, max_bytes: int) -> None:
        """Read a late reply of at most `max_bytes` within `seconds`, so that the connection can send the next request.

        The pool must close the connection after an exception, or if more replies follow
        (`mid_message`).
        """
        handle, request_id = self.late_reply_handler, self.unanswered_request_id
        assert handle is not None and request_id is not None
        transport = self._open_transport()
        usual_limit = transport.max_message_size
        transport.max_message_size = min(usual_limit, max_bytes)
        self.set_ref(False)
        with interrupt_after(seconds, self.make_timeout_error(seconds, "drainLateRepliesMS"), False):
            body = self._receive(transport, request_id)
        handle(body)
        if not transport.release():
            raise ProtocolError("the server sent data after the reply")
        # Reset `error` last, because the pool closes a connection with an `error`.
        transport.max_message_size = usual_limit
        self.set_ref(True)
        self.error = self.late_reply_handler = self.unanswered_request_id = None
