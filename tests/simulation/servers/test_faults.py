"""Tests of the fault methods of members and of the simulated network."""

from __future__ import annotations

import gc
import random
from time import monotonic

import gevent
import pytest
from gevent import socket

from gmongo.testing import Deployment
from gmongo.testing.simulation import command_log
from tests.simulation.servers.wire_client import WireClient
from tests.support.cases import with_cases
from tests.support.greenlets import living_greenlets
from tests.support.wait import eventually

PING = {"ping": 1}


@pytest.fixture
def standalone():
    with Deployment.standalone() as deployment:
        yield deployment


@pytest.fixture
def member(standalone):
    return standalone.members[0]


@pytest.fixture
def client(member):
    with WireClient(member.address) as client:
        assert client.run(PING)["ok"] == 1
        yield client


def has_no_reply(client):
    with gevent.Timeout(0.03, False):
        client.receive()
        return False
    return True


def test_killed_member_listens_on_same_port_after_restart(member, client):
    address = member.address
    member.kill()
    assert client.server_closes_connection()
    with pytest.raises(ConnectionRefusedError):
        WireClient(address)
    member.restart()
    with WireClient(address) as again:
        assert again.run(PING)["ok"] == 1


def test_port_of_killed_member_stays_reserved(standalone, member):
    def bind():
        with socket.socket() as other:
            other.bind((member.host, member.port))

    member.kill()
    with pytest.raises(OSError, match="in use"):
        bind()
    standalone.close()
    bind()


def test_restarted_member_has_new_process_id(member, client):
    before = client.run({"hello": 1})["topologyVersion"]["processId"]
    member.restart()
    with WireClient(member.address) as again:
        assert again.run({"hello": 1})["topologyVersion"]["processId"] != before


def test_frozen_member_replies_after_thaw(member, client):
    member.freeze()
    client.send(PING)
    with WireClient(member.address) as newcomer:
        newcomer.send(PING)
        assert has_no_reply(client) and has_no_reply(newcomer)
        member.thaw()
        assert client.receive()[0]["ok"] == 1 and newcomer.receive()[0]["ok"] == 1


def test_message_to_partitioned_member_is_lost(standalone, member, client):
    member.partition()
    client.send({"insert": "c", "documents": [{}]}, "db")
    assert has_no_reply(client)
    member.heal()
    assert client.server_closes_connection()
    with WireClient(member.address) as again:
        assert again.run({"find": "c"}, "db")["cursor"]["firstBatch"] == []


def test_delay_of_member_delays_reply(member, client):
    member.delay(0.05)
    began = monotonic()
    client.run(PING)
    assert monotonic() - began >= 0.05


def test_fault_drop_after_cuts_only_next_reply(member, client):
    member.drop_after(20)
    client.send(PING)
    with pytest.raises(EOFError) as caught:
        client.read(21)
    assert len(caught.value.args[0]) == 20
    with WireClient(member.address) as again:
        assert again.run(PING)["ok"] == 1


def test_fault_drop_after_for_command_keeps_replies_to_other_commands(member, client):
    member.drop_after(0, command="find")
    assert client.run(PING)["ok"] == 1
    client.send({"find": "c"}, "db")
    assert client.server_closes_connection()


def test_fault_garbage_replaces_next_reply(member, client):
    member.garbage()
    client.send(PING)
    assert client.read(16) == b"\xff" * 16


def test_network_latency_delays_reply(standalone, client):
    standalone.network.latency = 0.05
    began = monotonic()
    client.run(PING)
    assert monotonic() - began >= 0.05


def test_network_loss_closes_some_connections(standalone, member):
    standalone.network.random = random.Random(1)
    standalone.network.loss = 0.5
    outcomes = set()
    for _ in range(20):
        with WireClient(member.address) as client:
            client.send(PING)
            outcomes.add(client.server_closes_connection())
    assert outcomes == {True, False}


def test_command_log_has_received_commands(standalone, member, client):
    standalone.commands.clear()
    client.run({"ping": 1, "comment": "logged"})
    client.run({"find": "c", "filter": {"x": 1}}, "db")
    assert [each.name for each in standalone.commands] == ["ping", "find"]
    (find,) = standalone.commands.named("find")
    assert (find.database, find.body["filter"], find.member) == ("db", {"x": 1}, member.address)
    assert find.connection in member.connections and find.time <= monotonic()


