"""Events of connection pools, and the reasons they give. An address is (host, port)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bson.objectid import ObjectId

from gmongo._documents import DocumentDict
from gmongo.monitoring.event import Event

__all__ = [
    "ConnectionCheckOutFailedEvent",
    "ConnectionCheckOutFailedReason",
    "ConnectionCheckOutStartedEvent",
    "ConnectionCheckedInEvent",
    "ConnectionCheckedOutEvent",
    "ConnectionClosedEvent",
    "ConnectionClosedReason",
    "ConnectionCreatedEvent",
    "ConnectionReadyEvent",
    "PoolClearedEvent",
    "PoolClosedEvent",
    "PoolCreatedEvent",
    "PoolReadyEvent",
]


class ConnectionClosedReason:
    """Why a connection was closed."""

    STALE = "stale"
    """The pool was cleared after the connection was made."""
    IDLE = "idle"
    """It was unused for longer than ``maxIdleTimeMS``."""
    ERROR = "error"
    """It met a network error."""
    POOL_CLOSED = "poolClosed"
    """The pool was closed."""


class ConnectionCheckOutFailedReason:
    """Why no connection could be had from the pool."""

    TIMEOUT = "timeout"
    """None became free in time."""
    POOL_CLOSED = "poolClosed"
    """The pool was closed, or was closed during the check-out."""
    CONN_ERROR = "connectionError"
    """A new connection could not be made, or the pool was cleared."""


@dataclass(slots=True, eq=False, repr=False)
class _PoolEvent(Event):
    address: tuple[str, int | None]


@dataclass(slots=True, eq=False, repr=False)
class _ConnectionEvent(_PoolEvent):
    connection_id: int


@dataclass(slots=True, eq=False, repr=False)
class PoolCreatedEvent(_PoolEvent):
    """A pool was created.

    :param address: the server it leads to.
    :param options: the pool's options that differ from the defaults, such as ``{"maxPoolSize": 5}``.
    """

    options: DocumentDict


@dataclass(slots=True, eq=False, repr=False)
class PoolReadyEvent(_PoolEvent):
    """A pool is ready to hand out connections.

    :param address: the server it leads to.
    """


@dataclass(slots=True, eq=False, repr=False)
class PoolClearedEvent(_PoolEvent):
    """A pool was cleared: its present connections will not be used any more.

    :param address: the server it leads to.
    :param service_id: the service whose connections were cleared, behind a load balancer.
    :param interrupt_connections: whether operations in progress were interrupted.
    """

    service_id: ObjectId | None = None
    interrupt_connections: bool = False


@dataclass(slots=True, eq=False, repr=False)
class PoolClosedEvent(_PoolEvent):
    """A pool was closed.

    :param address: the server it led to.
    """


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCreatedEvent(_ConnectionEvent):
    """A connection object was made; it is not connected yet.

    :param address: the server it leads to.
    :param connection_id: the pool's number for it.
    """


@dataclass(slots=True, eq=False, repr=False)
class ConnectionReadyEvent(_ConnectionEvent):
    """A connection is connected, greeted and authenticated.

    :param address: the server it leads to.
    :param connection_id: the pool's number for it.
    :param duration: how long that took, in seconds.
    """

    duration: float | None


@dataclass(slots=True, eq=False, repr=False)
class ConnectionClosedEvent(_ConnectionEvent):
    """A connection was closed.

    :param address: the server it led to.
    :param connection_id: the pool's number for it.
    :param reason: a value of :class:`ConnectionClosedReason`.
    """

    reason: str


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckOutStartedEvent(_PoolEvent):
    """A connection is asked of the pool.

    :param address: the server it leads to.
    """


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckOutFailedEvent(_PoolEvent):
    """No connection could be had from the pool.

    :param address: the server it leads to.
    :param reason: a value of :class:`ConnectionCheckOutFailedReason`.
    :param duration: how long was waited, in seconds.
    """

    connection_id: ClassVar[int] = 0
    """Always 0: there is no connection."""
    reason: str
    duration: float | None


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckedOutEvent(_ConnectionEvent):
    """A connection was handed out.

    :param address: the server it leads to.
    :param connection_id: the pool's number for it.
    :param duration: how long was waited, in seconds.
    """

    duration: float | None


@dataclass(slots=True, eq=False, repr=False)
class ConnectionCheckedInEvent(_ConnectionEvent):
    """A connection was given back.

    :param address: the server it leads to.
    :param connection_id: the pool's number for it.
    """
