"""Official tests and prose tests of the Initial DNS Seedlist Discovery specification.

The driver queries a name server that runs in the test process. The fixture `network` redirects
connections to scripted servers, which do not use TLS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import gevent
import pytest
from bson import ObjectId
from dnslib import RCODE
from gevent.event import Event

import gmongo
from gmongo import MongoClient
from gmongo.client_options import ClientOptions
from gmongo.errors import ConfigurationError, ServerSelectionTimeoutError
from gmongo.options import srv
from gmongo.options.srv import Answer, lookup
from gmongo.options.uri import read_uri
from tests.spec.dns_records import add_all_records
from tests.spec.specifications import files
from tests.support.cases import with_cases
from tests.support.dns import Host, Network
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

RESULT_FIELDS = {
    "user": "username",
    "password": "password",
    "db": "database",
    "auth_database": "database",
    "defaultDatabase": "database",
}
MEMBERS = [f"localhost:{port}" for port in (27017, 27018, 27019)]
BLOGS = "blogs.mongodb.com"


# Official tests


@pytest.fixture
def network_with_records(network: Network) -> Network:
    add_all_records(network.name_server)
    return network


def address_text(address: Any) -> str:
    return "{}:{}".format(*address)


def cases_without_error() -> list[Any]:
    """Return the official cases that expect no error, as pytest parameters."""
    return [case for case in files("seedlist", id_suffix="discovery") if not (case.values[0] or {}).get("error")]


@pytest.mark.parametrize("case", files("seedlist"))
def test_seeds_and_options_equal_official_case(network_with_records: Network, case: dict[str, Any]) -> None:
    if case.get("error"):
        with pytest.raises(ConfigurationError) as raised:
            ClientOptions(case["uri"], None, {})
        assert "DNS gave no" not in str(raised.value), "the error must concern the records and not the name server"
        return
    result = read_uri(case["uri"], warn=True)
    seeds = {address_text(address) for address in result["nodelist"]}
    assert seeds == set(case.get("seeds", seeds))
    assert len(seeds) == case.get("numSeeds", len(seeds))
    for name, value in case["options"].items():
        assert result["options"]["tls" if name == "ssl" else name] == value
    for name, value in case.get("parsed_options", {}).items():
        assert result[RESULT_FIELDS[name]] == value


def member_hello(port: int) -> Callable[[ScriptedServer], dict[str, Any]]:
    """Return a function that returns the hello fields of the replica set member at port `port`."""
    me = f"localhost:{port}"
    fields = {"setName": "repl0", "setVersion": 1, "hosts": MEMBERS, "me": me, "primary": MEMBERS[0]}
    role = {
        "isWritablePrimary": me == MEMBERS[0],
        "ismaster": me == MEMBERS[0],
        "secondary": me != MEMBERS[0],
    }
    return lambda _server: fields | role


def mongos_hello(_port: int) -> Callable[[ScriptedServer], dict[str, Any]]:
    return lambda _server: {"msg": "isdbgrid"}


def load_balanced_hello(_port: int) -> Callable[[ScriptedServer], dict[str, Any]]:
    """Return a function that returns the hello fields of a mongos behind a load balancer."""
    service = ObjectId()
    return lambda _server: {"msg": "isdbgrid", "serviceId": service}


def ports_and_hello_of(case: dict[str, Any]) -> tuple[tuple[int, ...], Callable[[int], Any]]:
    """Return the ports in the SRV records of a case, and a function such as :func:`member_hello`."""
    if case["options"].get("loadBalanced"):
        return (8000,), load_balanced_hello
    if MEMBERS[-1] in case.get("hosts", ()):
        return (27017, 27018, 27019), member_hello
    return (27017, 27018), mongos_hello


@contextmanager
def deployment(network: Network, case: dict[str, Any]) -> Iterator[None]:
    """While the block runs, run the servers that a case expects."""
    ports, hello_of_port = ports_and_hello_of(case)
    with ExitStack() as stack:
        for port in ports:
            server = stack.enter_context(ScriptedServer(member=hello_of_port(port), streams=True))
            network.ports[port] = server.port
        yield


@pytest.mark.parametrize("connect", [True, False])
@pytest.mark.parametrize("case", cases_without_error())
def test_client_discovers_servers_of_official_case(network_with_records: Network, case: Any, connect: bool) -> None:
    network = network_with_records
    with (
        gevent.Timeout(10),
        deployment(network, case),
        MongoClient(case["uri"], tls=False, connect=connect) as client,
    ):
        assert bool(network.name_server.questions) is connect
        if not connect:
            assert client.is_primary
        for name, value in case["options"].items():
            assert name == "ssl" or client.options.merged[name] == value
        if "hosts" in case:
            eventually(lambda: {address_text(address) for address in client.nodes} == set(case["hosts"]))
        eventually(lambda: len(client.nodes) == case.get("numHosts", len(client.nodes)))
        if case.get("ping", True):
            assert client.admin.command("ping")["ok"] == 1


# Prose tests


def add_records(network: Network, name: str, *targets: str) -> str:
    """Add an SRV record for each of `targets`, with the given name, and return a URI that contains
    the name.
    """
    network.name_server.hosts[f"_mongodb._tcp.{name}"] = [Host(target, 27017) for target in targets]
    return f"mongodb+srv://{name}"


def hosts_of(uri: str, **options: Any) -> list[str]:
    return [host for host, _port in ClientOptions(uri, None, options).seeds]


@pytest.mark.parametrize("name", ["localhost", "mongo.local"])
def test_1_name_with_fewer_than_three_parts_is_accepted(network: Network, name: str) -> None:
    assert hosts_of(add_records(network, name, f"db.{name}")) == [f"db.{name}"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        # Prose test 2: the host is not in the domain of the name.
        ("localhost", "localhost.mongodb"),
        ("mongo.local", "test_1.evil.local"),
        (BLOGS, "blogs.evil.com"),
        # Prose test 3: the host is equal to the name, and the name has fewer than three parts.
        ("localhost", "localhost"),
        ("mongo.local", "mongo.local"),
        # Prose test 4: the host ends with the domain, but without a dot before the domain.
        ("localhost", "test_1.cluster_1localhost"),
        ("mongo.local", "test_1.my_hostmongo.local"),
        (BLOGS, "cluster.testmongodb.com"),
    ],
)
def test_2_to_4_srv_host_outside_of_domain_raises_configuration_error(network: Network, name: str, target: str) -> None:
    with pytest.raises(ConfigurationError, match=f"name the host '{target}', which .* does not allow"):
        hosts_of(add_records(network, name, target))


@pytest.mark.parametrize("name", ["build.10gen.cc", "test.build.10gen.cc"])
def test_srv_host_equal_to_name_of_three_parts_is_accepted(network_with_records: Network, name: str) -> None:
    assert hosts_of(f"mongodb+srv://{name}") == [name]


@pytest.mark.parametrize(("name", "target"), [(BLOGS, "blogs.evil.com"), ("mongo.local", "mongo.local")])
def test_5_host_validator_may_accept_host_outside_of_domain(network: Network, name: str, target: str) -> None:
    assert hosts_of(add_records(network, name, target), srv_host_validator=lambda _host: True) == [target]


def test_6_host_validator_may_reject_host_in_domain(network: Network) -> None:
    with pytest.raises(ConfigurationError, match="srv_host_validator does not allow"):
        hosts_of(add_records(network, BLOGS, "cluster.mongodb.com"), srv_host_validator=lambda _host: False)


def test_7_host_validator_receives_normalized_host(network: Network) -> None:
    hosts: list[str] = []
    hosts_of(
        add_records(network, BLOGS, "CLUSTER.MONGODB.COM."),
        srv_host_validator=lambda host: hosts.append(host) or 1,
    )
    assert hosts == ["cluster.mongodb.com"]


def test_8_error_of_host_validator_is_cause_of_configuration_error(network: Network) -> None:
    error = RuntimeError("no idea")

    def reject_host(_host: str) -> bool:
        raise error

    with pytest.raises(ConfigurationError, match="no idea") as raised:
        hosts_of(add_records(network, BLOGS, "cluster.mongodb.com"), srv_host_validator=reject_host)
    assert raised.value.__cause__ is error


def test_9_host_suffix_with_host_validator_raises_configuration_error(network: Network) -> None:
    uri = add_records(network, BLOGS, "cluster.mongodb.com")
    with pytest.raises(ConfigurationError, match="cannot be used together"):
        hosts_of(uri, srvAllowedHostsSuffix=".mongodb.com", srv_host_validator=lambda _host: True)


def test_10_host_suffix_matches_normalized_host(network: Network) -> None:
    uri = add_records(network, BLOGS, "CLUSTER.MONGODB.COM.")
    assert hosts_of(uri, srvAllowedHostsSuffix=".mongodb.com") == ["cluster.mongodb.com"]


def test_11_host_validator_that_is_not_callable_raises_error(network: Network) -> None:
    with pytest.raises((ConfigurationError, TypeError), match="srv_host_validator"):
        hosts_of(add_records(network, BLOGS, "cluster.mongodb.com"), srv_host_validator="notacallable")


def test_12_host_suffix_of_one_reserved_label_is_accepted(network: Network) -> None:
    uri = add_records(network, "cluster.localhost", "db.cluster.localhost")
    assert hosts_of(uri, srvAllowedHostsSuffix="localhost") == ["db.cluster.localhost"]


def test_13_host_validator_without_srv_uri_raises_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="can only be used with a mongodb\\+srv URI"):
        hosts_of("mongodb://localhost:27017", srv_host_validator=lambda _host: True)


# Requirements without an official test


def test_trailing_dot_of_name_or_host_is_removed(network: Network) -> None:
    uri = add_records(network, BLOGS, "cluster.mongodb.com.")
    assert hosts_of(f"{uri}.") == ["cluster.mongodb.com"]


def test_client_creation_with_silent_name_server_raises_configuration_error(network: Network) -> None:
    network.name_server.silent = True
    with pytest.raises(ConfigurationError, match=f"DNS gave no SRV records of _mongodb._tcp.{BLOGS}"):
        hosts_of(f"mongodb+srv://{BLOGS}", connectTimeoutMS=100)


# Tests of clients with connect=False, whose first operation sends the DNS queries

DB_HOST = "db.mongodb.com"


@pytest.fixture
def lazy_client(network: Network) -> Iterator[Callable[..., MongoClient[dict[str, Any]]]]:
    """Yield a function that creates clients, which connect to a standalone at their first
    operation.
    """
    uri = add_records(network, BLOGS, DB_HOST)
    network.name_server.addresses[DB_HOST] = "127.0.0.1"
    with gevent.Timeout(15), ExitStack() as stack:
        network.ports[27017] = stack.enter_context(ScriptedServer()).port

        def create_client(**options: Any) -> MongoClient[dict[str, Any]]:
            return stack.enter_context(MongoClient(uri, tls=False, connect=False, **options))

        yield create_client


class DelayedQueries:
    """Replacement of the DNS query function.

    Each query appends its record type to `record_types`, and waits until the test sets `gate`.
    """

    def __init__(self) -> None:
        self.record_types: list[str] = []
        self.gate = Event()

    def lookup(self, name: str, kind: str, timeout: float, ref: bool) -> Answer:
        self.record_types.append(kind)
        self.gate.wait()
        return lookup(name, kind, timeout, ref)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> DelayedQueries:
    queries = DelayedQueries()
    monkeypatch.setattr(srv, "lookup", queries.lookup)
    return queries


def ping(client: MongoClient[dict[str, Any]]) -> float:
    ok: float = client.admin.command("ping")["ok"]
    return ok


def test_first_operation_of_client_with_connect_false_sends_dns_queries(lazy_client: Any, network: Network) -> None:
    network.name_server.texts[BLOGS] = [["authSource=users"]]
    client = lazy_client()
    assert repr(client).startswith(f"MongoClient(host='mongodb+srv://{BLOGS}', ")
    assert list(client.topology_description.server_descriptions()) == [(BLOGS, None)]
    assert client.nodes == frozenset() and client.primary is None and client.pool_stats() == []
    assert client.options.merged.get("authsource") is None
    initial_hash = hash(client)
    assert network.name_server.questions == []
    assert client.address == (DB_HOST, 27017)
    assert network.name_server.questions == [(f"_mongodb._tcp.{BLOGS}", "SRV"), (BLOGS, "TXT")]
    assert repr(client).startswith(f"MongoClient(host=['{DB_HOST}:27017'], ")
    assert client.nodes == {(DB_HOST, 27017)} and client.options.merged["authsource"] == "users"
    assert hash(client) == initial_hash and client == lazy_client()
    assert ping(client) == 1 and len(network.name_server.questions) == 2


@with_cases
def test_invalid_option_raises_error_without_dns_query(
    lazy_client: Any, network: Network, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{message}(?!\w)"):
        lazy_client(**options)
    assert network.name_server.questions == []


@pytest.mark.parametrize("option", ["serverSelectionTimeoutMS", "timeoutMS", "gmongo.timeout"])
def test_operation_with_silent_name_server_raises_timeout_error_within_limit(
    lazy_client: Any, network: Network, option: str
) -> None:
    network.name_server.silent = True
    client = lazy_client(connectTimeoutMS=60_000, **({} if "." in option else {option: 50}))
    for _ in range(2):
        with (
            pytest.raises(ServerSelectionTimeoutError, match=rf"DNS has not answered .* {BLOGS} .*{option}") as raised,
            gmongo.timeout(0.05 if "." in option else None),
        ):
            ping(client)
        assert raised.value.timeout and "TLS" not in str(raised.value)


@pytest.mark.parametrize("fault", ["failure", "host", "option"])
def test_operation_after_failed_dns_query_sends_new_query(
    lazy_client: Any, network: Network, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    name_server, client = network.name_server, lazy_client()
    if fault == "failure":
        name_server.failure = RCODE.SERVFAIL
    elif fault == "host":
        name_server.hosts[f"_mongodb._tcp.{BLOGS}"] = [Host("db.evil.com", 27017)]
    else:
        name_server.texts[BLOGS] = [["tls=false"]]
    pings = [gevent.spawn(ping, client) for _ in range(2)]
    gevent.joinall(pings)
    errors = [each.exception for each in pings]
    assert [type(error) for error in errors] == [ConfigurationError] * 2 and errors[0] is not errors[1]
    assert [str(error) for error in errors] == [str(errors[0])] * 2 and BLOGS in str(errors[0])
    query_count = len(name_server.questions)
    gevent.sleep(0)
    assert len(name_server.questions) == query_count, "the client sent a DNS query without an operation"
    name_server.failure = None
    name_server.texts.clear()
    add_records(network, BLOGS, DB_HOST)
    assert ping(client) == 1 and not [each for each in caplog.records if each.levelname == "ERROR"]


def test_operation_repeats_dns_query_after_kill_of_query_greenlet(lazy_client: Any, queries: DelayedQueries) -> None:
    client = lazy_client()
    waiting_ping = gevent.spawn(ping, client)
    eventually(lambda: queries.record_types)
    client._topology._srv_monitor._background.greenlet.kill()
    queries.gate.set()
    assert waiting_ping.get() == 1
    assert queries.record_types == ["SRV", "SRV", "TXT"]
