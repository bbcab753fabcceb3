"""Tests of forks: a child opens its own connections, and a fork does not affect the parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import gevent
import gevent.subprocess
import pytest
from gevent.event import Event

from tests.support.server import ScriptedServer, cursor_reply, hold_reply, send_no_reply

# First lines of each program. Parent and child print to one output.
# If the child fails, the parent also fails.
PRELUDE = """
import gc, json, os, sys, gevent, gevent.os
from gmongo import MongoClient
from tests.support.wait import eventually

assert type(gevent.get_hub().loop).__module__.split(".")[1] == os.environ["GEVENT_LOOP"].split("-")[0]
FORK = {"os": os.fork, "gevent": gevent.os.fork}[sys.argv[2]]
client = MongoClient(sys.argv[1], **json.loads(sys.argv[3]))

def until_sent():
    # An operation has sent its command on the only connection.
    eventually(lambda: [client.pool_stats()[0][name] for name in ("in_use", "pending")] == [1, 0])
    gevent.sleep(0.02)

def in_child(work):
    child = FORK()
    if child == 0:
        status = 1
        try:
            with gevent.Timeout(30):
                work()
            sys.stdout.flush()
            status = 0
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    with gevent.Timeout(40):
        while True:
            ended, status = os.waitpid(child, os.WNOHANG) if sys.argv[2] == "os" else gevent.os.waitpid(child, 0)
            if ended:
                break
            gevent.sleep(0.005)
    assert status == 0, status
"""


LIBEV, LIBUV = "libev-cext", "libuv-cffi"
FORK_SETUPS = [
    pytest.param(("os", "streaming", LIBEV), id="os-streaming"),
    pytest.param(("gevent", "polled", LIBEV), id="gevent-polled"),
    pytest.param(("os", "polled", LIBEV), id="os-polled", marks=pytest.mark.long),
    pytest.param(("gevent", "streaming", LIBEV), id="gevent-streaming", marks=pytest.mark.long),
    pytest.param(("os", "streaming", LIBUV), id="os-streaming-libuv", marks=pytest.mark.long),
    pytest.param(("gevent", "polled", LIBUV), id="gevent-polled-libuv", marks=pytest.mark.long),
]


@pytest.fixture(params=FORK_SETUPS)
def fork_setup(request):
    """Return the name of the fork function, the kind of monitor, and the event loop of gevent."""
    return request.param


@pytest.fixture
def server(fork_setup):
    with gevent.Timeout(90), ScriptedServer(streams=fork_setup[1] == "streaming") as server:
        yield server


@pytest.fixture
def fork(fork_setup, server):
    """Return a function that runs a forking program, and returns the output of the parent and the
    child.
    """

    def run(program, **options):
        arguments = [server.name, fork_setup[0], json.dumps(options)]
        child = gevent.subprocess.Popen(
            [sys.executable, "-u", "-W", "error", "-c", PRELUDE + program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GEVENT_LOOP": fork_setup[2]},
        )
        try:
            output, errors = child.communicate(timeout=60)
        finally:
            child.kill()
        assert (child.returncode, errors) == (0, "")
        return output

    return run


def requested_ids_by_connection(server):
    """Return the document IDs in the filters of the find commands on each connection."""
    requests = {}
    for each in server.received:
        if each.name == "find":
            requests.setdefault(each.connection, []).append(each.command["filter"].get("_id"))
    return requests


def session_ids_of_find(server, requested_id):
    return {
        bytes(each.command["lsid"]["id"])
        for each in server.received
        if each.name == "find" and each.command["filter"].get("_id") == requested_id
    }


def test_child_sends_nothing_on_connections_of_parent(fork, server):
    program = """
client.db.c.find_one({"_id": "parent"})
before = client.pool_stats()
print(len(before))
def work():
    client.db.c.find_one({"_id": "child"})
    print("child has", [pool["total"] for pool in client.pool_stats()])
    client.close()
    del globals()["client"]
    gc.collect()
in_child(work)
client.db.c.find_one({"_id": "parent"})
print("parent has", [pool["total"] for pool in client.pool_stats()], client.pool_stats()[0]["generation"])
"""
    assert fork(program).splitlines() == ["1", "child has [1]", "parent has [1] 0"]
    for requests in requested_ids_by_connection(server).values():
        assert len(set(requests)) == 1
    handshake_connections = server.connections_of("handshake")
    assert len(handshake_connections) == len(set(handshake_connections))  # at most one handshake on each connection
    ending_connections = server.connections_of("endSessions")
    assert all("parent" not in requested_ids_by_connection(server).get(number, []) for number in ending_connections)
    assert not session_ids_of_find(server, "parent") & session_ids_of_find(server, "child")


def test_idle_child_opens_no_socket_for_unfinished_work_of_parent(fork, server):
    """Fork while the parent has cursors, a late reply, a change stream and waiting operations."""
    program = """
