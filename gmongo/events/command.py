"""Events and log messages of commands (Command Logging and Monitoring)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from bson.objectid import ObjectId

from gmongo import _clock
from gmongo._documents import Document, DocumentDict
from gmongo.cmap.connection import Connection
from gmongo.errors import AutoReconnect, OperationFailure
from gmongo.events.log import (
    Details,
    LazyValues,
    Structured,
    address_fields,
    command_log,
    document_text,
    enabled_check,
    log,
    milliseconds,
    silence,
)
from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent, publish
from gmongo.wire.address import Address

# Events and logs omit the content of these commands and of their replies.
SENSITIVE = frozenset(
    {
        "authenticate",
        "saslstart",
        "saslcontinue",
        "getnonce",
        "createuser",
        "updateuser",
        "copydbgetnonce",
        "copydbsaslstart",
        "copydb",
    }
)
_HELLOS = frozenset({"hello", "ismaster"})


class SentCommand:
    """Command in progress. `trace` is the trace of the operation, or None if no observer needs a trace."""

    def __init__(
        self, command: Document, database: str, request_id: int, operation_id: int, connection: Connection, trace: Any
    ) -> None:
        self.command = command
        self.database = database
        self.request_id = request_id
        self.operation_id = operation_id
        self.connection = connection
        self.trace = trace
        self.name: str = next(iter(command))
        name = self.name.lower()
        self.sensitive = name in SENSITIVE or (name in _HELLOS and "speculativeAuthenticate" in command)
        self.started = _clock.monotonic()


class CommandEvents:
    """Publisher of the command events of one client. A silent publisher logs nothing."""

    def __init__(self, listeners: tuple[CommandListener, ...], *, silent: bool) -> None:
        self._listeners = listeners
        self._logger = silence if silent else command_log
        self._is_logged = enabled_check(self._logger)
        # True if a listener or a log needs events. The hot path calls the methods below only in this case.
        self.is_enabled = enabled_check(self._logger, listeners)

    def monitored_reply(self, decode: Callable[[DocumentDict], DocumentDict], reply: DocumentDict) -> Document:
        """Return the reply for events and logs. Call `decode` for the undecoded batch only if there are listeners."""
        return decode(reply) if self._listeners else reply

    def started(self, sent: SentCommand) -> None:
        command = {} if sent.sensitive else sent.command
        if self._listeners:
            event = CommandStartedEvent(
                sent.command,
                sent.database,
                sent.request_id,
                sent.connection.address,
                sent.operation_id,
                sent.connection.service_id,
                sent.connection.hello.connection_id,
            )
            event.command = command
            publish(self._listeners, "started", event)
        if self._is_logged():
            self._log("Command started", sent, {"command": (document_text, command)})

    def succeeded(self, sent: SentCommand, duration: float, reply: Document) -> None:
        shown = {} if sent.sensitive else reply
        if self._listeners:
            event = CommandSucceededEvent(timedelta(seconds=duration), shown, sent.name, *_last_arguments(sent))
            publish(self._listeners, "succeeded", event)
        if self._is_logged():
            self._log("Command succeeded", sent, {"reply": (document_text, shown)}, duration)

    def failed(self, sent: SentCommand, duration: float, error: BaseException) -> None:
        failure, replied = _failure(error)
        if sent.sensitive and replied:
            failure = {key: failure[key] for key in ("code", "codeName", "errorLabels") if key in failure}
        if self._listeners:
            event = CommandFailedEvent(timedelta(seconds=duration), failure, sent.name, *_last_arguments(sent))
            publish(self._listeners, "failed", event)
        if self._is_logged():
            self._log("Command failed", sent, {"failure": (document_text, failure)}, duration)

    def _log(self, message: str, sent: SentCommand, lazy: LazyValues, duration: float | None = None) -> None:
        connection = sent.connection
        fields = {
            "message": message,
            "commandName": sent.name,
            "databaseName": sent.database,
            "requestId": sent.request_id,
            "operationId": sent.operation_id,
            "driverConnectionId": connection.id,
            "serverConnectionId": connection.hello.connection_id,
            **address_fields(connection.address),
        }
        if fields["serverConnectionId"] is None:
            del fields["serverConnectionId"]
        if duration is not None:
            fields["durationMS"] = milliseconds(duration)
        if connection.service_id is not None:
            fields["serviceId"] = str(connection.service_id)
        structured = Structured(fields, lazy)
        log(self._logger, Details(structured), structured)


def _last_arguments(sent: SentCommand) -> tuple[int, Address, int, ObjectId | None, str, int | None]:
    connection = sent.connection
    return (
        sent.request_id,
        connection.address,
        sent.operation_id,
        connection.service_id,
        sent.database,
        connection.hello.connection_id,
    )


def _failure(error: BaseException) -> tuple[DocumentDict, bool]:
    """Convert an error to a document. Also return True if the document is a server reply, which may contain secrets."""
    if isinstance(error, (OperationFailure, AutoReconnect)) and isinstance(error.details, Mapping):
        return dict(error.details), True
    return {"errmsg": str(error), "errtype": type(error).__name__}, False
