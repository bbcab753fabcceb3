"""An application that holds the loop is not a dead server: what has come in meanwhile is read before it is judged."""

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
from tests.gevent.blame import BlameRecorder
from tests.support.recorder import short_name
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually

HELD = 0.9
LIMIT = 300  # milliseconds
ENDS = ("HeartbeatSucceeded", "HeartbeatFailed")
PIECE = 1_000_000


def waits(connection):
    """Whether something of the server's waits in the socket of a connection."""
    return any(fcntl.ioctl(connection._transport._socket.fileno(), termios.FIONREAD, bytes(4)))


def hold(connection):
    """Hold the loop until a reply waits in the socket of this connection, however long a busy server takes."""
    end = time.monotonic() + 20
    time.sleep(HELD)
    while not waits(connection) and time.monotonic() < end:
        time.sleep(HELD)
    assert waits(connection)


def in_use(client):
    """The one connection on which a reply is awaited."""
    [pool] = client._topology.pools()
    [connection] = pool.machine.in_use
    assert connection.mid_message
    return connection


def is_answered(client):
    try:
        return client.test.c.find_one() == {"_id": 1}
    except AutoReconnect:
        return False


def connected(deployment, *recorders, **options):
    """A client with a connection that is available. A busy server may miss its limits until then."""

    with MongoClient(deployment.uri) as patient:
        patient.test.c.insert_one({"_id": 1})
    client = MongoClient(deployment.uri, event_listeners=recorders, **options)
    eventually(lambda: is_answered(client))
    for recorder in recorders:
        recorder.forget()
    return client


@pytest.fixture
def deployment():
    """In a process of its own, so that it answers while this one is held."""
    with DeploymentProcess("--replica-set", "1") as process:
        yield process


@pytest.mark.parametrize("mode", ["poll", "stream"])
def test_a_check_whose_reply_waits_in_the_socket(deployment, mode):
    """Checks for which the loop is not held may fail: a busy server takes longer than the limit."""
    recorder = BlameRecorder()
    options = {"connectTimeoutMS": LIMIT, "heartbeatFrequencyMS": 500, "serverMonitoringMode": mode}
    with connected(deployment, recorder, **options) as client:
        [server] = client._topology.servers.values()
        for round_ in range(6):
            gevent.sleep(0.1 * round_)  # each at another place between two checks
            ended = len(recorder.only(*ENDS))
            connection = server.monitor._connection
            awaited = connection is not None and connection.mid_message
            if awaited:
                hold(connection)
            else:
                time.sleep(HELD)
            eventually(lambda ended=ended: len(recorder.only(*ENDS)) > ended)
            next_end = [event for event in recorder.events if short_name(event) in ENDS][ended]
            assert short_name(next_end) == ENDS[0] or (not awaited and next_end.duration >= LIMIT / 1000)
        eventually(lambda: is_answered(client))


def test_an_operation_whose_reply_waits_in_the_socket(deployment):
    recorder = BlameRecorder()
    with connected(deployment, recorder, socketTimeoutMS=LIMIT) as client, gevent.Timeout(30):
        reader = gevent.spawn(client.test.c.find_one, {"_id": 1})
        gevent.sleep(0)  # it has sent its command
        hold(in_use(client))
        assert reader.get() == {"_id": 1}
        assert not recorder.failures
        assert not recorder.blamed


def test_a_handshake_whose_reply_waits_in_the_socket(deployment, monkeypatch):
    def say_hello(connection, *more):
        holders.append(gevent.spawn(hold, connection))  # runs when this greenlet waits for the reply
        return real(connection, *more)

    real, holders, recorder = handshake.say_hello, [], BlameRecorder()
    with connected(deployment, recorder, connectTimeoutMS=LIMIT) as client, gevent.Timeout(30):
        monkeypatch.setattr(handshake, "say_hello", say_hello)
        readers = [gevent.spawn(client.test.c.find_one, {"_id": 1}) for _ in range(2)]  # one makes a connection
        assert [reader.get() for reader in readers] == [{"_id": 1}] * 2
        assert holders
        assert not recorder.blamed


def test_an_operation_whose_large_reply_is_still_on_its_way(virtual_time):
    """It takes more than one look to read what is left of it when the time is over."""

    def send_in_pieces(peer, message):
        for start in range(0, len(message), PIECE):
            peer.send(message[start : start + PIECE])
            begun.set()
            gevent.sleep(0.001)

    begun, recorder = Event(), BlameRecorder()
    options = {"event_listeners": [recorder], "socketTimeoutMS": LIMIT}
    with ScriptedServer() as server, MongoClient(server.name, **options) as client:
        server.replies["find"] = cursor_reply([{"_id": 1, "large": b"x" * 15_000_000}])
        server.fail("find", send_in_pieces)
        reader = gevent.spawn(client.test.c.find_one, {"_id": 1})
        begun.wait()
        virtual_time.suspend(HELD)
        assert len(reader.get()["large"]) == 15_000_000
        assert not recorder.failures


def test_a_waiter_whose_turn_came_meanwhile(deployment):
    """The reply that frees the connection waits in the socket; the next in the queue gets it, and no time-out."""
    options = {"maxPoolSize": 1, "waitQueueTimeoutMS": LIMIT}
    with connected(deployment, **options) as client, gevent.Timeout(30):
        readers = [gevent.spawn(client.test.c.find_one, {"_id": 1}) for _ in range(2)]
        gevent.sleep(0)
        hold(in_use(client))
        assert [reader.get() for reader in readers] == [{"_id": 1}] * 2


@pytest.mark.parametrize("mode", ["poll", "stream"])
def test_a_dead_server_is_found_all_the_same(deployment, mode):
    recorder = BlameRecorder()
    options = {"connectTimeoutMS": LIMIT, "heartbeatFrequencyMS": 500, "serverMonitoringMode": mode}
    with connected(deployment, recorder, **options), gevent.Timeout(30):
        deployment.fault(0, "freeze")
        while not recorder.blamed:
            gevent.sleep(0.01)
