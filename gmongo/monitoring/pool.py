"""Events of connection pools, and the reasons in some events. An address is a pair (host, port)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bson.objectid import ObjectId

from gmongo._documents import DocumentDict
from gmongo.monitoring.command import Event


class ConnectionClosedReason:
    """Reason for the closing of a connection."""

    STALE = "stale"
    """The pool was cleared after the creation of the connection."""
    IDLE = "idle"
    """The connection was idle for longer than ``maxIdleTimeMS``."""
    ERROR = "error"
    """A network error occurred on the connection."""
    POOL_CLOSED = "poolClosed"
    """The pool was closed."""


class ConnectionCheckOutFailedReason:
    """Reason for a failed check-out."""

    TIMEOUT = "timeout"
    """No connection became available before the end of the timeout."""
    POOL_CLOSED = "poolClosed"
    """The pool was closed before or during the check-out."""
    CONN_ERROR = "connectionError"
    """The establishment of a new connection failed, or the pool was cleared."""


@dataclass(slots=True, eq=False, repr=False)
class _PoolEvent(Event):
    address: tuple[str, int | None]


@dataclass(slots=True, eq=False, repr=False)
class _ConnectionEvent(_PoolEvent):
    connection_id: int


@dataclass(slots=True, eq=False, repr=False)
class PoolCreatedEvent(_PoolEvent):
    """A pool was created.

    :param address: the address of the server.
    :param options: the pool options that the application has set, such as ``{"maxPoolSize": 5}``.
    """

    options: DocumentDict


@dataclass(slots=True, eq=False, repr=False)
class PoolReadyEvent(_PoolEvent):
    """A pool became ready for check-outs.

    :param address: the address of the server.
    """


@dataclass(slots=True, eq=False, repr=False)
class PoolClearedEvent(_PoolEvent):
    """A pool was cleared. The pool closes the cleared connections instead of reusing them.

    :param address: the address of the server.
    :param service_id: the ID of the only service whose connections were cleared, or None.
    :param interrupt_connections: True if the pool interrupted operations in progress.
    """

    service_id: ObjectId | None = None
    interrupt_connections: bool = False


@dataclass(slots=True, eq=False, repr=False)
class PoolClosedEvent(_PoolEvent):
    """A pool was closed.

    :param address: the address of the server.
    """


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCreatedEvent(_ConnectionEvent):
    """A connection object was created. The driver has not yet connected the socket.

    :param address: the address of the server.
    :param connection_id: the ID of the connection in the pool.
    """


@dataclass(slots=True, eq=False, repr=False)
class ConnectionReadyEvent(_ConnectionEvent):
    """A connection was established, including handshake and authentication.

    :param address: the address of the server.
    :param connection_id: the ID of the connection in the pool.
    :param duration: the time to establish the connection, in seconds.
    """

    duration: float | None


@dataclass(slots=True, eq=False, repr=False)
class ConnectionClosedEvent(_ConnectionEvent):
    """A connection was closed.

    :param address: the address of the server.
    :param connection_id: the ID of the connection in the pool.
    :param reason: a value of :class:`ConnectionClosedReason`.
    """

    reason: str


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckOutStartedEvent(_PoolEvent):
    """A check-out started.

    :param address: the address of the server.
    """


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckOutFailedEvent(_PoolEvent):
    """A check-out failed.

    :param address: the address of the server.
    :param reason: a value of :class:`ConnectionCheckOutFailedReason`.
    :param duration: the duration of the check-out in seconds.
    """

    connection_id: ClassVar[int] = 0
    """Always 0, because a failed check-out has no connection."""
    reason: str
    duration: float | None


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckedOutEvent(_ConnectionEvent):
    """A connection was checked out.

    :param address: the address of the server.
    :param connection_id: the ID of the connection in the pool.
    :param duration: the duration of the check-out in seconds.
    """

    duration: float | None


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckedInEvent(_ConnectionEvent):
    """A connection was checked in.

    :param address: the address of the server.
    :param connection_id: the ID of the connection in the pool.
    """
