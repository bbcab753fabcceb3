"""The driver's greenlets and the hub: they never hold it, and end with the client they work for."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager

import gevent
import gevent.subprocess
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.errors import AutoReconnect, InvalidOperation
from tests.support.greenlets import living
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut, held, silent
from tests.support.wait import PATIENCE, eventually


@pytest.fixture(params=[True, False], ids=["streaming", "polled"])
def server(request):
    with gevent.Timeout(2 * PATIENCE), ScriptedServer(streams=request.param) as server:
        yield server


@contextmanager
def started(program, *arguments):
    """A program that uses gmongo, in a process of its own, for the length of a block."""
    with gevent.subprocess.Popen(
        [sys.executable, "-u", "-W", "error", "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def ended(child, told=None):
    """Wait for the end of a program, and return what it printed.

    :param told: what it reads, if it reads at all.
    """
    output, errors = child.communicate(told, timeout=PATIENCE)
    assert (child.returncode, errors) == (0, "")
    return output


def run(program, *arguments):
    """Run a program to its end; returns what it printed."""
    with started(program, *arguments) as child:
        return ended(child)


def greenlets():
    """How many greenlets of the driver are alive."""
    gc.collect()
    return len(living("gmongo"))


def descriptors():
    return len(os.listdir("/proc/self/fd"))


CHECKPOINT = """
import time
from gmongo._background import LongWork
work = LongWork()
time.sleep(0.003)
work.checkpoint()
"""


WAKEUP = """
import gevent
from gmongo._background import Wakeup
sleeping = gevent.spawn(Wakeup().sleep, 0.0003)
while not sleeping.ready():
    gevent.sleep(0.001)
"""


LIMITS = """
import gevent
from gmongo.cmap.wait_queue import WaitQueue
from gmongo.wire.timeout import interrupt_after
for wait in (lambda: WaitQueue().join().sleep(0.0003, TimeoutError), lambda: gevent.sleep(9)):
    try:
        with interrupt_after(0.0004, TimeoutError()):
            wait()
    except TimeoutError:
        pass
"""


@pytest.mark.parametrize("program", [CHECKPOINT, WAKEUP, LIMITS], ids=["long work", "background", "limits"])
@pytest.mark.parametrize("loop", ["libev-cext", "libuv-cffi"])
def test_no_loop_warns_of_a_short_pause(monkeypatch, loop, program):
    """That of libuv cannot wait for less than a millisecond."""
    monkeypatch.setenv("GEVENT_LOOP", loop)
    run(program)


CLOSED_AT_THE_END = """
import sys
from gmongo import MongoClient

class Holder:
    client = MongoClient(sys.argv[1])

    def __del__(self):
        self.client.close()

holder = Holder()
holder.client.db.c.find_one()
"""


def test_close_prints_nothing_while_the_interpreter_ends(server):
    assert run(CLOSED_AT_THE_END, server.name) == ""


# Never holding the hub

LOOKUP = """
import threading, gevent
from gmongo import MongoClient
from gmongo.wire import connect

gate, asked = threading.Event(), []
def look_up(host, *_about):
    asked.append(host)
    gate.wait()
connect._getaddrinfo = look_up
client = MongoClient("db.example.test")
while not asked:
    gevent.sleep(0.01)
print(gevent.get_hub().join(timeout=4))
client.close()
print(gevent.get_hub().join(timeout=4))
"""


@pytest.mark.parametrize("loop", ["libev-cext", "libuv-cffi"])
def test_a_host_name_that_is_looked_up_does_not_hold_the_hub(monkeypatch, loop):
    """Nor the end of the process, with the thread still at it."""
    monkeypatch.setenv("GEVENT_LOOP", loop)
    assert run(LOOKUP) == "True\nTrue\n"


JOIN = """
import sys, gevent
from gmongo import MongoClient
client = MongoClient(sys.argv[1], minPoolSize=2)
client.db.c.find_one()
print("joined", gevent.get_hub().join(timeout=5), gevent.wait(timeout=5))
"""


def test_join_returns_with_an_idle_client(server):
    assert run(JOIN, server.name) == "joined True True\n"


def test_join_returns_while_servers_cannot_be_reached():
    with ScriptedServer() as dead:
        name = dead.name
    program = "import sys, gevent; from gmongo import MongoClient; c = MongoClient(sys.argv[1]);"
    assert run(program + "print(gevent.get_hub().join(timeout=5))", name) == "True\n"


def test_join_waits_for_an_operation(server):
    program = """
