"""A connection of a pool: its state in the pool, and the late reply to an interrupted request."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from enum import Enum

from greenlet import greenlet

from gmongo.cmap.server_connection import ServerConnection
from gmongo.errors import ProtocolError
from gmongo.wire.address import Address, address_text
from gmongo.wire.limit import interrupt_after
from gmongo.wire.message import Buffer

LateReply = Callable[[Buffer], None]


class Purpose(Enum):
    """What a connection that is in use is used for."""

    CURSOR = "cursors"
    TRANSACTION = "transactions"
    OTHER = "other operations"


class Connection(ServerConnection):
    """A connection that belongs to a pool.

    :param address: of the server.
    :param socket_timeout: limit in seconds for one exchange; None is without limit.
    """

    __slots__ = (
        "checked_out_at",
        "established_in",
        "generation",
        "holder",
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
        # The greenlet that has checked it out; it may have ended since.
        self.holder: weakref.ref[greenlet] | None = None
        self.checked_out_at = 0.0  # on the monotonic clock
        self.last_command: str | None = None  # the command it was last used for
        self.established_in = 0.0  # seconds that connecting and the handshake took
        self.late_reply: LateReply | None = None  # looks at the missing reply; None if the pool must not wait for it
        self.reply_is_due = False  # whether the server ends the request by itself at this time

    def __repr__(self) -> str:
        return f"<Connection {self.id} to {address_text(self.address)} generation={self.generation}>"

    def expect_late_reply(self, look: LateReply, is_due: bool) -> None:
        """Let the pool read the missing reply, if that is all that is wrong with the connection. What must go with its
        connection does not ask for it: a cursor or a transaction behind a load balancer, a conversation that
        authenticates.

        :param look: is given the body when it has come; an exception says that it is no good reply.
        :param is_due: whether the server ends the request by itself at this time, so that its error follows soon.
        """
        if self.unanswered is not None and self.purpose is Purpose.OTHER:
            self.late_reply = look
            self.reply_is_due = is_due

    def read_late_reply(self, seconds: float, most: int) -> None:
        """Read the reply that an interrupted exchange did not wait for. Then the connection can be used again, unless
        the reply announces further ones: it is `mid_message` then, and has to be closed.

        :param seconds: that this may take.
        :param most: bytes that the reply may have, compressed and not.
        :raises PyMongoError: it did not come in time, is too long, or is no good reply: the connection must be closed.
        """
        look, request_id = self.late_reply, self.unanswered
        assert look is not None and request_id is not None
        transport = self._open_transport()
        longest = transport.max_message_size
        transport.max_message_size = min(longest, most)
        self.hold_hub(False)
        with interrupt_after(seconds, self.timeout_error(seconds, "drainLateRepliesMS"), False):
            body = self._receive(transport, request_id)
        look(body)
        if not transport.release():
            raise ProtocolError("the server sent more than the reply")
        # Only now: whatever is thrown above leaves the error, for which the pool closes the connection.
        transport.max_message_size = longest
        self.hold_hub(True)
        self.error = self.late_reply = self.unanswered = None
        self.reply_is_due = False
