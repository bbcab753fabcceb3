"""The official tests of initial DNS seedlist discovery, and its prose tests, against a name server of our own.

The servers that its names lead to are scripted, and TLS is switched off for them.
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
from gmongo.errors import ConfigurationError, InvalidOperation, ServerSelectionTimeoutError
from gmongo.options import srv
from gmongo.options.srv import Answer, lookup
from gmongo.options.uri import read_uri
from tests.spec.dns_records import publish
from tests.spec.specifications import files, root
from tests.support.dns import Host, Network
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

PARSED = {
    "user": "username",
    "password": "password",
    "db": "database",
    "auth_database": "database",
    "defaultDatabase": "database",
}
MEMBERS = [f"localhost:{port}" for port in (27017, 27018, 27019)]
BLOGS = "blogs.mongodb.com"


# The official tests


@pytest.fixture
def records(network: Network) -> Network:
    publish(network.names)
    return network


def named(address: Any) -> str:
    return "{}:{}".format(*address)


def discoveries() -> list[Any]:
    """The cases in which a client finds its servers."""
    return [case for case in files("seedlist", part="discovery") if not (case.values[0] or {}).get("error")]


@pytest.mark.parametrize("case", files("seedlist"))
def test_initial_dns_seedlist_discovery(records: Network, case: dict[str, Any]) -> None:
    if case.get("error"):
        with pytest.raises(ConfigurationError) as raised:
            ClientOptions(case["uri"], None, {})
        assert "DNS gave no" not in str(raised.value), "the name server failed, rather than the records"
        return
    result = read_uri(case["uri"], warn=True)
    seeds = {named(address) for address in result["nodelist"]}
    assert seeds == set(case.get("seeds", seeds))
    assert len(seeds) == case.get("numSeeds", len(seeds))
    for name, value in case["options"].items():
        assert result["options"]["tls" if name == "ssl" else name] == value
    for name, value in case.get("parsed_options", {}).items():
        assert result[PARSED[name]] == value


def member(port: int) -> Callable[[ScriptedServer], dict[str, Any]]:
    """What a member of the tests' replica set tells of itself."""
    me = f"localhost:{port}"
    fields = {"setName": "repl0", "setVersion": 1, "hosts": MEMBERS, "me": me, "primary": MEMBERS[0]}
    role = {"isWritablePrimary": me == MEMBERS[0], "ismaster": me == MEMBERS[0], "secondary": me != MEMBERS[0]}
    return lambda _server: fields | role


def mongos(_port: int) -> Callable[[ScriptedServer], dict[str, Any]]:
    return lambda _server: {"msg": "isdbgrid"}


def balanced(_port: int) -> Callable[[ScriptedServer], dict[str, Any]]:
    """What a mongos behind a load balancer tells."""
    service = ObjectId()
    return lambda _server: {"msg": "isdbgrid", "serviceId": service}


def servers_of(case: dict[str, Any]) -> tuple[tuple[int, ...], Callable[[int], Any]]:
    """The ports that the records name, and what listens there: what a case expects tells the deployment it is for."""
    if case["options"].get("loadBalanced"):
        return (8000,), balanced
    if MEMBERS[-1] in case.get("hosts", ()):
        return (27017, 27018, 27019), member
    return (27017, 27018), mongos


@contextmanager
def deployment(network: Network, case: dict[str, Any]) -> Iterator[None]:
    """The servers that a case is for."""
    ports, kind = servers_of(case)
    with ExitStack() as stack:
        for port in ports:
            server = stack.enter_context(ScriptedServer(member=kind(port), streams=True))
            network.ports[port] = server.port
        yield


@pytest.mark.parametrize("connect", [True, False])
@pytest.mark.parametrize("case", discoveries())
def test_the_servers_are_found(records: Network, case: dict[str, Any], connect: bool) -> None:
    with gevent.Timeout(10), deployment(records, case), MongoClient(case["uri"], tls=False, connect=connect) as client:
        assert bool(records.names.questions) is connect
        if not connect:
            assert client.is_primary
        for name, value in case["options"].items():
            assert name == "ssl" or client.options.merged[name] == value
        if "hosts" in case:
            eventually(lambda: {named(address) for address in client.nodes} == set(case["hosts"]))
        eventually(lambda: len(client.nodes) == case.get("numHosts", len(client.nodes)))
        if case.get("ping", True):
            assert client.admin.command("ping")["ok"] == 1


