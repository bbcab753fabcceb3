"""The executor: the one path from an operation to a server and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import bson
from bson.errors import BSONError
from gevent import sleep

from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.overload import OVERLOADED, RETRYABLE
from gmongo.cmap.shape import CLUSTER_TIME, TIMES, check
from gmongo.errors import DocumentTooLarge, OperationFailure, ProtocolError, PyMongoError
from gmongo.events.command import CommandEvents, Sent
from gmongo.execution.attempt import Attempt
from gmongo.execution.classify import error_of, misread, raise_error_of
from gmongo.execution.deadline import current_deadline, deadline_after, remaining
from gmongo.execution.decorate import Decorator
from gmongo.execution.operation import Operation
from gmongo.execution.overload import BASE_BACKOFF, MAX_RETRIES, Overload
from gmongo.execution.retry import Retry, explained, label_write_error
from gmongo.execution.sessions import (
    ImplicitSession,
    ServerSessionPool,
    Session,
    binding,
    bound_session,
    checked_session,
)
from gmongo.execution.transaction import TRANSIENT
from gmongo.sdam.fork import survive_fork
from gmongo.sdam.server import Server
from gmongo.sdam.topology import Topology
from gmongo.topology_type import TOPOLOGY_TYPE
from gmongo.wire.address import Address
from gmongo.wire.message import MORE_TO_COME, encode_op_msg, next_request_id

# What the driver adds to a command may go this far beyond the largest document.
_COMMAND_OVERHEAD = 16 * 1024
_REAUTHENTICATION_REQUIRED = 391
_NO_ADDRESSES: frozenset[Address] = frozenset()


@dataclass(frozen=True)
class ExecutionOptions:
    """What the executor is told at construction.

    :param retry_reads: whether reads are tried again.
    :param retry_writes: whether writes are tried again.
    :param timeout: limit for one operation in all, in seconds; 0 is without limit, None leaves it to the other limits.
    :param max_adaptive_retries: tries of an operation after errors of an overloaded server.
    :param base_backoff: the longest wait before the first of them, in seconds.
    :param overload_retargeting: whether an overloaded server is passed over then.
    """

    retry_reads: bool = True
    retry_writes: bool = True
    timeout: float | None = None
    max_adaptive_retries: int = MAX_RETRIES
    base_backoff: float = BASE_BACKOFF
    overload_retargeting: bool = True


class Executor:
    """Runs the operations of one client.

    :param topology: of the client.
    :param options: what to retry, and for how long.
    :param events: the publisher of command events.
    """

    def __init__(self, topology: Topology, options: ExecutionOptions, events: CommandEvents) -> None:
        self.topology = topology
        self.overload = Overload(
            options.max_adaptive_retries, options.base_backoff, retargeting=options.overload_retargeting
        )
        self._options = options
        self._events = events
        self._decorator = Decorator(topology)
        self._load_balanced = topology.settings.load_balanced
        self.sessions = ServerSessionPool(topology)
        # Told of cursors that nobody will know of.
        self.cursor_lost: Callable[[], Callable[[Any], None] | None] = _nobody
        self.epoch = 0  # how many forks lie behind
        survive_fork(self)

    # The loop

    def run(self, operation: Operation, session: Session | None = None, deadline: float | None = None) -> Any:
        """Run an operation to its end, trying again where that is allowed, and return its result.

        :param session: a client session, or the session of a cursor; None takes an implicit one for this run.
        :param deadline: when it must have ended; None is that of :func:`gmongo.timeout`, or ``timeoutMS`` from now on.
        :raises PyMongoError: whatever went wrong.
        """
        if deadline is None:
            deadline = self.deadline()
        if session is None and binding() is not None:
            session = bound_session(self)
        if session is not None:
            checked_session(session).begin(self, operation)
            try:
                return self._run(operation, session, deadline)
            finally:
                session.end_use()
        if not operation.takes_session or not operation.acknowledged:
            return self._run(operation, None, deadline)
        implicit = ImplicitSession(self.sessions)
        try:
            return self._run(operation, implicit, deadline)
        finally:
            implicit.end_implicit()

    def deadline(self) -> float | None:
        """When an operation that begins now must have ended; None is without limit."""
        deadline = current_deadline()
        if deadline is None and self._options.timeout is not None:
            return deadline_after(self._options.timeout)
        return deadline

    def fresh_deadline(self) -> float | None:
        """``timeoutMS`` from now on, whatever limit is in force: for what has to be done after it has passed."""
        return deadline_after(self._options.timeout)

    def _run(self, operation: Operation, session: Session | None, deadline: float | None) -> Any:
        retry: Retry | None = None
        error: PyMongoError | None = None
        epoch = self.epoch
        try:
            while True:
                attempt = Attempt(operation, session, deadline)
                try:
                    result = self._attempt(attempt, retry)
                except PyMongoError as failure:
                    error = explained(failure) if attempt.numbered else failure
                    if self.epoch != epoch:  # this greenlet is a forked child's copy of one of the parent's
                        if operation.is_write:
                            raise error
                        _use_own_session(session)
                        epoch = self.epoch
                    self._label(error, attempt)
                    retry = retry or Retry(operation, self.overload, deadline)
                    delay = self._delay(error, attempt, retry)
                    if delay is None:
                        raise retry.error
                    self._wait(delay)
                except BaseException:  # in a listener, perhaps
                    self._abandon(attempt)
                    raise
                else:
                    bucket = self.overload.bucket
                    if bucket.missing and operation.retries_overload:  # what is done in passing tells no load
                        bucket.deposit(1 if retry is None else 11)
                    return result
        finally:
            # An error refers to the frames that it went through, and so to the callers' locals. If a frame referred to
            # the error as well, all of that would live on until the garbage collector runs.
            error = None
            if retry is not None:
                retry.forget_error()

    def _abandon(self, attempt: Attempt) -> None:
        """An interruption came after the reply: see that a cursor which nobody will know of is ended."""
        if attempt.reply is not None and attempt.address is not None:
            cursor = attempt.operation.abandoned(attempt.reply, attempt.address)
            take = self.cursor_lost()
            if cursor is not None and take is not None:
                take(cursor)

    def _delay(self, error: PyMongoError, attempt: Attempt, retry: Retry) -> float | None:
        """Seconds until the next try; None if there is none, but the error of `retry` for the user."""
        regular, any_kind = self._is_regular(attempt), self._is_allowed(attempt.operation)
        delay = retry.after(error, self._to_pass_over(error, attempt), regular, any_kind)
        if delay is None and attempt.transaction is not None and retry.error.has_error_label(TRANSIENT):
            attempt.transaction.unpin()
        return delay

    def _label(self, error: PyMongoError, attempt: Attempt) -> None:
        """Add the labels that the server leaves to the driver, and let the transaction know."""
        transaction, operation = attempt.transaction, attempt.operation
        if attempt.numbered or operation.ends_transaction:
            label_write_error(error, attempt.max_wire_version, attempt.is_mongos)
        if transaction is not None:
            unread = error.has_error_label(RETRYABLE)
            if unread and attempt.starts:
                transaction.not_begun()
            operation.failed_in(transaction, error, unread and error.has_error_label(OVERLOADED))

    def _is_regular(self, attempt: Attempt) -> bool:
        """Whether a try after an error of the network or an election is allowed."""
        operation = attempt.operation
        if attempt.transaction is not None:
            return operation.ends_transaction
        if operation.is_write:
            return attempt.numbered
        return operation.retryable and self._options.retry_reads

    def _is_allowed(self, operation: Operation) -> bool:
        """Whether the options allow a try of this kind of operation after an error labelled as retryable (BP-A06)."""
        options = self._options
        if operation.ends_transaction:
            return True
        if not operation.retries_overload:
            return False
        if operation.needs_retry_writes:
            return options.retry_writes
        return options.retry_reads and (options.retry_writes or not operation.is_generic)

    def _to_pass_over(self, error: PyMongoError, attempt: Attempt) -> Address | None:
        """The server on which the next try should not run, if there is another (BP-A13)."""
        sharded = self.topology.description.topology_type == TOPOLOGY_TYPE.Sharded
        return attempt.address if sharded or error.has_error_label(OVERLOADED) else None

    def _wait(self, seconds: float) -> None:
        """Wait before the next try. Nothing is held meanwhile, and a kill or a time-out ends it at once."""
        if seconds > 0:
            self.overload.slept += seconds
            sleep(seconds)

    # One try

    def _attempt(self, attempt: Attempt, retry: Retry | None) -> Any:
        """Select a server, check a connection out, and run the operation once."""
        operation, transaction = attempt.operation, attempt.transaction
        pin = operation.pin or (None if transaction is None else transaction.pin)
        if pin is not None:
            self.topology.check_use()
            attempt.address = pin.connection.address
            with pin as connection:
                result = self._run_judged(connection, attempt)
            return operation.pinned(result, pin.share()) if operation.leaves_cursor(result) else result
        deadline = attempt.deadline
        if deadline is not None:  # both selection and check-out have to end in time
            deadline = min(deadline, monotonic() + self.topology.settings.server_selection_timeout)
        server = self._select(attempt, retry, deadline)
        if operation.is_write and operation.retryable and transaction is None:
            attempt.numbered = self._takes_number(attempt)
            if retry is not None and retry.tried and not attempt.numbered:
                # Without its number the server could not tell the second try from a second write.
                raise OperationFailure("Selected server does not support retryable writes") from retry.error
        checkout = server.pool.checkout(deadline)
        with checkout as connection:
            if self._load_balanced and attempt.starts:
                attempt.transaction.pin = checkout.keep(Purpose.TRANSACTION)  # type: ignore[union-attr]
            result = self._run_judged(connection, attempt)
            if self._load_balanced and operation.leaves_cursor(result):
                if transaction is not None and transaction.pin is not None:
                    return operation.pinned(result, transaction.pin.share())
                return operation.pinned(result, checkout.keep(Purpose.CURSOR))
            return result

    def _select(self, attempt: Attempt, retry: Retry | None, deadline: float | None) -> Server:
        operation, transaction, topology = attempt.operation, attempt.transaction, self.topology
        address = operation.address or (None if transaction is None else transaction.pinned_address)
        if address is None:
            failed_on = retry.failed_on if retry is not None else _NO_ADDRESSES
            server = topology.select_server(
                attempt.selector, operation.name, deadline, failed_on, operation.operation_id
            )
        else:
            server = topology.server_at(address, deadline, operation.waits_for_server)
        attempt.address = server.address
        if attempt.deadline is not None:
            description = topology.description.get(server.address)
            attempt.min_round_trip_time = description.min_round_trip_time if description else 0.0
        if attempt.starts and topology.description.topology_type == TOPOLOGY_TYPE.Sharded:
            attempt.transaction.pinned_address = server.address  # type: ignore[union-attr]
        return server

    def _takes_number(self, attempt: Attempt) -> bool:
        """Whether a write is numbered, so that the server can tell its second try from a second write."""
        if attempt.session is None or not self._options.retry_writes or attempt.address is None:
            return False
        server = self.topology.description.get(attempt.address)
        return server is not None and server.retryable_writes_supported

    def _run_judged(self, connection: Connection, attempt: Attempt) -> Any:
        try:
            try:
                return self._run_on(connection, attempt)
            except OperationFailure as error:
                if error.code != _REAUTHENTICATION_REQUIRED or connection.authentication is None:
                    raise
            connection.reauthenticate(remaining(attempt.deadline))
            return self._run_on(connection, attempt)
        except BaseException as error:
            self._judge(error, connection, attempt)
            raise

    def _judge(self, error: BaseException, connection: Connection, attempt: Attempt) -> None:
        """Let an error take effect on the connection, the session and the server, before the first is checked in."""
        if isinstance(error, ProtocolError):
            connection.spoil(error)  # a server that has lied once is not believed again on it
        if attempt.session is not None and not connection.usable:
            attempt.session.server_session.dirty = True  # the server may still be busy with its command
        if isinstance(error, PyMongoError):
            self.topology.handle_error(connection, error)

    # One command

    def _run_on(self, connection: Connection, attempt: Attempt) -> Any:
        operation = attempt.operation
        hello = connection.hello
        connection.last_command = operation.name
        attempt.max_wire_version, attempt.is_mongos = hello.max_wire_version, hello.is_mongos
        command = operation.command(hello)
        self._decorator.decorate(command, attempt, connection)
        body = bson.encode(command, False, operation.codec_options)
        sequences = operation.sequences(hello)
        if len(body) > hello.max_bson_size + _COMMAND_OVERHEAD:
            raise DocumentTooLarge(
                f"{operation.name} command is {len(body)} bytes, but the server takes documents "
                f"of at most {hello.max_bson_size} bytes"
            )
        request_id = next_request_id()
        flags = 0 if operation.acknowledged else MORE_TO_COME
        buffers = encode_op_msg(request_id, flags, body, sequences)
        if self._events.wanted():
            reply = self._exchange_observed(connection, attempt, command, request_id, buffers)
        else:
            reply = self._exchange(connection, attempt, request_id, buffers)
        if reply is None:
            return operation.unacknowledged_result()
        try:
            self._learn(reply, attempt)
            if reply.get("ok") != 1 or "writeConcernError" in reply:
                raise_error_of(reply, hello.max_wire_version)
            return operation.result(reply, connection.address)
        except (PyMongoError, BSONError):
            raise
        except Exception as failure:
            raise misread(failure, operation)

    def _exchange(
        self, connection: Connection, attempt: Attempt, request_id: int, buffers: list[bytes]
    ) -> dict[str, Any] | None:
        """Send and receive; None if there is no reply to wait for."""
        if attempt.transaction is not None:
            attempt.transaction.sent()
        deadline = attempt.deadline
        limit = connection.socket_timeout if deadline is None else remaining(deadline)
        if attempt.operation.acknowledged:
            reply = attempt.reply = connection.exchange(request_id, buffers, limit, attempt.operation.decode)
            return reply
        connection.send(buffers, limit)
        return None

    def _exchange_observed(
        self,
        connection: Connection,
        attempt: Attempt,
        command: dict[str, Any],
        request_id: int,
        buffers: list[bytes],
    ) -> dict[str, Any] | None:
        """The same with events. Every started event gets its end, whatever is thrown meanwhile."""
        operation = attempt.operation
        shown = operation.shown(command)
        if operation.operation_id is None:
            operation.operation_id = request_id  # of the first try, which all further ones keep
        sent = Sent(shown, operation.database, request_id, operation.operation_id, connection)
        started = monotonic()
        try:
            self._events.started(sent)
            reply = self._exchange(connection, attempt, request_id, buffers)
            error = None if reply is None or reply.get("ok") == 1 else error_of(reply)
            shown_reply = {"ok": 1} if reply is None else operation.shown_reply(reply)
        except BaseException as failure:
            self._events.failed(sent, monotonic() - started, failure)
            raise
        duration = monotonic() - started
        if error is not None:
            self._events.failed(sent, duration, error)
        else:
            self._events.succeeded(sent, duration, shown_reply)
        return reply

    def _learn(self, reply: dict[str, Any], attempt: Attempt) -> None:
        """Take the times out of a reply.

        :raises ProtocolError: they are none.
        """
        cluster_time = reply.get("$clusterTime")
        if cluster_time is not None:
            if CLUSTER_TIME(cluster_time) is not None:
                check(reply, TIMES)  # which says why
            self.topology.advance_cluster_time(cluster_time)
        if attempt.session is not None and attempt.session.explicit is not None:
            check(reply, TIMES)
            attempt.session.explicit.observe(reply)
            if attempt.transaction is not None:
                attempt.transaction.observe(reply)

    # Sessions

    def implicit_session(self) -> Session:
        """A session for one operation or one cursor: the one that is bound here, or an implicit one."""
        return bound_session(self) or ImplicitSession(self.sessions)

    def inherited(self) -> None:
        """In a forked child: sessions and cursors are the parent's, who goes on using them."""
        self.epoch += 1
        self.sessions.forget()


def _nobody() -> None:
    return None


def _use_own_session(session: Session | None) -> None:
    """In a forked child: a read is tried again, in a session of the child's own. A write is left to the parent."""
    if session is not None:
        session.end_implicit()
