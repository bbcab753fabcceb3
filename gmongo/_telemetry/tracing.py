"""Spans of operations, commands and transactions (OpenTelemetry specification of the drivers).

The spans of commands are children of the operation's span. A wait is a span event, because the
specification defines no span for waits. The executor calls the observer in the greenlet and in the
OpenTelemetry context of the operation.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from opentelemetry import context as contexts
from opentelemetry import trace

from gmongo._documents import Document, DocumentDict
from gmongo._telemetry.text import error_attributes, error_type_of, operation_attributes, query_text, server_attributes
from gmongo._version import __version__
from gmongo.execution.operation_trace import Observer, OperationTrace, Phase

if TYPE_CHECKING:
    from gmongo.errors import PyMongoError
    from gmongo.events.command import SentCommand
    from gmongo.execution.transaction import Transaction

_SHORTEST_WAIT = 0.001  # seconds. A shorter wait has a span event only after an error or a connection attempt
_PROVIDER_IN_ENVIRONMENT = "OTEL_PYTHON_TRACER_PROVIDER" in os.environ
_SYSTEM = {"db.system.name": "mongodb"}
# Commands whose first field contains a collection name. In other commands, this field may contain a
# user name.
_COMMAND_NAMES = (
    "aggregate collMod collStats count create createIndexes createSearchIndexes delete distinct drop "
    "dropIndexes dropSearchIndex find findAndModify insert killCursors listIndexes mapReduce update "
    "updateSearchIndex validate"
)
_COLLECTION_COMMANDS = frozenset(_COMMAND_NAMES.split())


class Traces(Observer):
    """Observer that creates the spans of one client. If `provider` is None, the observer uses the global provider.

    `query_text_max_length` is the maximum length of the command text in a span, in characters. 0
    omits the text.
    """

    def __init__(self, provider: trace.TracerProvider | None, query_text_max_length: int) -> None:
        self._max_text_length = query_text_max_length
        self._tracer = None if provider is None else _get_tracer(provider)

    def is_enabled(self) -> bool:
        if self._tracer is None:
            if _has_no_provider():
                return False
            provider = trace.get_tracer_provider()
            if isinstance(provider, trace.ProxyTracerProvider):
                return False  # the application has not set a provider yet
            self._tracer = _get_tracer(provider)
        return True

    def bind_context(self, run: Callable[[], None]) -> Callable[[], None]:
        current = contexts.get_current()

        def run_in_context() -> None:
            contexts.attach(current)  # without a detach, because the context applies until the greenlet ends
            run()

        return run_in_context

    # Operations

    def operation_started(self, operation_trace: OperationTrace, transaction: Transaction | None) -> None:
        summary = operation_trace.summary
        attributes = {**operation_attributes(operation_trace), "db.operation.summary": summary}
        if operation_trace.cursor_id is not None:
            attributes["db.mongodb.cursor_id"] = operation_trace.cursor_id
        parent = None
        if transaction is not None and transaction.observer_data is not None:
            parent = trace.set_span_in_context(transaction.observer_data)
        assert self._tracer is not None
        span = self._tracer.start_span(summary, parent, trace.SpanKind.CLIENT, attributes)
        span_context = trace.set_span_in_context(span, parent)
        operation_trace.notes[self] = span, span_context, contexts.attach(span_context)

    def operation_ended(self, operation_trace: OperationTrace, error: BaseException | None) -> None:
        note = operation_trace.notes.pop(self, None)
        if note is None:
            return
        span, _, token = note
        contexts.detach(token)
        if error is not None:
            _record_error(span, error, 0 if operation_trace.is_sensitive else self._max_text_length)
            span.set_attribute("error.type", error_type_of(error))
        span.end()

    def wait_ended(
        self,
        operation_trace: OperationTrace,
        phase: Phase,
        seconds: float,
        connecting: float,
        error: BaseException | None,
    ) -> None:
        note = operation_trace.notes.get(self)
        is_negligible = seconds < _SHORTEST_WAIT and not connecting and error is None
        if note is None or is_negligible or not note[0].is_recording():
            return
        attributes: DocumentDict = {"gmongo.wait.duration": seconds}
        if connecting:
            attributes["gmongo.wait.connecting"] = connecting
        if error is not None:
            attributes["error.type"] = error_type_of(error)
        note[0].add_event(phase.value, attributes)

    def attempt_failed(self, operation_trace: OperationTrace, error: PyMongoError) -> None:
        note = operation_trace.notes.get(self)
        if note is not None and note[0].is_recording():
            attributes = {"gmongo.tries": operation_trace.attempt_count, "error.type": error_type_of(error)}
            note[0].add_event("retry", attributes)

    # Commands

    def command_started(self, operation_trace: OperationTrace, sent: SentCommand) -> None:
        note = operation_trace.notes.get(self)
        if note is None or sent.is_sensitive or not note[0].is_recording():
            return
        assert self._tracer is not None
        attributes = self._command_attributes(operation_trace, sent)
        span = self._tracer.start_span(sent.name, note[1], trace.SpanKind.CLIENT, attributes)
        operation_trace.notes[sent.request_id] = span

    def _command_attributes(self, operation_trace: OperationTrace, sent: SentCommand) -> DocumentDict:
        connection, command, name = sent.connection, sent.command, sent.name
        collection = operation_trace.collection or _find_collection(name, command, sent.database)
        namespace = f"{sent.database}.{collection}" if collection else sent.database
        attributes: DocumentDict = {
            "db.system.name": "mongodb",
            "db.namespace": sent.database,
            "db.command.name": name,
            "db.query.summary": f"{name} {namespace}",
            "network.transport": "unix" if connection.address[1] is None else "tcp",
            "db.mongodb.driver_connection_id": connection.id,
            **server_attributes(connection.address),
        }
        if collection:
            attributes["db.collection.name"] = collection
        if connection.hello.connection_id is not None:
            attributes["db.mongodb.server_connection_id"] = connection.hello.connection_id
        if operation_trace.cursor_id is not None:
            attributes["db.mongodb.cursor_id"] = operation_trace.cursor_id
        if "lsid" in command:
            attributes["db.mongodb.lsid"] = str(command["lsid"]["id"].as_uuid())
        if "txnNumber" in command:
            attributes["db.mongodb.txn_number"] = int(command["txnNumber"])
        if self._max_text_length:
            attributes["db.query.text"] = query_text(command, self._max_text_length)
        return attributes

    def command_ended(
        self, operation_trace: OperationTrace, sent: SentCommand, reply: Document | None, error: BaseException | None
    ) -> None:
        span: trace.Span | None = operation_trace.notes.pop(sent.request_id, None)
        if span is None:
            return
        if error is not None:
            code = getattr(error, "code", None)
            if code is not None:
                span.set_attribute("db.response.status_code", str(code))
            span.set_attribute("error.type", error_type_of(error) if code is None else str(code))
            _record_error(span, error, self._max_text_length)
        elif operation_trace.cursor_id is None and isinstance(reply, Mapping):
            cursor = reply.get("cursor")
            cursor_id = cursor.get("id") if isinstance(cursor, Mapping) else None
            if cursor_id and isinstance(cursor_id, int):
                span.set_attribute("db.mongodb.cursor_id", cursor_id)
        span.end()

    # Transactions

    def transaction_started(self, transaction: Transaction) -> None:
        assert self._tracer is not None
        transaction.observer_data = self._tracer.start_span("transaction", None, trace.SpanKind.CLIENT, _SYSTEM)

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        span: trace.Span = transaction.observer_data  # if a commit is repeated, this span has already ended
        if span.is_recording():
            if error is not None:
                _record_error(span, error, self._max_text_length)
            span.end()


def _record_error(span: trace.Span, error: BaseException, max_text_length: int) -> None:
    if not span.is_recording():
        return
    attributes = error_attributes(error, max_text_length)
    lines = traceback.format_tb(error.__traceback__)
    attributes["exception.stacktrace"] = (
        f"{''.join(lines)}{attributes['exception.type']}: {attributes['exception.message']}"
    )
    span.set_attributes(attributes)
    span.add_event("exception", attributes)
    span.set_status(trace.Status(trace.StatusCode.ERROR, error_type_of(error)))


def _has_no_provider() -> bool:
    """Return True if no global provider is set. Unlike :func:`get_tracer_provider`, the check takes less than 1 µs."""
    return getattr(trace, "_TRACER_PROVIDER", False) is None and not _PROVIDER_IN_ENVIRONMENT


def _get_tracer(provider: trace.TracerProvider) -> trace.Tracer:
    tracer: trace.Tracer = provider.get_tracer("gmongo", __version__)
    return tracer


def _find_collection(name: str, command: Document, database: str) -> str:
    """Return the collection name in a command, or an empty string."""
    value = command[name]
    if name == "getMore":
        value = command.get("collection")
    elif name not in _COLLECTION_COMMANDS:
        value = None
    return value if isinstance(value, str) and database != "admin" and not value.startswith("$cmd") else ""
