"""Resources of a cursor that is open on a server, and the three ways to release the resources."""

from __future__ import annotations

from dataclasses import InitVar, dataclass

from bson.codec_options import CodecOptions

from gmongo import _clock
from gmongo._documents import Value
from gmongo.engines.cursor_killer import CursorKiller, DroppedCursor
from gmongo.engines.read_ahead import ReadAhead
from gmongo.errors import OperationFailure, PyMongoError
from gmongo.execution.deadline import current_deadline
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import ImplicitSession, SessionHandle, SharedSession, server_session_of
from gmongo.operations.find import CursorReply, KillCursors, context_of
from gmongo.wire.address import Address


@dataclass(eq=False, repr=False)
class CursorResources:
    """Resources of a server cursor: its session, its pinned connection, and its read-ahead object.

    The last reply of the cursor releases the resources. Before the last reply, :meth:`close` releases the resources,
    and :meth:`drop`, which the finaliser calls, lets a background greenlet release the resources.
    """

    _executor: Executor
    _cursor_killer: CursorKiller
    opened: InitVar[CursorReply]
    session: SessionHandle | None
    codec_options: InitVar[CodecOptions[Value]]
    _time_limit: float | None  # seconds for the whole cursor. None if each command has its own limit
    _keeps_session: bool  # True if the owner of an implicit session still uses the session
    ahead: ReadAhead | None = None
    _left_open: int = 0  # the ID of the cursor if close() or drop() must still kill the cursor, or 0

    def __post_init__(self, opened: CursorReply, codec_options: CodecOptions[Value]) -> None:
        self.epoch = self._executor.epoch
        self.cursor_id = opened.cursor_id  # 0 if the driver requests no further batch
        self._namespace = opened.namespace
        self.address: Address = opened.address
        self.context = context_of(opened.namespace, codec_options)  # of the getMore and killCursors commands
        self.pin = opened.pin

    def renew(self, reply: CursorReply) -> None:
        self.cursor_id = reply.cursor_id
        self.address = reply.address
        if reply.namespace != self._namespace:
            self._namespace = reply.namespace
            self.context = context_of(reply.namespace, self.context.codec_options)
        if self.cursor_id == 0:
            self.release()

    def share_session(self) -> SharedSession | None:
        """Share an implicit session with a read-ahead object. Return the shared session, or None."""
        if isinstance(self.session, ImplicitSession):
            self.session = SharedSession(self.session)
            return self.session
        return None

    def give_up(self) -> None:
        """Request no further batches. The caller must then close or drop the cursor."""
        cursor_id, self.cursor_id = self.cursor_id, 0
        if cursor_id and self.ahead is not None:
            cursor_id = self.ahead.end()
        if cursor_id and not self._ends_with_connection():
            self._left_open = cursor_id

    def close(self) -> None:
        """Close the cursor if the cursor may be open on the server, and release the resources."""
        if self.pin is not None:
            if self.ahead is not None:
                self.ahead.stop()  # the getMore of the read-ahead object occupies the connection
            else:
                self.pin.check_free()
        self.give_up()
        session = self.session if self.session is not None and not self.session.has_ended else None
        try:
            if self._left_open and self.epoch == self._executor.epoch:
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
        """Release the implicit session of a command that acquired the session after the end of the cursor."""
        if type(session) is ImplicitSession and not self._keeps_session:
            session.end_implicit()

    def drop(self) -> None:
        """Hand the cursor and its resources to the cursor killer, without I/O and without a switch."""
        self.give_up()
        cursor_id, self._left_open = self._left_open, 0
        if self._ends_with_connection():
            cursor_id = 0
        session, self.session = self.session, None
        pin, self.pin = self.pin, None
        ahead, self.ahead = self.ahead, None
        implicit = session if isinstance(session, ImplicitSession) and not self._keeps_session else None
        # In a forked child, never close a cursor of the parent process.
        if (cursor_id or implicit or pin) and self.epoch == self._executor.epoch:
            server_session = server_session_of(session) if pin is None else None
            dropped = DroppedCursor(cursor_id, self._namespace, self.address, implicit, pin, ahead, server_session)
            self._cursor_killer.take(dropped)

    def __del__(self) -> None:
        # If the constructor failed, some attributes are not set.
        if getattr(self, "cursor_id", 0) or getattr(self, "_left_open", 0) or getattr(self, "pin", None):
            self.drop()

    def release(self) -> None:
        if self.ahead is not None:
            self.ahead.stop()
        if isinstance(self.session, ImplicitSession) and not self._keeps_session:
            self.session.end_implicit()
            self.session = None
        # Release the session before the connection, whose check-in publishes events and may be interrupted.
        pin, self.pin = self.pin, None
        if pin is not None:
            pin.release()

    def _ends_with_connection(self) -> bool:
        """Return True if the server closes the cursor together with the unusable pinned connection."""
        return self.pin is not None and not self.pin.connection.usable

    def _deadline_for_closing(self) -> float | None:
        """Return the deadline of `killCursors`: the current deadline, or the cursor's time limit counted from now."""
        limit, current = self._time_limit, current_deadline()
        if current is not None and current > _clock.monotonic():
            return current
        return self._executor.fresh_deadline() if limit is None else _clock.monotonic() + limit
