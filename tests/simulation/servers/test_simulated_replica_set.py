"""Tests of elections, and of commands that a member refuses because of its state."""

from __future__ import annotations

import gevent
import pytest

from gmongo.testing import Deployment, DeploymentThread
from tests.simulation.servers.wire_client import TIMEOUT_SECONDS, WireClient

INSERT = {"insert": "c", "documents": [{"_id": 1}]}


def await_primary(deployment, other_than=None):
    with gevent.Timeout(TIMEOUT_SECONDS):
        while not deployment.members.has_primary or deployment.members.primary is other_than:
            gevent.sleep(0.002)
    return deployment.members.primary


@pytest.fixture
def replica_set():
    with Deployment.replica_set(election_delay=0.02) as deployment:
        yield deployment


def test_first_member_is_primary_and_others_are_secondaries(replica_set):
    assert replica_set.members.primary is replica_set.members[0]
    assert replica_set.members.secondaries == list(replica_set.members[1:])
    assert replica_set.uri.endswith("/?replicaSet=rs0")


def test_step_down_elects_another_primary_with_greater_election_id(replica_set):
    old = replica_set.members.primary
    with WireClient(old.address) as client:
        old_election_id = client.run({"hello": 1})["electionId"]
    old.step_down()
    assert not replica_set.members.has_primary
    new = await_primary(replica_set)
    assert new is not old
    with WireClient(new.address) as client:
        assert client.run({"hello": 1})["electionId"] > old_election_id


@pytest.mark.parametrize("fault", ["kill", "freeze", "partition"])
def test_election_replaces_unreachable_primary(replica_set, fault):
    old = replica_set.members.primary
    getattr(old, fault)()
    assert await_primary(replica_set, old) is not old


def test_access_to_missing_primary_raises_lookup_error():
    for kind in (Deployment, DeploymentThread):
        with kind.standalone() as deployment, pytest.raises(LookupError, match="no primary now"):
            _ = deployment.members.primary
    with Deployment.replica_set(election_delay=60) as deployment:
        deployment.members.primary.kill()
        with pytest.raises(LookupError, match="its election is not over"):
            deployment.members.primary.kill()


def test_replica_set_without_majority_has_no_primary(replica_set):
    replica_set.members[1].kill()
    assert replica_set.members.primary is replica_set.members[0]
    replica_set.members[2].kill()
    assert not replica_set.members.has_primary
    replica_set.members[1].restart()
    await_primary(replica_set)


def test_single_member_becomes_primary_after_step_down(virtual_time):
    with Deployment.replica_set(members=1, election_delay=0.01) as deployment:
        member = deployment.members.primary
        member.step_down(seconds=0.05)
        gevent.sleep(0.03)
        assert not deployment.members.has_primary
        assert await_primary(deployment) is member


def test_step_down_of_secondary_raises_value_error(replica_set):
    with pytest.raises(ValueError, match="not the primary"):
        replica_set.members[1].step_down()


def test_replica_set_commands_succeed(replica_set):
    with WireClient(replica_set.members[0].address) as client:
        assert client.run({"replSetStepDown": 60, "force": True})["ok"] == 1
        assert client.run({"hello": 1})["isWritablePrimary"] is False
        assert client.run({"replSetStepDown": 60})["code"] == 10107
        assert client.run({"replSetFreeze": 0})["ok"] == 1
    await_primary(replica_set)


def test_step_down_waits_for_secondary_unless_forced(replica_set):
    with WireClient(replica_set.members[0].address) as client:
        for member in replica_set.members[1:]:
            with WireClient(member.address) as other:
                assert other.run({"replSetFreeze": 60})["ok"] == 1
        assert client.run({"replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0})["code"] == 262
        assert client.run({"replSetStepDown": 60, "force": True})["ok"] == 1


def test_secondary_refuses_writes(replica_set):
    with WireClient(replica_set.members[1].address) as client:
        reply = client.run(INSERT, "db")
        assert (reply["code"], reply["codeName"]) == (10107, "NotWritablePrimary")
        assert reply["topologyVersion"] == client.run({"hello": 1})["topologyVersion"]


def test_secondary_reads_with_read_preference(replica_set):
    with WireClient(replica_set.members[0].address) as client:
        assert client.run(INSERT, "db")["n"] == 1
    with WireClient(replica_set.members[1].address) as client:
        assert client.run({"find": "c"}, "db")["code"] == 13435
        reply = client.run({"find": "c", "$readPreference": {"mode": "secondary"}}, "db")
    assert reply["cursor"]["firstBatch"] == [{"_id": 1}]


def test_arbiter_refuses_reads():
    with (
        Deployment.replica_set(members=2, arbiters=1) as deployment,
        WireClient(deployment.members[2].address) as client,
    ):
        assert client.run({"find": "c", "$readPreference": {"mode": "nearest"}}, "db")["code"] == 13436


def test_shutdown_command_stops_member(replica_set):
    with WireClient(replica_set.members[0].address) as client:
        client.send({"shutdown": 1})
        assert client.server_closes_connection()
    assert not replica_set.members[0].alive
    await_primary(replica_set)


def test_replica_set_without_electable_member_raises_value_error():
    with pytest.raises(ValueError, match="no member that can be primary"):
        Deployment.replica_set(members=1, hidden=1)
