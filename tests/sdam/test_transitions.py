"""Topology changes for server descriptions, as pure functions."""

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


def election(number: int) -> ObjectId:
    return ObjectId(f"{number:024x}")


def member(host: str, hosts: str = "ab", name: str = "rs", **more: Any) -> ServerDescription:
    hello = {
        "ok": 1,
        "setName": name,
        "hosts": [f"{each}:27017" for each in hosts],
        "setVersion": 1,
        "electionId": election(1),
        "maxWireVersion": NEW_WIRE,
        **more,
    }
    return ServerDescription((host, 27017), hello, 0.001)


def primary(host: str, hosts: str = "ab", **more: Any) -> ServerDescription:
    return member(host, hosts, isWritablePrimary=True, **more)


def secondary(host: str, hosts: str = "ab", **more: Any) -> ServerDescription:
    return member(host, hosts, secondary=True, **more)


def after(*servers: ServerDescription, uri: str = "mongodb://a,b/?replicaSet=rs") -> TopologyDescription:
    topology = initial_description(ClientOptions(uri, None, {}).topology())
    for server in servers:
        topology = updated(topology, server)
    return topology


def kinds(topology: TopologyDescription) -> dict[str, str]:
    """Return the server types by host, and check the type of a replica set topology."""
    types = {host: server.server_type_name for (host, _), server in topology.server_descriptions().items()}
    if topology.topology_type_name.startswith("ReplicaSet"):
        assert (topology.topology_type_name == "ReplicaSetWithPrimary") == ("RSPrimary" in types.values())
    return types


def test_first_member_sets_replica_set_name() -> None:
    """A member of another set is removed."""
    for first in (primary, secondary):
        topology = after(first("a"), secondary("b", name="other"), uri="mongodb://a,b/")
        assert (topology.replica_set_name, kinds(topology).keys()) == ("rs", {"a"})


STANDALONE = {"ok": 1, "isWritablePrimary": True, "maxWireVersion": NEW_WIRE}


@pytest.mark.parametrize(
    ("uri", "remaining"),
    [
        ("mongodb://a/", {"a": "Standalone"}),
        ("mongodb://a,b/", {"b": "Unknown"}),  # a standalone is no member of several seeds
        ("mongodb://a,b/?replicaSet=rs", {"b": "Unknown"}),
    ],
)
def test_standalone_is_removed_from_topology_with_several_seeds(uri: str, remaining: dict[str, str]) -> None:
    assert kinds(after(ServerDescription(("a", 27017), STANDALONE, 0.001), uri=uri)) == remaining


def test_last_update_time_is_time_of_check() -> None:
    before = _clock.monotonic()
    server = secondary("a")
    assert before <= server.last_update_time <= _clock.monotonic()
    assert ServerDescription(("a", 1), last_update_time=5.0).last_update_time == 5.0


TOO_NEW, TOO_OLD = {"minWireVersion": 99, "maxWireVersion": 99}, {"minWireVersion": 0, "maxWireVersion": 7}


@pytest.mark.parametrize("wire", [TOO_NEW, TOO_OLD], ids=["too new", "too old"])
@pytest.mark.parametrize("host", ["a", "b", "c"])
@pytest.mark.parametrize("others", [{}, {"secondary": True}], ids=["unknown", "known"])
def test_one_incompatible_server_makes_topology_incompatible(host: str, wire: Any, others: dict[str, Any]) -> None:
    known = [member(each, "abc", **others) for each in "abc" if each != host and others]
    topology = after(*known, secondary(host, "abc", **wire), uri="mongodb://a,b,c/?replicaSet=rs")
    with pytest.raises(ConfigurationError, match=f"Server at {host}:27017 re(quires|ports) wire version") as caught:
        topology.check_compatible()
    assert topology.compatibility_error == str(caught.value)
    after(*known, member(host, "abc", secondary=True), uri="mongodb://a,b,c/?replicaSet=rs").check_compatible()


@pytest.mark.parametrize(("lowest", "highest"), [(MAX_SUPPORTED, MAX_SUPPORTED + 5), (0, MIN_SUPPORTED)])
def test_server_with_one_supported_wire_version_is_compatible(lowest: int, highest: int) -> None:
    after(primary("a", minWireVersion=lowest, maxWireVersion=highest)).check_compatible()


def test_new_primary_replaces_old_primary() -> None:
    assert kinds(after(primary("a"), primary("b", electionId=election(2)))) == {"a": "Unknown", "b": "RSPrimary"}


