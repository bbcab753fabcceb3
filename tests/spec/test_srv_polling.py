"""Tests of the specification "Polling SRV Records for mongos Discovery", including its prose tests.

A name server and scripted servers run in the test process. The fixture `polling_timer` replaces the
timer of the polling greenlet, and records the sleep times. The test decides when the polling greenlet
wakes up.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import gevent
import pytest
from dnslib import RCODE
from gevent.event import Event

from gmongo import MongoClient
from gmongo.options import srv
from gmongo.options.srv import lookup
from gmongo.sdam.srv_monitor import SrvMonitor
from tests.spec.dns_records import DOMAIN, LOCAL_HOST, add_all_records
from tests.support.cases import with_cases
from tests.support.dns import Host, Network
from tests.support.greenlets import living_greenlets
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

PORTS = (27017, 27018, 27019, 27020)
TEST1, TEST3, TEST22 = (
    f"_mongodb._tcp.test1.{DOMAIN}",
    f"_mongodb._tcp.test3.{DOMAIN}",
    f"_customname._tcp.test22.{DOMAIN}",
)
URI = f"mongodb+srv://test1.{DOMAIN}/"
Client = MongoClient[dict[str, Any]]


class PollingTimer:
    """Replacement for the timer of the polling greenlet. The greenlet wakes up when the test calls
    :meth:`run_next_scan`.
    """

    def __init__(self) -> None:
        self.sleeps: list[float] = []
        self._wakeup_event = Event()

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self._wakeup_event.wait()
        self._wakeup_event.clear()

    def run_next_scan(self) -> float:
        """Wake up the greenlet for one scan of the SRV records.

        Return the seconds for which the greenlet sleeps after the scan.
        """
        eventually(lambda: self.sleeps)
        sleep_count = len(self.sleeps)
        self._wakeup_event.set()
        eventually(lambda: len(self.sleeps) > sleep_count)
        return self.sleeps[-1]


@pytest.fixture
def polling_timer(monkeypatch: pytest.MonkeyPatch) -> PollingTimer:
    polling_timer = PollingTimer()
    initialize = SrvMonitor.__init__

    def initialize_with_timer(monitor: Any, *arguments: Any) -> None:
        initialize(monitor, *arguments)
        monitor._wakeup = polling_timer

    monkeypatch.setattr(SrvMonitor, "__init__", initialize_with_timer)
    return polling_timer


@pytest.fixture
def mongoses(network: Network) -> Iterator[dict[int, ScriptedServer]]:
    """Yield four scripted mongos, keyed by the ports in their SRV records."""
    add_all_records(network.name_server)
    with gevent.Timeout(15), ExitStack() as stack:
        servers = {port: ScriptedServer(member=lambda _server: {"msg": "isdbgrid"}, streams=True) for port in PORTS}
        for port, server in servers.items():
            stack.enter_context(server)
            network.ports[port] = server.port
        yield servers


@pytest.fixture
def connect(mongoses: dict[int, ScriptedServer]) -> Iterator[Callable[..., Client]]:
    """Yield a function that creates a client, and waits until the client has discovered a server."""
    with ExitStack() as stack:

        def create_client(uri: str = URI, **options: Any) -> Client:
            client: Client = stack.enter_context(MongoClient(uri, tls=False, **options))
            eventually(lambda: client.topology_description.known_servers)
            return client

        yield create_client


def records(*ports: int, ttl: int = 86400) -> list[Host]:
    return [Host(LOCAL_HOST, port, ttl) for port in ports]


def ports_of(client: Client) -> list[int]:
    return sorted(port for _host, port in client.topology_description.server_descriptions())


# Prose tests 1 to 5


@with_cases
def test_changed_srv_records_change_servers_of_topology(
    connect: Any, network: Network, mongoses: Any, polling_timer: PollingTimer, ports: list[int]
) -> None:
    client = connect()
    assert ports_of(client) == [27017, 27018]
    network.name_server.hosts[TEST1] = records(*ports)
    polling_timer.run_next_scan()
    assert ports_of(client) == ports
    assert client.admin.command("ping")["ok"] == 1
    for port, server in mongoses.items():
        eventually(lambda port=port, server=server: bool(server.peers) == (port in ports))


# Prose tests 6 to 8


DNS_FAULTS: dict[str, Callable[[Network], Any]] = {
    "6 timeout": lambda network: setattr(network.name_server, "silent", True),
    "7 failure": lambda network: setattr(network.name_server, "failure", RCODE.SERVFAIL),
    "7 unknown name": lambda network: network.name_server.hosts.clear(),
    "8 no records": lambda network: network.name_server.hosts[TEST1].clear(),
    "no allowed host": lambda network: network.name_server.hosts.update({TEST1: [Host("localhost.evil.com", 27017)]}),
}


@pytest.mark.parametrize("fault", DNS_FAULTS.values(), ids=DNS_FAULTS)
def test_failed_srv_query_does_not_change_servers_of_topology(
    connect: Any,
    network: Network,
    polling_timer: PollingTimer,
    caplog: Any,
    monkeypatch: pytest.MonkeyPatch,
    fault: Any,
) -> None:
    caplog.set_level(logging.WARNING, "gmongo.topology")
    client = connect(heartbeatFrequencyMS=1234)
    fault(network)
    if network.name_server.silent:
        # The short timeout applies only to later queries, because the first query may be slow on a
        # busy machine.
        monkeypatch.setattr(srv, "lookup", lambda name, kind, _timeout, ref: lookup(name, kind, 0.2, ref))
    assert polling_timer.run_next_scan() == 1.234, "the next query must follow after heartbeatFrequencyMS"
    assert ports_of(client) == [27017, 27018]
    assert "SRV records" in caplog.text
    assert client.admin.command("ping")["ok"] == 1


def test_successful_srv_query_after_error_restores_polling_interval(
    connect: Any, network: Network, polling_timer: PollingTimer
) -> None:
    client = connect(heartbeatFrequencyMS=1234)
    network.name_server.failure = RCODE.SERVFAIL
    assert [polling_timer.run_next_scan(), polling_timer.run_next_scan()] == [1.234, 1.234]
    network.name_server.failure = None
    network.name_server.hosts[TEST1] = records(27019, ttl=120)
    assert polling_timer.run_next_scan() == 120
    assert ports_of(client) == [27019]


# Prose test 9 is in `tests/load_balanced/test_load_balanced_option.py`.


def test_client_of_replica_set_does_not_poll(network: Network, polling_timer: PollingTimer) -> None:
    add_all_records(network.name_server)
    fields = {"setName": "repl0", "hosts": ["localhost:27017"], "me": "localhost:27017", "setVersion": 1}
    with ScriptedServer(member=lambda _server: fields) as server:
        network.ports[27017] = server.port
        with MongoClient(f"mongodb+srv://test3.{DOMAIN}/", tls=False) as client:
            eventually(lambda: client.primary)
            network.name_server.hosts[TEST3] = records(27018)
            query_count = len(network.name_server.questions)
            polling_timer._wakeup_event.set()
            eventually(lambda: client._topology._srv_monitor._background.greenlet.dead)
            assert len(network.name_server.questions) == query_count
            assert [port for _host, port in client.nodes] == [27017]


# Prose tests 10 to 12


@pytest.mark.parametrize(
    ("max_hosts", "ports"),
    [(0, [27017, 27019, 27020]), (2, [27019, 27020])],
    ids=["10 without srvMaxHosts", "11 with srvMaxHosts"],
)
def test_scan_adds_all_new_hosts_if_dns_does_not_exceed_srv_max_hosts(
    connect: Any, network: Network, polling_timer: PollingTimer, max_hosts: int, ports: list[int]
) -> None:
    client = connect(srvMaxHosts=max_hosts)
    network.name_server.hosts[TEST1] = records(*ports)
    polling_timer.run_next_scan()
    assert ports_of(client) == ports


def test_12_scan_adds_random_new_hosts_if_dns_exceeds_srv_max_hosts(
    connect: Any, network: Network, polling_timer: PollingTimer
) -> None:
    client = connect(srvMaxHosts=2)
    new_ports = set()
    for _ in range(40):
        network.name_server.hosts[TEST1] = records(27017, 27019, 27020)
        polling_timer.run_next_scan()
        old, new = ports_of(client)
        assert old == 27017
        new_ports.add(new)
        network.name_server.hosts[TEST1] = records(27017, 27018)
        polling_timer.run_next_scan()
        assert ports_of(client) == [27017, 27018]
    assert new_ports == {27019, 27020}


# Prose test 13


def test_13_srv_service_name_selects_polled_records(
    connect: Any, network: Network, polling_timer: PollingTimer
) -> None:
    client = connect(f"mongodb+srv://test22.{DOMAIN}/?srvServiceName=customname")
    network.name_server.hosts[TEST22] = records(27019, 27020)
    polling_timer.run_next_scan()
    assert ports_of(client) == [27019, 27020]


# Requirements without a prose test


def test_polled_host_outside_of_domain_is_ignored_and_logged(
    connect: Any, network: Network, polling_timer: PollingTimer, caplog: Any
) -> None:
    client = connect()
    network.name_server.addresses["localhost.evil.com"] = "127.0.0.1"
    network.name_server.hosts[TEST1] = [*records(27017), Host("localhost.evil.com", 27019)]
    polling_timer.run_next_scan()
    assert ports_of(client) == [27017]
    assert "localhost.evil.com" in caplog.text
    assert all(host != "localhost.evil.com" for host, _port in network.resolved)


def test_allowed_hosts_suffix_applies_to_polled_hosts(
    connect: Any, network: Network, polling_timer: PollingTimer
) -> None:
    client = connect(srvAllowedHostsSuffix=".10gen.cc")
    network.name_server.addresses["other.10gen.cc"] = "127.0.0.1"
    network.name_server.hosts[TEST1] = [*records(27017), Host("other.10gen.cc", 27019)]
    polling_timer.run_next_scan()
    assert ports_of(client) == [27017, 27019]
    assert {name for name, kind in network.name_server.questions if kind == "SRV"} == {TEST1}


def test_rescan_keeps_connections_to_unchanged_host(
    connect: Any, network: Network, mongoses: Any, polling_timer: PollingTimer
) -> None:
    recorder = Recorder()
    client = connect(event_listeners=[recorder])
    eventually(lambda: len(client.topology_description.known_servers) == 2)
    client.admin.command("ping")
    before = client.topology_description.server_descriptions()[LOCAL_HOST, 27017]
    connections = set(mongoses[27017].peers)
    recorder.clear()
    network.name_server.hosts[TEST1] = records(27017, 27019)
    polling_timer.run_next_scan()
    assert client.topology_description.server_descriptions()[LOCAL_HOST, 27017] is before
    assert connections <= set(mongoses[27017].peers)
    assert [event.server_address[1] for event in recorder.events_named("ServerClosed")] == [27018]
    assert [event.server_address[1] for event in recorder.events_named("ServerOpening")] == [27019]


@pytest.mark.parametrize(("ttls", "seconds"), [((86400, 300), 300), ((1, 86400), 60), ((60, 60), 60)])
def test_polling_interval_is_shortest_ttl_and_at_least_60_seconds(
    connect: Any, network: Network, polling_timer: PollingTimer, ttls: tuple[int, int], seconds: int
) -> None:
    connect()
    network.name_server.hosts[TEST1] = [Host(LOCAL_HOST, *pair) for pair in zip((27017, 27018), ttls, strict=True)]
    assert polling_timer.run_next_scan() == seconds


def test_operation_succeeds_during_dns_query_of_polling_greenlet(
    connect: Any, network: Network, polling_timer: PollingTimer
) -> None:
    # The timeout is longer than the test, so that the DNS query does not time out.
    client = connect(connectTimeoutMS=60_000)
    network.name_server.silent = True
    query_count = len(network.name_server.questions)
    scan = gevent.spawn(polling_timer.run_next_scan)
    eventually(lambda: len(network.name_server.questions) > query_count)
    assert client.admin.command("ping")["ok"] == 1
    assert not scan.ready()
    network.name_server.silent = False
    scan.get()


def count_polling_greenlets() -> int:
    """Return the number of living polling greenlets."""
    gc.collect()
    return len(living_greenlets("SrvMonitor"))


def test_close_of_client_ends_polling_during_unanswered_query(
    connect: Any, network: Network, polling_timer: PollingTimer
) -> None:
    # The timeout is longer than the test, so that the DNS query does not time out.
    client = connect(connectTimeoutMS=60_000)
    network.name_server.silent = True
    query_count = len(network.name_server.questions)
    eventually(lambda: polling_timer.sleeps)
    polling_timer._wakeup_event.set()
    eventually(lambda: len(network.name_server.questions) > query_count)
    client.close()
    eventually(lambda: count_polling_greenlets() == 0)


def test_client_without_references_ends_polling_and_connections(mongoses: Any) -> None:
    client: Client | None = MongoClient(URI, tls=False)
    assert client.admin.command("ping")["ok"] == 1
    assert count_polling_greenlets() == 1
    client = None
    eventually(lambda: count_polling_greenlets() == 0)
    for server in mongoses.values():
        eventually(lambda server=server: not server.peers)
