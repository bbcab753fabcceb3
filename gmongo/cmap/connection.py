"""Connection of a pool. The connection stores its state in the pool, and can read the late reply to a request."""

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

LateReply = Callable[[Buffer], None]


class Purpose(Enum):
    """Use of a connection that is checked out."""

    CURSOR = "cursors"
    TRANSACTION = "transactions"
    OTHER = "other operations"


class Connection(ServerConnection):
    """Connection that belongs to a pool.

    :param address: address of the server.
    :param socket_timeout: limit in seconds for one exchange; None means no limit.
    """

    __slots__ = (
        "checked_out_at",
        "checked_out_by",
        "established_in",
        "generation",
        "idle_since",
        "last_command",
        "late_reply",
        "purpose",
        "reply_is_due",
    )

    def __init__(self, address: Address, socket_timeout: float | None = None) -> None:
        super().__init__(address, socket_timeout)
        self.generation = 0
        self.idle_since = 0.0
        self.purpose = Purpose.OTHER
        # The greenlet that checked the connection out. This greenlet may have ended since.
        self.checked_out_by: weakref.ref[greenlet] | None = None
        self.checked_out_at = 0.0  # time of the check-out on the monotonic clock
        self.last_command: str | None = None  # name of the last command on the connection
        self.established_in = 0.0  # duration of connecting and handshake in seconds
        self.late_reply: LateReply | None = None  # receives a late reply, or None if the pool must not wait
        self.reply_is_due = False  # True if the server ends the request because `maxTimeMS` has elapsed

    def __repr__(self) -> str:
        return f"<Connection {self.id} to {address_text(self.address)} generation={self.generation}>"

    def expect_late_reply(self, on_reply: LateReply, is_due: bool) -> None:
        """Allow the pool to read the late reply, if the connection is usable after this reply.

        Does nothing for a connection that is pinned to a cursor or a transaction.

        :param on_reply: receives the body of the reply; raises an exception if the reply is invalid.
        :param is_due: True if ``maxTimeMS`` has elapsed, so that the server soon replies with an error.
        """
        if self.unanswered is not None and self.purpose is Purpose.OTHER:
            self.late_reply = on_reply
            self.reply_is_due = is_due

    def read_late_reply(self, seconds: float, most: int) -> None:
        """Read the late reply to an interrupted request, so that the connection can be used again.

        If the reply announces more replies, `mid_message` stays true, and the pool must close the connection.

        :param seconds: time limit.
        :param most: greatest size of the reply in bytes, compressed and decompressed.
        :raises PyMongoError: the reply is incomplete after `seconds`, too long or invalid. The pool must close the
            connection.
        """
        handle, request_id = self.late_reply, self.unanswered
        assert handle is not None and request_id is not None
        transport = self._open_transport()
        longest = transport.max_message_size
        transport.max_message_size = min(longest, most)
        self.set_ref(False)
        with interrupt_after(seconds, self.timeout_error(seconds, "drainLateRepliesMS"), False):
            body = self._receive(transport, request_id)
        handle(body)
        if not transport.release():
            raise ProtocolError("the server sent more than the reply")
        # Reset `error` last. After an exception above, the pool must still see `error`, and close the connection.
        transport.max_message_size = longest
        self.set_ref(True)
        self.error = self.late_reply = self.unanswered = None
        self.reply_is_due = False
