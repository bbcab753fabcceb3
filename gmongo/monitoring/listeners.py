"""Base classes of listeners, and the container of a client's listeners."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TypeVar

from gmongo._safe_log import safely
from gmongo._truncated_repr import short
from gmongo.monitoring import command, pool, server

_log = logging.getLogger("gmongo.monitoring")


class _Listener:
    """Base class of all listeners. One object may implement several kinds of listeners."""


class CommandListener(_Listener):
    """Listener of commands. A subclass defines all methods.

    ::

        class Slow(CommandListener):
            def started(self, event): ...

            def succeeded(self, event):
                if event.duration_micros > 100_000:
                    print(event.command_name, event.duration_micros)

            failed = succeeded

        client = MongoClient(event_listeners=[Slow()])

    Specification: Command Logging and Monitoring.
    """

    def started(self, event: command.CommandStartedEvent) -> None:
        """Handle the start of a command.

        :param event: the event with the command, its request ID and the address of the server.
        """
        raise NotImplementedError

    def succeeded(self, event: command.CommandSucceededEvent) -> None:
        """Handle the success of a command.

        :param event: the event with the reply and the duration.
        """
        raise NotImplementedError

    def failed(self, event: command.CommandFailedEvent) -> None:
        """Handle the failure of a command.

        :param event: the event with the error and the duration.
        """
        raise NotImplementedError


class ConnectionPoolListener(_Listener):
    """Listener of connection pools. A subclass defines all methods.

    Specification: Connection Monitoring and Pooling, "Connection Pool Monitoring".
    """

    def pool_created(self, event: pool.PoolCreatedEvent) -> None:
        """Handle the creation of a pool.

        :param event: the event with the address of the server, and the options of the pool.
        """
        raise NotImplementedError

    def pool_ready(self, event: pool.PoolReadyEvent) -> None:
        """Handle a pool that has become ready for check-outs.

        :param event: the event with the address of the server.
        """
        raise NotImplementedError

    def pool_cleared(self, event: pool.PoolClearedEvent) -> None:
        """Handle the clearing of a pool.

        :param event: the event with the address of the server, and the ID of the service behind a load balancer.
        """
        raise NotImplementedError

    def pool_closed(self, event: pool.PoolClosedEvent) -> None:
        """Handle the closing of a pool.

        :param event: the event with the address of the server.
        """
        raise NotImplementedError

    def connection_created(self, event: pool.ConnectionCreatedEvent) -> None:
        """Handle the creation of a connection object. The driver has not yet connected the socket.

        :param event: the event with the ID of the connection.
        """
        raise NotImplementedError

    def connection_ready(self, event: pool.ConnectionReadyEvent) -> None:
        """Handle the establishment of a connection, after handshake and authentication.

        :param event: the event with the connection's ID, and the time to establish the connection.
        """
        raise NotImplementedError

    def connection_closed(self, event: pool.ConnectionClosedEvent) -> None:
        """Handle the closing of a connection.

        :param event: the event with the ID of the connection, and the reason.
        """
        raise NotImplementedError

    def connection_check_out_started(self, event: pool.ConnectionCheckOutStartedEvent) -> None:
        """Handle the start of a check-out.

        :param event: the event with the address of the server.
        """
        raise NotImplementedError

    def connection_check_out_failed(self, event: pool.ConnectionCheckOutFailedEvent) -> None:
        """Handle a failed check-out.

        :param event: the event with the reason and the duration.
        """
        raise NotImplementedError

    def connection_checked_out(self, event: pool.ConnectionCheckedOutEvent) -> None:
        """Handle a successful check-out.

        :param event: the event with the ID of the connection, and the duration.
        """
        raise NotImplementedError

    def connection_checked_in(self, event: pool.ConnectionCheckedInEvent) -> None:
        """Handle a check-in.

        :param event: the event with the ID of the connection.
        """
        raise NotImplementedError


class ServerHeartbeatListener(_Listener):
    """Listener of server heartbeats. A subclass defines all methods.

    Specification: SDAM Logging and Monitoring.
    """

    def started(self, event: server.ServerHeartbeatStartedEvent) -> None:
        """Handle the start of a heartbeat.

        :param event: the event with the address of the server.
        """
        raise NotImplementedError

    def succeeded(self, event: server.ServerHeartbeatSucceededEvent) -> None:
        """Handle a successful heartbeat.

        :param event: the event with the reply and the duration.
        """
        raise NotImplementedError

    def failed(self, event: server.ServerHeartbeatFailedEvent) -> None:
        """Handle a failed heartbeat.

        :param event: the event with the exception and the duration.
        """
        raise NotImplementedError


class ServerListener(_Listener):
    """Listener of the servers of a topology. A subclass defines all methods.

    Specification: SDAM Logging and Monitoring.
    """

    def opened(self, event: server.ServerOpeningEvent) -> None:
        """Handle a server that joins the topology.

        :param event: the event with the address of the server.
        """
        raise NotImplementedError

    def description_changed(self, event: server.ServerDescriptionChangedEvent) -> None:
        """Handle a changed server description.

        :param event: the event with the server descriptions before and after the change.
        """
        raise NotImplementedError

    def closed(self, event: server.ServerClosedEvent) -> None:
        """Handle a server that leaves the topology.

        :param event: the event with the address of the server.
        """
        raise NotImplementedError


class TopologyListener(_Listener):
    """Listener of the topology as a whole. A subclass defines all methods.

    Specification: SDAM Logging and Monitoring.
    """

    def opened(self, event: server.TopologyOpenedEvent) -> None:
        """Handle the opening of a topology: a client begins to discover the servers.

        :param event: the event with the ID of the topology.
        """
        raise NotImplementedError

    def description_changed(self, event: server.TopologyDescriptionChangedEvent) -> None:
        """Handle a changed topology description.

        :param event: the event with the topology descriptions before and after the change.
        """
        raise NotImplementedError

    def closed(self, event: server.TopologyClosedEvent) -> None:
        """Handle the closing of a client.

        :param event: the event with the ID of the client's topology.
        """
        raise NotImplementedError


_LISTENER_CLASSES = (CommandListener, ConnectionPoolListener, ServerHeartbeatListener, ServerListener, TopologyListener)
_registered_listeners: list[object] = []
_ListenerType = TypeVar("_ListenerType", bound=_Listener)


def register(listener: _Listener) -> None:
    """Add a listener to every client that the application creates later.

    :param listener: an instance of a subclass of one or several listener classes.
    :raises TypeError: `listener` is not a listener.
    """
    _registered_listeners.append(_checked_listener(listener))


def global_listeners() -> tuple[object, ...]:
    """Return the listeners that were passed to :func:`register`, in the order of the calls."""
    return tuple(_registered_listeners)


class EventListeners:
    """All listeners of one client, by kind. The listeners of :func:`register` precede the listeners of the client.

    :param listeners: the listeners of the client; no listeners by default.
    :param registered: True (the default) to include the listeners of :func:`register`.
    :raises TypeError: an element is not a listener, or `listeners` is not a sequence.
    """

    __slots__ = ("all", "command", "heartbeat", "pool", "server", "topology")

    def __init__(self, listeners: Sequence[object] = (), *, registered: bool = True) -> None:
        if not isinstance(listeners, Sequence):
            raise TypeError(f"event_listeners must be a list or tuple of listeners, not {short(listeners)}")
        checked_listeners = map(_checked_listener, listeners)
        self.all = [*(_registered_listeners if registered else ()), *checked_listeners]
        self.command = _select_by_kind(CommandListener, self.all)
        self.pool = _select_by_kind(ConnectionPoolListener, self.all)
        self.heartbeat = _select_by_kind(ServerHeartbeatListener, self.all)
        self.server = _select_by_kind(ServerListener, self.all)
        self.topology = _select_by_kind(TopologyListener, self.all)


def publish(listeners: Iterable[_Listener], method_name: str, event: object) -> None:
    """Pass an event to the listeners, one after another.

    If a listener raises an exception, the function logs the exception. An exception that is thrown
    into the greenlet (``GreenletExit``, ``gevent.Timeout``) is raised after all listeners have run.

    :param listeners: the listeners of one kind, such as the attribute ``command`` of :class:`EventListeners`.
    :param method_name: the name of the method that handles the event, such as ``"started"``.
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
    if not isinstance(listener, _LISTENER_CLASSES):
        class_names = ", ".join(kind.__name__ for kind in _LISTENER_CLASSES)
        raise TypeError(f"a listener must be an instance of one of {class_names}, not {short(listener)}")
    return listener


def _select_by_kind(kind: type[_ListenerType], listeners: Iterable[object]) -> tuple[_ListenerType, ...]:
    return tuple(listener for listener in listeners if isinstance(listener, kind))
