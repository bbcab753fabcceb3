"""Events of server discovery: heartbeats, servers, the topology. An address is (host, port)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bson.objectid import ObjectId

from gmongo.monitoring.event import Event

if TYPE_CHECKING:
    from gmongo.sdam.hello_reply import HelloReply
    from gmongo.sdam.server_description import ServerDescription
    from gmongo.sdam.topology_description import TopologyDescription

__all__ = [
    "ServerClosedEvent",
    "ServerDescriptionChangedEvent",
    "ServerHeartbeatFailedEvent",
    "ServerHeartbeatStartedEvent",
    "ServerHeartbeatSucceededEvent",
    "ServerOpeningEvent",
    "TopologyClosedEvent",
    "TopologyDescriptionChangedEvent",
    "TopologyEvent",
    "TopologyOpenedEvent",
]


@dataclass(slots=True, eq=False, repr=False)
class ServerHeartbeatStartedEvent(Event):
    """A monitor is about to check a server.

    :param connection_id: the server's address.
    :param awaited: whether the server answers only when something changes.
    """

    connection_id: tuple[str, int | None]
    awaited: bool = False


@dataclass(slots=True, eq=False, repr=False)
class ServerHeartbeatSucceededEvent(Event):
    """A server answered a check.

    :param duration: how long that took, in seconds.
    :param reply: the server's answer, a document with the attributes of PyMongo's ``Hello`` such as ``document``,
        ``is_writable`` and ``server_type``.
    :param connection_id: the server's address.
    :param awaited: whether the server answered only when something changed; `duration` is then no round trip.
    """

    duration: float
    reply: HelloReply
    connection_id: tuple[str, int | None]
    awaited: bool = False


@dataclass(slots=True, eq=False, repr=False)
class ServerHeartbeatFailedEvent(Event):
    """A check of a server failed.

    :param duration: how long that took, in seconds.
    :param reply: the exception.
    :param connection_id: the server's address.
    :param awaited: whether the server was to answer only when something changed.
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
    """A server was added to the topology.

    :param server_address: the server's address.
    :param topology_id: the topology's identity.
    """


@dataclass(slots=True, eq=False, repr=False)
class ServerClosedEvent(_ServerEvent):
    """A server was removed from the topology.

    :param server_address: the server's address.
    :param topology_id: the topology's identity.
    """


@dataclass(slots=True, eq=False, repr=False)
class ServerDescriptionChangedEvent(Event):
    """What is known of a server changed.

    :param previous_description: the :class:`~gmongo.server_description.ServerDescription` before.
    :param new_description: the one from now on.
    :param server_address: the server's address.
    :param topology_id: the topology's identity.
    """

    previous_description: ServerDescription
    new_description: ServerDescription
    server_address: tuple[str, int | None]
    topology_id: ObjectId


@dataclass(slots=True, eq=False, repr=False)
class TopologyEvent(Event):
    """Base class of the events of a topology.

    :param topology_id: the topology's identity.
    """

    topology_id: ObjectId


@dataclass(slots=True, eq=False, repr=False)
class TopologyOpenedEvent(TopologyEvent):
    """A client began to look for its servers.

    :param topology_id: the topology's identity.
    """


@dataclass(slots=True, eq=False, repr=False)
class TopologyClosedEvent(TopologyEvent):
    """A client was closed.

    :param topology_id: the topology's identity.
    """


@dataclass(slots=True, eq=False, repr=False, init=False)
class TopologyDescriptionChangedEvent(TopologyEvent):
    """What is known of the topology changed.

    :param previous_description: the :class:`~gmongo.topology_description.TopologyDescription` before.
    :param new_description: the one from now on.
    :param topology_id: the topology's identity.
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
        # In the order of the constructor, in which the field of the base comes last.
        return (
            f"{type(self).__name__}(previous_description={self.previous_description!r}, "
            f"new_description={self.new_description!r}, topology_id={self.topology_id!r})"
        )