@pytest.mark.skipif(root() is None, reason="the official tests are not here")
def test_every_case_is_run() -> None:
    assert files("seedlist")
    assert discoveries()


# The prose tests


def leads_to(network: Network, name: str, *targets: str) -> str:
    """Let an SRV name lead to hosts; returns the URI."""
    network.names.hosts[f"_mongodb._tcp.{name}"] = [Host(target, 27017) for target in targets]
    return f"mongodb+srv://{name}"


def hosts_of(uri: str, **options: Any) -> list[str]:
    return [host for host, _port in ClientOptions(uri, None, options).seeds]


@pytest.mark.parametrize("name", ["localhost", "mongo.local"])
def test_1_names_with_fewer_than_three_parts(network: Network, name: str) -> None:
    assert hosts_of(leads_to(network, name, f"db.{name}")) == [f"db.{name}"]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        # 2. outside of the domain
        ("localhost", "localhost.mongodb"),
        ("mongo.local", "test_1.evil.local"),
        (BLOGS, "blogs.evil.com"),
        # 3. the name itself, where that has fewer than three parts
        ("localhost", "localhost"),
        ("mongo.local", "mongo.local"),
        # 4. no dot before the domain
        ("localhost", "test_1.cluster_1localhost"),
        ("mongo.local", "test_1.my_hostmongo.local"),
        (BLOGS, "cluster.testmongodb.com"),
    ],
)
def test_2_to_4_hosts_outside_of_the_domain(network: Network, name: str, target: str) -> None:
    with pytest.raises(ConfigurationError, match=f"name the host '{target}', which .* does not allow"):
        hosts_of(leads_to(network, name, target))


@pytest.mark.parametrize("name", ["build.10gen.cc", "test.build.10gen.cc"])
def test_a_name_of_three_parts_may_lead_to_itself(records: Network, name: str) -> None:
    assert hosts_of(f"mongodb+srv://{name}") == [name]


@pytest.mark.parametrize(("name", "target"), [(BLOGS, "blogs.evil.com"), ("mongo.local", "mongo.local")])
def test_5_a_validator_accepts_what_the_default_refuses(network: Network, name: str, target: str) -> None:
    assert hosts_of(leads_to(network, name, target), srv_host_validator=lambda _host: True) == [target]


def test_6_a_validator_refuses_what_the_default_accepts(network: Network) -> None:
    with pytest.raises(ConfigurationError, match="srv_host_validator does not allow"):
        hosts_of(leads_to(network, BLOGS, "cluster.mongodb.com"), srv_host_validator=lambda _host: False)


def test_7_a_validator_is_given_normalized_names(network: Network) -> None:
    asked: list[str] = []
    hosts_of(leads_to(network, BLOGS, "CLUSTER.MONGODB.COM."), srv_host_validator=lambda host: asked.append(host) or 1)
    assert asked == ["cluster.mongodb.com"]


def test_8_an_error_of_a_validator_is_wrapped(network: Network) -> None:
    error = RuntimeError("no idea")

    def fails(_host: str) -> bool:
        raise error

    with pytest.raises(ConfigurationError, match="no idea") as raised:
        hosts_of(leads_to(network, BLOGS, "cluster.mongodb.com"), srv_host_validator=fails)
    assert raised.value.__cause__ is error


def test_9_a_suffix_and_a_validator_exclude_each_other(network: Network) -> None:
    uri = leads_to(network, BLOGS, "cluster.mongodb.com")
    with pytest.raises(ConfigurationError, match="cannot be used together"):
        hosts_of(uri, srvAllowedHostsSuffix=".mongodb.com", srv_host_validator=lambda _host: True)


