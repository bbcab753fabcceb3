"""Server descriptions and topology descriptions: values, defaults and equality of their fields."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from itertools import combinations
from typing import Any

import pytest
from bson import ObjectId, Timestamp

from gmongo import _clock
from gmongo.errors import ConfigurationError
from gmongo.read_preferences import Nearest, Secondary
from gmongo.sdam.hello_reply import HelloReply
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology_description import TopologyDescription
from tests.sdam.harness import topology_with
from tests.support.cases import rows, with_cases

A = ("a", 27017)
HELLO = {"ok": 1, "setName": "rs", "hosts": ["a", "b"], "maxWireVersion": 25}
CLUSTER_TIME = {"clusterTime": Timestamp(1, 1)}
TOPOLOGY_VERSION = {"processId": ObjectId(), "counter": 1}


WRITABLE_SERVER_TYPES = {"Standalone", "Mongos", "RSPrimary", "LoadBalancer"}


@with_cases
def test_hello_determines_server_type(hello: dict[str, Any], server_type: str) -> None:
    server = ServerDescription(A, hello)
    assert server.server_type_name == server_type
    assert server.is_server_type_known == (server_type != "Unknown")
    assert server.is_writable == (server_type in WRITABLE_SERVER_TYPES)
    assert server.is_readable == (server_type in WRITABLE_SERVER_TYPES | {"RSSecondary"})
    assert server.mongos == (server_type == "Mongos")
    assert not server.retryable_writes_supported
    assert server.retryable_reads_supported == ("maxWireVersion" in hello)
    server_with_sessions = ServerDescription(A, {**hello, "logicalSessionTimeoutMinutes": 30})
    assert server_with_sessions.retryable_writes_supported == (server_type in {"Mongos", "RSPrimary"})


# Rows: hello field, attribute of the server description, values of both, default of the attribute.
HELLO_FIELD_CASES: list[tuple[str, str, Any, Any, Any]] = [
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
    ("$clusterTime", "cluster_time", CLUSTER_TIME, CLUSTER_TIME, None),
    ("topologyVersion", "topology_version", TOPOLOGY_VERSION, TOPOLOGY_VERSION, None),
    ("lastWrite", "last_write_date", {"lastWriteDate": datetime(1970, 1, 2)}, 86400.0, None),
    ("hosts", "all_hosts", ["B", "c:5"], {("b", 27017), ("c", 5)}, frozenset()),
    ("passives", "all_hosts", ["B", "c:5"], {("b", 27017), ("c", 5)}, frozenset()),
    ("arbiters", "all_hosts", ["B", "c:5"], {("b", 27017), ("c", 5)}, frozenset()),
]


@pytest.mark.parametrize(("hello_field", "attribute", "value", "expected", "default"), HELLO_FIELD_CASES)
def test_server_description_has_value_of_hello_field_or_default(
    hello_field: str, attribute: str, value: Any, expected: Any, default: Any
) -> None:
    assert getattr(ServerDescription(A, {"ok": 1, hello_field: value}), attribute) == expected
    assert getattr(ServerDescription(A, {"ok": 1}), attribute) == default
    assert getattr(ServerDescription(A), attribute) == default
    if attribute != "last_write_date":  # a HelloReply returns the datetime
        assert getattr(HelloReply({"ok": 1, hello_field: value}), attribute) == expected


def test_reply_of_heartbeat_has_attributes_for_its_fields() -> None:
    for attribute, field, default in (
        ("compressors", "compression", None), ("sasl_supported_mechs", "saslSupportedMechs", []),
        ("speculative_authenticate", "speculativeAuthenticate", None), ("service_id", "serviceId", None),
        ("hello_ok", "helloOk", False), ("connection_id", "connectionId", None),
    ):  # fmt: skip
        assert (getattr(HelloReply({field: 7}), attribute), getattr(HelloReply({}), attribute)) == (7, default)
    reply, empty = HelloReply({"lastWrite": {"lastWriteDate": 5}}, True), HelloReply({})
    assert (reply.last_write_date, empty.last_write_date, reply.awaitable, empty.awaitable) == (5, None, True, False)
    assert type(reply.document) is dict and reply.document == reply


def test_server_description_has_round_trip_times_and_error() -> None:
    error = OSError("gone")
    server = ServerDescription(A, HELLO, 0.5, error, 0.25, topology_version=TOPOLOGY_VERSION, last_update_time=7.0)
    assert (server.address, server.round_trip_time, server.min_round_trip_time) == (A, 0.5, 0.25)
    assert (server.error, server.topology_version, server.last_update_time) == (
        error,
        TOPOLOGY_VERSION,
        7.0,
    )
    assert server.election_tuple == (None, None)
    assert ServerDescription(A).min_round_trip_time == 0.0
    began = _clock.monotonic()
    assert began <= ServerDescription(A).last_update_time <= _clock.monotonic()
    assert "rtt: 0.5, error=OSError('gone')" in repr(server) and "error" not in repr(ServerDescription(A))


# Each element contains hello fields that make a server description unequal to the others.
DIFFERENT_FIELDS = [row["fields"] for row in rows(__file__, "different fields")]


def test_server_descriptions_are_equal_if_fields_and_error_are_equal() -> None:
    servers = [ServerDescription(A, {**HELLO, **more}) for more in DIFFERENT_FIELDS]
    servers += [
        ServerDescription(("b", 27017), HELLO),
        ServerDescription(A, HELLO, error=OSError("x")),
        ServerDescription(A, HELLO, error=OSError("y")),
        ServerDescription(A, HELLO, error=ValueError("y")),
    ]
    for one, other in combinations(servers, 2):
        assert one != other
    same = ServerDescription(A, {**HELLO, "lastWrite": {"lastWriteDate": datetime(2000, 1, 1)}}, 5.0, None, 3.0)
    assert same == servers[0] and hash(same) == hash(servers[0])
    assert ServerDescription(A, HELLO, error=OSError("x")) == servers[-3]
    assert servers[0] != HELLO
    assert len(set(servers)) == len(servers)


def member_description(host: str, rtt: float = 0.001, **hello_fields: Any) -> ServerDescription:
    return ServerDescription((host, 27017), {**HELLO, **hello_fields}, rtt)


def hosts_of(servers: list[ServerDescription]) -> list[str]:
    return [server.address[0] for server in servers]


PRIMARY, SECONDARY = (
    member_description("a", isWritablePrimary=True),
    member_description("b", secondary=True),
)


def test_topology_has_known_servers_and_common_wire_version() -> None:
    topology = topology_with(PRIMARY, member_description("b", secondary=True, maxWireVersion=21))
    assert (topology.has_server(A), topology.has_server(("c", 1))) == (True, False)
    assert topology.get(A) == PRIMARY and topology.get(("c", 1)) is None
    others = [{"topology_type": 0}, {"replica_set_name": "other"}, {"server_descriptions": {}}]
    assert topology == topology.replaced() and all(topology != topology.replaced(**each) for each in others)
    assert (
        hosts_of(topology.known_servers) == hosts_of(topology.readable_servers) == hosts_of(topology.candidate_servers)
    )
    assert hosts_of(topology.known_servers) == ["a", "b"]
    assert topology.common_wire_version == 21
    assert (topology.heartbeat_frequency, topology.srv_max_hosts) == (10.0, 0)
    assert topology.has_known_servers and topology.has_readable_server() and topology.has_writable_server()
    topology_without_primary = topology.reset_server(A)
    assert (topology_without_primary.topology_type_name, hosts_of(topology_without_primary.known_servers)) == (
        "ReplicaSetNoPrimary",
        ["b"],
    )
    assert not topology_without_primary.has_writable_server() and not topology_without_primary.has_readable_server()
    assert topology_without_primary.has_readable_server(Secondary()) and topology_without_primary.has_known_servers
    for reset in (topology.reset(), topology_without_primary.reset()):
        assert reset.topology_type_name == "ReplicaSetNoPrimary"
        assert not reset.known_servers and not reset.has_known_servers
        assert reset.server_descriptions().keys() == topology.server_descriptions().keys()
        assert reset.replica_set_name == "rs"
    mongos = ServerDescription(A, {"ok": 1, "msg": "isdbgrid", "maxWireVersion": 25}, 0.001)
    assert topology_with(mongos, uri="mongodb://a/").reset().topology_type_name == "Sharded"


def test_apply_selector_returns_selected_servers() -> None:
    topology = topology_with(PRIMARY, SECONDARY)
    assert hosts_of(topology.apply_selector(WRITABLE)) == ["a"]
    assert hosts_of(topology.apply_selector(Nearest())) == ["a", "b"]
    assert hosts_of(topology.apply_selector(WRITABLE, SECONDARY.address)) == ["b"]
    assert topology.apply_selector(WRITABLE, ("c", 1)) == []
    assert topology_with(PRIMARY).apply_selector(WRITABLE, SECONDARY.address) == []
    assert hosts_of(topology.apply_selector(Nearest(), None, lambda servers: servers[1:])) == ["b"]
    assert hosts_of(topology.apply_selector(Nearest(), None, lambda servers: iter(servers))) == [
        "a",
        "b",
    ]
    calls: list[Any] = []
    assert topology_with().apply_selector(WRITABLE, None, calls.append) == [] and not calls
    assert hosts_of(topology.apply_selector(Nearest(), None, None, [A])) == ["b"]
    assert hosts_of(topology.apply_selector(Nearest(), None, None, [A, SECONDARY.address])) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("minutes", "shortest"),
    [((30, 20), 20), ((20, 30), 20), ((None, 30), None), ((30, None), None), ((None, None), None)],
)
def test_session_timeout_is_shortest_timeout_of_data_bearing_servers(minutes: Any, shortest: int | None) -> None:
    servers = [
        member_description(host, **hello, **({} if timeout is None else {"logicalSessionTimeoutMinutes": timeout}))
        for host, hello, timeout in zip("ab", ({"isWritablePrimary": True}, {"secondary": True}), minutes, strict=True)
    ]
    topology: TopologyDescription = topology_with(*servers)
    assert topology.logical_session_timeout_minutes == shortest
    assert topology.session_usable_seconds == (float("inf") if shortest is None else (shortest - 1) * 60)
    topology_with_arbiter = topology_with(servers[0], member_description("b", arbiterOnly=True))
    assert topology_with_arbiter.logical_session_timeout_minutes == minutes[0]


@with_cases
def test_unsupported_wire_version_raises_error_that_names_server(versions: tuple[int, int], error: Any) -> None:
    topology = topology_with(member_description("a", minWireVersion=versions[0], maxWireVersion=versions[1]))
    assert topology.compatibility_error == (error and f"Server at a:27017 {error}")
    with pytest.raises(ConfigurationError, match=re.escape(error)) if error else nullcontext():
        topology.check_compatible()


@pytest.mark.parametrize(
    ("interval", "staleness", "rule"),
    [(79, 89, "90$"), (80, 90, None), (81, 90, r"heartbeatFrequencyMS \(81 s\) plus 10 seconds")],
)
def test_too_short_maximum_staleness_raises_error_with_minimum(interval: int, staleness: int, rule: Any) -> None:
    topology = topology_with(SECONDARY, uri=f"mongodb://a,b/?replicaSet=rs&heartbeatFrequencyMS={interval}000")
    text = f"maxStalenessSeconds is {staleness}, but must be at least {rule}"
    with pytest.raises(ConfigurationError, match=text) if rule else nullcontext():
        assert topology.apply_selector(Secondary(max_staleness=staleness)) == [SECONDARY]


@pytest.mark.parametrize("time_zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_last_write_date_does_not_depend_on_time_zone(time_zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", time_zone)
    time.tzset()
    try:
        for date in (
            datetime(1970, 1, 2),
            datetime(1970, 1, 2, 9, tzinfo=timezone(timedelta(hours=9))),
        ):
            server = ServerDescription(A, {"ok": 1, "lastWrite": {"lastWriteDate": date}})
            assert server.last_write_date == 86400.0
    finally:
        monkeypatch.undo()
        time.tzset()
