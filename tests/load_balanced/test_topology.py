"""A load-balanced topology has one server, runs no checks, and publishes events in a fixed order."""

from __future__ import annotations

import logging
import re
import time
from functools import partial
from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect
from gmongo.read_preferences import Nearest, Primary, PrimaryPreferred, Secondary, SecondaryPreferred
from tests.load_balanced.harness import load_balanced_uri
from tests.support.clients import make_client
from tests.support.fail_points import close_connection_at, refuse
from tests.support.server import ScriptedServer, cursor_reply

OPENING_EVENTS = [
    "TopologyOpened",
    "TopologyDescriptionChanged LoadBalanced",
    "ServerOpening",
    "ServerDescriptionChanged LoadBalancer",
    "TopologyDescriptionChanged LoadBalanced",
]
CLOSING_EVENTS = ["ServerClosed", "TopologyDescriptionChanged Unknown", "TopologyClosed"]
SDAM_PREFIXES = ("Topology", "Server", "Heartbeat")
PREFERENCES = [
    Primary(),
    PrimaryPreferred(),
    Secondary([{"rack": "nowhere"}]),
    SecondaryPreferred(max_staleness=90),
    Nearest([{"dc": "x"}], max_staleness=120),
]


def only_server(client: Any) -> Any:
    (server,) = client.topology_description.server_descriptions().values()
    return server


@pytest.mark.requirement("LB-13", "LB-15", "LB-16", "LB-17", "LB-19")
def test_load_balanced_topology_has_one_server_without_hello_fields(connect: Any) -> None:
    client = connect("mongodb://balancer.example:4321/?loadBalanced=true", connect=False)
    client._topology.open()
    description = client.topology_description
    assert description.topology_type_name == "LoadBalanced"
    server = only_server(client)
    assert (server.server_type_name, server.address) == ("LoadBalancer", ("balancer.example", 4321))
    assert (server.round_trip_time, server.error, server.topology_version) == (None, None, None)
    assert (dict(server.tags), server.all_hosts, server.replica_set_name) == ({}, frozenset(), None)
    assert (server.me, server.primary, server.election_tuple) == (None, None, (None, None))
    assert (server.set_version, server.election_id, server.last_write_date) == (None, None, None)
    # The maximum wire version is the default of a new server description.
    assert server.max_wire_version == type(server)(server.address).max_wire_version
    description.check_compatible()


@pytest.mark.requirement("LB-14", "LB-19", "LB-26", "LB-67")
def test_load_balanced_topology_stays_unchanged_after_errors(deployment: Any, client: Any, recorder: Any) -> None:
    client.db.c.find_one()
    before = client.topology_description
    for command, cause_error in (("find", close_connection_at), ("insert", partial(refuse, code=91))):
        cause_error(deployment, command)
        with pytest.raises(AutoReconnect):  # the retry also fails, because both services fail
            client.db.c.find_one() if command == "find" else client.db.c.insert_one({})
    for member in deployment.members:
        member.kill()
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    gevent.sleep(0.05)
    assert client.topology_description == before
    assert recorder.lines_starting_with(*SDAM_PREFIXES) == OPENING_EVENTS
    client.topology_description.check_compatible()


@pytest.mark.requirement("LB-18", "LB-02")
def test_load_balanced_client_opens_no_connection_before_first_operation(
    service: ScriptedServer, recorder: Any
) -> None:
    client = make_client(load_balanced_uri(service), recorder, heartbeat_interval=0.01)
    gevent.sleep(0.1)
    assert service.connection_count == 0
    client.db.c.find_one()
    gevent.sleep(0.1)
    assert (service.connection_count, len(service.commands("handshake")), service.commands("hello")) == (1, 1, [])
    assert not recorder.events_named("HeartbeatStarted")
    client._topology.close()


