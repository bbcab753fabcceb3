"""The driver discovers a replica set, selects servers, and follows elections and reconfigurations."""

from __future__ import annotations

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import AutoReconnect
from gmongo.read_preferences import ReadPreference
from tests.support.server import ScriptedReplicaSet
from tests.support.wait import WAIT_LIMIT, eventually

NOT_PRIMARY = {"ok": 0, "code": 10107, "errmsg": "not primary", "errorLabels": ["RetryableWriteError"]}


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


def step_down_at_next_insert(replica_set, new_primary, code=10107):
    """Let the next insert on the primary fail with a stepdown error. Then elect another member.

    :returns: the old primary.
    """
    old = replica_set.primary

    def reject_insert(_command):
        version = old.topology_version
        # Delay the election, so that the error reply arrives before a streamed hello reply.
        gevent.spawn_later(0.02 if old.streams else 0, replica_set.elect, new_primary)
        return {**NOT_PRIMARY, "code": code, "topologyVersion": {**version, "counter": version["counter"] + 1}}

    old.replies["insert"] = reject_insert
    return old


def test_client_discovers_all_members_from_one_seed(replica_set):
    with connect_and_discover(replica_set) as client:
        assert client.primary == replica_set.primary.address
        assert client.secondaries == addresses_of(replica_set.secondaries)
        assert client.address == replica_set.primary.address
        assert client.topology_description.topology_type_name == "ReplicaSetWithPrimary"
        assert client.topology_description.replica_set_name == "scripted"


def test_direct_connection_reads_from_a_secondary(streaming_set):
    secondary = streaming_set.members[1]
    with MongoClient(secondary.name, directConnection=True) as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert client.nodes == {secondary.address}
    assert secondary.commands("find")[0]["$readPreference"] == {"mode": "primaryPreferred"}
    assert streaming_set.members[0].connection_count == 0


def test_write_is_retried_on_new_primary_after_step_down(replica_set):
    with connect_and_discover(replica_set) as client:
        new = replica_set.members[1]
        old = step_down_at_next_insert(replica_set, new)
        client.db.c.insert_one({"_id": 1})
        (first,), (second,) = old.commands("insert"), new.commands("insert")
        assert (first["txnNumber"], first["lsid"]) == (second["txnNumber"], second["lsid"])
        assert first["documents"] == second["documents"] == [{"_id": 1}]
        assert client.primary == new.address
        assert_all_connections_idle(client)


@pytest.mark.requirement("SM-53", "SM-63")
def test_streaming_hello_reports_election_before_next_heartbeat(streaming_set):
    with connect_and_discover(streaming_set, heartbeatFrequencyMS=60_000) as client:
        for member in streaming_set.members:
            eventually(lambda member=member: any("topologyVersion" in hello for hello in member.commands("hello")))
        new = streaming_set.members[2]
        streaming_set.elect(new)
        eventually(lambda: client.primary == new.address)
        client.db.c.insert_one({})
        assert len(new.commands("insert")) == 1


def test_write_waits_for_election_of_a_primary(streaming_set):
    with connect_and_discover(streaming_set) as client:
        streaming_set.elect(None)
        eventually(lambda: client.primary is None)
        writer = gevent.spawn(client.db.c.insert_one, {"_id": 1})
        reader = client.db.get_collection("c", read_preference=ReadPreference.SECONDARY_PREFERRED)
        assert reader.find_one({"_id": 2}) == {"_id": 2}
        assert not writer.ready()
        streaming_set.elect(streaming_set.members[1])
        assert writer.get(timeout=WAIT_LIMIT).inserted_id == 1
        assert len(streaming_set.members[1].commands("insert")) == 1


@pytest.mark.requirement("SM-28", "SM-103")
def test_writes_succeed_on_new_primary_after_primary_stops(replica_set):
    with connect_and_discover(replica_set, heartbeatFrequencyMS=500) as client:
        old = replica_set.primary
        client.db.c.insert_one({})
        old.stop()
        writers = [gevent.spawn(client.db.c.insert_one, {"_id": number}) for number in range(5)]
        gevent.sleep(0.02)
        replica_set.elect(replica_set.members[1])
        gevent.joinall(writers, timeout=5, raise_error=True)
        inserted = [each["documents"][0]["_id"] for each in replica_set.members[1].commands("insert")]
        assert sorted(inserted) == [0, 1, 2, 3, 4]
        old.start()
        eventually(lambda: old.address in client.secondaries)
        assert_all_connections_idle(client)


@pytest.mark.requirement("SM-14")
def test_client_follows_added_and_removed_members(replica_set):
    with connect_and_discover(replica_set, heartbeatFrequencyMS=500) as client:
        new = replica_set.add()
        eventually(lambda: new.address in client.secondaries)
        removed = replica_set.members[1]
        replica_set.reconfigure([member for member in replica_set.hosts if member is not removed])
        eventually(lambda: removed.address not in client.nodes)
        # The client closes all connections to the removed member.
        eventually(lambda: not removed.peers)
        assert client.nodes == addresses_of(replica_set.hosts)
        assert {pool["address"] for pool in client.pool_stats()} == set(client.nodes)


def test_cursor_on_removed_member_raises_auto_reconnect(streaming_set):
    member = streaming_set.members[1]
    for each in streaming_set.members:
        each.replies["find"] = {"ok": 1, "cursor": {"id": 9, "ns": "db.c", "firstBatch": [{"_id": 0}]}}
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
