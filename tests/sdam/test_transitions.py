"""A new server description changes a topology description.

The tested functions have no side effects: they return a new topology description.
"""

from __future__ import annotations

from typing import Any

import pytest
from bson import ObjectId

from gmongo import _clock
from gmongo._server_facts.wire_versions import MAX_SUPPORTED, MIN_SUPPORTED
from gmongo.client_options import ClientOptions
from gmongo.errors import ConfigurationError
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology_description import TopologyDescription, initial_description
from gmongo.sdam.transitions import updated

NEW_WIRE, OLD_WIRE = 25, 9


def election_id(number: int) -> ObjectId:
    return ObjectId(f"{number:024x}")


def member(host: str, host_letters: str = "ab", set_name: str = "rs", **hello_fields: Any) -> ServerDescription:
    hello = {
        "ok": 1,
        "setName": set_name,
        "hosts": [f"{each}:27017" for each in host_letters],
        "setVersion": 1,
        "electionId": election_id(1),
        "maxWireVersion": NEW_WIRE,
        **hello_fields,
    }
    return ServerDescription((host, 27017), hello, 0.001)


def primary(host: str, host_letters: str = "ab", **hello_fields: Any) -> ServerDescription:
    return member(host, host_letters, isWritablePrimary=True, **hello_fields)


def secondary(host: str, host_letters: str = "ab", **hello_fields: Any) -> ServerDescription:
    return member(host, host_letters, secondary=True, **hello_fields)


def topology_after(*servers: ServerDescription, uri: str = "mongodb://a,b/?replicaSet=rs") -> TopologyDescription:
    topology = initial_description(ClientOptions(uri, None, {}).topology())
    for server in servers:
        topology = updated(topology, server)
    return topology


def server_types_of(topology: TopologyDescription) -> dict[str, str]:
    """Return the server type of each host.

    Assert that the type of a replica set topology states whether the topology has a primary.
    """
    types = {host: server.server_type_name for (host, _), server in topology.server_descriptions().items()}
    if topology.topology_type_name.startswith("ReplicaSet"):
        assert (topology.topology_type_name == "ReplicaSetWithPrimary") == ("RSPrimary" in types.values())
    return types


def test_first_member_sets_replica_set_name_of_topology() -> None:
    """Check that the first member sets the name, and that a member of a set with another name is removed."""
    for first in (primary, secondary):
        topology = topology_after(first("a"), secondary("b", set_name="other"), uri="mongodb://a,b/")
        assert (topology.replica_set_name, server_types_of(topology).keys()) == ("rs", {"a"})


STANDALONE = {"ok": 1, "isWritablePrimary": True, "maxWireVersion": NEW_WIRE}


@pytest.mark.parametrize(
    ("uri", "remaining"),
    [
        ("mongodb://a/", {"a": "Standalone"}),
        ("mongodb://a,b/", {"b": "Unknown"}),  # removes the standalone, because there are two seeds
        ("mongodb://a,b/?replicaSet=rs", {"b": "Unknown"}),
    ],
)
def test_standalone_is_removed_from_topology_with_several_seeds(uri: str, remaining: dict[str, str]) -> None:
    assert server_types_of(topology_after(ServerDescription(("a", 27017), STANDALONE, 0.001), uri=uri)) == remaining


def test_last_update_time_of_description_is_time_of_check() -> None:
    before = _clock.monotonic()
    server = secondary("a")
    assert before <= server.last_update_time <= _clock.monotonic()
    assert ServerDescription(("a", 1), last_update_time=5.0).last_update_time == 5.0


TOO_NEW, TOO_OLD = {"minWireVersion": 99, "maxWireVersion": 99}, {"minWireVersion": 0, "maxWireVersion": 7}


@pytest.mark.parametrize("wire_versions", [TOO_NEW, TOO_OLD], ids=["too new", "too old"])
@pytest.mark.parametrize("host", ["a", "b", "c"])
@pytest.mark.parametrize("other_types", [{}, {"secondary": True}], ids=["unknown", "known"])
def test_one_incompatible_server_makes_topology_incompatible(
    host: str, wire_versions: Any, other_types: dict[str, Any]
) -> None:
    known = [member(each, "abc", **other_types) for each in "abc" if each != host and other_types]
    topology = topology_after(*known, secondary(host, "abc", **wire_versions), uri="mongodb://a,b,c/?replicaSet=rs")
    with pytest.raises(ConfigurationError, match=f"Server at {host}:27017 re(quires|ports) wire version") as caught:
        topology.check_compatible()
    assert topology.compatibility_error == str(caught.value)
    topology_after(*known, member(host, "abc", secondary=True), uri="mongodb://a,b,c/?replicaSet=rs").check_compatible()


@pytest.mark.parametrize(("lowest", "highest"), [(MAX_SUPPORTED, MAX_SUPPORTED + 5), (0, MIN_SUPPORTED)])
def test_server_with_one_supported_wire_version_is_compatible(lowest: int, highest: int) -> None:
    topology_after(primary("a", minWireVersion=lowest, maxWireVersion=highest)).check_compatible()


def test_new_primary_replaces_old_primary() -> None:
    assert server_types_of(topology_after(primary("a"), primary("b", electionId=election_id(2)))) == {
        "a": "Unknown",
        "b": "RSPrimary",
    }


