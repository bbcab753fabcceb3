"""Events of commands, and the base class of all events."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta

from bson.objectid import ObjectId

from gmongo._documents import Document


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """Base class of events. The common ``repr`` halves the import time of the event classes."""

    def __repr__(self) -> str:
        field_texts = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__name__}({', '.join(field_texts)})"


# The `repr` of an event omits commands and successful replies, which may be large or confidential.


@dataclass(slots=True, eq=False, repr=False)
class CommandStartedEvent(Event):
    """The driver is about to send a command.

    :param command: the command; empty for a sensitive command, such as an authentication command.
    :param database_name: the database of the command.
    :param request_id: the request ID in the message header.
    :param connection_id: the address (host, port) of the server.
    :param operation_id: the ID that all commands of an operation, such as a bulk write, share.
    :param service_id: the ID of the service behind a load balancer, or None.
    :param server_connection_id: the ID that the server assigned to the connection, or None.

    :raises ValueError: `command` is empty. The driver empties a sensitive command after this check.
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
        """The duration of the command in microseconds."""
        return self.duration // timedelta(microseconds=1)


@dataclass(slots=True, eq=False, repr=False)
class CommandSucceededEvent(_CommandEnd):
    """A command succeeded.

    :param duration: the duration of the command.
    :param reply: the reply of the server; empty for a sensitive command.
    :param command_name: the name of the command.
    :param request_id: the request ID in the message header.
    :param connection_id: the address (host, port) of the server.
    :param operation_id: the ID that all commands of the operation have in common.
    :param service_id: the ID of the service behind a load balancer, or None.
    :param database_name: the database of the command.
    :param server_connection_id: the ID that the server assigned to the connection, or None.
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
    """A command failed: the server returned an error, or the driver received no valid reply.

    :param duration: the duration of the command.
    :param failure: the reply of the server, or a document that describes the error.
    :param command_name: the name of the command.
    :param request_id: the request ID in the message header.
    :param connection_id: the address (host, port) of the server.
    :param operation_id: the ID that all commands of the operation have in common.
    :param service_id: the ID of the service behind a load balancer, or None.
    :param database_name: the database of the command.
    :param server_connection_id: the ID that the server assigned to the connection, or None.
    """

    failure: Document
    command_name: str
    request_id: int
    connection_id: tuple[str, int | None]
    operation_id: int | None
    service_id: ObjectId | None = None
    database_name: str = ""
    server_connection_id: int | None = None
