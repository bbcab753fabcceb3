"""The option `loadBalanced` selects the load-balanced mode."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import gevent
import pytest

from gmongo.collection import Collection
from gmongo.database import Database
from tests.load_balanced.harness import load_balanced_uri
from tests.support.dns import Host, Network
from tests.support.pools import service_counts
from tests.support.server import ScriptedServer

SRV_NAME = "shop.example.test"
SRV_RECORD = f"_mongodb._tcp.{SRV_NAME}"


@pytest.fixture
def dns(network: Network, service: ScriptedServer) -> Iterator[Network]:
    """Let DNS resolve the SRV name to the scripted service. DNS has no TXT record for the name."""
    network.name_server.hosts[SRV_RECORD] = [Host("lb.example.test", 27017, ttl=0)]
    network.name_server.addresses["lb.example.test"] = "127.0.0.1"
    network.ports[27017] = service.port
    yield network


def topology_type_of(client: Any) -> str:
    return str(client.topology_description.topology_type_name)


@pytest.mark.requirement("LB-01")
@pytest.mark.parametrize("option_source", ["uri", "keyword"])
def test_load_balanced_option_selects_mode(option_source: str, service: ScriptedServer, connect: Any) -> None:
    uri, options = (
        (load_balanced_uri(service), {}) if option_source == "uri" else (service.name, {"loadBalanced": True})
    )
    client = connect(uri, **options)
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
    assert topology_type_of(client) == "LoadBalanced"


@pytest.mark.requirement("LB-02", "LB-41")
@pytest.mark.parametrize("option", ["", "?loadBalanced=false"])
def test_client_without_option_is_not_load_balanced(option: str, service: ScriptedServer, connect: Any) -> None:
    client = connect(f"mongodb://{service.name}/{option}")
    client.db.c.find_one()
    hellos = service.commands("handshake") + service.commands("hello")
    # The monitor and the connection of the `find` each send a hello.
    assert len(hellos) >= 2
    assert not any("loadBalanced" in hello for hello in hellos)
    assert topology_type_of(client) == "Sharded"


@pytest.mark.requirement("LB-03")
def test_databases_and_collections_reject_load_balanced_option(service: ScriptedServer, connect: Any) -> None:
    client = connect(f"mongodb://{service.name}")
    with pytest.raises(TypeError, match="unexpected keyword argument 'load_balanced'"):
        client.get_database("db", load_balanced=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'load_balanced'"):
        client.db.get_collection("c", load_balanced=True)
    for owner in (Database, Collection):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            parameters = {each.lower().replace("_", "") for each in inspect.signature(method).parameters}
            assert "loadbalanced" not in parameters, name


@pytest.mark.requirement("LB-10", "LB-86")
def test_txt_record_selects_load_balanced_mode(dns: Network, connect: Any) -> None:
    uri = f"mongodb+srv://{SRV_NAME}/?tls=false"
    client_before = connect(uri)
    client_before.db.c.find_one()
    dns.name_server.texts[SRV_NAME] = [["loadBalanced=true"]]
    client_after = connect(uri)
    client_after.db.c.find_one()
    assert (topology_type_of(client_before), topology_type_of(client_after)) == (
        "Sharded",
        "LoadBalanced",
    )


@pytest.mark.requirement("LB-12")
@pytest.mark.parametrize("option_source", ["uri", "txt"])
def test_load_balanced_client_does_not_poll_srv_records(
    option_source: str, dns: Network, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor_starts: list[float] = []
    monkeypatch.setattr("gmongo.sdam.srv_monitor.SrvMonitor.start", lambda monitor: monitor_starts.append(1))
    option = "&loadBalanced=true" if option_source == "uri" else ""
    if option_source == "txt":
        dns.name_server.texts[SRV_NAME] = [["loadBalanced=true"]]
    client = connect(f"mongodb+srv://{SRV_NAME}/?tls=false{option}")
    client.db.c.find_one()
    gevent.sleep(0.05)
    assert topology_type_of(client) == "LoadBalanced"
    assert not monitor_starts
    assert dns.name_server.questions.count((SRV_RECORD, "SRV")) == 1
    connect(f"mongodb+srv://{SRV_NAME}/?tls=false&loadBalanced=false").db.c.find_one()
    if option_source == "uri":
        assert monitor_starts  # A client without load balancing starts the SRV monitor.


def test_late_dns_query_keeps_load_balanced_option(dns: Network, service: ScriptedServer, connect: Any) -> None:
    client = connect(f"mongodb+srv://{SRV_NAME}/?tls=false&loadBalanced=true", connect=False)
    client.db.c.find_one()
    assert topology_type_of(client) == "LoadBalanced"
    assert service.commands("handshake")[0]["loadBalanced"] is True


@pytest.mark.requirement("LB-87", "LB-71")
def test_service_id_in_hello_does_not_select_load_balanced_mode(
    service: ScriptedServer, connect: Any, recorder: Any
) -> None:
    client = connect(f"mongodb://{service.name}", minPoolSize=0)
    client.db.c.find_one()
    assert topology_type_of(client) == "Sharded"
    assert recorder.events_named("HeartbeatStarted")
    assert {
        event.service_id
        for event in recorder.events_named("CommandStarted") + recorder.events_named("CommandSucceeded")
    } == {None}
    assert client.pool_stats()[0]["state"] == "ready"
    assert service_counts(client._topology.pools()[0]) == {}