@pytest.mark.parametrize(
    ("wire_version", "election_of_a", "election_of_b", "b_is_stale"),
    [
        # A pair is (election ID, set version). For MongoDB 6.0 and later, the driver compares the
        # election ID first.
        (NEW_WIRE, (2, 1), (1, 9), True),
        (NEW_WIRE, (1, 9), (2, 1), False),
        (NEW_WIRE, (2, 2), (2, 1), True),
        (NEW_WIRE, (2, 2), (2, 2), False),
        (NEW_WIRE, (2, 1), (2, None), True),  # a missing set version is older than any set version
        (NEW_WIRE, (2, 0), (2, None), True),
        (NEW_WIRE, (2, None), (2, 0), False),
        (NEW_WIRE, (2, None), (2, 1), False),
        (OLD_WIRE, (2, 1), (1, 9), False),  # for older servers, the set version comes first
        (OLD_WIRE, (1, 9), (2, 1), True),
        (OLD_WIRE, (2, 2), (1, 2), True),
        (OLD_WIRE, (2, 2), (2, 2), False),
    ],
)
def test_primary_with_older_election_or_set_version_is_stale(
    wire_version: int, election_of_a: Any, election_of_b: Any, b_is_stale: bool
) -> None:
    a, b = (
        primary(host, electionId=election_id(number), setVersion=version, maxWireVersion=wire_version)
        for host, (number, version) in (("a", election_of_a), ("b", election_of_b))
    )
    stale = {"a": "RSPrimary", "b": "Unknown"}
    assert server_types_of(topology_after(a, b)) == (stale if b_is_stale else {"a": "Unknown", "b": "RSPrimary"})


@pytest.mark.parametrize("wire_version", [NEW_WIRE, OLD_WIRE])
def test_primary_with_decreasing_election_is_stale(wire_version: int) -> None:
    a = [
        primary("a", electionId=election_id(number), setVersion=number, maxWireVersion=wire_version)
        for number in (2, 1)
    ]
    assert server_types_of(topology_after(*a)) == {"a": "Unknown", "b": "Unknown"}


@pytest.mark.parametrize("role_fields", [{"isWritablePrimary": True}, {"secondary": True}, {"arbiterOnly": True}, {}])
def test_primary_in_other_set_is_removed(role_fields: dict[str, Any]) -> None:
    assert server_types_of(topology_after(primary("a"), member("a", set_name="other", **role_fields))) == {
        "b": "Unknown"
    }


@pytest.mark.parametrize("hello", [{"isWritablePrimary": True}, {"msg": "isdbgrid"}])
def test_primary_without_set_name_is_removed(hello: dict[str, Any]) -> None:
    now = ServerDescription(("a", 27017), {"ok": 1, "maxWireVersion": NEW_WIRE, **hello}, 0.001)
    assert server_types_of(topology_after(primary("a"), now)) == {"b": "Unknown"}
    assert server_types_of(topology_after(now, uri="mongodb://a,b/?replicaSet=rs")) == {"b": "Unknown"}


@pytest.mark.parametrize("field", ["hosts", "passives", "arbiters"])
@pytest.mark.parametrize("type_fields", [{"isWritablePrimary": True}, {"secondary": True}, {"arbiterOnly": True}, {}])
def test_hosts_passives_and_arbiters_are_members(field: str, type_fields: dict[str, Any]) -> None:
    hello = {"ok": 1, "setName": "rs", "hosts": ["a"], "maxWireVersion": NEW_WIRE, **type_fields}
    hello[field] = [*hello.get(field, ()), "d"]
    server = ServerDescription(("a", 27017), hello, 0.001)
    assert server.all_hosts == {("a", 27017), ("d", 27017)}
    remaining = server_types_of(topology_after(server, uri="mongodb://a,b/?replicaSet=rs")).keys()
    assert remaining == ({"a", "d"} if "isWritablePrimary" in type_fields else {"a", "b", "d"})


def test_primary_determines_members_of_topology() -> None:
    assert server_types_of(topology_after(secondary("a", "abc"), primary("b", "bd"))) == {
        "b": "RSPrimary",
        "d": "Unknown",
    }


@pytest.mark.parametrize("make_member", [primary, secondary])
@pytest.mark.parametrize("primary_is_known", [False, True], ids=["without a primary", "with a primary"])
def test_member_of_other_set_is_removed(make_member: Any, primary_is_known: bool) -> None:
    others = [primary("a", "ab")] if primary_is_known else []
    other_member = make_member("b", "bx", set_name="other")
    assert server_types_of(topology_after(*others, other_member)) == {
        "a": "RSPrimary" if primary_is_known else "Unknown"
    }


def test_member_with_different_me_is_removed() -> None:
    assert server_types_of(topology_after(secondary("a", "bc", me="c:27017"))) == {"b": "Unknown", "c": "Unknown"}


def test_lost_primary_changes_topology_to_no_primary() -> None:
    topology = topology_after(primary("a"), secondary("b"), ServerDescription(("a", 27017)))
    assert topology.topology_type_name == "ReplicaSetNoPrimary"
    assert server_types_of(topology) == {"a": "Unknown", "b": "RSSecondary"}


@pytest.mark.parametrize(("wire_version", "primary_after"), [(16, "b"), (17, "a"), (18, "a")])
def test_election_is_compared_before_set_version_from_wire_version_17(wire_version: int, primary_after: str) -> None:
    """Let a second primary report an older election ID and a newer set version than the first
    primary.
    """
    first = primary("a", electionId=election_id(2), setVersion=1, maxWireVersion=wire_version)
    second = primary("b", electionId=election_id(1), setVersion=2, maxWireVersion=wire_version)
    types = server_types_of(topology_after(first, second))
    assert [host for host, kind in types.items() if kind == "RSPrimary"] == [primary_after]
