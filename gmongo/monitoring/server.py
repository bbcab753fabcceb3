"""Events of server discovery and monitoring: heartbeats, servers, the topology. An address is a pair (host, port)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bson.objectid import ObjectId

from gmongo.monitoring.command import Event

if TYPE_CHECKING:
    from gmongo.sdam.hello_reply import HelloReply
    from gmongo.sdam.server_description import ServerDescription
    from gmongo.sdam.topology_description import TopologyDescription


@dataclass(slots=True, eq=False, repr=False)
class ServerHeartbeatStartedEvent(Event):
    """A heartbeat started.

    :param connection_id: the address of the server.
    :param awaited: True if the server replies only after a change of its state or a time limit.
    """

    connection_id: tuple[str, int | None]
    awaited: bool = False


@dataclass(slots=True, eq=False, repr=False)
class ServerHeartbeatSucceededEvent(Event):
    """A heartbeat succeeded.

    :param duration: the duration of the heartbeat in seconds.
    :param reply: the reply of the server, with the attributes of PyMongo's ``Hello``, such as ``is_writable``.
    :param connection_id: the address of the server.
    :param awaited: True if the server waited for a state change. `duration` includes this wait.
    """

    duration: float
    reply: HelloReply
    connection_id: tuple[str, int | None]
    awaited: bool = False


@dataclass(slots=True, eq=False, repr=False)
class ServerHeartbeatFailedEvent(Event):
    """A heartbeat failed.

    :param duration: the duration of the heartbeat in seconds.
    :param reply: the exception that ended the heartbeat.
    :param connection_id: the address of the server.
    :param awaited: True if the server would have replied only after a change of its state, or after a time limit.
    """

    duration: float
    reply: Exception
    connection_id: tuple[str, int | None]
    awaited: bool = False


@dataclass(slots=True, eq=False, repr=False)
class _ServerEvent(Event):
    server_address: tuple[str, int | None]
    topology_id: ObjectId


@dataclass(slots=True, eq=False, repr=False)
class ServerOpeningEvent(_ServerEvent):
    """A server joined the topology.

    :param server_address: the address of the server.
    :param topology_id: the ID of the topology.
    """


@dataclass(slots=True, eq=False, repr=False)
class ServerClosedEvent(_ServerEvent):
    """A server left the topology.

    :param server_address: the address of the server.
    :param topology_id: the ID of the topology.
    """


@dataclass(slots=True, eq=False, repr=False)
class ServerDescriptionChangedEvent(Event):
    """A server description changed.

    :param previous_description: the previous :class:`~gmongo.server_description.ServerDescription`.
    :param new_description: the new server description.
    :param server_address: the address of the server.
    :param topology_id: the ID of the topology.
    """

    previous_description: ServerDescription
    new_description: ServerDescription
    server_address: tuple[str, int | None]
    topology_id: ObjectId


@dataclass(slots=True, eq=False, repr=False)
class TopologyEvent(Event):
    """Base class of the events of a topology.

    :param topology_id: the ID of the topology.
    """

    topology_id: ObjectId


@dataclass(slots=True, eq=False, repr=False)
class TopologyOpenedEvent(TopologyEvent):
    """A topology was opened: a client began to discover the servers.

    :param topology_id: the ID of the topology.
    """


@dataclass(slots=True, eq=False, repr=False)
class TopologyClosedEvent(TopologyEvent):
    """A topology was closed, because the client was closed.

    :param topology_id: the ID of the topology.
    """


@dataclass(slots=True, eq=False, repr=False, init=False)
class TopologyDescriptionChangedEvent(TopologyEvent):
    """A topology description changed.

    :param previous_description: the previous :class:`~gmongo.topology_description.TopologyDescription`.
    :param new_description: the new topology description.
    :param topology_id: the ID of the topology.
    """

    previous_description: TopologyDescription
    new_description: TopologyDescription

    def __init__(
        self, previous_description: TopologyDescription, new_description: TopologyDescription, topology_id: ObjectId
    ) -> None:
        self.previous_description = previous_description
        self.new_description = new_description
        self.topology_id = topology_id

    def __repr__(self) -> str:
        # The repr has the fields in the order of the constructor's parameters, where `topology_id` is last.
        return (
            f"{type(self).__name__}(previous_description={self.previous_description!r}, "
            f"new_description={self.new_description!r}, topology_id={self.topology_id!r})"
        )