def test_10_a_suffix_is_compared_with_normalized_names(network: Network) -> None:
    uri = leads_to(network, BLOGS, "CLUSTER.MONGODB.COM.")
    assert hosts_of(uri, srvAllowedHostsSuffix=".mongodb.com") == ["cluster.mongodb.com"]


def test_11_a_validator_must_be_callable(network: Network) -> None:
    with pytest.raises((ConfigurationError, TypeError), match="srv_host_validator"):
        hosts_of(leads_to(network, BLOGS, "cluster.mongodb.com"), srv_host_validator="notacallable")


def test_12_a_reserved_label_is_a_suffix(network: Network) -> None:
    uri = leads_to(network, "cluster.localhost", "db.cluster.localhost")
    assert hosts_of(uri, srvAllowedHostsSuffix="localhost") == ["db.cluster.localhost"]


def test_13_a_validator_needs_a_name_with_srv_records() -> None:
    with pytest.raises(ConfigurationError, match="can only be used with a mongodb\\+srv URI"):
        hosts_of("mongodb://localhost:27017", srv_host_validator=lambda _host: True)


# What else it demands


def test_a_trailing_dot_does_not_matter(network: Network) -> None:
    uri = leads_to(network, BLOGS, "cluster.mongodb.com.")
    assert hosts_of(f"{uri}.") == ["cluster.mongodb.com"]


@pytest.mark.parametrize("uri", ["mongodb+srv://a.b.c,d.e.f", "mongodb+srv://a.b.c:27017", "mongodb+srv://127.0.0.1"])
def test_dns_is_not_asked_for_what_is_no_name(network: Network, uri: str) -> None:
    with pytest.raises(ConfigurationError):
        hosts_of(uri)
    assert network.names.questions == []


def test_dns_that_does_not_answer_is_given_up(network: Network) -> None:
    network.names.silent = True
    with pytest.raises(ConfigurationError, match=f"DNS gave no SRV records of _mongodb._tcp.{BLOGS}"):
        hosts_of(f"mongodb+srv://{BLOGS}", connectTimeoutMS=100)


def test_dns_is_asked_in_the_background(network: Network) -> None:
    """The loop goes on meanwhile: otherwise this name server, which is a greenlet, could not even answer."""
    network.names.silent = True
    asking = gevent.spawn(hosts_of, f"mongodb+srv://{BLOGS}", connectTimeoutMS=200)
    eventually(lambda: network.names.questions)
    assert not asking.ready()
    asking.join(5)
    assert isinstance(asking.exception, ConfigurationError)


# Clients with connect=False

NAME = "db.mongodb.com"


@pytest.fixture
def late(network: Network) -> Iterator[Callable[..., MongoClient[dict[str, Any]]]]:
    """Makes clients of a standalone server that do not connect before their first operation."""
    uri = leads_to(network, BLOGS, NAME)
    network.names.addresses[NAME] = "127.0.0.1"
    with gevent.Timeout(15), ExitStack() as stack:
        network.ports[27017] = stack.enter_context(ScriptedServer()).port

        def make(**options: Any) -> MongoClient[dict[str, Any]]:
            return stack.enter_context(MongoClient(uri, tls=False, connect=False, **options))

        yield make