from gmongo import CursorType
client._executor.overload.jitter = lambda: 1.0
collection = client.db.c
cursors = [collection.find(batch_size=1) for _ in range(2)]
cursors.append(collection.find(batch_size=1).read_ahead())
cursors.append(collection.find(batch_size=1, cursor_type=CursorType.EXHAUST))
for each in cursors:
    next(each)
del cursors[0]
def outcome(work):
    try:
        work()
    except BaseException:
        pass
exhausting = gevent.spawn(outcome, lambda: list(cursors[-1]))
waiting = gevent.spawn(outcome, lambda: collection.insert_one({}))
resting = gevent.spawn(outcome, lambda: collection.distinct("a"))
watching = gevent.spawn(outcome, lambda: next(collection.watch()))
late = gevent.spawn(outcome, lambda: collection.find_one({"late": 1}))
def asked():
    pools = client._topology.pools()
    return [each.checked_out_by for pool in pools for each in pool.machine.in_use if each.mid_message]
eventually(lambda: client._topology.selector.waiter_count == 1)
# The read-ahead batch, the exhaust cursor, the change stream and the late reply are pending.
def all_asked():
    found = [greenlet_ref() for greenlet_ref in asked() if greenlet_ref is not None]
    ahead = any("ReadAhead" in repr(each) for each in found)
    bucket = client._executor.overload.bucket
    return ahead and {gevent.getcurrent(), watching, late} <= set(found) and bucket.missing_tenths
eventually(all_asked)
late.kill()
print([each.ready() for each in (exhausting, waiting, resting, watching)], client.pool_stats()[0]["draining"])
opened = []
def work():
    sys.addaudithook(lambda name, _what: opened.append(name) if name.startswith("socket.") else None)
    for server in client._topology.servers.values():
        server.request_check()
        server.pool.machine.background_wakeup.set()
        server.monitor._wakeup.set()
    gevent.sleep(0.3)
    gc.collect()
    gevent.sleep(0.1)
    print(opened)
in_child(work)
"""
    # The insert waits for a server, because the replica set has no primary.
    server.hello_extra = {
        "setName": "s", "hosts": [server.name], "secondary": True, "isWritablePrimary": False, "ismaster": False,
    }  # fmt: skip
    busy_error = {"ok": 0, "code": 462, "errorLabels": ["SystemOverloadedError", "RetryableError"]}
    server.replies |= {"find": cursor_reply([{"_id": 1}], 7), "aggregate": cursor_reply([], 8), "distinct": busy_error}
    server.fail("find", *[lambda peer, message: peer.send(message)] * 4, send_no_reply)
    server.fail("getMore", *[hold_reply(Event())] * 9)
    options = {"replicaSet": "s", "readPreference": "nearest", "baseBackoffMS": 60_000}
    output = fork(program, minPoolSize=5, drainLateReplies=True, **options)
    assert output.splitlines() == [f"{[False] * 4} 1", "[]"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("connect", [True, False])
def test_child_and_parent_use_client_created_before_fork(fork, server, connect):
    program = """
def work():
    print(client.db.c.find_one({"_id": "child"})["_id"])
in_child(work)
if sys.argv[3] == "{}":
    print(client.db.c.find_one({"_id": "parent"})["_id"])
"""
    assert fork(program, **{} if connect else {"connect": False}).splitlines() == ["child", "parent"][: 1 + connect]
    assert len(requested_ids_by_connection(server)) == 1 + connect


def test_child_repeats_pending_dns_query_of_parent(fork, server):
    program = """
from gevent.event import Event
from gmongo.options import srv
queries, gate, parent = [], Event(), os.getpid()
host, port = client.options.seeds[0]
def lookup(name, kind, timeout, ref):
    queries.append(kind)
    if os.getpid() == parent:
        gate.wait()
    return srv.Answer([(host, port)] if kind == "SRV" else [])
srv.lookup = lookup
client = MongoClient("mongodb+srv://db.example.com", tls=False, connect=False, srv_host_validator=bool)
reader = gevent.spawn(client.db.c.find_one, {"_id": "parent"})
eventually(lambda: queries)
def work():
    print(client.db.c.find_one({"_id": "child"})["_id"], queries)