import sys, gevent
from gmongo import MongoClient
client = MongoClient(sys.argv[1])
gevent.spawn(lambda: print(client.db.c.find_one({"_id": 5})))
gevent.get_hub().join()
"""
    assert run(program, server.name) == "{'_id': 5}\n"


def test_process_with_an_open_client_ends(server):
    program = """
import sys
from gmongo import MongoClient
client = MongoClient(sys.argv[1])
print(client.db.c.find_one({"_id": 5}))
"""
    assert run(program, server.name) == "{'_id': 5}\n"
    eventually(lambda: not server.peers)


def test_process_with_a_hanging_operation_ends(server):
    program = """
import sys, gevent
from gmongo import MongoClient
client = MongoClient(sys.argv[1])
gevent.spawn(client.db.c.find_one)
gevent.sleep(0.2)
"""
    server.fail("find", silent)
    assert run(program, server.name) == ""


def test_join_returns_while_a_connection_is_being_populated(server):
    program = """
import sys, gevent
from gmongo import MongoClient
client = MongoClient(sys.argv[1], minPoolSize=1, serverMonitoringMode="poll")
while not client.pool_stats()[0]["pending"]:
    gevent.sleep(0.01)
print(client.pool_stats()[0]["pending"], gevent.get_hub().join(timeout=5))
"""
    server.fail("handshake", lambda peer, message: peer.send(message), silent)
    assert run(program, server.name) == "1 True\n"


def test_nothing_but_a_connection_being_populated_is_waited_for(server):
    """The background holds no hub; a greenlet that waits for what it makes, and then for a reply on it, does."""
    program = """
import sys, gevent
from gmongo import MongoClient
client = MongoClient(sys.argv[1], minPoolSize=1, maxConnecting=1, serverMonitoringMode="poll")
while not client.pool_stats()[0]["pending"]:
    gevent.sleep(0.01)
gevent.spawn(print, client.pool_stats()[0]["pending"])  # when the main greenlet waits
print(client.db.c.find_one({"_id": 5}))
"""
    gate = Event()
    server.fail("handshake", lambda peer, message: peer.send(message), held(gate))
    server.fail("find", lambda peer, message: (gevent.sleep(0.3), peer.send(message)))
    with started(program, server.name) as child:
        assert child.stdout.readline() == "1\n"
        gate.set()
        assert ended(child) == "{'_id': 5}\n"


def test_waiting_main_greenlet_meets_no_loop_exit():
    """The only thing that the process waits for is a server: the wait is what keeps it running."""
    with ScriptedServer() as dead:
        name = dead.name
    program = """
import sys
from gmongo import MongoClient
from gmongo.errors import ServerSelectionTimeoutError
try:
    MongoClient(sys.argv[1], serverSelectionTimeoutMS=700).db.c.find_one()
except ServerSelectionTimeoutError as error:
    print(type(error).__name__)
