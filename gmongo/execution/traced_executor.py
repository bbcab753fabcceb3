"""Executor for a client that has observers. An :class:`OperationTrace` records each operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from gmongo import _clock
from gmongo._documents import Document
from gmongo.errors import PyMongoError
from gmongo.events.command import CommandEvents, SentCommand
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation, OperationContext, Result
from gmongo.execution.operation_trace import Observers, OperationTrace, Phase
from gmongo.execution.sessions import SessionHandle, bound_session, current_binding, state_of
from gmongo.execution.transaction import Transaction
from gmongo.monitoring import CommandListener


class TracedCommands(CommandEvents):
    """Publisher of command events that notifies command listeners and observers."""

    def __init__(self, listeners: tuple[CommandListener, ...], observers: Observers) -> None:
        super().__init__(listeners, silent=False)
        self._has_listeners = has_listeners = self.is_enabled
        self.is_enabled = lambda: observers.active or has_listeners()

    def started(self, sent: SentCommand) -> None:
        if self._has_listeners():
            super().started(sent)
        trace: OperationTrace | None = sent.trace
        if trace is not None:
            trace.command_count += 1
            trace.is_sensitive = trace.is_sensitive or sent.is_sensitive
            trace.observer.command_started(trace, sent)

    def succeeded(self, sent: SentCommand, duration: float, reply: Document) -> None:
        try:
            if self._has_listeners():
                super().succeeded(sent, duration, reply)
        finally:
            _command_ended(sent, duration, reply, None)

    def failed(self, sent: SentCommand, duration: float, error: BaseException) -> None:
        try:
            if self._has_listeners():
                super().failed(sent, duration, error)
        finally:
            _command_ended(sent, duration, None, error)


def _command_ended(sent: SentCommand, duration: float, reply: Document | None, error: BaseException | None) -> None:
    trace: OperationTrace | None = sent.trace
    if trace is not None:
        trace.exchange_time += duration
        trace.observer.command_ended(trace, sent, reply, error)


class TracedExecutor(Executor):
    """Executor that notifies observers. `with_observers` adds this class to an executor class."""

    observers: Observers  # never None

    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Result:
        observers, trace = self.observers, operation.trace
        observers.active = trace is not None or observers.is_enabled()
        if trace is not None:
            # The operation belongs to a bulk write, which has created the trace.
            return self._run_with_trace(trace, operation, session, deadline)
        if not observers.active:
            return super().run(operation, session, deadline)
        if session is None and current_binding() is not None:
            session = bound_session(self)
        trace = OperationTrace(operation.title, operation.context.database, operation.collection, observers)
        trace.cursor_id = getattr(operation, "cursor_id", None)
        operation.trace = trace
        if observers.times_decoding:
            operation.__dict__["decode"] = partial(trace.decode, operation.decode)
        result = None
        try:
            with _notify_start_and_end(trace, _transaction_of(operation.ends_transaction, session)):
                result = self._run_with_trace(trace, operation, session, deadline)
            return result
        except BaseException:
            if result is not None:  # the exception interrupted an observer
                self.reap(operation, result)
            raise
        finally:
            operation.__dict__.pop("decode", None)
            operation.trace = None

    def _run_with_trace(
        self, trace: OperationTrace, operation: Operation, session: SessionHandle | None, deadline: float | None
    ) -> Result:
        trace.begin_attempt()
        try:
            return super().run(operation, session, deadline)
        except BaseException as error:
            trace.end_attempt(error)
            raise

    def operation_scope(
        self, name: str, context: OperationContext, session: SessionHandle | None
    ) -> AbstractContextManager[OperationTrace | None]:
        if not self.observers.is_enabled():
            return super().operation_scope(name, context, session)
        if session is None:
            session = bound_session(self)
        collection = "" if context.database == "admin" else context.collection
        trace = OperationTrace(name, context.database, collection, self.observers)
        return _notify_start_and_end(trace, _transaction_of(False, session))

    def _will_retry(self, operation: Operation, error: PyMongoError) -> None:
        try:
            if operation.trace is not None:
                operation.trace.end_attempt(error)
                operation.trace.observer.attempt_failed(operation.trace, error)
        finally:
            del error  # prevent a reference cycle between this frame and the error

    def _wait(self, seconds: float, operation: Operation) -> None:
        trace, started = operation.trace, _clock.monotonic()
        if trace is None:
            return super()._wait(seconds, operation)
        try:
            super()._wait(seconds, operation)
        except BaseException as interruption:
            trace.wait_ended(Phase.BACK_OFF, started, interruption)
            raise
        if seconds > 0:
            trace.wait_ended(Phase.BACK_OFF, started, None)
        trace.begin_attempt()

    def transaction_started(self, transaction: Transaction) -> None:
        transaction.observer_data = None
        if self.observers.is_enabled():
            self.observers.transaction_started(transaction)

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        if transaction.observer_data is not None:
            self.observers.transaction_ended(transaction, error)


def with_observers(kind: type[Executor]) -> type[TracedExecutor]:
    """Return a subclass of `kind` that notifies observers."""
    return type(f"Traced{kind.__name__}", (TracedExecutor, kind), {})


@contextmanager
def _notify_start_and_end(trace: OperationTrace, transaction: Transaction | None) -> Iterator[OperationTrace]:
    """Notify the observers of the start and the end of the operation in the block."""
    try:
        trace.observer.operation_started(trace, transaction)
        yield trace
        trace.observer.operation_ended(trace, None)
    except BaseException as error:
        trace.observer.operation_ended(trace, error)
        raise


def _transaction_of(ends_transaction: bool, session: SessionHandle | None) -> Transaction | None:
    """Return the transaction of `session` if an operation uses or ends the transaction, else None."""
    transaction = None if session is None else state_of(session).transaction
    return transaction if transaction is not None and (transaction.active or ends_transaction) else None
