"""Tests of a blocked event loop: the driver reads all arrived replies before it reports a timeout.

A blocked event loop is no reason to mark a server Unknown.
"""

from __future__ import annotations

import fcntl
import termios
import time

import gevent
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.cmap import handshake
from gmongo.errors import AutoReconnect
from gmongo.testing import DeploymentProcess
from gmongo.wire import connect as wire_connect
from gmongo.wire.transport import Transport
from tests.support.recorder import Recorder, short_name
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually

BLOCK_SECONDS = 0.9  # seconds
LIMIT_MS = 300  # milliseconds
END_EVENTS = ("HeartbeatSucceeded", "HeartbeatFailed")
PIECE_SIZE = 1_000_000  # bytes


class FailureRecorder(Recorder):
    """Recorder with properties for failed commands, servers marked Unknown, and cleared pools."""

    @property
    def failures(self):
        return self.events_named("CommandFailed")

    @property
    def server_faults(self):
        changes = self.events_named("ServerDescriptionChanged")
        changes_to_unknown = [event for event in changes if not event.new_description.is_server_type_known]
        return changes_to_unknown + self.events_named("PoolCleared")


def has_unread_bytes(connection):
    return any(fcntl.ioctl(connection._transport._socket.fileno(), termios.FIONREAD, bytes(4)))


def block_loop(connection):
    """Block the event loop until the socket of a connection has unread bytes."""
    end = time.monotonic() + 20
    time.sleep(BLOCK_SECONDS)
    while not has_unread_bytes(connection) and time.monotonic() < end:
        time.sleep(BLOCK_SECONDS)
    assert has_unread_bytes(connection)


def connection_in_use(client):
    """Return the only connection in use, which waits for a reply."""
    [pool] = client._topology.pools()
    [connection] = pool.machine.in_use
    assert connection.mid_message
    return connection


def read_succeeds(client):
    try:
        return client.test.c.find_one() == {"_id": 1}
    except AutoReconnect:
        return False


def client_with_connection(deployment, *recorders, **options):
    """Return a client that has an available connection, and clear `recorders`."""
    with MongoClient(deployment.uri) as default_client:
        default_client.test.c.insert_one({"_id": 1})
    client = MongoClient(deployment.uri, event_listeners=recorders, **options)
    eventually(lambda: read_succeeds(client))
    for recorder in recorders:
        recorder.clear()
    return client


@pytest.fixture
def deployment():
    """Start a deployment in another process.

    The deployment replies while this process blocks its event loop.
    """
    with DeploymentProcess("--replica-set", "1") as process:
        yield process


@pytest.mark.parametrize("mode", ["poll", "stream"])
def test_check_succeeds_if_reply_arrived_while_loop_was_blocked(deployment, mode):
    """A check may fail only if its reply had not arrived."""
    recorder = FailureRecorder()
    options = {"connectTimeoutMS": LIMIT_MS, "heartbeatFrequencyMS": 500, "serverMonitoringMode": mode}
    with client_with_connection(deployment, recorder, **options) as client:
        [server] = client._topology.servers.values()
        for round_ in range(6):
            gevent.sleep(0.1 * round_)  # Block the loop at various times after a check.
            end_count = len(recorder.lines_starting_with(*END_EVENTS))
            connection = server.monitor._connection
            awaits_reply = connection is not None and connection.mid_message
            if awaits_reply:
                block_loop(connection)
            else:
                time.sleep(BLOCK_SECONDS)
            eventually(lambda end_count=end_count: len(recorder.lines_starting_with(*END_EVENTS)) > end_count)
            next_end = [event for event in recorder.events if short_name(event) in END_EVENTS][end_count]
            assert short_name(next_end) == END_EVENTS[0] or (not awaits_reply and next_end.duration >= LIMIT_MS / 1000)
        eventually(lambda: read_succeeds(client))


def test_operation_succeeds_if_reply_arrived_while_loop_was_blocked(deployment):
    recorder = FailureRecorder()
    with client_with_connection(deployment, recorder, socketTimeoutMS=LIMIT_MS) as client, gevent.Timeout(30):
        reader = gevent.spawn(client.test.c.find_one, {"_id": 1})
        gevent.sleep(0)  # the greenlet sends the command
        block_loop(connection_in_use(client))
        assert reader.get() == {"_id": 1}
        assert not recorder.failures
        assert not recorder.server_faults


@pytest.mark.parametrize("address_count", [1, 2])
def test_handshake_succeeds_if_loop_was_blocked_during_tcp_connection(deployment, monkeypatch, address_count):
    """Block the loop for longer than ``connectTimeoutMS`` while the driver connects."""

    def start_connecting(transport, address):
        # The new greenlet blocks the event loop while this greenlet waits for the TCP connection.
        blockers.append(gevent.spawn(time.sleep, BLOCK_SECONDS))
        return real_start(transport, address)

    def send_hello_later(*arguments):
        gevent.sleep(LIMIT_MS / 3000)  # the network latency of a distant server
        return send_hello(*arguments)

    def resolve_to_addresses(address, ref):
        [(family, (host, port))] = resolve(address, ref)
        return [(family, (host, port)), (family, ("127.0.0.2", port))][:address_count]

    real_start, resolve, blockers, recorder = Transport.start_connecting, wire_connect.resolve, [], FailureRecorder()
    options = {"connectTimeoutMS": LIMIT_MS, "retryReads": False}
    send_hello = handshake.send_hello
    with client_with_connection(deployment, recorder, **options) as client, gevent.Timeout(30):
        monkeypatch.setattr(handshake, "send_hello", send_hello_later)
        monkeypatch.setattr(Transport, "start_connecting", start_connecting)
        monkeypatch.setattr(wire_connect, "resolve", resolve_to_addresses)
        readers = [gevent.spawn(client.test.c.find_one, {"_id": 1}) for _ in range(2)]
        assert [reader.get() for reader in readers] == [{"_id": 1}] * 2
        assert blockers
        assert not recorder.server_faults


def test_operation_succeeds_if_large_reply_is_still_arriving(virtual_time):
    """At the time limit, the driver has not yet read all bytes of the reply."""

    def send_in_pieces(peer, message):
        for start in range(0, len(message), PIECE_SIZE):
            peer.send(message[start : start + PIECE_SIZE])
            started.set()
            gevent.sleep(0.001)

    started, recorder = Event(), FailureRecorder()
    options = {"event_listeners": [recorder], "socketTimeoutMS": LIMIT_MS}
    with ScriptedServer() as server, MongoClient(server.name, **options) as client:
        server.replies["find"] = cursor_reply([{"_id": 1, "large": b"x" * 15_000_000}])
        server.fail("find", send_in_pieces)
        reader = gevent.spawn(client.test.c.find_one, {"_id": 1})
        started.wait()
        virtual_time.suspend(BLOCK_SECONDS)
        assert len(reader.get()["large"]) == 15_000_000
        assert not recorder.failures
