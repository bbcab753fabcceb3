"""Errors on established connections have the effects in the tables of the SDAM specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bson import Int64, ObjectId

from gmongo.client_options import ClientOptions
from gmongo.cmap.connection import Connection
from gmongo.cmap.hello import Hello
from gmongo.cmap.pool import Pool
from gmongo.errors import (
    AutoReconnect,
    NetworkTimeout,
    PoolClearedError,
    PyMongoError,
)
from gmongo.execution.reply_errors import error_of
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address

ADDRESS = ("a", 27017)
WIRE_4_0, WIRE_4_2, WIRE_8_0 = 7, 8, 25


class RecordingMonitor:
    """A replacement of a monitor, which records requests and cancellations of checks."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def request_check(self) -> None:
        self.requests.append("check")

    def cancel_check(self) -> None:
        self.requests.append("cancel")

    def close(self) -> None:
        pass

    def stop(self) -> None:
        pass


class TopologyWithoutMonitors(Topology):
    """A topology whose servers have a :class:`RecordingMonitor` instead of a real monitor."""

    def _make_server(self, address: Address, pool: Pool) -> Server:
        return Server(address, pool, RecordingMonitor())  # type: ignore[arg-type]


def primary_description(version_counter: int = 1) -> ServerDescription:
    hello = {
        "ok": 1,
        "isWritablePrimary": True,
        "setName": "rs",
        "setVersion": 1,
        "electionId": ObjectId("0" * 24),
        "hosts": ["a:27017"],
        "maxWireVersion": WIRE_8_0,
        "logicalSessionTimeoutMinutes": 30,
        "topologyVersion": {"processId": ObjectId("1" * 24), "counter": Int64(version_counter)},
    }
    return ServerDescription(ADDRESS, hello, 0.001)


@pytest.fixture
def topology() -> Iterator[TopologyWithoutMonitors]:
    topology = TopologyWithoutMonitors(ClientOptions("mongodb://a/?replicaSet=rs", None, {}).topology())
    topology.open()
    topology.server_checked(primary_description())
    yield topology
    topology.close()


def established_connection(topology: Topology, wire_version: int = WIRE_8_0) -> Connection:
    connection = Connection(ADDRESS)
    connection.generation = topology.servers[ADDRESS].pool.generation
    connection.hello = Hello({"ok": 1, "maxWireVersion": wire_version}, 0)
    return connection


def reply_error(code: int | None, message: str = "error", **reply_fields: Any) -> PyMongoError:
    reply = {"ok": 0, "errmsg": message, **({} if code is None else {"code": code}), **reply_fields}
    error = error_of(reply, WIRE_8_0)
    assert error is not None
    return error


def effects_of(topology: Topology, error: BaseException, wire_version: int) -> tuple[bool, bool, list[str]]:
    """Let the topology handle an error of a connection, and return the effects of the error.

    :returns: True if the server is Unknown, True if the pool was cleared, and the names of the
        monitor methods that the topology called.
    """
    server = topology.servers[ADDRESS]
    used = established_connection(topology, wire_version)
    before = server.pool.generation
    topology.handle_error(used, error)
    unknown = not topology.description.server_descriptions()[ADDRESS].is_server_type_known
    return unknown, server.pool.generation != before, server.monitor.requests  # type: ignore[union-attr]


NO_EFFECT = (False, False, [])
OVERLOAD_LABELS = ["SystemOverloadedError", "RetryableError"]


@pytest.mark.requirement("SM-91", "SM-93", "SM-109")
@pytest.mark.parametrize(
    ("error", "wire_version", "expected"),
    [
        (AutoReconnect("closed"), WIRE_8_0, (True, True, ["cancel"])),
        (NetworkTimeout("too long"), WIRE_8_0, NO_EFFECT),
        (PoolClearedError("paused"), WIRE_8_0, NO_EFFECT),
        (reply_error(2, "not master"), WIRE_8_0, NO_EFFECT),
        (reply_error(None, "not master"), WIRE_8_0, (True, False, ["check"])),
        (reply_error(None, "error"), WIRE_8_0, NO_EFFECT),
        (reply_error(10107), WIRE_8_0, (True, False, ["check"])),
        (reply_error(10107), WIRE_4_0, (True, True, ["check"])),
        (reply_error(189), WIRE_4_2, (True, False, ["check"])),
        (reply_error(91, errorLabels=OVERLOAD_LABELS), WIRE_8_0, (True, True, ["check"])),
    ],
)
def test_error_on_established_connection_has_specified_effects(
    topology: Topology, error: PyMongoError, wire_version: int, expected: Any
) -> None:
    assert effects_of(topology, error, wire_version) == expected


@pytest.mark.requirement("SM-30")
@pytest.mark.parametrize("generations_behind", [0, 1])
def test_handshake_of_connection_of_older_generation_keeps_server_unknown(
    topology: Topology, generations_behind: int
) -> None:
    connection = established_connection(topology)
    topology.handle_error(established_connection(topology), AutoReconnect("closed"))
    connection.generation = topology.servers[ADDRESS].pool.generation - generations_behind
    connection.hello = Hello(dict(primary_description(2)._hello), 0.001)
    topology.connection_established(connection)
    assert topology.description.server_descriptions()[ADDRESS].is_server_type_known is (generations_behind == 0)


def test_new_srv_hosts_reset_cache_of_server_selection() -> None:
    topology = TopologyWithoutMonitors(ClientOptions("mongodb://a,b/", None, {}).topology())
    topology.open()
    for host in ("a", "b"):
        hello = {"ok": 1, "msg": "isdbgrid", "isWritablePrimary": True, "maxWireVersion": WIRE_8_0}
        topology.server_checked(ServerDescription((host, 27017), hello, 0.001))
    topology.select_server(WRITABLE, "test")
    topology.srv_hosts_found([("b", 27017)])
    assert {topology.select_server(WRITABLE, "test").address for _ in range(20)} == {("b", 27017)}
    topology.close()