@pytest.mark.parametrize(
    "malformed_message",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 16,
        b"\xff" * 64,
        (15).to_bytes(4, "little") + b"\x00" * 12,
        (26).to_bytes(4, "little") + bytes(8) + (2013).to_bytes(4, "little") + bytes(4) + b"\x00\xff\xff\xff\x7f\x00",
        (20).to_bytes(4, "little") + bytes(8) + (2012).to_bytes(4, "little") + bytes(4),
        (20).to_bytes(4, "little") + bytes(8) + (2002).to_bytes(4, "little") + bytes(4),
    ],
)
def test_malformed_message_closes_only_its_connection(member, client, malformed_message):
    with WireClient(member.address) as other:
        other.socket.sendall(malformed_message)
        assert other.server_closes_connection()
    assert client.run(PING)["ok"] == 1


def test_malformed_document_returns_error(client):
    body = b"\x0d\x00\x00\x00\x99ping\x00\x01\x00\x00"
    body = len(body).to_bytes(4, "little") + body[4:-1] + b"\x00"
    message = (21 + len(body)).to_bytes(4, "little") + bytes(8) + (2013).to_bytes(4, "little") + bytes(5) + body
    client.socket.sendall(message)
    assert client.receive()[0]["codeName"] == "InvalidBSON"
    assert client.run(PING)["ok"] == 1


@pytest.mark.parametrize("command", [{}, {"noSuchCommand": 1}, {"": 1}])
def test_unknown_command_returns_error_code_59(client, command):
    reply = client.run(command)
    assert (reply["ok"], reply["code"]) == (0, 59)


@pytest.mark.parametrize("field", [{"lsid": 1}, {"lsid": {"id": 1}}, {"txnNumber": "x"}, {"$readPreference": 5}])
def test_generic_field_of_wrong_type_is_refused(client, field):
    assert client.run({"find": "c", **field}, "db")["code"] == 115


def test_unacknowledged_request_has_no_reply(client):
    client.send({"ping": 1, "comment": "quiet"}, flags=2)
    assert client.run({"hello": 1})["ok"] == 1


@with_cases
def test_invalid_fault_argument_raises_value_error(member, fault, arguments):
    with pytest.raises(ValueError, match=r"which is not (a nonnegative (whole )?number|the name of a command)"):
        getattr(member, fault)(*arguments)


@pytest.mark.parametrize(("name", "value"), [("latency", -1), ("latency", "x"), ("loss", 1.5), ("loss", None)])
def test_invalid_network_setting_raises_value_error(member, name, value):
    with pytest.raises(ValueError, match=f"network.{name}"):
        setattr(member.cluster.network, name, value)


def started_greenlets():
    gc.collect()
    return {each for each in living_greenlets() if each.started}


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("kind", ["standalone", "load_balanced"])
def test_deployment_leaves_no_greenlet_after_kill_of_member(kind, is_frozen):
    before = started_greenlets()
    with getattr(Deployment, kind)() as deployment:
        member = deployment.members[0]
        if is_frozen:
            member.freeze()
        clients = [socket.create_connection((member.host, member.port)) for _ in range(5)]
        if kind == "standalone" and not is_frozen:
            active_clients = [WireClient(member.address) for _ in range(5)]
            assert all(client.run({"ping": 1})["ok"] for client in active_clients)
        eventually(lambda: len(started_greenlets() - before) >= len(clients))
        member.kill()
        eventually(lambda: not started_greenlets() - before)
        for client in clients:
            client.close()


def test_command_log_is_limited_by_number_of_commands_and_bytes(monkeypatch):
    monkeypatch.setattr(command_log, "MAX_COMMANDS", 10)
    with Deployment.standalone() as deployment, WireClient(deployment.members[0].address) as client:
        for _ in range(25):
            client.run({"ping": 1})
        assert 5 <= len(deployment.commands) <= 10
        assert len(deployment.commands) + deployment.commands.forgotten >= 25
        monkeypatch.setattr(command_log, "MAX_BYTES", 100_000)
        for _ in range(10):
            client.run({"ping": 1, "comment": "x" * 30_000})
        assert sum(each.size for each in deployment.commands) <= 100_000