@pytest.mark.parametrize(
    ("wire", "of_a", "of_b", "b_is_stale"),
    [
        (NEW_WIRE, (2, 1), (1, 9), True),  # (election, set version): MongoDB 6.0 and later compare the election first
        (NEW_WIRE, (1, 9), (2, 1), False),
        (NEW_WIRE, (2, 2), (2, 1), True),
        (NEW_WIRE, (2, 2), (2, 2), False),
        (NEW_WIRE, (2, 1), (2, None), True),  # a missing value is older than each number
        (NEW_WIRE, (2, 0), (2, None), True),
        (NEW_WIRE, (2, None), (2, 0), False),
        (NEW_WIRE, (2, None), (2, 1), False),
        (OLD_WIRE, (2, 1), (1, 9), False),  # older servers compare the set version first
        (OLD_WIRE, (1, 9), (2, 1), True),
        (OLD_WIRE, (2, 2), (1, 2), True),
        (OLD_WIRE, (2, 2), (2, 2), False),
    ],
)
def test_primary_with_older_election_is_stale(wire: int, of_a: Any, of_b: Any, b_is_stale: bool) -> None:
    a, b = (
        primary(host, electionId=election(number), setVersion=version, maxWireVersion=wire)
        for host, (number, version) in (("a", of_a), ("b", of_b))
    )
    stale = {"a": "RSPrimary", "b": "Unknown"}
    assert kinds(after(a, b)) == (stale if b_is_stale else {"a": "Unknown", "b": "RSPrimary"})


@pytest.mark.parametrize("wire", [NEW_WIRE, OLD_WIRE])
def test_primary_with_decreasing_election_is_stale(wire: int) -> None:
    a = [primary("a", electionId=election(number), setVersion=number, maxWireVersion=wire) for number in (2, 1)]
    assert kinds(after(*a)) == {"a": "Unknown", "b": "Unknown"}


@pytest.mark.parametrize("names", [{"isWritablePrimary": True}, {"secondary": True}, {"arbiterOnly": True}, {}])
def test_primary_in_other_set_is_removed(names: dict[str, Any]) -> None:
    assert kinds(after(primary("a"), member("a", name="other", **names))) == {"b": "Unknown"}


@pytest.mark.parametrize("hello", [{"isWritablePrimary": True}, {"msg": "isdbgrid"}])
def test_primary_without_set_name_is_removed(hello: dict[str, Any]) -> None:
    now = ServerDescription(("a", 27017), {"ok": 1, "maxWireVersion": NEW_WIRE, **hello}, 0.001)
    assert kinds(after(primary("a"), now)) == {"b": "Unknown"}
    assert kinds(after(now, uri="mongodb://a,b/?replicaSet=rs")) == {"b": "Unknown"}


@pytest.mark.parametrize("field", ["hosts", "passives", "arbiters"])
@pytest.mark.parametrize("kind", [{"isWritablePrimary": True}, {"secondary": True}, {"arbiterOnly": True}, {}])
def test_hosts_passives_and_arbiters_are_members(field: str, kind: dict[str, Any]) -> None:
    hello = {"ok": 1, "setName": "rs", "hosts": ["a"], "maxWireVersion": NEW_WIRE, **kind}
    hello[field] = [*hello.get(field, ()), "d"]
    server = ServerDescription(("a", 27017), hello, 0.001)
    assert server.all_hosts == {("a", 27017), ("d", 27017)}
    remaining = kinds(after(server, uri="mongodb://a,b/?replicaSet=rs")).keys()
    assert remaining == ({"a", "d"} if "isWritablePrimary" in kind else {"a", "b", "d"})


def test_primary_determines_members() -> None:
    assert kinds(after(secondary("a", "abc"), primary("b", "bd"))) == {"b": "RSPrimary", "d": "Unknown"}


@pytest.mark.parametrize("make", [primary, secondary])
@pytest.mark.parametrize("known", [False, True], ids=["without a primary", "with a primary"])
def test_member_of_other_set_is_removed(make: Any, known: bool) -> None:
    others = [primary("a", "ab")] if known else []
    other_member = make("b", "bx", name="other")
    assert kinds(after(*others, other_member)) == {"a": "RSPrimary" if known else "Unknown"}


def test_member_with_different_me_is_removed() -> None:
    assert kinds(after(secondary("a", "bc", me="c:27017"))) == {"b": "Unknown", "c": "Unknown"}


def test_lost_primary_changes_topology_to_no_primary() -> None:
    topology = after(primary("a"), secondary("b"), ServerDescription(("a", 27017)))
    assert topology.topology_type_name == "ReplicaSetNoPrimary"
    assert kinds(topology) == {"a": "Unknown", "b": "RSSecondary"}


@pytest.mark.parametrize(("wire_version", "primary_after"), [(16, "b"), (17, "a"), (18, "a")])
def test_wire_version_17_compares_election_before_set_version(wire_version: int, primary_after: str) -> None:
    """The second primary has an older election and a newer set version."""
    first = primary("a", electionId=election(2), setVersion=1, maxWireVersion=wire_version)
    second = primary("b", electionId=election(1), setVersion=2, maxWireVersion=wire_version)
    types = kinds(after(first, second))
    assert [host for host, kind in types.items() if kind == "RSPrimary"] == [primary_after]
