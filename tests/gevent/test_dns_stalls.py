"""The loop is not held while a name is looked up, and a greenlet that waits for that can be interrupted at once."""

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
from tests.support.greenlets import living
from tests.support.server import ScriptedServer
from tests.support.wait import PATIENCE, eventually

NAME, CLUSTER = "db.example.test", "cluster.example.test"


class SlowNameServer(NameServer):
    """Answers questions that are held not before its gate is open.

    :ivar held: the questions that wait at the gate.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()
        self.held: list[str] = []
        self._kind = ""

    def hold(self, kind: str) -> None:
        """Close the gate for questions of one kind."""
        self._kind, self.held = kind, []
        self.gate.clear()

    def _answer(self, data: bytes, asker: Any) -> None:
        if (kind := QTYPE[DNSRecord.parse(data).q.qtype]) == self._kind:
            self.held.append(kind)
            self.gate.wait()
        super()._answer(data, asker)


class SlowResolver(Resolver):
    """gevent's resolver of native threads; what it calls there holds its thread, as the C library does.

    :ivar asked: the names.
    :ivar gave_up: whether the gate was never opened, as when the loop's own thread waits there.
    """

    def __init__(self) -> None:
        super().__init__(get_hub())
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[str] = []
        self.gave_up = False

    def getaddrinfo(self, host: str, port: int, *_: Any) -> list[Any]:
        self.asked.append(host)
        return self.pool.apply(self._look_up, (port,))

    def _look_up(self, port: int) -> list[Any]:
        self.gave_up |= not self.gate.wait(PATIENCE)  # no limit of gevent's ends a test that holds the loop
        return [(_socket.AF_INET, _socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def server():
    with gevent.Timeout(60), ScriptedServer() as server:
        yield server


@pytest.fixture
def resolver(monkeypatch):
    """What looks up plain names."""
    resolver = SlowResolver()
    monkeypatch.setattr(get_hub(), "resolver", resolver)
    yield resolver
    resolver.gate.set()


def publish(names: SlowNameServer, server: ScriptedServer) -> None:
    """The records of a cluster of one server."""
    dns.resolver.default_resolver.timeout = 30  # it asks once, and waits
    names.hosts[f"_mongodb._tcp.{CLUSTER}"] = [Host(NAME, server.port)]
    names.texts[CLUSTER] = [["authSource=admin"]]
    names.addresses[NAME] = "127.0.0.1"


@pytest.fixture
def names(monkeypatch, server):
    """What is asked for the records of a cluster."""
    with SlowNameServer() as names:
        install(monkeypatch.setattr, names)
        publish(names, server)
        yield names
        names.gate.set()


def srv_client() -> MongoClient[Any]:
    return MongoClient(f"mongodb+srv://{CLUSTER}/?tls=false")


def goes_on(use: Callable[[], Any], held: Callable[[], Any]) -> gevent.Greenlet:
    """The loop goes on while a lookup waits at its gate, and so can open it.

    :param held: whether one waits there.
    :returns: the greenlet that uses the driver, which still waits.
    """
    user = gevent.spawn(use)
    eventually(held)
    for _ in range(20):
        gevent.sleep(0)
    assert not user.ready()
    return user


def state() -> dict[str, int]:
    """What an interrupted lookup could leave behind."""
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "greenlets": len(living("gmongo")),
        "watchers": get_hub().loop.activecnt,
        "lookups": get_hub().threadpool.task_queue.unfinished_tasks,
    }


@contextmanager
def nothing_left() -> Iterator[None]:
    """Nothing is left once the lookups have ended, and what was done with the client is over."""
    get_hub().threadpool.apply(int)  # its first use opens descriptors that stay
    before = eventually(state)  # which has a timer of its own running
    yield
    eventually(lambda: all(count <= before[what] for what, count in state().items()))


# The loop goes on


def test_plain_name(server, resolver):
    resolver.gate.clear()
    with MongoClient(f"{NAME}:{server.port}") as client:
        reader = goes_on(lambda: client.db.c.find_one({"_id": 1}), lambda: resolver.asked)
        resolver.gate.set()
        assert reader.get() == {"_id": 1}
    assert set(resolver.asked) == {NAME}
    assert not resolver.gave_up


@pytest.mark.parametrize("kind", ["SRV", "TXT"])
def test_srv_name(names, kind):
    names.hold(kind)
    maker = goes_on(srv_client, lambda: names.held)
    names.gate.set()
    with maker.get() as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


# Interruptions take effect while the name server has not answered yet


def time_out(greenlet: gevent.Greenlet) -> None:
    """Throw a foreign time-out, and see that this very object comes out."""
    foreign = gevent.Timeout(1000)
    greenlet.kill(foreign)
    assert greenlet.exception is foreign


def kill(greenlet: gevent.Greenlet) -> None:
    greenlet.kill()
    assert isinstance(greenlet.value, gevent.GreenletExit)


interruptions = pytest.mark.parametrize("interrupt", [kill, time_out])


def at_once(greenlet: gevent.Greenlet, interrupt: Callable[[gevent.Greenlet], None]) -> None:
    """The greenlet is over before the loop has gone round a few times."""
    turns = gevent.spawn(lambda: [gevent.sleep(0) for _ in range(20)])
    interrupt(greenlet)
    assert not turns.ready()
    turns.kill()


@interruptions
@pytest.mark.parametrize("kind", ["SRV", "TXT"])
def test_making_a_client_of_a_srv_name(names, interrupt, kind):
    with nothing_left():
        names.hold(kind)
        maker = gevent.spawn(srv_client)
        eventually(lambda: names.held)
        at_once(maker, interrupt)
        names.gate.set()
    with srv_client() as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@interruptions
def test_an_operation_that_waits_until_its_server_is_looked_up(server, resolver, interrupt):
    with nothing_left():
        resolver.gate.clear()
        with MongoClient(f"{NAME}:{server.port}") as client:
            reader = gevent.spawn(client.db.c.find_one, {"_id": 1})
            eventually(lambda: resolver.asked)
            at_once(reader, interrupt)
            resolver.gate.set()
            assert client.db.c.find_one({"_id": 2}) == {"_id": 2}


@interruptions
def test_an_operation_whose_connection_is_looked_up(server, resolver, interrupt):
    with nothing_left(), MongoClient(f"{NAME}:{server.port}", maxPoolSize=1, serverMonitoringMode="poll") as client:
        eventually(lambda: client.nodes)
        asked = len(resolver.asked)
        resolver.gate.clear()
        reader = gevent.spawn(client.db.c.find_one, {"_id": 1})
        eventually(lambda: len(resolver.asked) > asked)
        at_once(reader, interrupt)
        (pool,) = client.pool_stats()
        assert (pool["total"], pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0, 0)
        assert (pool["generation"], pool["state"]) == (0, "ready")
        resolver.gate.set()
        assert client.db.c.find_one({"_id": 2}) == {"_id": 2}
        assert server.commands("find")[0]["filter"] == {"_id": 2}


def test_a_client_is_closed_while_its_monitor_looks_its_server_up(server, resolver):
    """The monitor cannot end before the lookup does, and does not connect any more then."""
    with nothing_left():
        resolver.gate.clear()
        client = MongoClient(f"{NAME}:{server.port}")
        eventually(lambda: resolver.asked)
        client.close()
        assert state()["lookups"] == 1
        resolver.gate.set()
    assert server.connection_count == 0


def test_the_limits_of_the_driver_hold_for_lookups(server, resolver):
    with nothing_left():
        options = {"serverMonitoringMode": "poll", "connectTimeoutMS": 50, "serverSelectionTimeoutMS": 100}
        with MongoClient(f"{NAME}:{server.port}", retryReads=False, **options) as client:
            eventually(lambda: client.nodes)
            resolver.gate.clear()
            with pytest.raises(AutoReconnect):
                client.db.c.find_one()
            with pytest.raises(ServerSelectionTimeoutError):
                client.db.c.find_one()
            resolver.gate.set()


# In a process that is patched, where dnspython's own sockets are gevent's

PATCHED = """
from gevent import monkey
monkey.patch_all()
import gevent, sys
from tests.gevent.test_dns_stalls import *

with gevent.Timeout(30), ScriptedServer() as server, SlowNameServer() as names:
    install(setattr, names)
    publish(names, server)
    def make():
        try:
            srv_client()
        except gevent.Timeout as error:
            return error
    for kind in "SRV", "TXT":
        test_srv_name(names, kind)
        names.hold(kind)
        maker = gevent.spawn(make)
        eventually(lambda: names.held)
        mine = gevent.Timeout(1000)
        maker.kill(mine)
        print(maker.value is mine)
        names.gate.set()
    with srv_client() as client:
        print(client.db.c.find_one({"_id": 1}))
print(gevent.get_hub().join(timeout=5))
"""


def output_of(program: str) -> list[str]:
    child = gevent.subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout.splitlines()


def test_patched_process():
    assert output_of(PATCHED) == ["True", "True", "{'_id': 1}", "True"]


EXIT = """
from tests.gevent.test_dns_stalls import *
get_hub().resolver = resolver = SlowResolver()
resolver.gate.clear()
client = MongoClient(NAME)
eventually(lambda: resolver.asked)
print("end")
"""


def test_a_process_ends_while_a_name_is_looked_up():
    """The lookup never ends, so the time limit of the test would."""
    assert output_of(EXIT) == ["end"]
