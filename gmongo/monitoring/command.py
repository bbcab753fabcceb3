"""Events of commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from bson.objectid import ObjectId

from gmongo._documents import Document
from gmongo.monitoring.event import Event

__all__ = ["CommandFailedEvent", "CommandStartedEvent", "CommandSucceededEvent"]

# Commands and replies are left out of reprs: they may be large, and they hold the application's data.


@dataclass(slots=True, eq=False, repr=False)
class CommandStartedEvent(Event):
    """A command is about to be sent.

    :param command: the command; empty if it is sensitive, as those of authentication are.
    :param database_name: the database it runs on.
    :param request_id: the number of the request on the wire.
    :param connection_id: the address (host, port) of the server.
    :param operation_id: the same for all commands of one operation, such as the batches of a bulk write.
    :param service_id: the service behind the load balancer, if there is one.
    :param server_connection_id: the server's number for the connection.

    Raises :class:`ValueError` if `command` is empty; a sensitive one is emptied after construction.
    """

    command: Document = field(repr=False)
    command_name: str = field(init=False)
    database_name: str
    request_id: int
    connection_id: tuple[str, int | None]
    operation_id: int | None
    service_id: ObjectId | None = None
    server_connection_id: int | None = None

    def __post_init__(self) -> None:
        if not self.command:
            raise ValueError("command must name the command in its first field, was an empty document")
        self.command_name = next(iter(self.command))


@dataclass(slots=True, eq=False, repr=False)
class _CommandEnd(Event):
    duration: timedelta

    @property
    def duration_micros(self) -> int:
        """How long the command took, in microseconds."""
        return self.duration // _MICROSECOND


@dataclass(slots=True, eq=False, repr=False)
class CommandSucceededEvent(_CommandEnd):
    """A command was answered.

    :param duration: how long it took.
    :param reply: the server's reply; empty if it is sensitive.
    :param command_name: the name of the command.
    :param request_id: the number of the request on the wire.
    :param connection_id: the address (host, port) of the server.
    :param operation_id: the same for all commands of one operation.
    :param service_id: the service behind the load balancer, if there is one.
    :param database_name: the database it ran on.
    :param server_connection_id: the server's number for the connection.
    """

    reply: Document = field(repr=False)
    command_name: str
    request_id: int
    connection_id: tuple[str, int | None]
    operation_id: int | None
    service_id: ObjectId | None = None
    database_name: str = ""
    server_connection_id: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class CommandFailedEvent(_CommandEnd):
    """A command failed: the server refused it, or the connection was lost.

    :param duration: how long it took.
    :param failure: the server's reply, or a document made of the error.
    :param command_name: the name of the command.
    :param request_id: the number of the request on the wire.
    :param connection_id: the address (host, port) of the server.
    :param operation_id: the same for all commands of one operation.
    :param service_id: the service behind the load balancer, if there is one.
    :param database_name: the database it ran on.
    :param server_connection_id: the server's number for the connection.
    """

    failure: Document
    command_name: str
    request_id: int
    connection_id: tuple[str, int | None]
    operation_id: int | None
    service_id: ObjectId | None = None
    database_name: str = ""
    server_connection_id: int | None = None


_MICROSECOND = timedelta(microseconds=1)
