"""Executor of a client with observers.

It runs operations like the plain executor, and gives each an :class:`Account` of its progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from gmongo import _clock
from gmongo._documents import Document
from gmongo.events.command import CommandEvents, Sent
from gmongo.execution.account import Account, Observers, Wait
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Result
from gmongo.execution.sessions import SessionHandle, binding, bound_session, state_of
from gmongo.monitoring import CommandListener

if TYPE_CHECKING:
    from gmongo.errors import PyMongoError
    from gmongo.execution.context import OperationContext
    from gmongo.execution.operation import Operation
    from gmongo.execution.transaction import Transaction


def account_of(operation: Operation, observer: Observers) -> Account:
    """Return an account for an operation that begins now."""
    context = operation.context
    account = Account(operation.title, context.database, operation.collection, observer)
    account.cursor_id = getattr(operation, "cursor_id", None)
    return account


class ObservedCommands(CommandEvents):
    """Publisher of command events for command listeners and observers.

    :param listeners: command listeners.
    :param observers: observers of the client.
    """

    __slots__ = ("_listened",)

    def __init__(self, listeners: tuple[CommandListener, ...], observers: Observers) -> None:
        super().__init__(listeners, silent=False)
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

    def succeeded(self, sent: Sent, duration: float, reply: Document) -> None:
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


def _command_ended(sent: Sent, duration: float, reply: Document | None, error: BaseException | None) -> None:
    account: Account | None = sent.account
    if account is not None:
        account.exchanging += duration
        account.observer.command_ended(account, sent, reply, error)


class Observed(Executor):
    """Mixin that adds observers to an executor: see :func:`observed`."""

    observers: Observers  # never None

    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Result:
        observers, account = self.observers, operation.account
        observers.active = account is not None or observers.wanted()
        if account is not None:  # part of a larger operation, which owns the account
            return self._run_part(account, operation, session, deadline)
        if not observers.active:
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
            result = self._run_part(account, operation, session, deadline)
            observers.operation_ended(account, None)
            return result
        except BaseException as error:
            observers.operation_ended(account, error)
            if result is not None:  # thrown into the greenlet while an observer ran
                self.reap(operation, result)
            raise
        finally:
            operation.__dict__.pop("decode", None)
            operation.account = None

    def _run_part(
        self, account: Account, operation: Operation, session: SessionHandle | None, deadline: float | None
    ) -> Result:
        account.begin_try()
        try:
            return super().run(operation, session, deadline)
        except BaseException as error:
            account.end_try(error)
            raise

    def operation_scope(
        self, name: str, context: OperationContext, session: SessionHandle | None
    ) -> AbstractContextManager[Account | None]:
        if not self.observers.wanted():
            return super().operation_scope(name, context, session)
        if session is None:
            session = bound_session(self)
        collection = "" if context.database == "admin" else context.collection
        account = Account(name, context.database, collection, self.observers)
        return _scope(account, _transaction_of(False, session))

    def _will_retry(self, operation: Operation, error: PyMongoError) -> None:
        try:
            if operation.account is not None:
                operation.account.end_try(error)
                operation.account.observer.try_failed(operation.account, error)
        finally:
            del error  # avoids a reference cycle with the frames of the caller

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
        account.begin_try()

    def transaction_started(self, transaction: Transaction) -> None:
        transaction.observed = None
        if self.observers.wanted():
            self.observers.transaction_started(transaction)

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        if transaction.observed is not None:
            self.observers.transaction_ended(transaction, error)


def observed(kind: type[Executor]) -> type[Observed]:
    """Return the class of an executor with observers.

    :param kind: executor class without observers.
    """
    return type(f"Observed{kind.__name__}", (Observed, kind), {})


@contextmanager
def _scope(account: Account, transaction: Transaction | None) -> Iterator[Account]:
    """Notify the observers of the start and the end of an operation with several commands."""
    try:
        account.observer.operation_started(account, transaction)
        yield account
        account.observer.operation_ended(account, None)
    except BaseException as error:
        account.observer.operation_ended(account, error)
        raise


def _transaction_of(ends_transaction: bool, session: SessionHandle | None) -> Transaction | None:
    """Return the transaction of an operation, or None."""
    transaction = None if session is None else state_of(session).transaction
    return transaction if transaction is not None and (transaction.active or ends_transaction) else None
