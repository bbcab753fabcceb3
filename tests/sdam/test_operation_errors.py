"""Errors on established connections have the effects in the tables of the SDAM specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bson import Int64, ObjectId
from bson.errors import InvalidBSON
from gevent import GreenletExit

from gmongo.client_options import ClientOptions
from gmongo.cmap.connection import Connection
from gmongo.cmap.hello import Hello
from gmongo.cmap.pool import Pool
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    NetworkTimeout,
    PoolClearedError,
    ProtocolError,
    PyMongoError,
    WriteConcernError,
)
from gmongo.execution.reply_errors import error_of
from gmongo.sdam.application_errors import ErrorAction, error_action, handle_error
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address

ADDRESS = ("a", 27017)
PROCESS, OTHER_PROCESS = ObjectId("1" * 24), ObjectId("2" * 24)
NOT_PRIMARY, RECOVERING, SHUTTING_DOWN = (10107, 13435, 10058), (11602, 13436, 189), (11600, 91)
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


def topology_version(counter: int, process_id: ObjectId = PROCESS) -> dict[str, Any]:
    return {"processId": process_id, "counter": Int64(counter)}


def primary_description(
    version_counter: int | None = 1, address: Address = ADDRESS, **hello_fields: Any
) -> ServerDescription:
    hello = {
        "ok": 1,
        "isWritablePrimary": True,
        "setName": "rs",
        "setVersion": 1,
        "electionId": ObjectId("0" * 24),
        "hosts": ["a:27017"],
        "maxWireVersion": WIRE_8_0,
        "logicalSessionTimeoutMinutes": 30,
        **hello_fields,
    }
    if version_counter is not None:
        hello["topologyVersion"] = topology_version(version_counter)
    return ServerDescription(address, hello, 0.001)


@pytest.fixture
def topology() -> Iterator[TopologyWithoutMonitors]:
    topology = TopologyWithoutMonitors(ClientOptions("mongodb://a/?replicaSet=rs", None, {}).topology())
    topology.open()
    topology.server_checked(primary_description())
    yield topology
    topology.close()


def established_connection(topology: Topology, wire_version: int = WIRE_8_0, generations_behind: int = 0) -> Connection:
    connection = Connection(ADDRESS)
    connection.generation = topology.servers[ADDRESS].pool.generation - generations_behind
    connection.hello = Hello({"ok": 1, "maxWireVersion": wire_version}, 0)
    return connection


def reply_error(code: int | None, message: str = "error", **reply_fields: Any) -> PyMongoError:
    reply = {"ok": 0, "errmsg": message, **({} if code is None else {"code": code}), **reply_fields}
    error = error_of(reply, WIRE_8_0)
    assert error is not None
    return error


def effects_of(topology: Topology, error: BaseException, **connection_arguments: Any) -> tuple[bool, bool, list[str]]:
    """Let the topology handle an error of a connection, and return the effects of the error.

    :returns: True if the server is Unknown, True if the pool was cleared, and the names of the
        monitor methods that the topology called.
    """
    server = topology.servers[ADDRESS]
    used = established_connection(topology, **connection_arguments)
    before = server.pool.generation
    topology.handle_error(used, error)
    unknown = not topology.description.server_descriptions()[ADDRESS].is_server_type_known
    return unknown, server.pool.generation != before, server.monitor.requests  # type: ignore[union-attr]


NO_EFFECT = (False, False, [])
ERROR_EFFECTS: list[tuple[str, PyMongoError, int, tuple[bool, bool, list[str]]]] = [
    ("network error", AutoReconnect("closed"), WIRE_8_0, (True, True, ["cancel"])),
    ("timeout", NetworkTimeout("too long"), WIRE_8_0, NO_EFFECT),
    ("paused pool", PoolClearedError("paused"), WIRE_8_0, NO_EFFECT),
    ("plain error", reply_error(2), WIRE_8_0, NO_EFFECT),
    ("legacy message with a code", reply_error(2, "not master"), WIRE_8_0, NO_EFFECT),
    ("legacy message: not master", reply_error(None, "not master"), WIRE_8_0, (True, False, ["check"])),
    (
        "legacy message: not master or secondary",
        reply_error(None, "not master or secondary"),
        WIRE_8_0,
        (True, False, ["check"]),
    ),
    ("legacy message: node is recovering", reply_error(None, "node is recovering"), WIRE_8_0, (True, False, ["check"])),
    ("another message", reply_error(None, "error"), WIRE_8_0, NO_EFFECT),
    *[(f"code {code}", reply_error(code), WIRE_8_0, (True, False, ["check"])) for code in (*NOT_PRIMARY, *RECOVERING)],
    *[(f"code {code}", reply_error(code), WIRE_8_0, (True, True, ["check"])) for code in SHUTTING_DOWN],
    *[(f"code {code} of 4.0", reply_error(code), WIRE_4_0, (True, True, ["check"])) for code in (10107, 189, 91)],
    ("code 189 of 4.2", reply_error(189), WIRE_4_2, (True, False, ["check"])),
    (
        "code 91 with overload labels",
        reply_error(91, errorLabels=["SystemOverloadedError", "RetryableError"]),
        WIRE_8_0,
        (True, True, ["check"]),
    ),
]


@pytest.mark.requirement("SM-91", "SM-93", "SM-109")
@pytest.mark.parametrize(
    ("error", "wire_version", "expected"), [row[1:] for row in ERROR_EFFECTS], ids=[row[0] for row in ERROR_EFFECTS]
)
def test_error_on_established_connection_has_specified_effects(
    topology: Topology, error: PyMongoError, wire_version: int, expected: Any
) -> None:
    assert effects_of(topology, error, wire_version=wire_version) == expected


@pytest.mark.parametrize("code", [*NOT_PRIMARY, *RECOVERING, *SHUTTING_DOWN])
def test_write_concern_error_has_effects_of_error_code(topology: Topology, code: int) -> None:
    error = error_of({"ok": 1, "writeConcernError": {"code": code, "errmsg": "no"}}, WIRE_8_0)
    assert error is not None
    assert effects_of(topology, error)[:2] == (True, code in SHUTTING_DOWN)


@pytest.mark.requirement("SM-129")
@pytest.mark.parametrize("error", [AutoReconnect("closed"), reply_error(91), reply_error(10107)])
def test_error_of_connection_of_older_generation_has_no_effect(topology: Topology, error: PyMongoError) -> None:
    topology.servers[ADDRESS].pool.clear()
    assert effects_of(topology, error, generations_behind=1) == NO_EFFECT


@pytest.mark.parametrize(
    ("error_version", "has_effect"),
    [
        (None, True),
        (topology_version(0), False),
        (topology_version(1), False),
        (topology_version(2), True),
        (topology_version(0, OTHER_PROCESS), True),
    ],
    ids=["none", "older", "equal", "newer", "other process"],
)
def test_error_with_old_topology_version_is_ignored(topology: Topology, error_version: Any, has_effect: bool) -> None:
    more = {} if error_version is None else {"topologyVersion": error_version}
    assert effects_of(topology, reply_error(10107, **more))[0] is has_effect
    if has_effect and error_version is not None:
        assert topology.description.server_descriptions()[ADDRESS].topology_version == error_version


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


def test_pool_stays_paused_until_check_succeeds() -> None:
    topology = TopologyWithoutMonitors(ClientOptions("mongodb://a/?replicaSet=rs", None, {}).topology())
    topology.open()
    pool = topology.servers[ADDRESS].pool
    topology.server_checked(ServerDescription(ADDRESS, error=AutoReconnect("refused")))
    assert pool.stats()["state"] == "paused"
    topology.server_checked(primary_description())
    assert pool.stats()["state"] == "ready"
    topology.close()


# Tests of all kinds of errors, during the handshake and on an established connection

IGNORED, MARKED, CLEAR, CANCEL = ErrorAction


def with_overload_label(error: PyMongoError) -> PyMongoError:
    error._add_error_label("SystemOverloadedError")
    return error


def write_concern_error(code: int) -> PyMongoError:
    error = error_of({"ok": 1, "writeConcernError": {"code": code, "errmsg": "x"}}, WIRE_8_0)
    return WriteConcernError("x", code) if error is None else error


@pytest.mark.parametrize(
    ("error", "during_handshake", "on_established_connection"),
    [
        (AutoReconnect("lost"), CANCEL, CANCEL),
        (NetworkTimeout("slow"), CANCEL, IGNORED),
        (with_overload_label(AutoReconnect("closed")), IGNORED, CANCEL),
        (with_overload_label(NetworkTimeout("slow")), IGNORED, IGNORED),
        (PoolClearedError("cleared"), IGNORED, IGNORED),
        (ProtocolError("nonsense"), CLEAR, IGNORED),
        (InvalidBSON("no BSON"), CLEAR, IGNORED),
        *((reply_error(code), CLEAR, MARKED) for code in (*NOT_PRIMARY, *RECOVERING)),
        *((reply_error(code), CLEAR, CLEAR) for code in (11600, 91)),
        *((reply_error(code), CLEAR, IGNORED) for code in (18, 8000, 13, 1)),
        *((with_overload_label(reply_error(code)), IGNORED, IGNORED) for code in (18, 462)),
        (write_concern_error(64), CLEAR, IGNORED),
        *((write_concern_error(code), CLEAR, MARKED) for code in (*NOT_PRIMARY, *RECOVERING)),
        *((write_concern_error(code), CLEAR, CLEAR) for code in (11600, 91)),
        (ConfigurationError("too old"), IGNORED, IGNORED),
        (ValueError("of a callback"), IGNORED, IGNORED),
        (GreenletExit(), IGNORED, IGNORED),
    ],
    ids=repr,
)
def test_error_action_differs_between_handshake_and_established_connection(
    error: BaseException, during_handshake: ErrorAction, on_established_connection: ErrorAction
) -> None:
    assert error_action(error, True, 0) is during_handshake
    assert error_action(error, False, WIRE_8_0) is error_action(error, False, WIRE_4_2) is on_established_connection
    # MongoDB 4.0 closes all connections at a stepdown, so the driver must also clear the pool.
    expected = CLEAR if on_established_connection is MARKED else on_established_connection
    assert error_action(error, False, WIRE_4_0) is expected


@pytest.mark.parametrize(
    ("error", "during_handshake", "expected"),
    [
        (AutoReconnect("lost"), True, (True, True, ["cancel", "check"])),
        (NetworkTimeout("slow"), True, (True, True, ["cancel", "check"])),
        (reply_error(18), True, (True, True, ["check"])),
        (AutoReconnect("lost"), False, (True, True, ["cancel"])),
        (NetworkTimeout("slow"), False, (False, False, [])),
        (reply_error(10107), False, (True, False, ["check"])),
        (reply_error(91), False, (True, True, ["check"])),
    ],
    ids=repr,
)
def test_error_requests_or_cancels_check_of_monitor(
    topology: TopologyWithoutMonitors,
    error: BaseException,
    during_handshake: bool,
    expected: tuple[bool, bool, list[str]],
) -> None:
    monitor: Any = topology.servers[ADDRESS].monitor
    generation = topology.servers[ADDRESS].pool.generation
    handle_error(topology, established_connection(topology), error, during_handshake)
    server = topology.description.server_descriptions()[ADDRESS]
    cleared = topology.servers[ADDRESS].pool.generation > generation
    assert (not server.is_server_type_known, cleared, monitor.requests) == expected