@pytest.mark.requirement("LB-20", "LB-21", "LB-22", "LB-23", "LB-24", "LB-25", "LB-26")
def test_load_balanced_topology_publishes_specified_events(
    service: ScriptedServer, connect: Any, recorder: Any
) -> None:
    client = connect(load_balanced_uri(service))
    client.db.c.find_one()
    assert recorder.lines_starting_with(*SDAM_PREFIXES) == OPENING_EVENTS
    opened, first, server, changed, second = (e for e in recorder.events if type(e).__name__.startswith(SDAM_PREFIXES))
    unknown, known = first.previous_description, first.new_description
    assert (unknown.topology_type_name, unknown.server_descriptions()) == ("Unknown", {})
    assert [each.server_type_name for each in known.server_descriptions().values()] == ["Unknown"]
    assert server.server_address == service.address
    assert changed.previous_description.server_type_name == "Unknown"
    assert second.previous_description == known
    assert [each.server_type_name for each in second.new_description.server_descriptions().values()] == ["LoadBalancer"]
    assert len({event.topology_id for event in (opened, first, server, changed, second)}) == 1
    recorder.clear()
    client.close()
    assert recorder.lines_starting_with(*SDAM_PREFIXES) == CLOSING_EVENTS


@pytest.mark.requirement("LB-27", "LB-28", "LB-29", "LB-30", "LB-31")
def test_load_balanced_topology_logs_specified_messages(
    service: ScriptedServer, connect: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="gmongo.topology")
    client = connect(load_balanced_uri(service))
    client.db.c.find_one()
    opening = [record.structured for record in caplog.records]  # type: ignore[attr-defined]
    caplog.clear()
    client.close()
    closing = [record.structured for record in caplog.records]  # type: ignore[attr-defined]
    assert [each["message"] for each in opening] == [
        "Starting topology monitoring",
        "Topology description changed",
        "Starting server monitoring",
        "Topology description changed",
    ]
    assert [each["message"] for each in closing] == [
        "Stopped server monitoring",
        "Topology description changed",
        "Stopped topology monitoring",
    ]
    assert len({each["topologyId"] for each in opening + closing}) == 1
    for record in (opening[2], closing[0]):
        assert (record["serverHost"], record["serverPort"]) == service.address
    changes = [(each["previousDescription"], each["newDescription"]) for each in (opening[1], opening[3], closing[1])]
    kinds = [tuple(re.findall(r"topology_type: (\w+)", text)[0] for text in pair) for pair in changes]
    assert kinds == [("Unknown", "LoadBalanced"), ("LoadBalanced", "LoadBalanced"), ("LoadBalanced", "Unknown")]
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


@pytest.mark.requirement("LB-32")
def test_load_balanced_client_supports_sessions_before_any_hello(service: ScriptedServer, connect: Any) -> None:
    service.hello_extra["logicalSessionTimeoutMinutes"] = None
    client = connect(load_balanced_uri(service))
    with client.start_session() as session:
        assert service.connection_count == 0
        client.db.c.find_one(session=session)
        assert service.commands("find")[0]["lsid"] == session.session_id
    client.db.c.find_one()
    assert "lsid" in service.commands("find")[1]


@pytest.mark.requirement("LB-33", "LB-34")
@pytest.mark.parametrize("minutes", [None, 1, 30])
def test_load_balanced_sessions_do_not_expire(
    minutes: Any, service: ScriptedServer, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.hello_extra["logicalSessionTimeoutMinutes"] = minutes
    client = connect(load_balanced_uri(service))
    client.db.c.find_one()
    later = time.monotonic() + 7 * 24 * 3600
    monkeypatch.setattr("gmongo._clock.monotonic", lambda: later)
    client.db.c.find_one()
    first, second = (command["lsid"] for command in service.commands("find"))
    assert first == second


@pytest.mark.requirement("LB-35", "LB-36", "LB-37")
@pytest.mark.parametrize("preference", PREFERENCES, ids=repr)
def test_each_read_preference_selects_load_balancer_and_is_sent_with_reads(
    preference: Any, service: ScriptedServer, connect: Any
) -> None:
    client = connect(load_balanced_uri(service), serverSelectionTimeoutMS=1)
    collection = client.db.get_collection("c", read_preference=preference)
    assert collection.find_one({"_id": 3}) == {"_id": 3}
    collection.insert_one({})
    assert client._topology.select_server(preference, "test", None).address == service.address
    (find,), (insert,) = service.commands("find"), service.commands("insert")
    assert find.get("$readPreference") == (None if preference.mode == 0 else preference.document)
    service.replies["aggregate"] = cursor_reply([])
    collection.aggregate([{"$out": "copy"}])
    assert service.commands("aggregate")[0].get("$readPreference") == find.get("$readPreference")
    assert "$readPreference" not in insert
