"""Log messages of a topology and of server selection have the text and fields of the Logging specification."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import ObjectId

from gmongo.cmap.connection import Connection
from gmongo.events import log
from gmongo.events.sdam import TopologyEvents
from gmongo.events.selection import SelectionEvents, SelectionRequest

ADDRESS, PLACE = ("h", 1), {"serverHost": "h", "serverPort": 1}
TOPOLOGY = ObjectId("0" * 24)
REQUEST = SelectionRequest("S", "find", 5)  # type: ignore[arg-type]
SUFFIX = f"(topology {TOPOLOGY})"
FIND_FIELDS = {"operation": "find", "operationId": 5, "selector": "'S'", "topologyDescription": "'T'"}


def connection(**hello: Any) -> Connection:
    found = Connection(ADDRESS)
    found.id = 3
    if hello:
        found.hello = SimpleNamespace(**hello)  # type: ignore[assignment]
    return found


# For each case: the action that logs, the text of the log message, and the fields of the log message.
OF_TOPOLOGY: list[tuple[Callable[[TopologyEvents], object], str, dict[str, Any]]] = [
    (lambda it: it.topology_opened(), f"Starting topology monitoring {SUFFIX}", {}),
    (lambda it: it.topology_closed(), f"Stopped topology monitoring {SUFFIX}", {}),
    (lambda it: it.server_opened(ADDRESS), f"Starting server monitoring for h:1 {SUFFIX}", PLACE),
    (lambda it: it.server_closed(ADDRESS), f"Stopped server monitoring for h:1 {SUFFIX}", PLACE),
    (
        lambda it: it.topology_changed("old", "new"),  # type: ignore[arg-type]
        f"Topology description changed {SUFFIX}. Previous description: 'old'. New description: 'new'",
        {"previousDescription": "'old'", "newDescription": "'new'"},
    ),
    (
        lambda it: it.heartbeat_started(ADDRESS, connection(), True),
        f"Server heartbeat started for h:1 {SUFFIX}",
        {**PLACE, "awaited": True, "driverConnectionId": 3},
    ),
    (
        lambda it: it.heartbeat_started(ADDRESS, None, False),
        f"Server heartbeat started for h:1 {SUFFIX}",
        {**PLACE, "awaited": False},
    ),
    (
        lambda it: it.heartbeat_succeeded(ADDRESS, connection(connection_id=7), 0.25, {"ok": 1}, False),
        f'Server heartbeat succeeded for h:1 {SUFFIX}, reply: {{"ok": 1}}',
        {
            **PLACE, "awaited": False, "driverConnectionId": 3, "serverConnectionId": 7, "durationMS": 250,
            "reply": '{"ok": 1}',
        },
    ),
    (
        lambda it: it.heartbeat_failed(ADDRESS, connection(connection_id=None), 0.5, OSError("x"), True),
        f"Server heartbeat failed for h:1 {SUFFIX}, failure: x",
        {**PLACE, "awaited": True, "driverConnectionId": 3, "durationMS": 500, "failure": "OSError('x')"},
    ),
]  # fmt: skip
OF_SELECTION: list[tuple[Callable[[SelectionEvents], object], str, dict[str, Any]]] = [
    (
        lambda it: it.started(REQUEST, "T"),  # type: ignore[arg-type]
        "Server selection started for operation find. Selector: 'S', topology: 'T', operationId=5",
        FIND_FIELDS,
    ),
    (
        lambda it: it.succeeded(REQUEST, "T", ADDRESS),  # type: ignore[arg-type]
        "Server selection succeeded for operation find. Selector: 'S', topology: 'T', serverHost=h, serverPort=1, "
        "operationId=5",
        {**FIND_FIELDS, **PLACE},
    ),
    (
        lambda it: it.failed(REQUEST, "T", OSError("x")),  # type: ignore[arg-type]
        "Server selection failed for operation find. Selector: 'S', topology: 'T', failure=OSError('x'), operationId=5",
        {**FIND_FIELDS, "failure": "OSError('x')"},
    ),
    (
        lambda it: it.waiting(REQUEST._replace(operation_id=None), "T", 1.5),  # type: ignore[arg-type]
        "Waiting for suitable server to become available for operation find. Selector: 'S', topology: 'T', "
        "remainingTimeMS=1500",
        {**{name: FIND_FIELDS[name] for name in FIND_FIELDS if name != "operationId"}, "remainingTimeMS": 1500},
    ),
]


def check_log_message(
    caplog: pytest.LogCaptureFixture,
    logger: logging.Logger,
    action: Callable[[bool], object],
    message_level: int,
    message_text: str,
    message_fields: dict[str, Any],
) -> None:
    """Check that an action logs one message at one level.

    The action logs nothing if the logger's level is higher, or if the argument `silent` is True.
    """
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        caplog.set_level(level, logger.name)
        for silent in (False, True):
            caplog.clear()
            action(silent)
            found = [record for record in caplog.records if record.name == logger.name]
            assert [(record.levelno, record.getMessage(), vars(record)["structured"]) for record in found] == (
                [] if silent or level > message_level else [(message_level, message_text, message_fields)]
            )


@pytest.mark.parametrize(("action", "text", "fields"), OF_TOPOLOGY)
def test_topology_event_is_logged_with_text_and_fields(
    action: Any, text: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    listeners: Any = SimpleNamespace(topology=(), server=(), heartbeat=())
    message = text.partition(" for h:1")[0].partition(f" {SUFFIX}")[0]
    check_log_message(
        caplog,
        log.topology_log,
        lambda silent: action(TopologyEvents(TOPOLOGY, listeners, Mock(), silent=silent)),
        logging.DEBUG,
        text,
        {"message": message, "topologyId": TOPOLOGY, **fields},
    )


@pytest.mark.parametrize(("action", "text", "fields"), OF_SELECTION)
def test_server_selection_step_is_logged_with_text_and_fields(
    action: Any, text: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    check_log_message(
        caplog,
        log.server_selection_log,
        lambda silent: action(SelectionEvents(silent=silent)),
        logging.INFO if text.startswith("Waiting") else logging.DEBUG,
        text,
        {"message": text.partition(" for operation")[0], **fields},
    )


@pytest.mark.parametrize(
    ("value", "length", "text"),
    [
        ("é", 11, '{"a": "...'),
        ("éx", 13, '{"a": "\\u00e9...'),
        ("😀", 15, '{"a": "...'),
        ("😀x", 19, '{"a": "\\ud83d\\ude00...'),
        ("\\\\x", 9, '{"a": "\\\\...'),
        ("\\\\x", 10, '{"a": "\\\\...'),
    ],
)
def test_document_text_is_cut_between_escape_sequences(
    value: str, length: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", str(length))
    assert log.document_text({"a": value}) == text


@pytest.mark.parametrize("length", ["", "many", "-5", "1e3"])
def test_invalid_maximum_length_selects_default_length(length: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", length)
    assert len(log.document_text({"a": "x" * 2000})) == len("...") + 1000
