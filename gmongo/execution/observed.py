"""The executor of a client that is observed. Others have none of this on their way.

It runs every operation as the plain one does, every try as an `Attempt`, and keeps an :class:`Account` beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from gmongo import _clock
from gmongo.cmap.checkout import Checkout
from gmongo.events.command import CommandEvents, Sent
from gmongo.execution.account import Account, Observers, Wait, account_of
from gmongo.execution.attempt import Attempt
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import SessionHandle, binding, bound_session, state_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from gmongo.cmap.connection import Connection
    from gmongo.cmap.pool import Pool
    from gmongo.errors import PyMongoError
    from gmongo.execution.context import OperationContext
    from gmongo.execution.operation import Operation
    from gmongo.execution.retry import Retry
    from gmongo.execution.transaction import Transaction
    from gmongo.sdam.server import Server
    from gmongo.sdam.topology import Topology


class ObservedCommands(CommandEvents):
    """The publisher of command events of a client that is observed: the observers hear of commands, too.

    :param listeners: command listeners.
    :param observers: of the client.
    """

    __slots__ = ("_listened",)

    def __init__(self, listeners: tuple[Any, ...], observers: Observers) -> None:
        super().__init__(listeners)
        self._listened = listened = self.wanted
        self.wanted = lambda: observers.active or listened()

    def started(self, sent: Sent) -> None:
        if self._listened():
            super().started(sent)
        account: Account | None = sent.account
        if account is not None:
            account.commands += 1
            account.sensitive = account.sensitive or sent.sensitive
            account.observer.command_started(account, sent)

    def succeeded(self, sent: Sent, duration: float, reply: Mapping[str, Any]) -> None:
        try:
            if self._listened():
                super().succeeded(sent, duration, reply)
        finally:
            _command_ended(sent, duration, reply, None)

    def failed(self, sent: Sent, duration: float, error: BaseException) -> None:
        try:
            if self._listened():
                super().failed(sent, duration, error)
        finally:
            _command_ended(sent, duration, None, error)


def _command_ended(sent: Sent, duration: float, reply: Any, error: BaseException | None) -> None:
    account: Account | None = sent.account
    if account is not None:
        account.exchanging += duration
        account.observer.command_ended(account, sent, reply, error)


class ObservedAttempt(Attempt):
    """One try, whose waits are noted."""

    __slots__ = ()

    def _select(self, topology: Topology, retry: Retry | None, deadline: float | None) -> Server:
        account = self.operation.account
        if account is None:
            return super()._select(topology, retry, deadline)
        account.tries += 1
        started = _clock.monotonic()
        try:
            server = super()._select(topology, retry, deadline)
        except BaseException as error:
            account.waited(Wait.SELECTION, started, error)
            raise
        account.waited(Wait.SELECTION, started, None)
        account.address = server.address
        description = topology.description.get(server.address)
        account.round_trip = (description and description.round_trip_time) or 0.0
        return server

    def _checkout(self, pool: Pool, deadline: float | None) -> Checkout:
        account = self.operation.account
        return super()._checkout(pool, deadline) if account is None else ObservedCheckout(pool, deadline, account)


class ObservedCheckout(Checkout):
    """The scope of a check-out that is noted.

    :param account: of the operation. The further parameters are those of all check-outs.
    """

    __slots__ = ("_account",)

    def __init__(self, pool: Pool, deadline: float | None, account: Account) -> None:
        super().__init__(pool, deadline)
        self._account = account

    def __enter__(self) -> Connection:
        account, started = self._account, _clock.monotonic()
        try:
            connection = super().__enter__()
        except BaseException as error:
            account.waited(Wait.CHECK_OUT, started, error)
            raise
        # One that the background has made is ready before its first use: it may have taken longer than the check-out.
        connecting = connection.established_in if connection.last_command is None else 0.0
        try:
            account.waited(Wait.CHECK_OUT, started, None, min(connecting, _clock.monotonic() - started))
        except BaseException as error:  # thrown from outside, while an observer lets others run
            self._pool.check_in(connection, error)
            raise
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection = self._connection
        seconds = _clock.monotonic() - connection.checked_out_at
        super().__exit__(kind, error, trace)
        if not self._kept:
            self._account.observer.connection_used(self._account, connection.address, seconds)


class Observed(Executor):
    """What makes an executor one that is observed: see :func:`observed`."""

    attempts = ObservedAttempt
    observers: Observers  # never None

    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Any:
        observers, account = self.observers, operation.account
        is_wanted = account is not None or observers.wanted()
        observers.active = is_wanted
        # It is read before anything lets another greenlet run.
        self._all_are_special = is_wanted or self.topology.settings.load_balanced
        if account is not None or not is_wanted:  # a part of a larger operation, which has the account
            return super().run(operation, session, deadline)
        if session is None and binding() is not None:
            session = bound_session(self)
        account = account_of(operation, observers)
        operation.account = account
        if observers.times_decoding:
            operation.__dict__["decode"] = partial(account.decode, operation.decode)
        result = None
        try:
            observers.operation_started(account, _transaction_of(operation.ends_transaction, session))
            result = super().run(operation, session, deadline)
            observers.operation_ended(account, None)
            return result
        except BaseException as error:
            observers.operation_ended(account, error)
            if result is not None:  # it was thrown from outside, while an observer let others run
                self._reap(operation, result)
            raise
        finally:
            operation.__dict__.pop("decode", None)
            operation.account = None

    def whole(self, name: str, context: OperationContext, session: SessionHandle | None) -> Any:
        if not self.observers.wanted():
            return super().whole(name, context, session)
        if session is None:
            session = bound_session(self)
        collection = "" if context.database == "admin" else context.collection
        account = Account(name, context.database, collection, self.observers)
        return _scope(account, _transaction_of(False, session))

    def _will_retry(self, operation: Operation, error: PyMongoError) -> None:
        try:
            if operation.account is not None:
                operation.account.observer.try_failed(operation.account, error)
        finally:
            del error  # it refers to the frames of the caller, and what is thrown into an observer to this one

    def _wait(self, seconds: float, operation: Operation) -> None:
        account, started = operation.account, _clock.monotonic()
        if account is None:
            return super()._wait(seconds, operation)
        try:
            super()._wait(seconds, operation)
        except BaseException as interruption:
            account.waited(Wait.BACK_OFF, started, interruption)
            raise
        if seconds > 0:
            account.waited(Wait.BACK_OFF, started, None)

    def transaction_started(self, transaction: Transaction) -> None:
        transaction.observed = None
        if self.observers.wanted():
            self.observers.transaction_started(transaction)

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        if transaction.observed is not None:
            self.observers.transaction_ended(transaction, error)


def observed(kind: type[Executor]) -> type[Observed]:
    """The class of executors that are observed, and otherwise of a kind.

    :param kind: the class that they have without that.
    """
    return type(f"Observed{kind.__name__}", (Observed, kind), {})


@contextmanager
def _scope(account: Account, transaction: Transaction | None) -> Iterator[Account]:
    """From the beginning of an operation of several commands to its end, whatever ends it."""
    try:
        account.observer.operation_started(account, transaction)
        yield account
        account.observer.operation_ended(account, None)
    except BaseException as error:
        account.observer.operation_ended(account, error)
        raise


def _transaction_of(ends_transaction: bool, session: SessionHandle | None) -> Transaction | None:
    """The transaction that an operation is part of."""
    transaction = None if session is None else state_of(session).transaction
    return transaction if transaction is not None and (transaction.active or ends_transaction) else None
