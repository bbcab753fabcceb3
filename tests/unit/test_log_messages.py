"""Log messages of a topology and of server selection have the text and fields of the Logging
specification.

Loggers have the names with which applications set levels (docs/observability.md).
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import ObjectId

from gmongo.cmap.connection import Connection
from gmongo.events import log
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
