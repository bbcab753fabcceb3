"""Resources of a cursor that is open on a server, and the three ways to release them."""

from __future__ import annotations

from bson.codec_options import CodecOptions

from gmongo import _clock
from gmongo._documents import Value
from gmongo.engines.cursor_killer import CursorKiller, DroppedCursor
from gmongo.engines.read_ahead import ReadAhead, refuse_inherited
from gmongo.errors import OperationFailure, PyMongoError
from gmongo.execution.deadline import current_deadline
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import ImplicitSession, SessionHandle, SharedSession, server_session_of
from gmongo.operations.cursors import KillCursors, context_of
from gmongo.operations.find import CursorReply
from gmongo.wire.address import Address


class CursorResources:
    """Resources of a server cursor: its session, its pinned connection, and the batches read ahead.

    They end with the last reply of the cursor, with :meth:`close`, or in the background with :meth:`drop`. The
    collection of the resources calls :meth:`drop`.

    :param executor: the executor of `killCursors`.
    :param cursor_killer: closes dropped cursors.
    :param opened: the reply that opened the cursor.
    :param session: the session of the cursor, or None.
    :param codec_options: the options to decode documents.
    :param time_limit: the time limit of the whole cursor, in seconds; None if each command has its own limit.
    :param keeps_session: True if the owner of an implicit session uses it after the end of the cursor.
    """

    __slots__ = (
        "_cursor_killer",
        "_epoch",
        "_executor",
        "_keeps_session",
        "_left_open",
        "_namespace",
        "_time_limit",
        "address",
        "ahead",
        "context",
        "cursor_id",
        "pin",
        "session",
    )

    def __init__(
        self,
        executor: Executor,
        cursor_killer: CursorKiller,
        opened: CursorReply,
        session: SessionHandle | None,
        codec_options: CodecOptions[Value],
        time_limit: float | None,
        keeps_session: bool,
    ) -> None:
        self._executor = executor
        self._epoch = executor.epoch
        self._cursor_killer = cursor_killer
        self._time_limit = time_limit
        self._keeps_session = keeps_session
        self._left_open = 0  # the ID of a cursor that may be open on the server, but needs no further batch
        self.cursor_id = opened.cursor_id  # 0 if there are no further batches
        self._namespace = opened.namespace
        self.address: Address = opened.address
        self.context = context_of(opened.namespace, codec_options)  # the context of getMore and killCursors
        self.session = session
        self.pin = opened.pin
        self.ahead: ReadAhead | None = None

    def renew(self, reply: CursorReply) -> None:
        """Update the resources from a reply. Release the resources if the reply ends the cursor."""
        self.cursor_id = reply.cursor_id
        self.address = reply.address
        if reply.namespace != self._namespace:
            self._namespace = reply.namespace
            self.context = context_of(reply.namespace, self.context.codec_options)
        if self.cursor_id == 0:
            self.release()

    def refuse_inherited(self) -> None:
        """Raise for a cursor of the parent process.

        :raises AutoReconnect: the process was forked after the cursor was opened.
        """
        refuse_inherited(self._epoch, self._executor)

    def share_session(self) -> SharedSession | None:
        """Share an implicit session with the batches read ahead, and return it. Return None without such a session."""
        if isinstance(self.session, ImplicitSession):
            self.session = SharedSession(self.session)
            return self.session
        return None

    # End of the cursor

    def give_up(self) -> None:
        """Request no further batches. A cursor that is still open on the server needs :meth:`close` or :meth:`drop`."""
        cursor_id, self.cursor_id = self.cursor_id, 0
        if cursor_id and self.ahead is not None:
            cursor_id = self.ahead.end()
        if cursor_id and not self._ends_with_connection():
            self._left_open = cursor_id

    def close(self) -> None:
        """Close the cursor on the server, if it may be open there, and release the resources.

        :raises InvalidOperation: another greenlet waits for a batch on the pinned connection of the cursor.
        """
        if self.pin is not None:
            if self.ahead is not None:
                self.ahead.stop()  # its getMore occupies the connection
            else:
                self.pin.check_free()
        self.give_up()
        session = self.session if self.session is not None and not self.session.has_ended else None
        try:
            if self._left_open and self._epoch == self._executor.epoch:
                operation = KillCursors(self.context, [self._left_open], self.address, self.pin)
                self._executor.run(operation, session, self._deadline_for_closing())
        except PyMongoError as error:
            if self.pin is None:
                self._executor.sessions.leave_cursor(server_session_of(session), self.address)
            if error.timeout or not (self.pin or isinstance(error, OperationFailure)):
                self.drop()
        except BaseException:
            self.drop()
            raise
        finally:
            self._left_open = 0
            self.release()
            self.end_late_session(session)

    def end_late_session(self, session: SessionHandle | None) -> None:
        """Return a server session that a command has acquired after another greenlet had closed the cursor.

        :param session: the session of the command.
        """
        if type(session) is ImplicitSession and not self._keeps_session:
            session.end_implicit()

    def drop(self) -> None:
        """Leave the cursor and its resources to the cursor killer. Do no I/O and do not switch."""
        self.give_up()
        cursor_id, self._left_open = self._left_open, 0
        if self._ends_with_connection():
            cursor_id = 0
        session, self.session = self.session, None
        pin, self.pin = self.pin, None
        ahead, self.ahead = self.ahead, None
        implicit = session if isinstance(session, ImplicitSession) and not self._keeps_session else None
        if (cursor_id or implicit or pin) and self._epoch == self._executor.epoch:  # never close the parent's cursor
            server_session = server_session_of(session) if pin is None else None
            dropped = DroppedCursor(cursor_id, self._namespace, self.address, implicit, pin, ahead, server_session)
            self._cursor_killer.take(dropped)

    def __del__(self) -> None:
        # The constructor may have failed before it set all attributes.
        if getattr(self, "cursor_id", 0) or getattr(self, "_left_open", 0) or getattr(self, "pin", None):
            self.drop()

    def release(self) -> None:
        """Release the resources: the implicit session, and the pinned connection."""
        if self.ahead is not None:
            self.ahead.stop()
        if isinstance(self.session, ImplicitSession) and not self._keeps_session:
            self.session.end_implicit()
            self.session = None
        # Release the session first: a check-in delivers events, so it may switch and be interrupted.
        pin, self.pin = self.pin, None
        if pin is not None:
            pin.release()

    def _ends_with_connection(self) -> bool:
        """Return True if a pinned connection is unusable: the server closes the cursor with its connection."""
        return self.pin is not None and not self.pin.connection.usable

    def _deadline_for_closing(self) -> float | None:
        """Return the deadline of `killCursors`: the current deadline, or the cursor's time limit once again."""
        limit, current = self._time_limit, current_deadline()
        if current is not None and current > _clock.monotonic():
            return current
        return self._executor.fresh_deadline() if limit is None else _clock.monotonic() + limit
