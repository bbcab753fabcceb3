"""Events and log messages of commands (Command Logging and Monitoring)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from gmongo import _clock
from gmongo._documents import Document, DocumentDict
from gmongo.cmap.connection import Connection
from gmongo.errors import AutoReconnect, OperationFailure
from gmongo.events import log
from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent, publish

# Events and logs omit the content of these commands and of their replies.
_SENSITIVE_NAMES = (
    "authenticate saslstart saslcontinue getnonce createuser updateuser copydbgetnonce copydbsaslstart copydb"
)
SENSITIVE_COMMANDS = frozenset(_SENSITIVE_NAMES.split())
_HELLO_NAMES = frozenset({"hello", "ismaster"})


class SentCommand:
    """Command in progress. `trace` is the trace of the operation, or None if the client has no observers."""

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
        authenticates = name in _HELLO_NAMES and "speculativeAuthenticate" in command
        self.is_sensitive = authenticates or name in SENSITIVE_COMMANDS
        self.started = _clock.monotonic()
        self.event_fields: DocumentDict = {}  # common fields of events, set before the first event


class CommandEvents:
    """Publisher of the command events of one client. A silent publisher logs nothing."""

    def __init__(self, listeners: tuple[CommandListener, ...], *, silent: bool) -> None:
        self._listeners = listeners
        self._logger = log.silent_log if silent else log.command_log
        self._is_logged = log.enabled_check(self._logger)
        # Returns True if a listener or a log needs events. Otherwise the hot path publishes no event.
        self.is_enabled = log.enabled_check(self._logger, listeners)

    def monitored_reply(self, decode: Callable[[DocumentDict], DocumentDict], reply: DocumentDict) -> Document:
        """Return the reply for events and logs. Without listeners, the batch in the reply stays undecoded."""
        return decode(reply) if self._listeners else reply

    def started(self, sent: SentCommand) -> None:
        command = {} if sent.is_sensitive else sent.command
        if self._listeners:
            sent.event_fields = {
                "request_id": sent.request_id,
                "connection_id": sent.connection.address,
                "operation_id": sent.operation_id,
                "service_id": sent.connection.service_id,
                "database_name": sent.database,
                "server_connection_id": sent.connection.hello.connection_id,
            }
            event = CommandStartedEvent(sent.command, **sent.event_fields)
            event.command = command
            publish(self._listeners, "started", event)
        if self._is_logged():
            self._log("Command started", sent, {"command": (log.document_text, command)})

    def succeeded(self, sent: SentCommand, duration: float, reply: Document) -> None:
        event_reply = {} if sent.is_sensitive else reply
        if self._listeners:
            event = CommandSucceededEvent(timedelta(seconds=duration), event_reply, sent.name, **sent.event_fields)
            publish(self._listeners, "succeeded", event)
        if self._is_logged():
            self._log("Command succeeded", sent, {"reply": (log.document_text, event_reply)}, duration)

    def failed(self, sent: SentCommand, duration: float, error: BaseException) -> None:
        failure, is_reply = _failure_document(error)
        if sent.is_sensitive and is_reply:
            failure = {key: failure[key] for key in ("code", "codeName", "errorLabels") if key in failure}
        if self._listeners:
            elapsed = timedelta(seconds=duration)
            event = CommandFailedEvent(elapsed, failure, sent.name, **sent.event_fields)
            publish(self._listeners, "failed", event)
        if self._is_logged():
            self._log("Command failed", sent, {"failure": (log.document_text, failure)}, duration)

    def _log(self, message: str, sent: SentCommand, lazy: log.LazyValues, duration: float | None = None) -> None:
        connection = sent.connection
        fields = {
            "message": message,
            "commandName": sent.name,
            "databaseName": sent.database,
            "requestId": sent.request_id,
            "operationId": sent.operation_id,
            "driverConnectionId": connection.id,
            "serverConnectionId": connection.hello.connection_id,
            **log.address_fields(connection.address),
        }
        if fields["serverConnectionId"] is None:
            del fields["serverConnectionId"]
        if duration is not None:
            fields["durationMS"] = log.milliseconds(duration)
        if connection.service_id is not None:
            fields["serviceId"] = str(connection.service_id)
        structured = log.Structured(fields, lazy)
        log.log(self._logger, log.MessageText(structured), structured)


def _failure_document(error: BaseException) -> tuple[DocumentDict, bool]:
    """Return a pair: the error as a document, and True if this document is a server reply."""
    if isinstance(error, (OperationFailure, AutoReconnect)) and isinstance(error.details, Mapping):
        return dict(error.details), True
    return {"errmsg": str(error), "errtype": type(error).__name__}, False
