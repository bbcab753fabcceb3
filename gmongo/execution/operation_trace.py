"""Trace of one operation, and base class of the observers of a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TypeVar

from gmongo import _clock
from gmongo._documents import Document, Value
from gmongo._safe_log import safely
from gmongo.cmap.connection import Connection
from gmongo.errors import PyMongoError
from gmongo.events.command import SentCommand
from gmongo.execution.transaction import Transaction
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer

T = TypeVar("T")


class Phase(Enum):
    """Phase in which an operation waits before it sends a command."""

    SELECTION = "server selection"
    CHECK_OUT = "connection check-out"
    BACK_OFF = "back-off"


@dataclass(slots=True, eq=False, repr=False)
class OperationTrace:
    """Record of the progress of one operation for observers. Durations are in seconds."""

    name: str  # name of the operation in the API specifications, such as `find`
    database: str
    collection: str
    observer: Observers
    started: float = field(default_factory=lambda: _clock.monotonic())
    address: Address | None = None  # server of the last attempt
    cursor_id: int | None = None  # cursor ID of a `getMore`
    is_sensitive: bool = False  # True if a command or a reply may contain a secret
    attempt_count: int = 0
    waits_for: Phase | None = None  # phase of the current wait, or None
    wait_started: float = 0.0
    command_count: int = 0
    # The time in seconds that the operation waited in each phase:
    selection_time: float = 0.0
    check_out_time: float = 0.0
    backoff_time: float = 0.0
    connecting_time: float = 0.0  # the time in `check_out_time` to establish connections
    exchange_time: float = 0.0  # the time of all commands, from the first sent byte to the decoded reply
    decoding_time: float = 0.0  # the time in `exchange_time` in which the driver decoded replies
    round_trip_time: float = 0.0  # average round trip time of the server of the last attempt
    notes: dict[object, Value] = field(default_factory=dict)  # data of each observer

    def elapsed(self) -> float:
        return _clock.monotonic() - self.started

    @property
    def summary(self) -> str:
        """Operation name and namespace, such as ``find shop.orders``."""
        where = f"{self.database}.{self.collection}" if self.collection else self.database
        return f"{self.name} {where}"

    def wait_ended(self, phase: Phase, started: float, error: BaseException | None, connecting: float = 0.0) -> None:
        """Record the end of a wait. For `connecting` seconds, the pool established a connection."""
        seconds = _clock.monotonic() - started
        if phase is Phase.SELECTION:
            self.selection_time += seconds
        elif phase is Phase.CHECK_OUT:
            self.check_out_time += seconds
            self.connecting_time += connecting
        else:
            self.backoff_time += seconds
        self.observer.wait_ended(self, phase, seconds, connecting, error)

    def begin_attempt(self) -> None:
        self.attempt_count += 1
        self.waits_for, self.wait_started = Phase.SELECTION, _clock.monotonic()

    def end_selection(self, address: Address, topology: Topology) -> None:
        self.wait_ended(Phase.SELECTION, self.wait_started, None)
        self.address, description = address, topology.description.get(address)
        self.round_trip_time = (description and description.round_trip_time) or 0.0
        self.waits_for, self.wait_started = Phase.CHECK_OUT, _clock.monotonic()

    def end_check_out(self, connection: Connection) -> None:
        self.waits_for, waited = None, _clock.monotonic() - self.wait_started
        # The pool may have started to establish the connection before this check-out.
        connecting = connection.establishment_seconds if connection.last_command is None else 0.0
        self.wait_ended(Phase.CHECK_OUT, self.wait_started, None, min(connecting, waited))

    def record_pin(self) -> None:
        """Record that the attempt uses a pinned connection, and needs no check-out."""
        self.waits_for = None

    def end_attempt(self, error: BaseException) -> None:
        """Record the failure of the attempt, and the end of a wait in progress."""
        wait, self.waits_for = self.waits_for, None
        if wait is not None:
            self.wait_ended(wait, self.wait_started, error)

    def decode(self, decode: Callable[[Buffer], T], body: Buffer) -> T:
        started = _clock.monotonic()
        try:
            return decode(body)
        finally:
            self.decoding_time += _clock.monotonic() - started


class Observer:
    """Base class of observers such as metrics, which the executor notifies about operations.

    By default, the methods do nothing. Most methods run in the greenlet of the operation.
    """

    times_decoding = False  # True if the observer reads `OperationTrace.decoding_time`

    def is_enabled(self) -> bool:
        """Return True if the observer is active, so that operations have a trace."""
        return True

    def bind_context(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a function that calls `run` in the context of the current greenlet."""
        return run

    def operation_started(self, trace: OperationTrace, transaction: Transaction | None) -> None:
        """Handle the start of an operation, which may belong to a transaction."""

    def operation_ended(self, trace: OperationTrace, error: BaseException | None) -> None:
        """Handle the end of an operation: success, error or interruption."""

    def wait_ended(
        self, trace: OperationTrace, phase: Phase, seconds: float, connecting: float, error: BaseException | None
    ) -> None:
        """Handle the end of a wait. For `connecting` seconds, the pool established a connection."""

    def command_started(self, trace: OperationTrace, sent: SentCommand) -> None:
        """Handle a command that the driver is about to send."""

    def command_ended(
        self, trace: OperationTrace, sent: SentCommand, reply: Document | None, error: BaseException | None
    ) -> None:
        """Handle the end of a command. Either `reply` or `error` is None."""

    def connection_used(self, trace: OperationTrace, address: Address, seconds: float) -> None:
        """Handle the check-in of a connection after `seconds` of use."""

    def connection_made(self, address: Address, seconds: float) -> None:
        """Handle a connection that the pool has established in `seconds`."""

    def attempt_failed(self, trace: OperationTrace, error: PyMongoError) -> None:
        """Handle a failed attempt that the executor will retry."""

    def transaction_started(self, transaction: Transaction) -> None:
        """Handle the start of a transaction."""

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        """Handle the commit, the abort or the failure of a transaction."""


class Observers(Observer):
    """Group of all observers of one client, with the interface of a single observer.

    After an exception of an observer, the group prints the exception, and the operation continues. A
    kill or a timeout that interrupts an observer also interrupts the operation.
    """

    def __init__(self, observers: tuple[Observer, ...]) -> None:
        self.all = observers
        self.active = False  # True if an observer was active at the start of the last operation
        self.times_decoding = any(observer.times_decoding for observer in observers)
        # For speed, each method calls only the observers that override the method.
        for name in _CALLBACKS:
            default = getattr(Observer, name)
            methods = [getattr(each, name) for each in observers if getattr(type(each), name) is not default]
            setattr(self, name, _combine_methods(methods))

    def bind_context(self, run: Callable[[], None]) -> Callable[[], None]:
        for observer in self.all:
            run = observer.bind_context(run)
        return run

    def is_enabled(self) -> bool:
        for observer in self.all:  # noqa: SIM110 - hot path, in which a generator would be slow
            if observer.is_enabled():
                return True
        return False


_CALLBACKS = [name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_")]
_CALLBACKS.remove("is_enabled")
_CALLBACKS.remove("bind_context")


def _combine_methods(methods: list[Callable[..., None]]) -> Callable[..., None]:
    """Return a function that passes its arguments to all `methods`."""
    if len(methods) == 1:
        return partial(safely, methods[0])

    def call_all(*arguments: object) -> None:
        for method in methods:
            safely(method, *arguments)

    return call_all
