"""Wire versions determine the compatibility of a topology and the comparison of elections.

``tests/differential/test_every_topology.py`` checks all other changes of a topology description.
"""

from __future__ import annotations

from typing import Any

import pytest
from bson import ObjectId

from gmongo._server_facts.wire_versions import MAX_SUPPORTED, MIN_SUPPORTED
from gmongo.errors import ConfigurationError
from gmongo.sdam.server_description import ServerDescription
from tests.sdam.harness import topology_with


def election_id(number: int) -> ObjectId:
    return ObjectId(f"{number:024x}")


def member(host: str, host_letters: str = "ab", **hello_fields: Any) -> ServerDescription:
    hello = {
        "ok": 1,
        "setName": "rs",
        "hosts": [f"{each}:27017" for each in host_letters],
        "setVersion": 1,
        "electionId": election_id(1),
        "maxWireVersion": 25,
        **hello_fields,
    }
    return ServerDescription((host, 27017), hello, 0.001)


def primary(host: str, host_letters: str = "ab", **hello_fields: Any) -> ServerDescription:
    return member(host, host_letters, isWritablePrimary=True, **hello_fields)


def secondary(host: str, host_letters: str = "ab", **hello_fields: Any) -> ServerDescription:
    return member(host, host_letters, secondary=True, **hello_fields)


TOO_NEW, TOO_OLD = {"minWireVersion": 99, "maxWireVersion": 99}, {"minWireVersion": 0, "maxWireVersion": 7}


@pytest.mark.parametrize("wire_versions", [TOO_NEW, TOO_OLD], ids=["too new", "too old"])
@pytest.mark.parametrize("host", ["a", "b", "c"])
@pytest.mark.parametrize("other_types", [{}, {"secondary": True}], ids=["unknown", "known"])
def test_one_incompatible_server_makes_topology_incompatible(
    host: str, wire_versions: Any, other_types: dict[str, Any]
) -> None:
    known = [member(each, "abc", **other_types) for each in "abc" if each != host and other_types]
    topology = topology_with(*known, secondary(host, "abc", **wire_versions), uri="mongodb://a,b,c/?replicaSet=rs")
    with pytest.raises(ConfigurationError, match=f"Server at {host}:27017 re(quires|ports) wire version") as caught:
        topology.check_compatible()
    assert topology.compatibility_error == str(caught.value)
    topology_with(*known, member(host, "abc", secondary=True), uri="mongodb://a,b,c/?replicaSet=rs").check_compatible()


@pytest.mark.parametrize(("lowest", "highest"), [(MAX_SUPPORTED, MAX_SUPPORTED + 5), (0, MIN_SUPPORTED)])
def test_server_with_one_supported_wire_version_is_compatible(lowest: int, highest: int) -> None:
    topology_with(primary("a", minWireVersion=lowest, maxWireVersion=highest)).check_compatible()


@pytest.mark.parametrize(("wire_version", "primary_after"), [(16, "b"), (17, "a"), (18, "a")])
def test_election_is_compared_before_set_version_from_wire_version_17(wire_version: int, primary_after: str) -> None:
    """Let a second primary report an older election ID and a newer set version than the first
    primary.
    """
    first = primary("a", electionId=election_id(2), setVersion=1, maxWireVersion=wire_version)
    second = primary("b", electionId=election_id(1), setVersion=2, maxWireVersion=wire_version)
    servers = topology_with(first, second).server_descriptions().values()
    assert [server.address[0] for server in servers if server.server_type_name == "RSPrimary"] == [primary_after]
