"""The base classes of listeners, and the listeners of a client."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TypeVar

from gmongo._safe_log import safely
from gmongo._short_text import short
from gmongo.monitoring.command import CommandFailedEvent, CommandStartedEvent, CommandSucceededEvent
from gmongo.monitoring.pool import (
    ConnectionCheckedInEvent,
    ConnectionCheckedOutEvent,
    ConnectionCheckOutFailedEvent,
    ConnectionCheckOutStartedEvent,
    ConnectionClosedEvent,
    ConnectionCreatedEvent,
    ConnectionReadyEvent,
    PoolClearedEvent,
    PoolClosedEvent,
    PoolCreatedEvent,
    PoolReadyEvent,
)
from gmongo.monitoring.server import (
    ServerClosedEvent,
    ServerDescriptionChangedEvent,
    ServerHeartbeatFailedEvent,
    ServerHeartbeatStartedEvent,
    ServerHeartbeatSucceededEvent,
    ServerOpeningEvent,
    TopologyClosedEvent,
    TopologyDescriptionChangedEvent,
    TopologyOpenedEvent,
)

__all__ = [
    "CommandListener",
    "ConnectionPoolListener",
    "EventListeners",
    "ServerHeartbeatListener",
    "ServerListener",
    "TopologyListener",
    "global_listeners",
    "publish",
    "register",
]

_log = logging.getLogger("gmongo.monitoring")


class _Listener:
    """Base class of all listeners; one object may be of several kinds."""


class CommandListener(_Listener):
    """Is told of every command that the application causes. A subclass defines all methods::

        class Slow(CommandListener):
            def started(self, event): ...

            def succeeded(self, event):
                if event.duration_micros > 100_000:
                    print(event.command_name, event.duration_micros)

            failed = succeeded

        client = MongoClient(event_listeners=[Slow()])

    Specification: Command Logging and Monitoring.
    """

    def started(self, event: CommandStartedEvent) -> None:
        """A command is about to be sent.

        :param event: the command, its request ID and the address that it goes to.
        """
        raise NotImplementedError

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """A command was answered.

        :param event: the reply, and the duration.
        """
        raise NotImplementedError

    def failed(self, event: CommandFailedEvent) -> None:
        """A command failed.

        :param event: the error, and the duration.
        """
        raise NotImplementedError


class ConnectionPoolListener(_Listener):
    """Is told of the pools and their connections. A subclass defines all methods.

    Specification: Connection Monitoring and Pooling, "Connection Pool Monitoring".
    """

    def pool_created(self, event: PoolCreatedEvent) -> None:
        """A pool was created.

        :param event: the address of its server, and its options.
        """
        raise NotImplementedError

    def pool_ready(self, event: PoolReadyEvent) -> None:
        """A pool is ready to hand out connections.

        :param event: the address of its server.
        """
        raise NotImplementedError

    def pool_cleared(self, event: PoolClearedEvent) -> None:
        """A pool was cleared.

        :param event: the address of its server, and the service behind a load balancer.
        """
        raise NotImplementedError

    def pool_closed(self, event: PoolClosedEvent) -> None:
        """A pool was closed.

        :param event: the address of its server.
        """
        raise NotImplementedError

    def connection_created(self, event: ConnectionCreatedEvent) -> None:
        """A connection object was made; it is not connected yet.

        :param event: the number of the connection.
        """
        raise NotImplementedError

    def connection_ready(self, event: ConnectionReadyEvent) -> None:
        """A connection is established: connected, with hello and authentication done.

        :param event: the number of the connection, and the duration.
        """
        raise NotImplementedError

    def connection_closed(self, event: ConnectionClosedEvent) -> None:
        """A connection was closed.

        :param event: the number of the connection, and the reason.
        """
        raise NotImplementedError

    def connection_check_out_started(self, event: ConnectionCheckOutStartedEvent) -> None:
        """A greenlet asks the pool for a connection.

        :param event: the address of the server.
        """
        raise NotImplementedError

    def connection_check_out_failed(self, event: ConnectionCheckOutFailedEvent) -> None:
        """No connection could be had from the pool.

        :param event: the reason, and the duration.
        """
        raise NotImplementedError

    def connection_checked_out(self, event: ConnectionCheckedOutEvent) -> None:
        """A connection was handed out.

        :param event: the number of the connection, and the duration.
        """
        raise NotImplementedError

    def connection_checked_in(self, event: ConnectionCheckedInEvent) -> None:
        """A connection was given back.

        :param event: the number of the connection.
        """
        raise NotImplementedError


class ServerHeartbeatListener(_Listener):
    """Is told of the checks that monitors make. A subclass defines all methods.

    Specification: SDAM Logging and Monitoring.
    """

    def started(self, event: ServerHeartbeatStartedEvent) -> None:
        """A monitor is about to check a server.

        :param event: the address of the server.
        """
        raise NotImplementedError

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:
        """A server answered a check.

        :param event: the reply, and the duration.
        """
        raise NotImplementedError

    def failed(self, event: ServerHeartbeatFailedEvent) -> None:
        """A check of a server failed.

        :param event: the reason, and the duration.
        """
        raise NotImplementedError


class ServerListener(_Listener):
    """Is told of the servers of the topology. A subclass defines all methods.

    Specification: SDAM Logging and Monitoring.
    """

    def opened(self, event: ServerOpeningEvent) -> None:
        """A server was added to the topology.

        :param event: the address of the server.
        """
        raise NotImplementedError

    def description_changed(self, event: ServerDescriptionChangedEvent) -> None:
        """What is known of a server changed.

        :param event: the descriptions before and after.
        """
        raise NotImplementedError

    def closed(self, event: ServerClosedEvent) -> None:
        """A server was removed from the topology.

        :param event: the address of the server.
        """
        raise NotImplementedError


class TopologyListener(_Listener):
    """Is told of the topology as a whole. A subclass defines all methods.

    Specification: SDAM Logging and Monitoring.
    """

    def opened(self, event: TopologyOpenedEvent) -> None:
        """A client began to look for its servers.

        :param event: its topology's identity.
        """
        raise NotImplementedError

    def description_changed(self, event: TopologyDescriptionChangedEvent) -> None:
        """What is known of the topology changed.

        :param event: the descriptions before and after.
        """
        raise NotImplementedError

    def closed(self, event: TopologyClosedEvent) -> None:
        """A client was closed.

        :param event: its topology's identity.
        """
        raise NotImplementedError


_KINDS = (CommandListener, ConnectionPoolListener, ServerHeartbeatListener, ServerListener, TopologyListener)
_registered: list[object] = []
_L = TypeVar("_L", bound=_Listener)


def register(listener: _Listener) -> None:
    """Have a listener told of every client that is made from now on.

    :param listener: an instance of a subclass of one or several listener classes.
    :raises TypeError: it is not.
    """
    _registered.append(_checked_listener(listener))


def global_listeners() -> tuple[object, ...]:
    """The listeners given to :func:`register`, in that order."""
    return tuple(_registered)


class EventListeners:
    """The listeners of one client, sorted by kind: those registered for all clients first, then its own.

    :param listeners: the client's own listeners; none by default.
    :param registered: whether those registered for all clients are among them; True by default.
    :raises TypeError: one of them is not a listener, or `listeners` is not a sequence.
    """

    __slots__ = ("all", "command", "heartbeat", "pool", "server", "topology")

    def __init__(self, listeners: Sequence[object] = (), *, registered: bool = True) -> None:
        if not isinstance(listeners, Sequence):
            raise TypeError(f"event_listeners must be a list or tuple of listeners, not {short(listeners)}")
        every = self.all = [*(_registered if registered else ()), *map(_checked_listener, listeners)]
        self.command = _of_kind(CommandListener, every)
        self.pool = _of_kind(ConnectionPoolListener, every)
        self.heartbeat = _of_kind(ServerHeartbeatListener, every)
        self.server = _of_kind(ServerListener, every)
        self.topology = _of_kind(TopologyListener, every)


def publish(listeners: Iterable[_Listener], method_name: str, event: object) -> None:
    """Hand an event to each listener in turn.

    A listener that fails is logged and does no harm. What is thrown into the greenlet in a listener
    (``GreenletExit``, ``gevent.Timeout``) is no failure of it, and goes through once all listeners have been called.

    :param listeners: one of the tuples of :class:`EventListeners`.
    :param method_name: the method to call, such as ``"started"``.
    :param event: the event.
    """
    thrown: BaseException | None = None
    for listener in listeners:
        try:
            getattr(listener, method_name)(event)
        except Exception:
            safely(_log.exception, "%s.%s failed on %r", type(listener).__name__, method_name, event)
        except BaseException as error:
            thrown = thrown or error
    if thrown is not None:
        raise thrown


def _checked_listener(listener: object) -> object:
    if not isinstance(listener, _KINDS):
        names = ", ".join(kind.__name__ for kind in _KINDS)
        raise TypeError(f"a listener must be an instance of one of {names}, not {short(listener)}")
    return listener


def _of_kind(kind: type[_L], listeners: Iterable[object]) -> tuple[_L, ...]:
    return tuple(listener for listener in listeners if isinstance(listener, kind))
