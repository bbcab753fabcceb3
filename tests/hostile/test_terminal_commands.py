"""Tests that the driver escapes terminal commands and line breaks in texts that a server sends.

The tests check log records, errors, reprs, the status page, and the status tables on a terminal.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from bson import ObjectId
from hypothesis import given
from hypothesis import strategies as st

from gmongo import MongoClient, event_loggers
from gmongo._safe_log import printable
from gmongo.errors import PyMongoError
from gmongo.status import StatusPage, process_state
from gmongo.wire.address import parse_address
from tests.status.test_page import send_wsgi_request
from tests.support.server import ScriptedServer

# Text that sets the title, clears the screen, forges a log line, and changes direction and color.
EVIL = "\x1b]0;owned\x07\x1b[2J\r\nERROR forged\u202e\x9b31m"
LISTENER_CLASSES = (
    event_loggers.CommandLogger,
    event_loggers.ConnectionPoolLogger,
    event_loggers.HeartbeatLogger,
    event_loggers.ServerLogger,
    event_loggers.TopologyLogger,
)

HELLO_CHANGES: dict[str, dict[str, Any]] = {
    "replica set name": {"setName": EVIL, "secondary": True, "hosts": ["127.0.0.1:1"]},
    "host": {"setName": "rs", "secondary": True, "hosts": [f"{EVIL}:1"]},
    "host in brackets": {"setName": "rs", "secondary": True, "hosts": [f"[{EVIL}]:1"]},
    "path": {"setName": "rs", "secondary": True, "hosts": [f"{EVIL}.sock"]},
    "passive": {"setName": "rs", "secondary": True, "passives": [f"{EVIL}:1"]},
    "arbiter": {"setName": "rs", "secondary": True, "arbiters": [f"{EVIL}:1"]},
    "me": {"setName": "rs", "secondary": True, "me": f"{EVIL}:1", "hosts": ["127.0.0.1:1"]},
    "primary": {"setName": "rs", "secondary": True, "primary": f"{EVIL}:1", "hosts": ["127.0.0.1:1"]},
    "tags": {"setName": "rs", "secondary": True, "tags": {EVIL: EVIL}, "hosts": ["127.0.0.1:1"]},
    "msg": {"msg": EVIL},
    "mechanisms": {"saslSupportedMechs": [EVIL]},
    "compressors": {"compression": [EVIL]},
    "unknown fields": {EVIL: EVIL, "version": EVIL},
    "error": {"ok": 0, "errmsg": EVIL, "code": 1, "codeName": EVIL, "errorLabels": [EVIL]},
    "legacy error": {"ok": 0, "$err": EVIL},
    "wrong type": {"maxWireVersion": EVIL},
    "process ID": {"topologyVersion": {"processId": EVIL, "counter": EVIL}},
    "election ID": {"setName": "rs", "isWritablePrimary": True, "hosts": ["127.0.0.1:1"], "electionId": EVIL},
}
REPLIES: dict[str, Any] = {
    "error": {"ok": 0, "errmsg": EVIL, "code": 1, "codeName": EVIL, "errorLabels": [EVIL]},
    "not the primary": {"ok": 0, "errmsg": f"not master {EVIL}", "code": 10107, "codeName": EVIL},
    "timeout": {"ok": 0, "errmsg": EVIL, "code": 50, "codeName": EVIL},
    "legacy error": {"ok": 0, "$err": EVIL},
    "write error": {"ok": 1, "n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": EVIL, "keyValue": EVIL}]},
    "write concern error": {"ok": 1, "n": 1, "writeConcernError": {"code": 64, "errmsg": EVIL, "errInfo": {}}},
    "no cursor": {"ok": 1, "cursor": EVIL},
    "collection name": {"ok": 1, "cursor": {"id": 0, "ns": EVIL, "firstBatch": []}},
    "wrong type": {"ok": EVIL},
    "cluster time": {"ok": 1, "$clusterTime": EVIL},
}  # fmt: skip


def is_printable(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n")) and "\nERROR forged" not in text


@pytest.fixture
def log_capture(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "gmongo")
    return caplog


def client_of(server: ScriptedServer) -> MongoClient[Any]:
    listeners = [kind() for kind in LISTENER_CLASSES]
    return MongoClient(
        server.name,
        event_listeners=listeners,
        serverSelectionTimeoutMS=150,
        heartbeatFrequencyMS=500,
        slow_operation_ms=0,
        appName="shop",
        retryReads=False,
        retryWrites=False,
        readPreference="secondaryPreferred",
    )


def assert_output_is_printable(client: MongoClient[Any], log_capture: pytest.LogCaptureFixture, use: Any) -> None:
    try:
        use(client.d.c)
    except PyMongoError as error:
        assert is_printable(str(error)), str(error)
        assert is_printable(repr(error)), repr(error)
    for text in (repr(client), repr(client.topology_description), repr(client.nodes), repr(client.pool_stats())):
        assert text.isprintable(), text
    assert log_capture.records
    for record in log_capture.records:
        line = f"{record.getMessage()} {getattr(record, 'structured', '')}"
        assert line.isprintable(), line
    terminal = io.StringIO()
    show_status_in(terminal)
    assert "]0;" not in terminal.getvalue().replace("\\x1b]0;", "")
    assert "\x1b[2J" not in terminal.getvalue()
    assert "\u202e" not in terminal.getvalue()
    page = json.loads(send_wsgi_request(StatusPage(query_text=True), "format=json")[2])
    assert [text for text in texts_in(page) if not text.isprintable()] == []


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from texts_in(each)


def show_status_in(terminal: io.StringIO) -> None:
    console = pytest.importorskip("rich.console").Console(file=terminal, force_terminal=True, width=400)
    from gmongo.status.terminal import overview

    console.print(overview([process_state(query_text=True)], 400))


@pytest.mark.parametrize("hello", HELLO_CHANGES.values(), ids=HELLO_CHANGES.keys())
def test_texts_of_hello_are_printable_in_all_output(
    hello: dict[str, Any], log_capture: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer() as server:
        server.hello_edit = lambda _command, reply: {**reply, **hello}
        with client_of(server) as client:
            assert_output_is_printable(client, log_capture, lambda collection: collection.find_one({}))


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_texts_of_reply_are_printable_in_all_output(
    reply: dict[str, Any], log_capture: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer({"find": reply, "insert": reply}) as server, client_of(server) as client:
        assert_output_is_printable(client, log_capture, lambda collection: collection.find_one({}))
        assert_output_is_printable(client, log_capture, lambda collection: collection.insert_one({"_id": ObjectId()}))
        assert_output_is_printable(
            client, log_capture, lambda collection: collection.insert_many([{}, {}], ordered=False)
        )


@given(st.text())
def test_printable_escapes_characters_like_repr(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(text) == "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


@given(st.text(min_size=1))
def test_host_of_parsed_address_is_printable(text: str) -> None:
    try:
        host, _port = parse_address(text)
    except ValueError:
        return
    assert host.isprintable()