class Queries:
    """The queries, which wait until the test sets the gate, by record type."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.gate = Event()

    def lookup(self, name: str, kind: str, timeout: float, ref: bool) -> Answer:
        self.made.append(kind)
        self.gate.wait()
        return lookup(name, kind, timeout, ref)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Queries:
    queries = Queries()
    monkeypatch.setattr(srv, "lookup", queries.lookup)
    return queries


def ping(client: MongoClient[dict[str, Any]]) -> float:
    ok: float = client.admin.command("ping")["ok"]
    return ok


def test_the_first_operation_queries_dns(late: Any, network: Network) -> None:
    network.names.texts[BLOGS] = [["authSource=users"]]
    client = late()
    assert repr(client).startswith(f"MongoClient(host='mongodb+srv://{BLOGS}', ")
    assert list(client.topology_description.server_descriptions()) == [(BLOGS, None)]
    assert client.nodes == frozenset() and client.primary is None and client.pool_stats() == []
    assert client.options.merged.get("authsource") is None
    before = hash(client)
    assert network.names.questions == []
    assert client.address == (NAME, 27017)
    assert network.names.questions == [(f"_mongodb._tcp.{BLOGS}", "SRV"), (BLOGS, "TXT")]
    assert repr(client).startswith(f"MongoClient(host=['{NAME}:27017'], ")
    assert client.nodes == {(NAME, 27017)} and client.options.merged["authsource"] == "users"
    assert hash(client) == before and client == late()
    assert ping(client) == 1 and len(network.names.questions) == 2


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"directConnection": True}, "directConnection"),
        ({"srvMaxHosts": 1, "replicaSet": "rs"}, "srvMaxHosts"),
        ({"minPoolSize": 5, "maxPoolSize": 2}, "minPoolSize"),
        ({"authMechanism": "MONGODB-X509"}, "MONGODB-X509"),
        ({"tlsCAFile": "/nowhere"}, "tls"),
    ],
)
def test_options_are_checked_without_dns(late: Any, network: Network, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        late(**options)
    assert network.names.questions == []


@pytest.mark.parametrize("option", ["serverSelectionTimeoutMS", "timeoutMS", "gmongo.timeout"])
def test_silent_dns_does_not_exceed_the_limit(late: Any, network: Network, option: str) -> None:
    network.names.silent = True
    client = late(connectTimeoutMS=60_000, **({} if "." in option else {option: 50}))
    for _ in range(2):
        with (
            pytest.raises(ServerSelectionTimeoutError, match=rf"DNS has not answered .* {BLOGS} .*{option}") as raised,
            gmongo.timeout(0.05 if "." in option else None),
        ):
            ping(client)
        assert raised.value.timeout and "TLS" not in str(raised.value)


@pytest.mark.parametrize("disaster", ["failure", "host", "option"])
def test_an_operation_queries_again_after_a_failed_query(late: Any, network: Network, disaster: str) -> None:
    names, client = network.names, late()
    if disaster == "failure":
        names.failure = RCODE.SERVFAIL
    elif disaster == "host":
        names.hosts[f"_mongodb._tcp.{BLOGS}"] = [Host("db.evil.com", 27017)]
    else:
        names.texts[BLOGS] = [["tls=false"]]
    waiting = [gevent.spawn(ping, client) for _ in range(2)]
    gevent.joinall(waiting)
    errors = [each.exception for each in waiting]
    assert [type(error) for error in errors] == [ConfigurationError] * 2 and errors[0] is not errors[1]
    assert [str(error) for error in errors] == [str(errors[0])] * 2 and BLOGS in str(errors[0])
    asked = len(names.questions)
    gevent.sleep(0)
    assert len(names.questions) == asked, "the client queries without an operation"
    names.failure = None
    names.texts.clear()
    leads_to(network, BLOGS, NAME)
    assert ping(client) == 1


def test_operations_share_a_query_and_an_interrupt_ends_one_of_them(late: Any, queries: Queries) -> None:
    client = late()
    interrupted, patient = gevent.spawn(ping, client), gevent.spawn(ping, client)
    eventually(lambda: client._topology.selector.waiting == 2 and queries.made)
    interrupted.kill()
    queries.gate.set()
    assert patient.get() == ping(client) == 1
    assert queries.made == ["SRV", "TXT"]


def test_a_query_that_is_killed_is_repeated(late: Any, queries: Queries) -> None:
    client = late()
    patient = gevent.spawn(ping, client)
    eventually(lambda: queries.made)
    client._topology._srv_monitor._background.greenlet.kill()
    queries.gate.set()
    assert patient.get() == 1
    assert queries.made == ["SRV", "SRV", "TXT"]


def test_close_ends_operations_that_wait_for_dns(late: Any, queries: Queries) -> None:
    client = late()
    waiting = gevent.spawn(ping, client)
    eventually(lambda: queries.made)
    query = client._topology._srv_monitor._background.greenlet
    client.close()
    waiting.join()
    assert isinstance(waiting.exception, InvalidOperation)
    eventually(lambda: query.dead)
