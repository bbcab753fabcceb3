"""Tests that DNS lookups do not block the event loop, and that interruptions end the wait for a
lookup.
"""

from __future__ import annotations

import _socket
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dns.resolver
import gevent
import gevent.subprocess
import pytest
from dnslib import QTYPE, DNSRecord
from gevent import get_hub
from gevent.event import Event
from gevent.resolver.thread import Resolver

from gmongo import MongoClient
from gmongo.errors import AutoReconnect, ServerSelectionTimeoutError
from tests.support.dns import Host, NameServer, install
from tests.support.greenlets import living_greenlets
from tests.support.server import ScriptedServer
from tests.support.wait import WAIT_LIMIT, eventually

HOST, CLUSTER_NAME = "db.example.test", "cluster.example.test"


class SlowNameServer(NameServer):
    """Name server that delays its replies to queries of one record type until the test sets
    ``gate``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()
        self.delayed_queries: list[str] = []
        self._delayed_type = ""

    def delay(self, record_type: str) -> None:
        """Delay the replies to queries of type `record_type` until the test sets ``gate``."""
        self._delayed_type, self.delayed_queries = record_type, []
        self.gate.clear()

    def _answer(self, data: bytes, client_address: Any) -> None:
        if (record_type := QTYPE[DNSRecord.parse(data).q.qtype]) == self._delayed_type:
            self.delayed_queries.append(record_type)
            self.gate.wait()
        super()._answer(data, client_address)


class SlowResolver(Resolver):
    """Thread resolver of gevent whose lookups wait while ``gate`` is not set.

    As in the C library, each lookup blocks its native thread.
    """

    def __init__(self) -> None:
        super().__init__(get_hub())
        self.gate = threading.Event()
        self.gate.set()
        self.queries: list[str] = []
        self.gave_up = False

    def getaddrinfo(self, host: str, port: int, *_: Any) -> list[Any]:
        self.queries.append(host)
        return self.pool.apply(self._look_up, (port,))

    def _look_up(self, port: int) -> list[Any]:
        # The wait of a native thread ends after its timeout, even if the event loop is blocked.
        self.gave_up |= not self.gate.wait(WAIT_LIMIT)
        return [(_socket.AF_INET, _socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def server():
    with gevent.Timeout(60), ScriptedServer() as server:
        yield server


@pytest.fixture
def resolver(monkeypatch):
    """Make gevent resolve host names with a :class:`SlowResolver`."""
    resolver = SlowResolver()
    monkeypatch.setattr(get_hub(), "resolver", resolver)
    yield resolver
    resolver.gate.set()


def add_records(name_server: SlowNameServer, server: ScriptedServer) -> None:
    """Add the SRV, TXT and address records of a deployment with one server to a name server."""
    dns.resolver.default_resolver.timeout = 30  # seconds, which is longer than the test
    name_server.hosts[f"_mongodb._tcp.{CLUSTER_NAME}"] = [Host(HOST, server.port)]
    name_server.texts[CLUSTER_NAME] = [["authSource=admin"]]
    name_server.addresses[HOST] = "127.0.0.1"


@pytest.fixture
def name_server(monkeypatch, server):
    """Make the driver query a :class:`SlowNameServer` that has the records of a deployment."""
    with SlowNameServer() as name_server:
        install(monkeypatch.setattr, name_server)
        add_records(name_server, server)
        yield name_server
        name_server.gate.set()


def client_with_srv_uri() -> MongoClient[Any]:
    return MongoClient(f"mongodb+srv://{CLUSTER_NAME}/?tls=false")


def start_during_lookup(call: Callable[[], Any], is_delayed: Callable[[], Any]) -> gevent.Greenlet:
    """Start a greenlet that calls `call`. Check that the event loop runs while the lookup waits."""
    user = gevent.spawn(call)
    eventually(is_delayed)
    for _ in range(20):
        gevent.sleep(0)
    assert not user.ready()
    return user


def count_open_resources() -> dict[str, int]:
    """Return the number of open resources, by kind, that an interrupted lookup could leak."""
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "greenlets": len(living_greenlets("gmongo")),
        "watchers": get_hub().loop.activecnt,
        "lookups": get_hub().threadpool.task_queue.unfinished_tasks,
    }


@contextmanager
def assert_no_leaks() -> Iterator[None]:
    """Check at the end of the block that all lookups in the block have released their resources."""
    # The first use of the thread pool opens descriptors that stay open.
    get_hub().threadpool.apply(int)
    # `eventually` starts a timer, which must be counted before and after the block.
    before = eventually(count_open_resources)
    yield
    eventually(lambda: all(count <= before[name] for name, count in count_open_resources().items()))


def test_lookup_of_host_name_does_not_block_loop(server, resolver):
    resolver.gate.clear()
    with MongoClient(f"{HOST}:{server.port}") as client:
        reader = start_during_lookup(lambda: client.db.c.find_one({"_id": 1}), lambda: resolver.queries)
        resolver.gate.set()
        assert reader.get() == {"_id": 1}
    assert set(resolver.queries) == {HOST}
    assert not resolver.gave_up


@pytest.mark.parametrize("record_type", ["SRV", "TXT"])
def test_srv_and_txt_lookups_do_not_block_loop(name_server, record_type):
    name_server.delay(record_type)
    creator = start_during_lookup(client_with_srv_uri, lambda: name_server.delayed_queries)
    name_server.gate.set()
    with creator.get() as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


# Functions that interrupt a greenlet during a lookup


def throw_timeout(greenlet: gevent.Greenlet) -> None:
    """Throw a ``gevent.Timeout`` into the greenlet, which must raise the same object."""
    timeout = gevent.Timeout(1000)
    greenlet.kill(timeout)
    assert greenlet.exception is timeout


def kill(greenlet: gevent.Greenlet) -> None:
    greenlet.kill()
    assert isinstance(greenlet.value, gevent.GreenletExit)


with_each_interruption = pytest.mark.parametrize("interrupt", [kill, throw_timeout])


def assert_immediate_end(greenlet: gevent.Greenlet, interrupt: Callable[[gevent.Greenlet], None]) -> None:
    """Interrupt the greenlet, and check that the greenlet ends within 20 iterations of the event
    loop.
    """
    sleeping_greenlet = gevent.spawn(lambda: [gevent.sleep(0) for _ in range(20)])
    interrupt(greenlet)
    assert not sleeping_greenlet.ready()
    sleeping_greenlet.kill()


@pytest.mark.one_in(4)
@with_each_interruption
@pytest.mark.parametrize("record_type", ["SRV", "TXT"])
def test_client_creation_ends_immediately_if_interrupted(name_server, interrupt, record_type):
    with assert_no_leaks():
        name_server.delay(record_type)
        creator = gevent.spawn(client_with_srv_uri)
        eventually(lambda: name_server.delayed_queries)
        assert_immediate_end(creator, interrupt)
        name_server.gate.set()
    with client_with_srv_uri() as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@with_each_interruption
def test_operation_ends_immediately_if_interrupted_during_lookup_of_monitor(server, resolver, interrupt):
    with assert_no_leaks():
        resolver.gate.clear()
        with MongoClient(f"{HOST}:{server.port}") as client:
            reader = gevent.spawn(client.db.c.find_one, {"_id": 1})
            eventually(lambda: resolver.queries)
            assert_immediate_end(reader, interrupt)
            resolver.gate.set()
            assert client.db.c.find_one({"_id": 2}) == {"_id": 2}


@with_each_interruption
def test_operation_ends_immediately_if_interrupted_during_its_lookup(server, resolver, interrupt):
    with assert_no_leaks(), MongoClient(f"{HOST}:{server.port}", maxPoolSize=1, serverMonitoringMode="poll") as client:
        eventually(lambda: client.nodes)
        query_count = len(resolver.queries)
        resolver.gate.clear()
        reader = gevent.spawn(client.db.c.find_one, {"_id": 1})
        eventually(lambda: len(resolver.queries) > query_count)
        assert_immediate_end(reader, interrupt)
        (pool,) = client.pool_stats()
        assert (pool["total"], pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0, 0)
        assert (pool["generation"], pool["state"]) == (0, "ready")
        resolver.gate.set()
        assert client.db.c.find_one({"_id": 2}) == {"_id": 2}
        assert server.commands("find")[0]["filter"] == {"_id": 2}


def test_close_during_lookup_prevents_connection(server, resolver):
    with assert_no_leaks():
        resolver.gate.clear()
        client = MongoClient(f"{HOST}:{server.port}")
        eventually(lambda: resolver.queries)
        client.close()
        assert count_open_resources()["lookups"] == 1
        resolver.gate.set()
    assert server.connection_count == 0


def test_operation_during_lookup_times_out_after_connect_or_selection_timeout(server, resolver):
    with assert_no_leaks():
        options = {"serverMonitoringMode": "poll", "connectTimeoutMS": 50, "serverSelectionTimeoutMS": 100}
        with MongoClient(f"{HOST}:{server.port}", retryReads=False, **options) as client:
            eventually(lambda: client.nodes)
            resolver.gate.clear()
            with pytest.raises(AutoReconnect):
                client.db.c.find_one()
            with pytest.raises(ServerSelectionTimeoutError):
                client.db.c.find_one()
            resolver.gate.set()


PATCHED_PROGRAM = """
from gevent import monkey
monkey.patch_all()
import gevent, sys
from tests.gevent.test_dns_stalls import *

with gevent.Timeout(30), ScriptedServer() as server, SlowNameServer() as name_server:
    install(setattr, name_server)
    add_records(name_server, server)
    def make():
        try:
            client_with_srv_uri()
        except gevent.Timeout as error:
            return error
    for record_type in "SRV", "TXT":
        test_srv_and_txt_lookups_do_not_block_loop(name_server, record_type)
        name_server.delay(record_type)
        creator = gevent.spawn(make)
        eventually(lambda: name_server.delayed_queries)
        own_timeout = gevent.Timeout(1000)
        creator.kill(own_timeout)
        print(creator.value is own_timeout)
        name_server.gate.set()
    with client_with_srv_uri() as client:
        print(client.db.c.find_one({"_id": 1}))
print(gevent.get_hub().join(timeout=5))
"""


def output_of(program: str) -> list[str]:
    child = gevent.subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout.splitlines()


def test_lookups_in_monkey_patched_process_do_not_block_loop():
    assert output_of(PATCHED_PROGRAM) == ["True", "True", "{'_id': 1}", "True"]
