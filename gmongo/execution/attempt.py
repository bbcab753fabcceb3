"""Attempt of an operation: select a server, check out a connection, run one command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.pin import PinnedConnection
from gmongo.cmap.pool import Pool
from gmongo.errors import AutoReconnect, OperationFailure, PyMongoError
from gmongo.execution.operation import Operation, Result
from gmongo.execution.retry import AttemptState, Retry, RetryPolicy
from gmongo.execution.server_session import ServerSession
from gmongo.execution.sessions import ImplicitSession, Session
from gmongo.execution.transaction import State, Transaction
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.sdam.topology import Topology, fork_error
from gmongo.wire.address import Address, address_text
from gmongo.wire.reply_schema import SESSION_SCHEMA, check


class AttemptOwner(Protocol):
    """The attributes and methods of an executor that an attempt uses."""

    topology: Topology
    policy: RetryPolicy
    run_command: Callable[[Attempt, Connection], Result]

    def reap(self, operation: Operation, result: Result) -> None: ...


class Attempt(AttemptState):
    """One attempt of an operation."""

    selector: Selector = WRITABLE  # the read preference, or WRITABLE for a write
    session: Session | None = None  # the explicit session, or the implicit session of a cursor
    # the server session if `session` is None. All attempts of the operation share this server session
    server_session: ServerSession | None = None
    retry: Retry | None = None  # the retry state after earlier attempts, or None in the first attempt
    deprioritized: frozenset[Address] = frozenset()  # used only if no other server is suitable

    def __init__(self, operation: Operation, deadline: float | None) -> None:
        self.operation = operation
        self.deadline = deadline
        if not operation.is_write:
            self.selector = operation.context.selector

    def run(self, executor: AttemptOwner) -> Result:
        topology = executor.topology
        self.epoch = topology.epoch
        operation = self.operation
        pin, transaction = None, None
        if self.session is not None or operation.address is not None:
            pin, transaction = self._load_pin_and_transaction()
            if pin is not None:
                topology.ensure_open()
                return self._run_pinned(pin, executor)
        limit = self.deadline
        if limit is not None:
            limit = min(limit, _clock.monotonic() + topology.settings.server_selection_timeout)
        trace = operation.trace
        if self.address is None:
            server = topology.selector.select(topology, self.selector, operation, limit, self.deprioritized)
            self.address = server.address
        else:
            server = topology.server_at(self.address, limit, operation.waits_for_server)
        if transaction is not None:
            if self.starts_transaction and topology.description.topology_type == TOPOLOGY_TYPE.Sharded:
                transaction.pinned_address = server.address
        elif operation.is_write:
            if operation.retryable and executor.policy.retry_writes and server.supports_retryable_writes:
                self.is_retryable_write = True
            elif self.retry is not None and operation.retryable and self.retry.maybe_executed:
                # An earlier attempt may have executed the write. The selected server cannot recognize
                # a retry.
                raise OperationFailure("Selected server does not support retryable writes") from self.retry.error
        if trace is not None:
            trace.end_selection(server.address, topology)
        connection = server.pool.check_out(limit)
        # Check in the connection after any exception, such as an error of the command, a kill, or a
        # timeout that interrupts an observer.
        try:
            if trace is not None:
                trace.end_check_out(connection)
            # If the process forked during the check-out, the server and the connection belong to the
            # parent process.
            if topology.epoch != self.epoch:
                raise fork_error()
            if transaction is not None and self.starts_transaction and topology.settings.load_balanced:
                pin = transaction.pin = PinnedConnection(server.pool, connection, Purpose.TRANSACTION)
            if operation.in_background:
                result = self._run_in_background(connection, executor)
            else:
                result = executor.run_command(self, connection)
            if (
                operation.opens_cursor
                and (operation.pins_connection or topology.settings.load_balanced)
                and operation.keeps_cursor_open(result)
            ):
                pin = PinnedConnection(server.pool, connection, Purpose.CURSOR) if pin is None else pin.share()
                result = operation.store_pin(result, pin)
        except BaseException as error:
            self.hello = connection.hello
            self._check_in(server.pool, connection, pin is not None, error)
            raise
        try:
            if pin is None and trace is None:
                server.pool.check_in(connection)
            else:
                self._check_in(server.pool, connection, pin is not None)
        except BaseException:  # the caller does not receive the result after an interruption
            executor.reap(operation, result)
            raise
        return result

    def _load_pin_and_transaction(self) -> tuple[PinnedConnection | None, Transaction | None]:
        """Return the operation's pinned connection and transaction, and set :attr:`address`."""
        operation = self.operation
        self.address = operation.address
        transaction = None if self.session is None else self.session.transaction
        if transaction is None or not (transaction.active or operation.ends_transaction):
            return operation.pin, None
        self.transaction = transaction
        self.starts_transaction = transaction.state is State.STARTING
        self.selector = operation.selector_in_transaction(transaction)
        self.address = self.address or transaction.pinned_address
        return operation.pin or transaction.pin, transaction

    def _run_pinned(self, pin: PinnedConnection, executor: AttemptOwner) -> Result:
        operation = self.operation
        self.address, self.hello = pin.connection.address, pin.connection.hello
        if pin.connection.error is not None and not isinstance(pin.connection.error, PyMongoError):
            raise AutoReconnect(
                f"{address_text(self.address)}: an interruption of an earlier command has closed the connection"
            )
        if operation.trace is not None:
            operation.trace.record_pin()
        with pin as connection:
            if operation.in_background:
                result = self._run_in_background(connection, executor)
            else:
                result = executor.run_command(self, connection)
        stays_open = operation.opens_cursor and operation.keeps_cursor_open(result)
        return operation.store_pin(result, pin.share()) if stays_open else result

    def _run_in_background(self, connection: Connection, executor: AttemptOwner) -> Result:
        connection.set_ref(False)
        try:
            return executor.run_command(self, connection)
        finally:
            connection.set_ref(True)

    def _check_in(self, pool: Pool, connection: Connection, pinned: bool, error: BaseException | None = None) -> None:
        """Check in an unpinned connection. For a pinned connection, only record the error."""
        if pinned:
            connection.record_failure(error)
            return
        trace = self.operation.trace
        seconds = 0.0 if trace is None else _clock.monotonic() - connection.checked_out_at
        pool.check_in(connection, error)
        if trace is not None:
            trace.observer.connection_used(trace, connection.address, seconds)

    def store_times(self, reply: DocumentDict) -> None:
        if self.session is not None and self.session.explicit is not None:
            check(reply, SESSION_SCHEMA)
            self.session.explicit.store_times(reply)
            if self.transaction is not None:
                self.transaction.store_recovery_token(reply)

    def next_attempt(self, retry: Retry) -> Attempt:
        """Return the next attempt of the operation, which uses the sessions of this attempt."""
        attempt = Attempt(self.operation, self.deadline)
        attempt.session, attempt.server_session = self.session, self.server_session
        attempt.retry, attempt.deprioritized = retry, retry.failed_addresses
        return attempt

    def belongs_to_parent(self) -> bool:
        """Return True for a write, an open cursor or an explicit session, which a forked child must not continue.

        Otherwise, drop the implicit session. The child then retries the read with a new session.
        """
        if self.operation.is_write or self.operation.address is not None:
            return True
        self.server_session = None
        if isinstance(self.session, ImplicitSession):
            self.session.forget()
        return self.session is not None and self.session.explicit is not None