"""
    assert run(program, name) == "ServerSelectionTimeoutError\n"


# Closing


@pytest.mark.requirement("SM-89", "SM-90")
def test_close_ends_everything(server):
    before = greenlets()
    client = MongoClient(server.name, minPoolSize=2)
    client.db.c.find_one()
    assert greenlets() > before
    client.close()
    eventually(lambda: not server.peers)
    eventually(lambda: greenlets() == before)
    with pytest.raises(InvalidOperation, match="after close"):
        client.db.c.find_one()
    client.close()


def test_close_ends_the_waits_for_a_server():
    with ScriptedServer() as dead:
        name = dead.name
    client = MongoClient(name)
    waiter = gevent.spawn(client.db.c.find_one)
    gevent.sleep(0.02)
    client.close()
    eventually(waiter.ready)
    assert isinstance(waiter.exception, InvalidOperation)


def test_close_while_an_operation_runs(server):
    gate = Event()
    server.fail("find", lambda peer, message: (gate.wait(), peer.send(message)))
    client = MongoClient(server.name)
    reader = gevent.spawn(client.db.c.find_one, {"_id": 1})
    eventually(lambda: server.commands("find"))
    client.close()
    gate.set()
    assert reader.get(timeout=PATIENCE) == {"_id": 1}
    eventually(lambda: not server.peers)


def test_closed_replica_set():
    with ScriptedReplicaSet() as replica_set:
        with MongoClient(replica_set.members[0].name, replicaSet="scripted") as client:
            eventually(lambda: len(client.nodes) == 3)
        for member in replica_set.members:
            eventually(lambda member=member: not member.peers)


# Dropping


def test_dropped_clients_leave_nothing_behind(server):
    def use_one():
        client = MongoClient(server.name)
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}

    use_one()
    eventually(lambda: not server.peers)
    before = greenlets(), descriptors()
    with warnings.catch_warnings(record=True) as caught:  # what a destructor warns of cannot be raised
        warnings.simplefilter("always")
        for _ in range(50):
            use_one()
        eventually(lambda: not server.peers)
    assert [str(each.message) for each in caught] == []
    gevent.sleep(0.01)
    eventually(lambda: (greenlets(), descriptors()) <= before)


def test_dropped_client_goes_without_the_garbage_collector(server):
    gc.collect()
    gc.disable()
    try:
        client = MongoClient(server.name)
        client.db.c.find_one()
        del client
        eventually(lambda: not server.peers)
    finally:
        gc.enable()


def test_dropped_client_after_an_error_goes_with_the_garbage(server):
    client = MongoClient(server.name, retryReads=False)
    client.db.c.find_one()
    server.fail("find", cut(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    del client
    gc.collect()
    eventually(lambda: gc.collect() is not None and not server.peers)


@pytest.mark.requirement("SM-90")
def test_dropped_while_its_server_is_frozen():
    with ScriptedServer() as server:
        before = greenlets()
        server.answering.clear()
        client = MongoClient(server.name)
        eventually(lambda: server.commands("handshake"))
        del client
        eventually(lambda: greenlets() == before)


# Threads

THREAD = """
import sys, threading
from gmongo import MongoClient
client = MongoClient(sys.argv[1])
client.db.c.find_one()
def use():
    try:
        client.db.c.find_one()
    except Exception as error:
        print(type(error).__name__, error)
thread = threading.Thread(target=use)
thread.start()
thread.join()
print(client.db.c.find_one({"_id": 5}))
own = threading.Thread(target=lambda: print(MongoClient(sys.argv[1]).db.c.find_one({"_id": 6})))
own.start()
own.join()
"""


def test_use_from_another_thread_is_refused_clearly(server):
    refused, *found = run(THREAD, server.name).splitlines()
    assert refused.startswith("InvalidOperation a MongoClient belongs to the native thread that first used it")
    assert "make a client for each thread" in refused
    assert found == ["{'_id': 5}", "{'_id': 6}"]


def test_client_dropped_in_another_thread(server):
    program = """
import sys, threading, gevent.os
from gmongo import MongoClient
clients = [MongoClient(sys.argv[1])]
clients[0].db.c.find_one()
thread = threading.Thread(target=clients.clear)
thread.start()
thread.join()
print("dropped")
gevent.os.tp_read(0, 1)
"""
    with started(program, server.name) as child:
        assert child.stdout.readline() == "dropped\n"
        eventually(lambda: not server.peers)  # while the process lives
        assert ended(child, "\n") == ""
