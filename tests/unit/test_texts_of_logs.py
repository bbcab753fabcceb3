"""What the logs of a topology and of server selection say: as a text, and field by field (Logging specification)."""

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
ASKED = SelectionRequest("S", "find", 5)  # type: ignore[arg-type]
WHOSE = f"(topology {TOPOLOGY})"
OF_FIND = {"operation": "find", "operationId": 5, "selector": "'S'", "topologyDescription": "'T'"}


def connection(**hello: Any) -> Connection:
    found = Connection(ADDRESS)
    found.id = 3
    if hello:
        found.hello = SimpleNamespace(**hello)  # type: ignore[assignment]
    return found


# What happens, and the text and the fields of its message.
OF_TOPOLOGY: list[tuple[Callable[[TopologyEvents], object], str, dict[str, Any]]] = [
    (lambda it: it.topology_opened(), f"Starting topology monitoring {WHOSE}", {}),
    (lambda it: it.topology_closed(), f"Stopped topology monitoring {WHOSE}", {}),
    (lambda it: it.server_opened(ADDRESS), f"Starting server monitoring for h:1 {WHOSE}", PLACE),
    (lambda it: it.server_closed(ADDRESS), f"Stopped server monitoring for h:1 {WHOSE}", PLACE),
    (
        lambda it: it.topology_changed("old", "new"),  # type: ignore[arg-type]
        f"Topology description changed {WHOSE}. Previous description: 'old'. New description: 'new'",
        {"previousDescription": "'old'", "newDescription": "'new'"},
    ),
    (
        lambda it: it.heartbeat_started(ADDRESS, connection(), True),
        f"Server heartbeat started for h:1 {WHOSE}",
        {**PLACE, "awaited": True, "driverConnectionId": 3},
    ),
    (
        lambda it: it.heartbeat_started(ADDRESS, None, False),
        f"Server heartbeat started for h:1 {WHOSE}",
        {**PLACE, "awaited": False},
    ),
    (
        lambda it: it.heartbeat_succeeded(ADDRESS, connection(connection_id=7), 0.25, {"ok": 1}, False),
        f'Server heartbeat succeeded for h:1 {WHOSE}, reply: {{"ok": 1}}',
        {
            **PLACE, "awaited": False, "driverConnectionId": 3, "serverConnectionId": 7, "durationMS": 250,
            "reply": '{"ok": 1}',
        },
    ),
    (
        lambda it: it.heartbeat_failed(ADDRESS, connection(connection_id=None), 0.5, OSError("x"), True),
        f"Server heartbeat failed for h:1 {WHOSE}, failure: x",
        {**PLACE, "awaited": True, "driverConnectionId": 3, "durationMS": 500, "failure": "OSError('x')"},
    ),
]  # fmt: skip
OF_SELECTION: list[tuple[Callable[[SelectionEvents], object], str, dict[str, Any]]] = [
    (
        lambda it: it.started(ASKED, "T"),  # type: ignore[arg-type]
        "Server selection started for operation find. Selector: 'S', topology: 'T', operationId=5",
        OF_FIND,
    ),
    (
        lambda it: it.succeeded(ASKED, "T", ADDRESS),  # type: ignore[arg-type]
        "Server selection succeeded for operation find. Selector: 'S', topology: 'T', serverHost=h, serverPort=1, "
        "operationId=5",
        {**OF_FIND, **PLACE},
    ),
    (
        lambda it: it.failed(ASKED, "T", OSError("x")),  # type: ignore[arg-type]
        "Server selection failed for operation find. Selector: 'S', topology: 'T', failure=OSError('x'), operationId=5",
        {**OF_FIND, "failure": "OSError('x')"},
    ),
    (
        lambda it: it.waiting(ASKED._replace(operation_id=None), "T", 1.5),  # type: ignore[arg-type]
        "Waiting for suitable server to become available for operation find. Selector: 'S', topology: 'T', "
        "remainingTimeMS=1500",
        {**{name: OF_FIND[name] for name in OF_FIND if name != "operationId"}, "remainingTimeMS": 1500},
    ),
]


def check(
    caplog: pytest.LogCaptureFixture,
    logger: logging.Logger,
    happens: Callable[[bool], object],
    own: int,
    text: str,
    structured: dict[str, Any],
) -> None:
    """One message of its own level is logged, where the logger takes that and the publisher is not silent.

    :param happens: with a publisher that is silent or not.
    """
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        caplog.set_level(level, logger.name)
        for silent in (False, True):
            caplog.clear()
            happens(silent)
            found = [record for record in caplog.records if record.name == logger.name]
            assert [(record.levelno, record.getMessage(), vars(record)["structured"]) for record in found] == (
                [] if silent or level > own else [(own, text, structured)]
            )


@pytest.mark.parametrize(("happens", "text", "fields"), OF_TOPOLOGY)
def test_what_happens_to_a_topology(
    happens: Any, text: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    listeners: Any = SimpleNamespace(topology=(), server=(), heartbeat=())
    message = text.partition(" for h:1")[0].partition(f" {WHOSE}")[0]
    check(
        caplog,
        log.topology_log,
        lambda silent: happens(TopologyEvents(TOPOLOGY, listeners, Mock(), silent=silent)),
        logging.DEBUG,
        text,
        {"message": message, "topologyId": TOPOLOGY, **fields},
    )


@pytest.mark.parametrize(("happens", "text", "fields"), OF_SELECTION)
def test_how_a_server_is_selected(
    happens: Any, text: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    check(
        caplog,
        log.server_selection_log,
        lambda silent: happens(SelectionEvents(silent=silent)),
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
def test_text_of_document_is_cut_between_escapes(
    value: str, length: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", str(length))
    assert log.document_text({"a": value}) == text


@pytest.mark.parametrize("length", ["", "many", "-5", "1e3"])
def test_length_that_is_no_number_counts_as_the_default(length: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", length)
    assert len(log.document_text({"a": "x" * 2000})) == len("...") + 1000