in_child(work)
gate.set()
print(reader.get()["_id"], queries)
"""
    assert fork(program, connect=False).splitlines() == ["child ['SRV', 'SRV', 'TXT']", "parent ['SRV', 'TXT']"]


@pytest.fixture
def delayed_find(server):
    """Make the server delay its reply to the next find until the server receives the command
    ``release``.
    """
    gate = Event()
    server.fail("find", hold_reply(gate))
    server.replies["release"] = lambda _command: gate.set() or {"ok": 1}


READER_PROGRAM = """
reader = gevent.spawn(client.db.c.find_one, {"_id": "parent"})
until_sent()
"""


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "kill_code", ["", "    reader.kill()\n    print(type(reader.value).__name__)\n"], ids=["", "killed"]
)
def test_pending_operation_of_parent_succeeds_after_fork(fork, server, delayed_find, kill_code):
    """The child has a copy of the waiting greenlet, and kills the copy if `kill_code` is
    not empty.
    """
    program = f"""
def work():
{kill_code}    print(client.db.c.find_one({{"_id": "child"}})["_id"])
in_child(work)
client.admin.command("release")
print(reader.get()["_id"])
"""
    assert fork(READER_PROGRAM + program).splitlines() == [*(["GreenletExit"] if kill_code else []), "child", "parent"]
    connection = server.connections_of("find")[0]
    assert "child" not in requested_ids_by_connection(server)[connection]


INHERITED_CURSOR_ERROR = "AutoReconnect the cursor was opened before a fork, and belongs to the parent process"
CURSOR_PROGRAM = """
cursor = client.db.c.find({"_id": "parent"})
next(cursor)
"""


def test_child_neither_iterates_nor_kills_inherited_cursor(fork, server):
    server.replies["find"] = cursor_reply([{"_id": 1}], cursor_id=7)
    server.replies["getMore"] = cursor_reply([{"_id": 2}], field="nextBatch")
    program = """
def work():
    try:
        next(cursor)
    except Exception as error:
        print(type(error).__name__, error)
    cursor.close()
    client.admin.command("ping")
in_child(work)
print(next(cursor))
"""
    assert fork(CURSOR_PROGRAM + program).splitlines() == [INHERITED_CURSOR_ERROR, "{'_id': 2}"]
    assert len(server.commands("getMore")) == 1
    assert not server.commands("killCursors")


def test_child_does_not_remove_sockets_from_epoll_set_of_parent(fork):
    """After ``os.fork``, parent and child share an epoll set.

    Without the fork hook, the event loop of the child would remove sockets of the parent from the
    epoll set. The parent would wait forever for events.
    """
    program = """
import socket, gevent.socket
ours, theirs = socket.socketpair()
waiting = gevent.spawn(gevent.socket.wait_read, ours.fileno(), timeout=5)
gevent.sleep(0.01)  # the loop polls for the socket
gevent.sleep(0)  # resumes in a callback of the loop, so that the child polls next
theirs.send(b"reply")
child = FORK()
if child == 0:
    waiting.kill(block=False)
    gevent.sleep(0.01)
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # blocks the parent's loop until the child has ended
waiting.get()
print(ours.recv(9).decode())
ours.close(), theirs.close()
"""
    assert fork(program) == "reply\n"


@pytest.mark.one_in(3)
def test_child_resolves_names_without_delay(fork, server):
    """A fork does not copy native threads, so the child must start its own resolver threads."""
    program = """
client = MongoClient(sys.argv[1].replace("127.0.0.1", "localhost"))
client.db.c.find_one({"_id": "parent"})
gevent.sleep(0)
in_child(lambda: print(client.db.c.find_one({"_id": "child"})["_id"]))
"""
    assert fork(program) == "child\n"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("child_state", ["active", "idle"])
def test_only_parent_reads_late_reply(fork, server, delayed_find, child_state):
    """The child closes its copy of the connection on which the late reply arrives, and does not read
    the reply.

    The parent sends ``killSessions`` on a second connection.
    """
    program = f"""
cut = gevent.spawn(client.db.c.find_one, {{"_id": "cut"}})
until_sent()
cut.kill()
def pool():
    return [client.pool_stats()[0][name] for name in ("total", "available", "draining")]
print(pool())
def work():
    if {child_state == "active"}:
        client.db.c.find_one({{"_id": "child"}})
        print(pool())
    gevent.sleep(0.3)
in_child(work)
print(pool())
client.admin.command("release")
eventually(lambda: pool()[2] == 0)
print(pool())
print([client.db.c.find_one({{"_id": "parent"}}) for _ in range(2)] and pool())
"""
    options = {"drainLateReplies": True, "drainLateRepliesMS": 10_000}
    child_output = ["[1, 1, 0]"] if child_state == "active" else []
    assert fork(program, **options).splitlines() == ["[1, 0, 1]", *child_output, "[2, 1, 1]", "[2, 2, 0]", "[2, 2, 0]"]
