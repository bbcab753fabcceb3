"""An application that holds the loop is not a dead server: what has come in meanwhile is read before it is judged."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import sys
import termios
import time

import gevent
import pytest

from gmongo import MongoClient
from gmongo.cmap import handshake
from gmongo.testing import DeploymentProcess
from tests.gevent.blame import BlameRecorder

HELD = 0.9
LIMIT = 300  # milliseconds


PIECE = 64 * 1024


def waiting(deployment):
    """How many bytes of the deployment's wait in the socket that has the most."""
    found = [0]
    port = deployment.members.primary.port
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # it is closed, or not connected
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as copy:
                if copy.getpeername()[1:] == (port,):
                    found.append(int.from_bytes(fcntl.ioctl(copy, termios.FIONREAD, bytes(4)), sys.byteorder))
    return max(found)


def hold(deployment):
    """Hold the loop until a reply waits in its socket, however long a busy server takes."""
    end = time.monotonic() + 20
    time.sleep(HELD)
    while not waiting(deployment) and time.monotonic() < end:
        time.sleep(HELD)
    assert waiting(deployment)


@pytest.fixture
def deployment():
    """In a process of its own, so that it answers while this one is held."""
    with DeploymentProcess("--replica-set", "1") as process:
        yield process


@pytest.mark.parametrize("mode", ["poll", "stream"])
def test_a_check_whose_reply_waits_in_the_socket(deployment, mode):
    recorder = BlameRecorder()
    options = {"connectTimeoutMS": LIMIT, "heartbeatFrequencyMS": 500, "serverMonitoringMode": mode}
    with MongoClient(deployment.uri, event_listeners=[recorder], **options) as client, gevent.Timeout(30):
        client.test.c.insert_one({"_id": 1})
        for round_ in range(6):
            gevent.sleep(0.1 * round_)  # each at another place between two checks
            if len(recorder.of("HeartbeatStarted")) > len(recorder.of("HeartbeatSucceeded")):
                hold(deployment)
            else:
                time.sleep(HELD)
            gevent.sleep(0.01)
            assert not recorder.blamed
        assert client.test.c.find_one() == {"_id": 1}


def test_an_operation_whose_reply_waits_in_the_socket(deployment):
    recorder = BlameRecorder()
    with MongoClient(deployment.uri, event_listeners=[recorder], socketTimeoutMS=LIMIT) as client, gevent.Timeout(30):
        client.test.c.insert_one({"_id": 1})
        reader = gevent.spawn(client.test.c.find_one, {"_id": 1})
        gevent.sleep(0)  # it has sent its command
        hold(deployment)
        assert reader.get() == {"_id": 1}
        assert not recorder.failures
        assert not recorder.blamed


def test_a_handshake_whose_reply_waits_in_the_socket(deployment, monkeypatch):
    def say_hello(*arguments):
        holders.append(gevent.spawn(hold, deployment))  # runs when this greenlet waits for the reply
        return real(*arguments)

    real, holders, recorder = handshake.say_hello, [], BlameRecorder()
    with MongoClient(deployment.uri, event_listeners=[recorder], connectTimeoutMS=LIMIT) as client, gevent.Timeout(30):
        client.test.c.insert_one({"_id": 1})
        monkeypatch.setattr(handshake, "say_hello", say_hello)
        readers = [gevent.spawn(client.test.c.find_one, {"_id": 1}) for _ in range(2)]  # one makes a connection
        assert [reader.get() for reader in readers] == [{"_id": 1}] * 2
        assert holders
        assert not recorder.blamed


def test_an_operation_whose_large_reply_is_still_on_its_way(deployment):
    """More than fits the socket: it takes more than one look to read it."""
    recorder = BlameRecorder()
    with MongoClient(deployment.uri, event_listeners=[recorder], socketTimeoutMS=LIMIT) as client, gevent.Timeout(30):
        with gevent.Timeout(20), MongoClient(deployment.uri) as patient:
            patient.test.c.insert_one({"_id": 1, "large": b"x" * 15_000_000})
        client.admin.command("ping")
        reader = gevent.spawn(client.test.c.find_one, {"_id": 1})
        gevent.sleep(0)
        end = time.monotonic() + 20
        while waiting(deployment) < PIECE and time.monotonic() < end:  # a busy server takes its time to begin
            time.sleep(HELD)
        assert len(reader.get()["large"]) == 15_000_000
        assert not recorder.failures


def test_a_waiter_whose_turn_came_meanwhile(deployment):
    """The reply that frees the connection waits in the socket; the next in the queue gets it, and no time-out."""
    options = {"maxPoolSize": 1, "waitQueueTimeoutMS": LIMIT}
    with MongoClient(deployment.uri, **options) as client, gevent.Timeout(30):
        client.test.c.insert_one({"_id": 1})
        readers = [gevent.spawn(client.test.c.find_one, {"_id": 1}) for _ in range(2)]
        gevent.sleep(0)
        hold(deployment)
        assert [reader.get() for reader in readers] == [{"_id": 1}] * 2


@pytest.mark.parametrize("mode", ["poll", "stream"])
def test_a_dead_server_is_found_all_the_same(deployment, mode):
    recorder = BlameRecorder()
    options = {"connectTimeoutMS": LIMIT, "heartbeatFrequencyMS": 500, "serverMonitoringMode": mode}
    with MongoClient(deployment.uri, event_listeners=[recorder], **options) as client, gevent.Timeout(30):
        client.test.c.insert_one({"_id": 1})
        deployment.fault(0, "freeze")
        while not recorder.blamed:
            gevent.sleep(0.01)
