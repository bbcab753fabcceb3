"""What one operation does, and where its time goes: kept by the executor of a client that is observed."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gmongo import _clock
from gmongo._documents import Document, Value
from gmongo._safe_log import safely
from gmongo.wire.message import Buffer

if TYPE_CHECKING:
    from gmongo.cmap.connection import Connection
    from gmongo.errors import PyMongoError
    from gmongo.events.command import Sent
    from gmongo.execution.transaction import Transaction
    from gmongo.sdam.topology import Topology
    from gmongo.wire.address import Address

T = TypeVar("T")


class Wait(Enum):
    """What an operation waits for before its command is sent."""

    SELECTION = "server selection"
    CHECK_OUT = "connection check-out"
    BACK_OFF = "back-off"


class Account:
    """One operation of the API. Times are in seconds, moments on the clock of :mod:`gmongo._clock`.

    :param name: as the API's specifications name the operation.
    :param database: that it runs on.
    :param collection: that it runs on; empty if there is none.
    :param observer: is told of it.
    """

    __slots__ = (
        "address",
        "backing_off",
        "checking_out",
        "collection",
        "commands",
        "connecting",
        "cursor_id",
        "database",
        "decoding",
        "exchanging",
        "name",
        "notes",
        "observer",
        "round_trip",
        "selecting",
        "sensitive",
        "started",
        "tries",
        "wait_started",
        "waits_for",
    )

    def __init__(self, name: str, database: str, collection: str, observer: Observers) -> None:
        self.name = name
        self.database = database
        self.collection = collection
        self.observer = observer
        self.started = _clock.monotonic()
        self.address: Address | None = None  # of the server of the last try
        self.cursor_id: int | None = None  # that it continues
        self.sensitive = False  # whether a command or a reply may hold a secret
        self.tries = 0
        self.waits_for: Wait | None = None  # a server or a connection, at this moment
        self.wait_started = 0.0
        self.commands = 0
        self.selecting = self.checking_out = self.backing_off = 0.0
        self.connecting = 0.0  # a part of the check-out
        self.exchanging = 0.0  # from the first byte sent to the reply decoded
        self.decoding = 0.0  # a part of the exchange
        self.round_trip = 0.0  # of an empty command to the server of the last try
        self.notes: dict[object, Value] = {}  # what an observer keeps until the end, by the observer

    def elapsed(self) -> float:
        """For how long it has been running, in seconds."""
        return _clock.monotonic() - self.started

    @property
    def summary(self) -> str:
        """The operation with what it runs on, such as ``find shop.orders``."""
        where = f"{self.database}.{self.collection}" if self.collection else self.database
        return f"{self.name} {where}"

    def waited(self, wait: Wait, started: float, error: BaseException | None, connecting: float = 0.0) -> None:
        """A wait has ended.

        :param started: when it began.
        :param error: what ended it early, if something did.
        :param connecting: how much of it went into a new connection.
        """
        seconds = _clock.monotonic() - started
        if wait is Wait.SELECTION:
            self.selecting += seconds
        elif wait is Wait.CHECK_OUT:
            self.checking_out += seconds
            self.connecting += connecting
        else:
            self.backing_off += seconds
        self.observer.waited(self, wait, seconds, connecting, error)

    def begin_try(self) -> None:
        """A try begins, and waits for a server."""
        self.tries += 1
        self.waits_for, self.wait_started = Wait.SELECTION, _clock.monotonic()

    def selected(self, address: Address, topology: Topology) -> None:
        """The try has its server, and waits for a connection."""
        self.waited(Wait.SELECTION, self.wait_started, None)
        self.address, description = address, topology.description.get(address)
        self.round_trip = (description and description.round_trip_time) or 0.0
        self.waits_for, self.wait_started = Wait.CHECK_OUT, _clock.monotonic()

    def checked_out(self, connection: Connection) -> None:
        """The try has its connection."""
        self.waits_for, waited = None, _clock.monotonic() - self.wait_started
        # One that the background has made is ready before its first use: it may have taken longer than the check-out.
        connecting = connection.established_in if connection.last_command is None else 0.0
        self.waited(Wait.CHECK_OUT, self.wait_started, None, min(connecting, waited))

    def pinned(self) -> None:
        """The try waits for neither: it has a pinned connection."""
        self.waits_for = None

    def end_try(self, error: BaseException) -> None:
        """The try has failed, perhaps while it waited."""
        wait, self.waits_for = self.waits_for, None
        if wait is not None:
            self.waited(wait, self.wait_started, error)

    def decode(self, decode: Callable[[Buffer], T], body: Buffer) -> T:
        """Decode a reply, and note how long that takes."""
        started = _clock.monotonic()
        try:
            return decode(body)
        finally:
            self.decoding += _clock.monotonic() - started


class Observer:
    """What is told of the operations of one client. Its methods do nothing unless a subclass says what.

    They are called in the greenlet and the context of the operation.
    """

    times_decoding = False
    """Whether it wants to know how long decoding takes."""

    def wanted(self) -> bool:
        """Whether it observes now. If no observer does, operations run as if they were not observed."""
        return True

    def carried(self, run: Callable[[], None]) -> Callable[[], None]:
        """The same function with the context of this greenlet, for another one that works for it."""
        return run

    def operation_started(self, account: Account, transaction: Transaction | None) -> None:
        """An operation begins.

        :param transaction: that it is part of.
        """

    def operation_ended(self, account: Account, error: BaseException | None) -> None:
        """An operation has ended, be it with an error or an interruption."""

    def waited(
        self, account: Account, wait: Wait, seconds: float, connecting: float, error: BaseException | None
    ) -> None:
        """A wait of an operation has ended just now.

        :param connecting: how much of it went into a new connection.
        :param error: what ended it early, if something did.
        """

    def command_started(self, account: Account, sent: Sent) -> None:
        """A command is about to be sent."""

    def command_ended(self, account: Account, sent: Sent, reply: Document | None, error: BaseException | None) -> None:
        """The reply to a command has come, or will not come.

        :param reply: None if there is none.
        """

    def connection_used(self, account: Account, address: Address, seconds: float) -> None:
        """A connection goes back to its pool.

        :param address: of its server.
        :param seconds: for which it was checked out.
        """

    def connection_made(self, address: Address, seconds: float) -> None:
        """A connection was established, for an operation or in the background.

        :param address: of its server.
        :param seconds: that it took.
        """

    def try_failed(self, account: Account, error: PyMongoError) -> None:
        """There will be another try."""

    def transaction_started(self, transaction: Transaction) -> None:
        """A transaction of the application's begins."""

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        """A transaction was committed or aborted."""


