"""What is held of a cursor that is open on a server, and the three ways to end it."""

from __future__ import annotations

from bson.codec_options import CodecOptions

from gmongo import _clock
from gmongo._documents import Value
from gmongo.engines.read_ahead import ReadAhead, refuse_inherited
from gmongo.engines.reaper import CursorReaper, Dropped
from gmongo.errors import OperationFailure, PyMongoError
from gmongo.execution.deadline import current_deadline
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import ImplicitSession, SessionHandle, SharedSession, state_of
from gmongo.operations.cursors import KillCursors, context_of
from gmongo.operations.find import CursorReply
from gmongo.wire.address import Address


class Lease:
    """A cursor on a server with what it holds: its session, its connection if that is pinned, and the batches that are
    read ahead.

    It ends with the reply that says so, by a command with :meth:`close`, or in the background with :meth:`drop`, as it
    does when it is collected.

    :param executor: runs `killCursors`.
    :param reaper: ends the cursor when the lease is dropped.
    :param opened: the reply that opened the cursor.
    :param session: that it was opened in.
    :param codec_options: how documents are decoded.
    :param time_limit: of the whole cursor, in seconds; None leaves each command its own.
    :param keeps_session: whether an implicit session stays with its owner, which goes on using it after the cursor.
    """

    __slots__ = (
        "_epoch",
        "_executor",
        "_keeps_session",
        "_left_open",
        "_namespace",
        "_reaper",
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
        reaper: CursorReaper,
        opened: CursorReply,
        session: SessionHandle | None,
        codec_options: CodecOptions[Value],
        time_limit: float | None,
        keeps_session: bool,
    ) -> None:
        self._executor = executor
        self._epoch = executor.epoch
        self._reaper = reaper
        self._time_limit = time_limit
        self._keeps_session = keeps_session
        self._left_open = 0  # the cursor's number, if nothing is asked of it any more but it may be open on the server
        self.cursor_id = opened.cursor_id  # 0 if there is nothing more to ask for
        self._namespace = opened.namespace
        self.address: Address = opened.address
        self.context = context_of(opened.namespace, codec_options)  # of the commands that go on with the cursor
        self.session = session
        self.pin = opened.pin
        self.ahead: ReadAhead | None = None

    def renew(self, reply: CursorReply) -> None:
        """Note what a reply says of the cursor; if that it has ended, give back what it held."""
        self.cursor_id = reply.cursor_id
        self.address = reply.address
        if reply.namespace != self._namespace:
            self._namespace = reply.namespace
            self.context = context_of(reply.namespace, self.context.codec_options)
        if self.cursor_id == 0:
            self.release()

    def refuse_inherited(self) -> None:
        """Refuse to go on with the cursor of the parent process.

        :raises AutoReconnect: there was a fork since the cursor was opened.
        """
        refuse_inherited(self._epoch, self._executor)

    def share_session(self) -> SharedSession | None:
        """Replace an implicit session by one that batches read ahead hold as well; None if there is none."""
        if isinstance(self.session, ImplicitSession):
            self.session = SharedSession(self.session)
            return self.session
        return None

    # Ending

    def give_up(self) -> None:
        """Ask for nothing more. What is still open on the server is ended by :meth:`close` or :meth:`drop`."""
        cursor_id, self.cursor_id = self.cursor_id, 0
        if cursor_id and self.ahead is not None:
            cursor_id = self.ahead.end()
        if cursor_id and not self._goes_with_connection():
            self._left_open = cursor_id

    def close(self) -> None:
        """End the cursor on the server, if it may be open there, and give back what it held.

        :raises InvalidOperation: another greenlet waits for a batch on the connection that is pinned to the cursor.
        """
        if self.pin is not None:
            if self.ahead is not None:
                self.ahead.stop()  # nothing else can be sent on its connection
            else:
                self.pin.check_free()
        self.give_up()
        session = self.session if self.session is not None and not self.session.has_ended else None
        try:
            if self._left_open and self._epoch == self._executor.epoch:
                operation = KillCursors(self.context, [self._left_open], self.address, self.pin)
                self._executor.run(operation, session, self._deadline_for_closing())
        except PyMongoError as error:
            if session is not None and self.pin is None:  # `killSessions` ends the cursor when the session ends
                state_of(session).server_session.interrupted(self.address)
            if error.timeout or not (self.pin or isinstance(error, OperationFailure)):
                self.drop()
        except BaseException:
            self.drop()
            raise
        finally:
            self._left_open = 0
            self.release()
            self.end_again(session)

    def end_again(self, session: SessionHandle | None) -> None:
        """Give back a server session that a command has taken after another greenlet had ended the cursor.

        :param session: the session of the command.
        """
        if type(session) is ImplicitSession and not self._keeps_session:
            session.end_implicit()

    def drop(self) -> None:
        """Leave the cursor, with all that it holds, to the reaper. Does no I/O and does not switch."""
        self.give_up()
        cursor_id, self._left_open = self._left_open, 0
        if self._goes_with_connection():
            cursor_id = 0
        session, self.session = self.session, None
        pin, self.pin = self.pin, None
        ahead, self.ahead = self.ahead, None
        implicit = session if isinstance(session, ImplicitSession) and not self._keeps_session else None
        if (cursor_id or implicit or pin) and self._epoch == self._executor.epoch:  # else it is the parent's
            kept = None if session is None or implicit is not None else state_of(session)
            self._reaper.take(Dropped(cursor_id, self._namespace, self.address, implicit, pin, ahead, kept))

    def __del__(self) -> None:
        # A finaliser may find the lease half made.
        if getattr(self, "cursor_id", 0) or getattr(self, "_left_open", 0) or getattr(self, "pin", None):
            self.drop()

    def release(self) -> None:
        """Give back what the cursor held: its implicit session, and its connection."""
        if self.ahead is not None:
            self.ahead.stop()
        if isinstance(self.session, ImplicitSession) and not self._keeps_session:
            self.session.end_implicit()
            self.session = None
        # The session first: to check the connection in delivers events, so it may switch and be interrupted.
        pin, self.pin = self.pin, None
        if pin is not None:
            pin.release()

    def _goes_with_connection(self) -> bool:
        """Whether the cursor has a connection that cannot be used any more, with which the server ends it."""
        return self.pin is not None and not self.pin.connection.usable

    def _deadline_for_closing(self) -> float | None:
        """As much time again as the cursor had, which may have used it up; or what is left of a limit set meanwhile."""
        limit, current = self._time_limit, current_deadline()
        if current is not None and current > _clock.monotonic():
            return current
        return self._executor.fresh_deadline() if limit is None else _clock.monotonic() + limit
