"""Log messages of commands, of a topology and of server selection have the text and fields of the Logging
specification.

Loggers have the names with which applications set levels (docs/observability.md).
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import ObjectId

from gmongo.cmap.connection import Connection
from gmongo.errors import AutoReconnect, OperationFailure
from gmongo.events import log
from gmongo.events.command import CommandEvents, SentCommand
from gmongo.events.sdam import SelectionEvents, SelectionRequest, TopologyEvents
from tests.support.cases import with_cases

ADDRESS = ("h", 1)
TOPOLOGY_ID = ObjectId("0" * 24)


def connection_with_hello(**hello: Any) -> Connection:
    connection = Connection(ADDRESS)
    connection.id = 3
    if hello:
        connection.hello = SimpleNamespace(**hello)  # type: ignore[assignment]
    return connection


def check_log_message(
    caplog: pytest.LogCaptureFixture,
    logger: logging.Logger,
    action: Callable[[bool], object],
    message_level: int,
    message_text: str,
    message_fields: dict[str, Any],
) -> None:
    """Check that `action` logs one message, but no message if the logger has a higher level or the
    client is silent.
    """
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        caplog.set_level(level, logger.name)
        caplog.handler.setLevel(logging.NOTSET)
        for silent in (False, True):
            caplog.clear()
            action(silent)
            records = [record for record in caplog.records if record.name == logger.name]
            assert [(record.levelno, record.getMessage(), vars(record)["structured"]) for record in records] == (
                [] if silent or level > message_level else [(message_level, message_text, message_fields)]
            )


@with_cases
def test_topology_event_is_logged_with_text_and_fields(
    method: str, arguments: list[Any], text: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    if method.startswith("heartbeat") and arguments[1] is not None:
        arguments = [arguments[0], connection_with_hello(**arguments[1]), *arguments[2:]]
    listeners: Any = SimpleNamespace(topology=(), server=(), heartbeat=())
    message = text.partition(" for h:1")[0].partition(f" (topology {TOPOLOGY_ID})")[0]
    check_log_message(
        caplog,
        log.topology_log,
        lambda silent: getattr(TopologyEvents(TOPOLOGY_ID, listeners, Mock(), silent=silent), method)(*arguments),
        logging.DEBUG,
        text,
        {"message": message, "topologyId": TOPOLOGY_ID, **fields},
    )


@with_cases
def test_server_selection_step_is_logged_with_text_and_fields(
    method: str,
    operation_id: int | None,
    arguments: list[Any],
    text: str,
    fields: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    request: Any = SelectionRequest("S", "find", operation_id)  # type: ignore[arg-type]
    check_log_message(
        caplog,
        log.server_selection_log,
        lambda silent: getattr(SelectionEvents(silent=silent), method)(request, *arguments),
        logging.INFO if text.startswith("Waiting") else logging.DEBUG,
        text,
        {"message": text.partition(" for operation")[0], **fields},
    )


REPLY = {"ok": 0, "code": 5, "codeName": "X", "errorLabels": ["L"], "errmsg": "secret"}
NAMES = "authenticate saslStart saslContinue getnonce createUser updateUser copydbgetnonce copydbsaslstart copydb"
HELLOS: list[dict[str, Any]] = [{"hello": 1}, {"isMaster": 1}]
SENSITIVE_COMMANDS = [{name: 1} for name in NAMES.split()] + [{**each, "speculativeAuthenticate": 1} for each in HELLOS]
COMMANDS = [*SENSITIVE_COMMANDS, *HELLOS, {"find": "c", "speculativeAuthenticate": 1}]
FIELDS = {"databaseName": "db", "requestId": 7, "operationId": 8, "driverConnectionId": 3, "serverConnectionId": 4}
identity = attrgetter("database_name", "request_id", "operation_id", "connection_id", "server_connection_id")


@pytest.mark.parametrize(
    ("outcome", "shown_if_sensitive", "shown_otherwise"),
    [
        (REPLY, {}, REPLY),
        (OperationFailure("x", 5, REPLY), {"code": 5, "codeName": "X", "errorLabels": ["L"]}, REPLY),
        *((each("x"), *[{"errmsg": "x", "errtype": each.__name__}] * 2) for each in (AutoReconnect, OSError)),
    ],
)
def test_events_and_logs_of_sensitive_command_have_no_content(
    outcome: Any, shown_if_sensitive: Any, shown_otherwise: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gmongo.command")
    end, attribute = ("succeeded", "reply") if outcome is REPLY else ("failed", "failure")
    for command in COMMANDS:
        caplog.clear()
        is_sensitive, name, listener = command in SENSITIVE_COMMANDS, next(iter(command)), Mock()
        events = CommandEvents((listener,), silent=False)
        sent = SentCommand(command, "db", 7, 8, connection_with_hello(connection_id=4), None)
        events.started(sent)
        getattr(events, end)(sent, 0.25, outcome)
        (_, (started,), _), (_, (ended,), _) = listener.mock_calls
        shown = shown_if_sensitive if is_sensitive else shown_otherwise
        assert (started.command, started.command_name) == ({} if is_sensitive else command, name)
        assert (getattr(ended, attribute), ended.command_name, ended.duration_micros) == (shown, name, 250_000)
        assert started.service_id is ended.service_id is None
        assert identity(started) == identity(ended) == ("db", 7, 8, ADDRESS, 4)
        fields = {**FIELDS, "commandName": name, "serverHost": "h", "serverPort": 1}
        assert [vars(record)["structured"] for record in caplog.records] == [
            {**fields, "message": "Command started", "command": log.document_text(started.command)},
            {**fields, "message": f"Command {end}", "durationMS": 250, attribute: log.document_text(shown)},
        ]


@pytest.mark.parametrize(("silent", "is_logged"), [(False, True), (True, True), (False, False)])
@pytest.mark.parametrize("listeners", [(), (Mock(), Mock())], ids=len)
def test_command_events_reach_only_present_listeners_and_enabled_log(
    silent: bool, is_logged: bool, listeners: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG if is_logged else logging.INFO, "gmongo.command")
    caplog.handler.setLevel(logging.NOTSET)
    events = CommandEvents(listeners, silent=silent)
    sent = SentCommand({"find": "c"}, "db", 7, 8, connection_with_hello(connection_id=None), None)
    sent.connection.service_id = service_id = ObjectId()
    events.started(sent)
    events.succeeded(sent, 1, {"ok": 1})
    events.failed(sent, 1, AutoReconnect("x"))
    assert all(call.args[0].service_id == service_id for each in listeners for call in each.mock_calls[-3:])
    logged, has_log = [vars(record)["structured"] for record in caplog.records], is_logged and not silent
    assert [fields["serviceId"] for fields in logged] == [str(service_id)] * 3 * has_log
    assert not any("serverConnectionId" in fields for fields in logged)
    assert events.is_enabled() is (has_log or bool(listeners))
    assert events.monitored_reply(lambda reply: {**reply, "b": 1}, {}) == ({"b": 1} if listeners else {})


@with_cases
def test_truncated_document_text_ends_between_escape_sequences(
    value: str, length: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", str(length))
    assert log.document_text({"a": value}) == text


@pytest.mark.parametrize("length", ["", "many", "-5", "1e3"])
def test_invalid_maximum_length_selects_default_length(length: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", length)
    assert len(log.document_text({"a": "x" * 2000})) == len("...") + 1000


@with_cases
def test_logger_of_module_has_documented_name(module: str, variable: str, name: str) -> None:
    logger = vars(importlib.import_module(module))[variable]
    assert logger is logging.getLogger(f"gmongo.{name}")


def test_logger_of_silent_clients_is_disabled() -> None:
    assert log.silent_log.name == "gmongo.silence" and log.silent_log.disabled
