"""Fields of server and topology descriptions: values, defaults and equality."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from itertools import combinations
from typing import Any

import pytest
from bson import ObjectId, Timestamp

from gmongo.client_options import ClientOptions
from gmongo.read_preferences import Nearest, Secondary
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology_description import TopologyDescription, initial_description
from gmongo.sdam.transitions import updated

A = ("a", 27017)
MEMBER = {"ok": 1, "setName": "rs", "hosts": ["a", "b"], "maxWireVersion": 25}
TIME = {"clusterTime": Timestamp(1, 1)}
VERSION = {"processId": ObjectId(), "counter": 1}

KINDS: list[tuple[dict[str, Any], str]] = [
    ({}, "Unknown"),
    ({"ok": 0, "isWritablePrimary": True}, "Unknown"),
    ({"ok": 1}, "Standalone"),
    ({"ok": 1, "isWritablePrimary": True}, "Standalone"),
    ({"ok": 1, "msg": "other"}, "Standalone"),
    ({"ok": 1, "msg": "isdbgrid"}, "Mongos"),
    ({"ok": 1, "isreplicaset": True}, "RSGhost"),
    ({"ok": 1, "isreplicaset": True, "setName": "rs", "secondary": True}, "RSGhost"),
    (MEMBER, "RSOther"),
    ({**MEMBER, "hidden": True, "secondary": True}, "RSOther"),
    ({**MEMBER, "isWritablePrimary": True}, "RSPrimary"),
    ({**MEMBER, "ismaster": True}, "RSPrimary"),
    ({**MEMBER, "isWritablePrimary": False, "ismaster": True}, "RSOther"),
    ({**MEMBER, "isWritablePrimary": False, "secondary": True}, "RSSecondary"),
    ({**MEMBER, "secondary": True}, "RSSecondary"),
    ({**MEMBER, "arbiterOnly": True}, "RSArbiter"),
]
WRITABLE_KINDS = {"Standalone", "Mongos", "RSPrimary", "LoadBalancer"}


@pytest.mark.parametrize(("hello", "kind"), KINDS)
def test_hello_determines_server_type(hello: dict[str, Any], kind: str) -> None:
    server = ServerDescription(A, hello)
    assert server.server_type_name == kind
    assert server.is_server_type_known == (kind != "Unknown")
    assert server.is_writable == (kind in WRITABLE_KINDS)
    assert server.is_readable == (kind in WRITABLE_KINDS | {"RSSecondary"})
    assert server.mongos == (kind == "Mongos")
    assert not server.retryable_writes_supported
    with_sessions = ServerDescription(A, {**hello, "logicalSessionTimeoutMinutes": 30})
    assert with_sessions.retryable_writes_supported == (kind in {"Mongos", "RSPrimary"})


# The field of the hello, the attribute, the value, the expected attribute, and its default.
FIELDS: list[tuple[str, str, Any, Any, Any]] = [
    ("tags", "tags", {"dc": "x"}, {"dc": "x"}, {}),
    ("setName", "replica_set_name", "rs", "rs", None),
    ("primary", "primary", "B:1", ("b", 1), None),
    ("me", "me", "B", ("b", 27017), None),
    ("setVersion", "set_version", 3, 3, None),
    ("electionId", "election_id", ObjectId("5" * 24), ObjectId("5" * 24), None),
    ("maxBsonObjectSize", "max_bson_size", 1234, 1234, 16 * 1024 * 1024),
    ("maxMessageSizeBytes", "max_message_size", 1234, 1234, 48_000_000),
    ("maxWriteBatchSize", "max_write_batch_size", 1234, 1234, 1000),
    ("minWireVersion", "min_wire_version", 5, 5, 0),
    ("maxWireVersion", "max_wire_version", 5, 5, 0),
    ("logicalSessionTimeoutMinutes", "logical_session_timeout_minutes", 30, 30, None),
    ("$clusterTime", "cluster_time", TIME, TIME, None),
    ("topologyVersion", "topology_version", VERSION, VERSION, None),
    ("lastWrite", "last_write_date", {"lastWriteDate": datetime(1970, 1, 2)}, 86400.0, None),
    *((name, "all_hosts", ["B", "c:5"], {("b", 27017), ("c", 5)}, frozenset())
      for name in ("hosts", "passives", "arbiters")),
]  # fmt: skip


@pytest.mark.parametrize(("field", "name", "value", "expected", "default"), FIELDS)
def test_description_has_field_of_hello_or_default(
    field: str, name: str, value: Any, expected: Any, default: Any
) -> None:
    assert getattr(ServerDescription(A, {"ok": 1, field: value}), name) == expected
    assert getattr(ServerDescription(A, {"ok": 1}), name) == default
    assert getattr(ServerDescription(A), name) == default


def test_description_has_round_trip_times_and_error() -> None:
    error = OSError("gone")
    server = ServerDescription(A, MEMBER, 0.5, error, 0.25, topology_version=VERSION, last_update_time=7.0)
    assert (server.address, server.round_trip_time, server.min_round_trip_time) == (A, 0.5, 0.25)
    assert (server.error, server.topology_version, server.last_update_time) == (error, VERSION, 7.0)
    assert server.election_tuple == (None, None)
    assert ServerDescription(A).min_round_trip_time == 0.0
    assert "rtt: 0.5, error=OSError('gone')" in repr(server) and "error" not in repr(ServerDescription(A))


# The fields that are part of the equality.
DIFFERENT_FIELDS: list[dict[str, Any]] = [
    {},
    {"minWireVersion": 1},
    {"maxWireVersion": 26},
    {"me": "a"},
    {"hosts": ["a"]},
    {"passives": ["p"]},
    {"arbiters": ["p2"]},
    {"tags": {"dc": "x"}},
    {"setName": "other"},
    {"setVersion": 1},
    {"electionId": ObjectId("5" * 24)},
    {"primary": "a"},
    {"logicalSessionTimeoutMinutes": 30},
    {"topologyVersion": VERSION},
    {"secondary": True},
]


def test_descriptions_are_equal_if_fields_and_error_are_equal() -> None:
    servers = [ServerDescription(A, {**MEMBER, **more}) for more in DIFFERENT_FIELDS]
    servers += [
        ServerDescription(("b", 27017), MEMBER),
        ServerDescription(A, MEMBER, error=OSError("x")),
        ServerDescription(A, MEMBER, error=OSError("y")),
        ServerDescription(A, MEMBER, error=ValueError("y")),
    ]
    for one, other in combinations(servers, 2):
        assert one != other
    same = ServerDescription(A, {**MEMBER, "lastWrite": {"lastWriteDate": datetime(2000, 1, 1)}}, 5.0, None, 3.0)
    assert same == servers[0] and hash(same) == hash(servers[0])
    assert ServerDescription(A, MEMBER, error=OSError("x")) == servers[-3]
    assert servers[0] != MEMBER
    assert len(set(servers)) == len(servers)


def topology_of(*servers: ServerDescription, uri: str = "mongodb://a,b/?replicaSet=rs&localThresholdMS=15") -> Any:
    topology = initial_description(ClientOptions(uri, None, {}).topology())
    for server in servers:
        topology = updated(topology, server)
    return topology


def member(host: str, rtt: float = 0.001, **more: Any) -> ServerDescription:
    return ServerDescription((host, 27017), {**MEMBER, **more}, rtt)


def hosts(servers: list[ServerDescription]) -> list[str]:
    return [server.address[0] for server in servers]


PRIMARY, SECONDARY = member("a", isWritablePrimary=True), member("b", secondary=True)


@pytest.mark.parametrize(
    ("uri", "kind", "name"),
    [
        ("mongodb://a,b/", "Unknown", None),
        ("mongodb://a/", "Unknown", None),
        ("mongodb://a/?directConnection=true", "Single", None),
        ("mongodb://a/?directConnection=true&replicaSet=rs", "Single", "rs"),
        ("mongodb://a,b/?replicaSet=rs", "ReplicaSetNoPrimary", "rs"),
        ("mongodb://a/?loadBalanced=true", "LoadBalanced", None),
    ],
)
def test_uri_determines_initial_topology(uri: str, kind: str, name: str | None) -> None:
    topology = topology_of(uri=uri)
    assert (topology.topology_type_name, topology.replica_set_name) == (kind, name)
    assert [server.server_type_name for server in topology.server_descriptions().values()] == ["Unknown"] * (
        2 if "b" in uri.partition("/?")[0].removeprefix("mongodb") else 1
    )
    assert topology.max_set_version is None and topology.max_election_id is None
    assert topology.common_wire_version is None
    assert topology.compatibility_error is None


def test_topology_has_known_servers_and_common_wire_version() -> None:
    topology = topology_of(PRIMARY, member("b", secondary=True, maxWireVersion=21))
    assert (topology.has_server(A), topology.has_server(("c", 1))) == (True, False)
    assert topology.get(A) == PRIMARY and topology.get(("c", 1)) is None
    assert hosts(topology.known_servers) == hosts(topology.readable_servers) == hosts(topology.candidate_servers)
    assert hosts(topology.known_servers) == ["a", "b"]
    assert topology.common_wire_version == 21
    assert (topology.heartbeat_frequency, topology.srv_max_hosts) == (10.0, 0)
    assert topology.has_known_servers and topology.has_readable_server() and topology.has_writable_server()
    without_primary = topology.reset_server(A)
    assert (without_primary.topology_type_name, hosts(without_primary.known_servers)) == ("ReplicaSetNoPrimary", ["b"])
    assert not without_primary.has_writable_server() and not without_primary.has_readable_server()
    assert without_primary.has_readable_server(Secondary()) and without_primary.has_known_servers
    for reset in (topology.reset(), without_primary.reset()):
        assert reset.topology_type_name == "ReplicaSetNoPrimary"
        assert not reset.known_servers and not reset.has_known_servers
        assert reset.server_descriptions().keys() == topology.server_descriptions().keys()
        assert reset.replica_set_name == "rs"
    mongos = ServerDescription(A, {"ok": 1, "msg": "isdbgrid", "maxWireVersion": 25}, 0.001)
    assert topology_of(mongos, uri="mongodb://a/").reset().topology_type_name == "Sharded"


def test_apply_selector_filters_servers() -> None:
    topology = topology_of(PRIMARY, SECONDARY)
    assert hosts(topology.apply_selector(WRITABLE)) == ["a"]
    assert hosts(topology.apply_selector(Nearest())) == ["a", "b"]
    assert hosts(topology.apply_selector(WRITABLE, SECONDARY.address)) == ["b"]
    assert topology.apply_selector(WRITABLE, ("c", 1)) == []
    assert topology_of(PRIMARY).apply_selector(WRITABLE, SECONDARY.address) == []
    assert hosts(topology.apply_selector(Nearest(), None, lambda servers: servers[1:])) == ["b"]
    assert hosts(topology.apply_selector(Nearest(), None, lambda servers: iter(servers))) == ["a", "b"]
    calls: list[Any] = []
    assert topology_of().apply_selector(WRITABLE, None, calls.append) == [] and not calls
    assert hosts(topology.apply_selector(Nearest(), None, None, [A])) == ["b"]
    assert hosts(topology.apply_selector(Nearest(), None, None, [A, SECONDARY.address])) == ["a", "b"]


@pytest.mark.parametrize(
    ("minutes", "shortest"),
    [((30, 20), 20), ((20, 30), 20), ((None, 30), None), ((30, None), None), ((None, None), None)],
)
def test_session_timeout_is_minimum_of_data_bearing_servers(minutes: Any, shortest: int | None) -> None:
    servers = [
        member(host, **kind, **({} if time is None else {"logicalSessionTimeoutMinutes": time}))
        for host, kind, time in zip("ab", ({"isWritablePrimary": True}, {"secondary": True}), minutes, strict=True)
    ]
    topology: TopologyDescription = topology_of(*servers)
    assert topology.logical_session_timeout_minutes == shortest
    assert topology.sessions_usable == (float("inf") if shortest is None else (shortest - 1) * 60)
    with_arbiter = topology_of(servers[0], member("b", arbiterOnly=True))
    assert with_arbiter.logical_session_timeout_minutes == minutes[0]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_last_write_date_does_not_depend_on_time_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for date in (datetime(1970, 1, 2), datetime(1970, 1, 2, 9, tzinfo=timezone(timedelta(hours=9)))):
            server = ServerDescription(A, {"ok": 1, "lastWrite": {"lastWriteDate": date}})
            assert server.last_write_date == 86400.0
    finally:
        monkeypatch.undo()
        time.tzset()
