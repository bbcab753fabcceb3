"""Command runner: build and send a command, publish events, receive the reply, and handle errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TypeAlias

import bson
from bson.errors import BSONError

from gmongo import _clock
from gmongo._documents import Document, DocumentDict
from gmongo._server_facts import codes
from gmongo.cmap.connection import Connection
from gmongo.cmap.hello import Hello
from gmongo.errors import DocumentTooLarge, NetworkTimeout, OperationFailure, ProtocolError, PyMongoError
from gmongo.events.command import CommandEvents, SentCommand
from gmongo.execution.attempt import Attempt
from gmongo.execution.command_fields import CommandFields
from gmongo.execution.operation import Operation, Result
from gmongo.execution.reply_errors import error_of, malformed_reply_error, raise_error_of
from gmongo.execution.server_session import ServerSession, ServerSessionPool
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address
from gmongo.wire.message import MORE_TO_COME, Buffer, next_request_id
from gmongo.wire.reply_schema import CLUSTER_TIME, SESSION_SCHEMA, check
from gmongo.wire.timeout import remaining

_OrphanTaker: TypeAlias = Callable[[], Callable[[Result], None] | None]


class CommandRunner:
    """Runner of the commands of one client. The runner reports errors and cluster times to the topology."""

    def __init__(self, topology: Topology, events: CommandEvents, sessions: ServerSessionPool) -> None:
        self._topology = topology
        self._events = events
        self._events_enabled = events.is_enabled
        self._fields = CommandFields(topology, sessions)
        # Function that returns `CursorKiller.take_orphan`, or None after the deletion of the client
        self.orphan_taker: _OrphanTaker = lambda: None

    def run(self, attempt: Attempt, connection: Connection, reauthenticates: bool = True) -> Result:
        """Run one command. After an error, update the connection, session and server before check-in.

        If `reauthenticates` is true, the method may authenticate again, and repeat the command.
        """
        operation = attempt.operation
        deadline = attempt.deadline
        hello = connection.hello
        connection.last_command = operation.name
        reply = sent = None
        try:
            command = operation.command(hello)
            self._fields.add_fields(command, attempt, connection)
            body = bson.encode(command, False, operation.context.codec_options)
            if len(body) > hello.max_command_size:
                raise _too_large_error(operation, body, hello)
            request_id = next_request_id()
            buffers = operation.message(request_id, 0 if operation.acknowledged else MORE_TO_COME, body, hello)
            if self._events_enabled():
                sent = self._describe_command(operation, connection, command, request_id)
                self._events.started(sent)
            if attempt.transaction is not None:
                attempt.transaction.record_command()
            timeout = connection.socket_timeout if deadline is None else remaining(deadline)
            if operation.acknowledged:
                reply = connection.exchange(request_id, buffers, timeout, operation.decode)
            else:
                connection.send(buffers, timeout)
            if sent is not None:
                outcome = self._describe_outcome(operation, reply)
                ended_command, sent = sent, None
                self._publish_end(ended_command, *outcome)
            if reply is None:
                return operation.unacknowledged_result()
            try:
                cluster_time = reply.get("$clusterTime")
                if cluster_time is not None:
                    if CLUSTER_TIME(cluster_time) is not None:
                        check(reply, SESSION_SCHEMA)  # raises an error that names the invalid field
                    self._topology.advance_cluster_time(cluster_time)
                if attempt.session is not None:
                    attempt.store_times(reply)
                if reply.get("ok") != 1 or "writeConcernError" in reply:
                    raise_error_of(reply, hello.max_wire_version, operation.concern_first)
                return operation.result(reply, connection.address)
            except (PyMongoError, BSONError):
                raise
            except Exception as failure:
                raise malformed_reply_error(failure, operation)
        except BaseException as error:
            if not (reauthenticates and _requires_reauthentication(error, connection)):
                self._report_error(error, attempt, connection, sent, reply)
                raise
        self._reauthenticate(attempt, connection)
        return self.run(attempt, connection, False)

    def _reauthenticate(self, attempt: Attempt, connection: Connection) -> None:
        try:
            connection.reauthenticate(remaining(attempt.deadline))
        except BaseException as error:
            self._report_error(error, attempt, connection, None, None)
            raise

    def _describe_command(
        self, operation: Operation, connection: Connection, command: DocumentDict, request_id: int
    ) -> SentCommand:
        if operation.operation_id is None:
            operation.operation_id = request_id  # a retry keeps the operation ID of the first attempt
        event_command = operation.for_monitoring(command)
        return SentCommand(
            event_command, operation.context.database, request_id, operation.operation_id, connection, operation.trace
        )

    def _describe_outcome(
        self, operation: Operation, reply: DocumentDict | None
    ) -> tuple[PyMongoError | None, Document]:
        if reply is None:
            return None, {"ok": 1}
        error = None if reply.get("ok") == 1 else error_of(reply)
        return error, self._events.monitored_reply(operation.reply_for_monitoring, reply)

    def _publish_end(self, sent: SentCommand, error: PyMongoError | None, event_reply: Document) -> None:
        duration = _clock.monotonic() - sent.started
        if error is not None:
            self._events.failed(sent, duration, error)
        else:
            self._events.succeeded(sent, duration, event_reply)

    def _report_error(
        self,
        error: BaseException,
        attempt: Attempt,
        connection: Connection,
        sent: SentCommand | None,
        reply: DocumentDict | None,
    ) -> None:
        """Apply the error to the connection, session and server, and publish the failed event.

        If the operation was interrupted, kill the cursor in `reply`.
        """
        try:
            if sent is not None:
                self._events.failed(sent, _clock.monotonic() - sent.started, error)
        except BaseException as interruption:
            error = interruption
            raise
        finally:
            if isinstance(error, ProtocolError):  # later data on the connection is unreliable
                connection.mark_unusable(error)
            session = None
            if not connection.usable:
                # The server may still run the command, although the connection is unusable.
                session = attempt.server_session if attempt.session is None else attempt.session.server_session
            if session is not None:
                operation = attempt.operation
                is_driver_error = isinstance(error, (PyMongoError, BSONError))
                session.dirty = session.dirty or is_driver_error
                may_have_cursor = operation.opens_cursor or operation.waits_for_documents
                if not is_driver_error or isinstance(error, NetworkTimeout) or may_have_cursor:
                    # The session reaper later ends the command or kills the cursor.
                    session.record_interruption(connection.address)
                else:
                    session = None
            if connection.unanswered_request_id is not None:
                # The handler has no strong reference to the client, which the application may delete.
                handler = partial(_handle_late_reply, attempt.operation, connection.address, self.orphan_taker, session)
                connection.expect_late_reply(handler, _max_time_ended(attempt, error))
            if isinstance(error, PyMongoError):
                self._topology.handle_error(connection, error)
            elif reply is not None:
                self.reap(attempt.operation.orphaned_cursor(reply, connection.address))
            del error  # prevent a reference cycle between this frame and the error

    def reap(self, cursor: object) -> None:
        _kill_cursor(self.orphan_taker, cursor)


def _kill_cursor(orphan_taker: _OrphanTaker, cursor: object) -> None:
    take = orphan_taker()
    if cursor is not None and take is not None:
        take(cursor)


def _handle_late_reply(
    operation: Operation, address: Address, taker: _OrphanTaker, session: ServerSession | None, body: Buffer
) -> None:
    """Kill the cursor in a late reply, and record the reply in the session, without a switch."""
    _kill_cursor(taker, operation.late_cursor(body, address))
    if session is not None:
        session.record_reply(address)


def _max_time_ended(attempt: Attempt, error: BaseException | None) -> bool:
    """Return True if the late reply arrives soon, because ``maxTimeMS`` has elapsed on the server."""
    has_max_time = attempt.operation.takes_max_time or attempt.operation.waits_for_documents
    return has_max_time and isinstance(error, NetworkTimeout) and attempt.deadline not in (None, inf)


def _requires_reauthentication(error: BaseException, connection: Connection) -> bool:
    return (
        isinstance(error, OperationFailure)
        and error.code == codes.REAUTHENTICATION_REQUIRED
        and connection.authentication is not None
    )


def _too_large_error(operation: Operation, body: bytes, hello: Hello) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"{operation.name} command is {len(body)} bytes, but the server takes documents "
        f"of at most {hello.max_bson_size} bytes"
    )
