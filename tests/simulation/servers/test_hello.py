"""Tests of the command hello: reply fields, awaitable hello commands, and streamed replies."""

from __future__ import annotations

import gevent
import pytest
from bson import Binary, Int64, ObjectId

from gmongo.testing import Deployment
from tests.simulation.servers.wire_client import WireClient
from tests.support.wait import eventually


def hello_of(deployment, member=0, **fields):
    with WireClient(deployment.members[member].address) as client:
        return client.run({"hello": 1, **fields})


def test_hello_of_standalone_has_fields_of_standalone():
    with Deployment.standalone() as deployment:
        reply = hello_of(deployment, helloOk=True)
    assert reply["ok"] == 1 and reply["helloOk"] is True and reply["isWritablePrimary"] is True
    assert reply["logicalSessionTimeoutMinutes"] == 30
    assert (reply["minWireVersion"], reply["maxWireVersion"], reply["readOnly"]) == (0, 25, False)
    assert "setName" not in reply and "msg" not in reply and "$clusterTime" not in reply


@pytest.mark.parametrize(
    ("version", "wire_version"),
    [("4.2", 8), ("4.4", 9), ("5.0", 13), ("6.0", 17), ("7.0", 21), ("8.0", 25), ("8.0.4", 25)],
)
def test_server_version_selects_wire_version(version, wire_version):
    with Deployment.standalone(version=version) as deployment, WireClient(deployment.members[0].address) as client:
        assert client.run({"isMaster": 1})["maxWireVersion"] == wire_version
        assert client.run({"buildInfo": 1})["version"].startswith(version)


def test_version_before_4_4_has_no_hello_and_no_streams():
    with (
        Deployment.replica_set(members=1, version="4.2") as deployment,
        WireClient(deployment.members[0].address) as client,
    ):
        reply = client.run({"isMaster": 1, "helloOk": True})
        assert reply["ok"] == 1
        assert "helloOk" not in reply and "topologyVersion" not in reply
        assert client.run({"hello": 1})["code"] == 59
        retryable = {"insert": "c", "documents": [{}], "lsid": {"id": Binary(bytes(16), 4)}, "txnNumber": Int64(1)}
        deployment.set_fail_point("failCommand", {"times": 1}, {"failCommands": ["insert"], "errorCode": 189})
        assert "errorLabels" not in client.run(retryable)


def test_invalid_version_raises_value_error():
    with pytest.raises(ValueError, match=r"'3\.6'"):
        Deployment.standalone(version="3.6")


def test_hello_of_member_has_fields_of_its_role():
    with Deployment.replica_set(members=3, name="tests", arbiters=1, hidden=1, tags=[{"dc": "ny"}]) as deployment:
        addresses = [member.address for member in deployment.members]
        primary, secondary, hidden, arbiter = (hello_of(deployment, number) for number in range(4))
    assert primary["hosts"] == addresses[:2] and primary["arbiters"] == addresses[3:]
    assert {each["setName"] for each in (primary, secondary, hidden, arbiter)} == {"tests"}
    assert primary["isWritablePrimary"] and not primary["secondary"] and isinstance(primary["electionId"], ObjectId)
    assert primary["tags"] == {"dc": "ny"} and primary["me"] == primary["primary"] == addresses[0]
    assert secondary["secondary"] and not secondary["isWritablePrimary"] and "electionId" not in secondary
    assert hidden["hidden"] and hidden["me"] == addresses[2]
    assert arbiter["arbiterOnly"] and not arbiter["secondary"]
    assert {"operationTime", "$clusterTime"} <= set(primary)
    assert {"opTime", "lastWriteDate"} <= set(primary["lastWrite"])


def test_hello_of_mongos_has_fields_of_mongos():
    with Deployment.sharded() as deployment:
        assert hello_of(deployment, 1)["msg"] == "isdbgrid"


@pytest.mark.parametrize(("version", "outcome"), [("8.0", 1), ("6.0", 0)])
def test_check_metadata_consistency_succeeds_only_on_new_mongos(version, outcome):
    with Deployment.sharded(version=version) as deployment, WireClient(deployment.members[0].address) as client:
        assert client.run({"checkMetadataConsistency": 1}, "db")["ok"] == outcome


def test_legacy_hello_has_ismaster_field():
    with Deployment.replica_set() as deployment, WireClient(deployment.members[0].address) as client:
        reply = client.run({"isMaster": 1})
    assert reply["ismaster"] is True and "isWritablePrimary" not in reply


def test_awaited_hello_returns_after_max_await_time():
    with Deployment.standalone() as deployment, WireClient(deployment.members[0].address) as client:
        known_version = client.run({"hello": 1})["topologyVersion"]
        with gevent.Timeout(0.03, False):
            client.send({"hello": 1, "topologyVersion": known_version, "maxAwaitTimeMS": 80})
            client.receive()
            pytest.fail("the server replied without a wait")
        assert client.receive()[0]["topologyVersion"] == known_version


def test_awaited_hello_returns_at_change_of_state():
    with Deployment.replica_set() as deployment, WireClient(deployment.members[1].address) as client:
        known_version = client.run({"hello": 1})["topologyVersion"]
        client.send({"hello": 1, "topologyVersion": known_version, "maxAwaitTimeMS": 60_000})
        deployment.members.primary.step_down()
        reply, _ = client.receive()
    assert reply["topologyVersion"]["processId"] == known_version["processId"]
    assert reply["topologyVersion"]["counter"] == known_version["counter"] + 1
    assert "primary" not in reply


def test_streamed_hello_returns_each_change():
    with Deployment.replica_set(election_delay=0.01) as deployment:
        old = deployment.members.primary
        with WireClient(old.address) as client:
            known_version = client.run({"hello": 1})["topologyVersion"]
            client.stream({"hello": 1, "topologyVersion": known_version, "maxAwaitTimeMS": 60_000})
            old.step_down()
            replies = [client.receive() for _ in range(2)]
        assert [more for _, more in replies] == [True, True]
        assert replies[0][0]["isWritablePrimary"] is False and "primary" not in replies[0][0]
        assert replies[1][0]["primary"] == deployment.members.primary.address != old.address


def test_streamed_hello_returns_at_each_interval():
    with Deployment.standalone() as deployment, WireClient(deployment.members[0].address) as client:
        known_version = client.run({"hello": 1})["topologyVersion"]
        client.stream({"hello": 1, "topologyVersion": known_version, "maxAwaitTimeMS": 5})
        assert [client.receive()[0]["topologyVersion"] for _ in range(3)] == [known_version] * 3


def test_member_removes_closed_connection_with_streamed_hello():
    with Deployment.standalone() as deployment:
        member = deployment.members[0]
        with WireClient(member.address) as client:
            known_version = client.run({"hello": 1})["topologyVersion"]
            client.stream({"hello": 1, "topologyVersion": known_version, "maxAwaitTimeMS": 60_000})
            (connection,) = member.connections.values()
            eventually(lambda: connection.busy_with == "hello")
        eventually(lambda: not member.connections)


def test_end_of_connection_ends_awaited_hello(virtual_time):
    with Deployment.standalone() as deployment:
        with WireClient(deployment.members[0].address) as client:
            known_version = client.run({"hello": 1})["topologyVersion"]
            (connection,) = deployment.members[0].connections.values()
            client.stream({"hello": 1, "topologyVersion": known_version, "maxAwaitTimeMS": 60_000})
        assert connection.closed_by_member.wait(1)


def test_hello_with_max_await_time_but_no_topology_version_is_refused():
    with Deployment.standalone() as deployment:
        assert hello_of(deployment, maxAwaitTimeMS=10)["code"] == 31368