class Observers(Observer):
    """All observers of one client, as one. What one of them raises is printed, and harms neither the operation nor the
    others; what is thrown into the greenlet from outside goes through.

    :param observers: the observers.
    """

    def __init__(self, observers: tuple[Observer, ...]) -> None:
        self.all = observers
        self.active = False  # whether one of them was wanted when the last operation began
        self.times_decoding = any(observer.times_decoding for observer in observers)
        # Several of these are called in each operation, so each does only what its listeners need.
        for name in _TOLD:
            setattr(self, name, _telling([getattr(each, name) for each in observers if _listens(each, name)]))

    def carried(self, run: Callable[[], None]) -> Callable[[], None]:
        for observer in self.all:
            run = observer.carried(run)
        return run

    def wanted(self) -> bool:
        for observer in self.all:  # noqa: SIM110 - it is asked by each operation, and a generator costs as much as asking
            if observer.wanted():
                return True
        return False


_TOLD = [name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_")]
_TOLD.remove("wanted")
_TOLD.remove("carried")


def _listens(observer: Observer, name: str) -> bool:
    return getattr(type(observer), name) is not getattr(Observer, name)


def _telling(methods: list[Callable[..., None]]) -> Callable[..., None]:
    """A function that calls all of them."""
    if len(methods) == 1:
        return partial(safely, methods[0])

    def tell(*what: object) -> None:
        for method in methods:
            safely(method, *what)

    return tell
