"""Tests that driver greenlets do not keep the event loop alive, and end after their client."""

from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import contextmanager

import gevent
import gevent.subprocess
import pytest

from gmongo import MongoClient
from tests.support.server import ScriptedServer, cursor_reply, send_no_reply
from tests.support.wait import WAIT_LIMIT, eventually


@pytest.fixture(params=[True, False], ids=["streaming", "polled"])
def server(request):
    with gevent.Timeout(2 * WAIT_LIMIT), ScriptedServer(streams=request.param) as server:
        yield server


PRELUDE = """
import sys, threading, time, gevent
from gmongo import MongoClient
"""


@contextmanager
def started_program(program, *arguments):
    """Start a program in a child process, and kill the process at the end of the block."""
    with gevent.subprocess.Popen(
        [sys.executable, "-u", "-W", "error", "-c", PRELUDE + program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def output_of(child, stdin=None):
    """Wait for the end of a program, and return its output."""
    output, errors = child.communicate(stdin, timeout=WAIT_LIMIT)
    assert (child.returncode, errors) == (0, "")
    return output


def output_of_program(program, *arguments):
    """Run a program in a child process, and return its output."""
    with started_program(program, *arguments) as child:
        return output_of(child)


CHECKPOINT_PROGRAM = """
from gmongo._background import LongWork
work = LongWork()
time.sleep(0.003)
work.checkpoint()
"""


WAKEUP_PROGRAM = """
from gmongo._background import Wakeup
sleeping = gevent.spawn(Wakeup().sleep, 0.0003)
while not sleeping.ready():
    gevent.sleep(0.001)
"""


LIMITS_PROGRAM = """
from gmongo.cmap.wait_queue import WaitQueue
from gmongo.wire.timeout import interrupt_after
for wait in (lambda: WaitQueue().join().sleep(0.0003, TimeoutError), lambda: gevent.sleep(9)):
    try:
        with interrupt_after(0.0004, TimeoutError()):
            wait()
    except TimeoutError:
        pass
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "program", [CHECKPOINT_PROGRAM, WAKEUP_PROGRAM, LIMITS_PROGRAM], ids=["long work", "background", "limits"]
)
@pytest.mark.parametrize("loop", ["libev-cext", "libuv-cffi"])
def test_pauses_shorter_than_millisecond_cause_no_loop_warning(monkeypatch, loop, program):
    """gevent with libuv prints a warning if a timer is shorter than a millisecond."""
    monkeypatch.setenv("GEVENT_LOOP", loop)
    output_of_program(program)


LOOKUP_PROGRAM = """
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
def test_lookup_does_not_keep_event_loop_alive(monkeypatch, loop):
    """Check that the process ends while the native thread of the lookup still runs."""
    monkeypatch.setenv("GEVENT_LOOP", loop)
    assert output_of_program(LOOKUP_PROGRAM) == "True\nTrue\n"


JOIN_PROGRAM = """
client = MongoClient(sys.argv[1], minPoolSize=2)
client.db.c.find_one()
print("joined", gevent.get_hub().join(timeout=5), gevent.wait(timeout=5))
"""


def test_hub_join_returns_with_idle_client(server):
    assert output_of_program(JOIN_PROGRAM, server.name) == "joined True True\n"


def test_hub_join_waits_for_operation(server):
    program = """
client = MongoClient(sys.argv[1])
gevent.spawn(lambda: print(client.db.c.find_one({"_id": 5})))
gevent.get_hub().join()
"""
    assert output_of_program(program, server.name) == "{'_id': 5}\n"


def test_hub_join_does_not_wait_for_kill_of_dropped_cursor(server):
    server.replies["find"] = cursor_reply([{}], cursor_id=7)
    server.fail("killCursors", send_no_reply)
    program = """
client = MongoClient(sys.argv[1])
next(client.db.c.find())
print("joined", gevent.get_hub().join(timeout=5))
"""
    assert output_of_program(program, server.name) == "joined True\n"
    assert server.commands("killCursors")


def test_server_selection_in_main_greenlet_raises_no_loop_exit():
    """In the started process, only the server selection keeps the event loop alive."""
    with ScriptedServer() as stopped_server:
        name = stopped_server.name
    program = """
from gmongo.errors import ServerSelectionTimeoutError
try:
    MongoClient(sys.argv[1], serverSelectionTimeoutMS=700).db.c.find_one()
except ServerSelectionTimeoutError as error:
    print(type(error).__name__)
"""
    assert output_of_program(program, name) == "ServerSelectionTimeoutError\n"


def test_dropped_client_is_released_without_garbage_collector(server):
    gc.collect()
    gc.disable()
    try:
        client = MongoClient(server.name)
        client.db.c.find_one()
        del client
        eventually(lambda: not server.peers)
    finally:
        gc.enable()


THREAD_PROGRAM = """
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


def test_use_of_client_in_another_native_thread_raises_error_with_advice(server):
    message, *documents = output_of_program(THREAD_PROGRAM, server.name).splitlines()
    assert message.startswith("InvalidOperation a MongoClient belongs to the native thread that first used it")
    assert "create a client for each thread" in message
    assert documents == ["{'_id': 5}", "{'_id': 6}"]


def test_client_dropped_in_another_native_thread_closes_connections(server):
    program = """
import gevent.os
clients = [MongoClient(sys.argv[1])]
clients[0].db.c.find_one()
thread = threading.Thread(target=clients.clear)
thread.start()
thread.join()
print("dropped")
gevent.os.tp_read(0, 1)
"""
    with started_program(program, server.name) as child:
        assert child.stdout.readline() == "dropped\n"
        eventually(lambda: not server.peers)
        assert output_of(child, "\n") == ""
