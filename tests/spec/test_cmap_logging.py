"""The official logging tests of connection pools: a client against a server, and what it logs on `gmongo.connection`.

They are written in the unified test format, of which this reads the part that they use; anything else is an error.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.monitoring import ConnectionPoolListener
from tests.scripted.server import ScriptedServer, eventually
from tests.spec.specifications import cases

LEVELS = {"debug": logging.DEBUG}
TYPES: dict[str, Any] = {"string": str, "int": int, "long": int, "double": (int, float)}


class Events(ConnectionPoolListener):
    """The names of a client's pool events, as the tests write them."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def _record(self, event: Any) -> None:
        name = type(event).__name__
        self.names.append(name[0].lower() + name[1:])

    pool_created = pool_ready = pool_cleared = pool_closed = _record
    connection_created = connection_ready = connection_closed = _record
    connection_check_out_started = connection_check_out_failed = _record
    connection_checked_out = connection_checked_in = _record


class LoggingTest:
    """One case.

    :param server: to connect to.
    """

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._clients: dict[str, MongoClient[Any]] = {}
        self._events: dict[str, Events] = {}

    def run(self, operations: list[dict[str, Any]]) -> None:
        for operation in operations:
            assert set(operation) <= {"name", "object", "arguments"}, operation
            getattr(self, "_op_" + operation["name"])(operation["object"], **operation.get("arguments", {}))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _op_createEntities(self, _runner: str, entities: list[dict[str, Any]]) -> None:
        for entity in entities:
            given = dict(entity["client"])
            name = given.pop("id")
            assert given.pop("observeLogMessages") == {"connection": "debug"}
            given.pop("observeEvents", None)  # all of them are recorded
            self._events[name] = Events()
            options = {"event_listeners": [self._events[name]], **given.pop("uriOptions", {})}
            assert not given
            self._clients[name] = MongoClient(self._server.name, **options)
            eventually(lambda name=name: self._clients[name].nodes)

    def _op_waitForEvent(self, _runner: str, client: str, event: dict[str, Any], count: int) -> None:
        ((name, fields),) = event.items()
        assert fields == {}
        eventually(lambda: self._events[client].names.count(name) >= count)

    def _op_listDatabases(self, client: str, filter: dict[str, Any]) -> None:
        self._clients[client].list_databases(filter=filter)

    def _op_close(self, client: str) -> None:
        self._clients[client].close()


def matches(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict) and "$$type" in expected:
        wanted = expected["$$type"]
        return isinstance(actual, tuple(TYPES[each] for each in ([wanted] if isinstance(wanted, str) else wanted)))
    return bool(expected == actual)


@pytest.mark.parametrize("case", cases("connection-monitoring-and-pooling/tests/logging"))
def test_cmap_logging(case: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="gmongo.connection")
    replies = {"listDatabases": {"ok": 1, "databases": []}}
    with ScriptedServer(replies) as server:
        test = LoggingTest(server)
        try:
            test.run(case["operations"])
            records = [record for record in caplog.records if record.name == "gmongo.connection"]
        finally:
            test.close()
    (expected,) = case["expectLogMessages"]
    assert set(expected) == {"client", "messages"}
    shown = [record.structured["message"] for record in records]  # type: ignore[attr-defined]
    assert len(records) == len(expected["messages"]), shown
    for record, wanted in zip(records, expected["messages"], strict=True):
        assert wanted["component"] == "connection"
        assert record.levelno == LEVELS[wanted["level"]]
        structured = record.structured  # type: ignore[attr-defined]
        for key, value in wanted["data"].items():
            assert key in structured and matches(value, structured[key]), (key, structured)
