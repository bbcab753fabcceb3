"""One try of an operation: a server, a connection of its pool, one command on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import AutoReconnect, OperationFailure, PyMongoError
from gmongo.execution.operation import Operation, Result
from gmongo.execution.retry import Retry, RetryPolicy
from gmongo.execution.server_session import ServerSession
from gmongo.execution.sessions import Session
from gmongo.execution.transaction import State, Transaction
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.sdam.topology import Topology, forked
from gmongo.wire.address import Address, address_text
from gmongo.wire.reply_schema import TIMES, check

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool


class Commands(Protocol):
    """Runs one command on one connection."""

    def run(self, attempt: Attempt, connection: Connection) -> Result:
        """Run the command of an attempt."""


class AttemptOwner(Protocol):
    """The part of an executor that an attempt uses."""

    topology: Topology
    policy: RetryPolicy

    @property
    def commands(self) -> Commands:
        """Runs the commands of the client."""

    def reap(self, operation: Operation, result: Result) -> None:
        """End the cursor of a result that the caller does not get."""


class Attempt:
    """One try of an operation, and what the decision on another try needs to know of it.

    :param operation: to run.
    :param deadline: when the operation must have ended, on the clock of :mod:`gmongo._clock`.
    """

    # Every operation makes one, so `__init__` sets only what all have. The rest are class attributes until needed.
    selector: Selector = WRITABLE  # which servers suit
    session: Session | None = None  # of the application or of a cursor
    address: Address | None = None  # of the server
    hello: Hello | None = None  # of the connection that failed
    server_session: ServerSession | None = None  # if no session was given; all tries of the operation share it
    is_retryable_write = False  # whether it has a transaction number, by which the server knows a second try
    transaction: Transaction | None = None
    starts_transaction: bool  # if there is one
    retry: Retry | None = None  # what is known of the tries before
    avoided: frozenset[Address] = frozenset()  # servers that are only selected if there is no other

    def __init__(self, operation: Operation, deadline: float | None) -> None:
        self.operation = operation
        self.deadline = deadline
        if not operation.is_write:
            self.selector = operation.context.selector

    def run(self, executor: AttemptOwner) -> Result:
        """Select a server, check a connection out, and run the operation once."""
        topology = executor.topology
        self.epoch = topology.epoch
        operation = self.operation
        pin, transaction = None, None
        if self.session is not None or operation.address is not None:
            pin, transaction = self._go_on()
            if pin is not None:
                topology.ensure_open()
                return self._run_pinned(pin, executor)
        limit = self.deadline
        if limit is not None:
            limit = _time_to_connect(limit, topology)
        account = operation.account
        if self.address is None:
            server = topology.selector.select(topology, self.selector, operation, limit, self.avoided)
            self.address = server.address
        else:
            server = topology.server_at(self.address, limit, operation.waits_for_server)
        if transaction is not None:
            if self.starts_transaction and topology.description.topology_type == TOPOLOGY_TYPE.Sharded:
                transaction.pinned_address = server.address
        elif operation.is_write:
            if operation.retryable and executor.policy.retry_writes and server.supports_retryable_writes:
                self.is_retryable_write = True
            elif self.retry is not None:
                self._refuse_second_write(self.retry)
        if account is not None:
            account.selected(server.address, topology)
        connection = server.pool.check_out(limit)
        # From here on the connection is this try's to give back, whatever is thrown: by the command, by a kill or a
        # time-out while its reply is awaited, or in an observer.
        try:
            if account is not None:
                account.checked_out(connection)
            # The process may have forked while this waited. In the child, server and connection are the parent's.
            if topology.epoch != self.epoch:
                raise forked()
            if transaction is not None and self.starts_transaction and topology.settings.load_balanced:
                pin = transaction.pin = PinnedConnection(server.pool, connection, Purpose.TRANSACTION)
            if operation.in_background:
                result = self._run_in_background(connection, executor)
            else:
                result = executor.commands.run(self, connection)
            if operation.opens_cursor and self._keeps_connection(executor, result):
                pin = PinnedConnection(server.pool, connection, Purpose.CURSOR) if pin is None else pin.share()
                result = operation.pinned(result, pin)
        except BaseException as error:
            self.hello = connection.hello
            self._give_back(server.pool, connection, pin is not None, error)
            raise
        try:
            if pin is None and account is None:
                server.pool.check_in(connection)
            else:
                self._give_back(server.pool, connection, pin is not None)
        except BaseException:  # thrown into a listener or an observer: the caller does not get the result
            executor.reap(operation, result)
            raise
        return result

    def _go_on(self) -> tuple[PinnedConnection | None, Transaction | None]:
        """Where a cursor or a transaction goes on: its pinned connection or, in :attr:`address`, its server.

        :returns: that connection, if there is one; the transaction, if the operation is part of one.
        """
        operation = self.operation
        self.address = operation.address
        transaction = None if self.session is None else self.session.transaction
        if transaction is None or not (transaction.active or operation.ends_transaction):
            return operation.pin, None
        self.transaction = transaction
        self.starts_transaction = transaction.state is State.STARTING
        self.selector = operation.selector_in(transaction)
        self.address = self.address or transaction.pinned_address
        return operation.pin or transaction.pin, transaction

    def _keeps_connection(self, executor: AttemptOwner, result: Result) -> bool:
        """Whether the connection stays with the cursor that was opened on it."""
        operation = self.operation
        pins = operation.pins_connection or executor.topology.settings.load_balanced
        return pins and operation.keeps_cursor_open(result)

    def _run_pinned(self, pin: PinnedConnection, executor: AttemptOwner) -> Result:
        operation = self.operation
        self.address, self.hello = pin.connection.address, pin.connection.hello
        if pin.connection.error is not None and not isinstance(pin.connection.error, PyMongoError):
            raise AutoReconnect(
                f"{address_text(self.address)}: the connection is gone, as an earlier command on it was interrupted"
            )
        if operation.account is not None:
            operation.account.pinned()
        with pin as connection:
            if operation.in_background:
                result = self._run_in_background(connection, executor)
            else:
                result = executor.commands.run(self, connection)
        kept = operation.opens_cursor and operation.keeps_cursor_open(result)
        return operation.pinned(result, pin.share()) if kept else result

    def _run_in_background(self, connection: Connection, executor: AttemptOwner) -> Result:
        connection.hold_hub(False)
        try:
            return executor.commands.run(self, connection)
        finally:
            connection.hold_hub(True)

    def _refuse_second_write(self, retry: Retry) -> None:
        """Refuse another try where the server cannot tell it from a second write.

        :raises OperationFailure: the first try may have been executed.
        """
        if self.operation.retryable and retry.maybe_executed:
            raise OperationFailure("Selected server does not support retryable writes") from retry.error

    def _give_back(self, pool: Pool, connection: Connection, pinned: bool, error: BaseException | None = None) -> None:
        """Check the connection in, unless a cursor or a transaction holds it from now on and checks it in later.

        :param error: what has ended the use; None is a good end.
        """
        if pinned:
            connection.record_failure(error)
            return
        account = self.operation.account
        seconds = 0.0 if account is None else _clock.monotonic() - connection.checked_out_at
        pool.check_in(connection, error)
        if account is not None:
            account.observer.connection_used(account, connection.address, seconds)

    def observe(self, reply: DocumentDict) -> None:
        """Have the application's session and its transaction learn from a reply.

        :raises ProtocolError: its times are none.
        """
        if self.session is not None and self.session.explicit is not None:
            check(reply, TIMES)
            self.session.explicit.observe(reply)
            if self.transaction is not None:
                self.transaction.observe(reply)

    def following(self, retry: Retry) -> Attempt:
        """The next try of the same operation.

        :param retry: what is known of the tries so far.
        """
        following = Attempt(self.operation, self.deadline)
        following.session, following.server_session = self.session, self.server_session
        following.retry, following.avoided = retry, retry.failed_on
        return following

    def is_the_parents(self) -> bool:
        """Whether a forked child, whose greenlet is a copy of its parent's, leaves the operation to the parent.

        It does so with a write, and with the use of a cursor or of a session of the application's. Any other read it
        tries again, in a session of its own.
        """
        if self.operation.is_write or self.operation.address is not None:
            return True
        self.server_session = None
        if self.session is not None:
            self.session.end_implicit()
        return self.session is not None and self.session.explicit is not None


def _time_to_connect(deadline: float, topology: Topology) -> float:
    """When a try has to have its connection: both selection and check-out have to end in time.

    :param deadline: of the operation.
    """
    return min(deadline, _clock.monotonic() + topology.settings.server_selection_timeout)
