"""One try of an operation: a server, a connection, one command on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmongo import _clock
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.cmap.checkout import Checkout
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.cmap.shape import TIMES, check
from gmongo.errors import AutoReconnect, OperationFailure, PyMongoError
from gmongo.execution.operation import Operation
from gmongo.execution.sessions import Session
from gmongo.execution.transaction import State, Transaction
from gmongo.sdam.server import Server
from gmongo.sdam.topology import Topology, forked
from gmongo.wire.address import Address, address_text

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool
    from gmongo.execution.command import CommandRunner
    from gmongo.execution.retry import Retry, RetryPolicy

_NO_ADDRESSES: frozenset[Address] = frozenset()


def time_to_connect(deadline: float, topology: Topology) -> float:
    """When a try has to have its connection: both selection and check-out have to end in time.

    :param deadline: of the operation.
    """
    return min(deadline, _clock.monotonic() + topology.settings.server_selection_timeout)


class Attempt:
    """One try of an operation, and what the decision on another try needs to know of it.

    The first try of an operation without a session and a given server runs without one: it is made when such a try
    fails.

    :param operation: to run.
    :param session: to run it in, if any.
    :param deadline: when the operation must have ended, on the clock of :mod:`gmongo._clock`.
    """

    __slots__ = (
        "address",
        "deadline",
        "hello",
        "is_retryable_write",
        "operation",
        "result",
        "selector",
        "session",
        "starts_transaction",
        "transaction",
    )

    def __init__(self, operation: Operation, session: Session | None, deadline: float | None) -> None:
        self.operation = operation
        self.session = session
        self.deadline = deadline
        self.selector: Any = operation.selector
        self.address: Address | None = None  # of the server selected
        self.hello: Hello | None = None  # of the connection used
        self.is_retryable_write = False  # whether it has a transaction number, by which the server knows a second try
        self.result: Any = None
        self.transaction: Transaction | None = None
        self.starts_transaction = False
        transaction = None if session is None else session.transaction
        if transaction is not None and (transaction.active or operation.ends_transaction):
            self.transaction = transaction
            self.starts_transaction = transaction.state is State.STARTING
            self.selector = operation.selector_in(transaction)

    def run(self, topology: Topology, policy: RetryPolicy, commands: CommandRunner, retry: Retry | None) -> Any:
        """Select a server, check a connection out, and run the operation once.

        :param retry: what is known of the tries before; None before the first.
        """
        operation, transaction, epoch = self.operation, self.transaction, topology.epoch
        pin = operation.pin or (None if transaction is None else transaction.pin)
        if pin is not None:
            topology.ensure_open()
            return self._run_pinned(pin, commands)
        deadline = self.deadline
        if deadline is not None:
            deadline = time_to_connect(deadline, topology)
        server = self._select(topology, retry, deadline)
        if operation.is_write and transaction is None and self.session is not None:
            self.is_retryable_write = policy.is_retryable_write(operation, server)
        if retry is not None:
            self._check_number(retry)
        load_balanced = topology.settings.load_balanced
        checkout = self._checkout(server.pool, deadline)
        with checkout as connection:
            if topology.epoch != epoch:  # there was a fork while it waited for a server or a connection
                raise forked()
            if load_balanced and self.starts_transaction:
                transaction.pin = checkout.keep(Purpose.TRANSACTION)  # type: ignore[union-attr]
            self._run_on(connection, commands)
            if (load_balanced or operation.pins_connection) and operation.keeps_cursor_open(self.result):
                pinned = transaction is not None and transaction.pin is not None
                pin = transaction.pin.share() if pinned else checkout.keep(Purpose.CURSOR)  # type: ignore[union-attr]
                return operation.pinned(self.result, pin)
        return self.result

    def _run_pinned(self, pin: PinnedConnection, commands: CommandRunner) -> Any:
        operation = self.operation
        self.address = pin.connection.address
        if pin.connection.error is not None and not isinstance(pin.connection.error, PyMongoError):
            raise AutoReconnect(
                f"{address_text(self.address)}: the connection is gone, as an earlier command on it was interrupted"
            )
        with pin as connection:
            self._run_on(connection, commands)
        return operation.pinned(self.result, pin.share()) if operation.keeps_cursor_open(self.result) else self.result

    def _run_on(self, connection: Connection, commands: CommandRunner) -> None:
        self.hello = connection.hello
        in_background = self.operation.in_background
        if in_background:
            connection.hold_hub(False)
        try:
            self.result = commands.run(self.operation, connection, None, self.is_retryable_write, self.deadline, self)
        finally:
            if in_background:
                connection.hold_hub(True)

    def _select(self, topology: Topology, retry: Retry | None, deadline: float | None) -> Server:
        operation, transaction = self.operation, self.transaction
        address = operation.address or (None if transaction is None else transaction.pinned_address)
        if address is None:
            failed_on = retry.failed_on if retry is not None else _NO_ADDRESSES
            server = topology.select_server(self.selector, operation.name, deadline, failed_on, operation.operation_id)
        else:
            server = topology.server_at(address, deadline, operation.waits_for_server)
        self.address = server.address
        if self.starts_transaction and topology.description.topology_type == TOPOLOGY_TYPE.Sharded:
            transaction.pinned_address = server.address  # type: ignore[union-attr]
        return server

    def _checkout(self, pool: Pool, deadline: float | None) -> Checkout:
        return Checkout(pool, deadline)

    def _check_number(self, retry: Retry) -> None:
        """Refuse a second try of a write whose first one may have been executed, where it would be a second write.

        :raises OperationFailure: it would be.
        """
        operation = self.operation
        may_be_repeated = self.is_retryable_write or not retry.tried
        if operation.is_write and operation.retryable and self.transaction is None and not may_be_repeated:
            raise OperationFailure("Selected server does not support retryable writes") from retry.error

    def observe(self, reply: dict[str, Any]) -> None:
        """Have the application's session and its transaction learn from a reply.

        :raises ProtocolError: its times are none.
        """
        if self.session is not None and self.session.explicit is not None:
            check(reply, TIMES)
            self.session.explicit.observe(reply)
            if self.transaction is not None:
                self.transaction.observe(reply)
