"""The executor: the one path from an operation to a server and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import bson

from gmongo.cmap.connection import Connection
from gmongo.errors import DocumentTooLarge, PyMongoError
from gmongo.events.command import CommandEvents, Sent
from gmongo.execution.classify import error_of
from gmongo.execution.operation import Operation
from gmongo.execution.retry import Retry, label_write_error
from gmongo.execution.sessions import ImplicitSession, ServerSession, ServerSessionPool, Session
from gmongo.sdam.fork import survive_fork
from gmongo.sdam.topology import Topology
from gmongo.topology_type import TOPOLOGY_TYPE
from gmongo.wire.address import Address
from gmongo.wire.message import MORE_TO_COME, encode_op_msg, next_request_id

# What the driver adds to a command may go this far beyond the largest document.
_COMMAND_OVERHEAD = 16 * 1024
_PRIMARY_PREFERRED = {"mode": "primaryPreferred"}
_NO_ADDRESSES: frozenset[Address] = frozenset()


@dataclass(frozen=True)
class ExecutionOptions:
    """What the executor is told at construction.

    :param retry_reads: whether reads are tried again once.
    :param retry_writes: whether writes are tried again once.
    """

    retry_reads: bool = True
    retry_writes: bool = True


class Executor:
    """Runs the operations of one client.

    :param topology: of the client.
    :param options: what to retry.
    :param events: the publisher of command events.
    """

    def __init__(self, topology: Topology, options: ExecutionOptions, events: CommandEvents) -> None:
        self.topology = topology
        self._options = options
        self._events = events
        self._api = topology.settings.connection.server_api
        self._sessions = ServerSessionPool()
        self.epoch = 0  # how many forks lie behind
        survive_fork(self)

    # The loop

    def run(self, operation: Operation, session: Session | None = None) -> Any:
        """Run an operation to its end, trying again where that is allowed, and return its result.

        :param session: a client session, or the session of a cursor; None takes an implicit one for this run.
        :raises PyMongoError: whatever went wrong.
        """
        if session is not None:
            session.check_use(self, operation.acknowledged)
            return self._run(operation, session)
        if not operation.takes_session or not operation.acknowledged:
            return self._run(operation, None)
        implicit = self.implicit_session()
        try:
            return self._run(operation, implicit)
        finally:
            implicit.end_implicit()

    def _run(self, operation: Operation, session: Session | None) -> Any:
        retry: Retry | None = None
        epoch = self.epoch
        while True:
            attempt = _Attempt(operation, session)
            try:
                return self._attempt(attempt, retry)
            except PyMongoError as error:
                if self.epoch != epoch:  # this greenlet is a forked child's copy of one of the parent's
                    _leave_to_parent(error, operation, session)
                    epoch = self.epoch
                if attempt.numbered:
                    label_write_error(error, self._wire_version(attempt))
                retry = retry or Retry(operation)
                retry.after(error, attempt.address, self._can_retry(attempt))

    def _can_retry(self, attempt: _Attempt) -> bool:
        operation = attempt.operation
        if operation.is_write:
            return attempt.numbered
        return operation.retryable and self._options.retry_reads

    def _wire_version(self, attempt: _Attempt) -> int:
        server = self.topology.description.get(attempt.address) if attempt.address else None
        return server.max_wire_version if server else 0

    def _attempt(self, attempt: _Attempt, retry: Retry | None) -> Any:
        """Select a server, check a connection out, and run the operation once."""
        operation = attempt.operation
        topology = self.topology
        if operation.address is None:
            failed_on = retry.failed_on if retry is not None else _NO_ADDRESSES
            server = topology.select_server(operation.selector, operation.name, None, failed_on)
        else:
            server = topology.server_at(operation.address)
        attempt.address = server.address
        if operation.is_write and operation.retryable:
            attempt.numbered = self._takes_number(operation, attempt)
            if retry is not None and operation.transaction_number is not None and not attempt.numbered:
                raise retry.error  # without its number the server could not tell the second try from a second write
        with server.pool.checkout() as connection:
            try:
                return self._run_on(connection, attempt)
            except BaseException as error:
                self._judge(error, connection, attempt)
                raise

    def _judge(self, error: BaseException, connection: Connection, attempt: _Attempt) -> None:
        """Let an error take effect on the session and the server, before the connection is checked in."""
        if attempt.session is not None and not connection.usable:
            attempt.session.server_session.dirty = True  # the server may still be busy with its command
        if isinstance(error, PyMongoError):
            self.topology.handle_error(connection, error)

    # One command

    def _run_on(self, connection: Connection, attempt: _Attempt) -> Any:
        operation = attempt.operation
        hello = connection.hello
        command = operation.command(hello)
        self._decorate(command, attempt, connection)
        body = bson.encode(command, False, operation.codec_options)
        sequence = operation.sequence(hello)
        if len(body) > hello.max_bson_size + _COMMAND_OVERHEAD:
            raise DocumentTooLarge(
                f"{operation.name} command is {len(body)} bytes, but the server takes documents "
                f"of at most {hello.max_bson_size} bytes"
            )
        request_id = next_request_id()
        flags = 0 if operation.acknowledged else MORE_TO_COME
        buffers = encode_op_msg(request_id, flags, body, sequence)
        if self._events.wanted():
            reply = self._exchange_observed(connection, operation, command, request_id, buffers)
        else:
            reply = self._exchange(connection, operation, request_id, buffers)
        if reply is None:
            return operation.unacknowledged_result()
        self._learn(reply, attempt)
        if not reply.get("ok") or "writeConcernError" in reply:
            error = error_of(reply, hello.max_wire_version)
            if error is not None:
                raise error
        return operation.result(reply, connection.address)

    def _exchange(
        self, connection: Connection, operation: Operation, request_id: int, buffers: list[bytes]
    ) -> dict[str, Any] | None:
        """Send and receive; None if there is no reply to wait for."""
        if operation.acknowledged:
            return operation.decode(connection.exchange(request_id, buffers, connection.socket_timeout).body)
        connection.send(buffers, connection.socket_timeout)
        return None

    def _exchange_observed(
        self,
        connection: Connection,
        operation: Operation,
        command: dict[str, Any],
        request_id: int,
        buffers: list[bytes],
    ) -> dict[str, Any] | None:
        """The same with events. Every started event gets its end, whatever is thrown meanwhile."""
        shown = operation.shown(command)
        sent = Sent(shown, operation.database, request_id, operation.operation_id or request_id, connection)
        started = monotonic()
        self._events.started(sent)
        try:
            reply = self._exchange(connection, operation, request_id, buffers)
            error = None if reply is None or reply.get("ok") else error_of(reply)
        except BaseException as failure:
            self._events.failed(sent, monotonic() - started, failure)
            raise
        duration = monotonic() - started
        if error is not None:
            self._events.failed(sent, duration, error)
        else:
            self._events.succeeded(sent, duration, {"ok": 1} if reply is None else operation.shown_reply(reply))
        return reply

    def _decorate(self, command: dict[str, Any], attempt: _Attempt, connection: Connection) -> None:
        """Put on what does not depend on the kind of command: the one place where that is done."""
        operation, session, hello = attempt.operation, attempt.session, connection.hello
        command["$db"] = operation.database
        if operation.read_concern:
            command["readConcern"] = operation.read_concern
        if operation.write_concern:
            command["writeConcern"] = operation.write_concern
        if session is not None and hello.sessions_supported:
            server_session = session.server_session
            server_session.last_used = monotonic()
            command["lsid"] = server_session.lsid
            if operation.takes_read_concern:
                session.decorate_read(command)
            if attempt.numbered:
                if operation.transaction_number is None:
                    server_session.transaction_number += 1
                    operation.transaction_number = bson.Int64(server_session.transaction_number)
                command["txnNumber"] = operation.transaction_number
        cluster_time = _newer(self.topology.cluster_time, None if session is None else session.cluster_time)
        if cluster_time is not None:
            command["$clusterTime"] = cluster_time
        self._add_read_preference(command, operation, connection)
        if self._api:
            command.update(self._api)

    def _takes_number(self, operation: Operation, attempt: _Attempt) -> bool:
        """Whether a write is numbered, so that the server can tell its second try from a second write."""
        if attempt.session is None or not self._options.retry_writes or attempt.address is None:
            return False
        server = self.topology.description.get(attempt.address)
        return server is not None and server.retryable_writes_supported

    def _add_read_preference(self, command: dict[str, Any], operation: Operation, connection: Connection) -> None:
        selector = operation.selector
        if selector.mode != 0:
            if connection.hello.is_standalone:
                return
            command["$readPreference"] = selector.document
        elif (
            not operation.is_write
            and self.topology.description.topology_type == TOPOLOGY_TYPE.Single
            and not connection.hello.is_mongos
            and not connection.hello.is_standalone
        ):
            # Asked of a member directly, any member answers.
            command["$readPreference"] = _PRIMARY_PREFERRED

    def _learn(self, reply: dict[str, Any], attempt: _Attempt) -> None:
        """Take the times out of a reply."""
        cluster_time = reply.get("$clusterTime")
        if cluster_time is not None:
            self.topology.advance_cluster_time(cluster_time)
        if attempt.session is not None:
            attempt.session.observe(reply)

    # Sessions

    def implicit_session(self) -> ImplicitSession:
        """A session for one operation or one cursor."""
        return ImplicitSession(self.take_session, self.give_session_back)

    def take_session(self) -> ServerSession:
        """Take a server session from the pool."""
        return self._sessions.acquire(self.topology.description.logical_session_timeout_minutes)

    def give_session_back(self, session: ServerSession) -> None:
        """Give a server session back to the pool."""
        self._sessions.release(session, self.topology.description.logical_session_timeout_minutes)

    def take_sessions(self) -> list[dict[str, Any]]:
        """Take the IDs of all unused sessions out of the pool, to end them on the server."""
        return self._sessions.drain()

    def inherited(self) -> None:
        """In a forked child: sessions and cursors are the parent's, who goes on using them."""
        self.epoch += 1
        self._sessions.forget()


class _Attempt:
    """One try of an operation."""

    __slots__ = ("address", "numbered", "operation", "session")

    def __init__(self, operation: Operation, session: Session | None) -> None:
        self.operation = operation
        self.session = session
        self.address: Address | None = None  # the server selected
        self.numbered = False  # whether it is a write with a transaction number, which may be tried again


def _leave_to_parent(error: PyMongoError, operation: Operation, session: Session | None) -> None:
    """In a forked child: a read is tried again, in a session of the child's own; a write is left to the parent."""
    if operation.is_write:
        raise error
    if session is not None:
        session.end_implicit()


def _newer(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The greater of two cluster times."""
    if one is None or other is None:
        return one or other
    return other if other["clusterTime"] > one["clusterTime"] else one
