"""Hello replies of simulated servers satisfy the requirements of the SDAM specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bson import Int64, ObjectId

from gmongo.testing import Deployment
from tests.simulation.servers.wire_client import WireClient

LONG_WAIT_MS = 60_000


@pytest.fixture
def replica_set() -> Iterator[Any]:
    with Deployment.replica_set(election_delay=0.01) as deployment:
        yield deployment


@pytest.fixture
def client(replica_set: Any) -> Iterator[WireClient]:
    """Connect to the primary with a :class:`WireClient`, which does not use the driver."""
    with WireClient(replica_set.members.primary.address) as client:
        yield client


def current_topology_version(client: WireClient) -> Any:
    return client.run({"hello": 1})["topologyVersion"]


def awaitable_hello(version: Any, milliseconds: int = LONG_WAIT_MS) -> dict[str, Any]:
    return {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": Int64(milliseconds)}


@pytest.mark.requirement("SM-42", "SM-43", "SM-52")
def test_each_hello_reply_has_topology_version(client: WireClient) -> None:
    for command in ({"hello": 1}, {"isMaster": 1}, {"hello": 1, "helloOk": True}):
        version = client.run(command)["topologyVersion"]
        assert {name: type(value) for name, value in version.items()} == {
            "processId": ObjectId,
            "counter": Int64,
        }


@pytest.mark.requirement("SM-44", "SM-45")
def test_restarted_server_has_new_process_id() -> None:
    with Deployment.standalone() as deployment:
        member = deployment.members[0]
        with WireClient(member.address) as client:
            before = current_topology_version(client)
        member.restart()
        with WireClient(member.address) as client:
            after = current_topology_version(client)
    assert before["processId"] != after["processId"]
    assert (before["counter"], after["counter"]) == (0, 0)


@pytest.mark.requirement("SM-45", "SM-53", "SM-54")
def test_stepdown_ends_awaitable_hello_immediately(replica_set: Any, client: WireClient) -> None:
    known_version = current_topology_version(client)
    client.send(awaitable_hello(known_version))
    replica_set.members.primary.step_down()
    reply, more = client.receive()
    assert reply["topologyVersion"] == {**known_version, "counter": known_version["counter"] + 1}
    assert not more


@pytest.mark.requirement("SM-51")
@pytest.mark.parametrize("field", ["topologyVersion", "maxAwaitTimeMS"])
def test_awaitable_hello_with_missing_field_is_rejected(client: WireClient, field: str) -> None:
    command = awaitable_hello(current_topology_version(client))
    del command[field]
    assert client.run(command)["ok"] == 0


@pytest.mark.requirement("SM-55", "SM-56", "SM-57")
def test_server_streams_hello_replies_without_further_requests(replica_set: Any, client: WireClient) -> None:
    known_version = current_topology_version(client)
    client.stream(awaitable_hello(known_version))
    replica_set.members.primary.step_down()
    replies = [client.receive() for _ in range(2)]
    assert [more for _reply, more in replies] == [True, True]
    assert [reply["topologyVersion"]["counter"] - known_version["counter"] for reply, _more in replies] == [
        1,
        2,
    ]


@pytest.mark.requirement("SM-58")
def test_error_reply_ends_stream_of_hello_replies(client: WireClient) -> None:
    known_version = current_topology_version(client)
    client.run(
        {
            "configureFailPoint": "failCommand",
            "mode": {"times": 1},
            "data": {"failCommands": ["hello"], "errorCode": 91},
        }
    )
    client.stream(awaitable_hello(known_version))
    reply, more = client.receive()
    assert (reply["ok"], reply["code"], more) == (0, 91, False)
