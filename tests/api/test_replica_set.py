"""The driver follows elections, and ends cursors on removed members."""

from __future__ import annotations

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import AutoReconnect
from gmongo.read_preferences import ReadPreference
from gmongo.testing import Deployment
from tests.support.server import ScriptedReplicaSet
from tests.support.wait import eventually


@pytest.fixture(autouse=True)
def short_heartbeat_interval(monkeypatch):
    """Reduce the minimum heartbeat interval from 0.5 seconds to 0.01 seconds."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


@pytest.fixture(params=[True, False], ids=["streaming", "polling"])
def replica_set(request):
    with gevent.Timeout(15), ScriptedReplicaSet(streams=request.param) as replica_set:
        yield replica_set


@pytest.fixture
def streaming_set():
    with gevent.Timeout(15), ScriptedReplicaSet() as replica_set:
        yield replica_set


def connect_and_discover(replica_set, **options):
    """Return a client that has discovered all members."""
    options = {"replicaSet": "scripted", "serverSelectionTimeoutMS": 5000, **options}
    client = MongoClient(replica_set.members[-1].name, **options)
    eventually(lambda: client.nodes == addresses_of(replica_set.hosts))
    return client


def addresses_of(members):
    return frozenset(member.address for member in members)


@pytest.mark.parametrize(("version", "on_secondary"), [("5.0", True), ("4.4", False)])
def test_first_aggregation_with_output_runs_on_secondary_since_server_5_0(version, on_secondary):
    with Deployment.replica_set(3, version=version) as deployment, MongoClient(deployment.uri) as client:
        database = client.get_database("db", read_preference=ReadPreference.SECONDARY)
        database.c.aggregate([{"$out": "copy"}])
        (aggregation,) = deployment.commands.named("aggregate")
        assert (aggregation.member != deployment.members.primary.address) is on_secondary


def test_only_client_of_whole_replica_set_lists_members_by_type(streaming_set):
    primary, secondary, arbiter = streaming_set.members
    arbiter.hello_extra = {"secondary": False, "arbiterOnly": True}
    with connect_and_discover(streaming_set) as client:
        assert (client.primary, client.address) == (primary.address, primary.address)
        assert (client.secondaries, client.arbiters) == ({secondary.address}, {arbiter.address})
    assert client.nodes == frozenset()
    for member in (primary, secondary):
        with MongoClient(member.name, directConnection=True) as client:
            assert (client.is_primary, client.is_mongos) == (member is primary, False)
            assert (client.primary, client.secondaries, client.arbiters) == (None, set(), set())


@pytest.mark.requirement("SM-53", "SM-63")
def test_streaming_hello_reports_election_before_next_heartbeat(streaming_set):
    with connect_and_discover(streaming_set, heartbeatFrequencyMS=60_000) as client:
        for member in streaming_set.members:
            eventually(lambda member=member: any("topologyVersion" in hello for hello in member.commands("hello")))
        new_primary = streaming_set.members[2]
        streaming_set.elect(new_primary)
        eventually(lambda: client.primary == new_primary.address)
        client.db.c.insert_one({})
        assert len(new_primary.commands("insert")) == 1


@pytest.mark.requirement("SM-28", "SM-103")
def test_writes_succeed_on_new_primary_after_primary_stops(replica_set):
    with connect_and_discover(replica_set, heartbeatFrequencyMS=500) as client:
        old_primary = replica_set.primary
        client.db.c.insert_one({})
        old_primary.stop()
        writers = [gevent.spawn(client.db.c.insert_one, {"_id": number}) for number in range(5)]
        gevent.sleep(0.02)
        replica_set.elect(replica_set.members[1])
        gevent.joinall(writers, timeout=5, raise_error=True)
        inserted = [each["documents"][0]["_id"] for each in replica_set.members[1].commands("insert")]
        assert sorted(inserted) == [0, 1, 2, 3, 4]
        old_primary.start()
        eventually(lambda: old_primary.address in client.secondaries)
        assert_all_connections_idle(client)


def test_cursor_on_removed_member_raises_auto_reconnect(streaming_set):
    member = streaming_set.members[1]
    for each in streaming_set.members:
        each.replies["find"] = {
            "ok": 1,
            "cursor": {"id": 9, "ns": "db.c", "firstBatch": [{"_id": 0}]},
        }
    with connect_and_discover(streaming_set) as client:
        streaming_set.reconfigure([streaming_set.members[0], member])
        eventually(lambda: len(client.nodes) == 2)
        collection = client.db.get_collection("c", read_preference=ReadPreference.SECONDARY)
        cursor = collection.find()
        next(cursor)
        streaming_set.reconfigure([streaming_set.members[0]])
        eventually(lambda: len(client.nodes) == 1)
        with pytest.raises(AutoReconnect, match=f"{member.name} is no longer part of the topology"):
            next(cursor)
        assert not cursor.alive


def assert_all_connections_idle(client):
    for pool in client.pool_stats():
        assert (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)
