"""Tests of a simulated load balancer and the services behind the load balancer."""

from __future__ import annotations

import pytest

from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.simulation.servers.wire_client import WireClient

HELLO = {"hello": 1, "loadBalanced": True}


@pytest.fixture
def deployment():
    with Deployment.load_balanced(services=2) as deployment:
        yield deployment


@pytest.fixture
def load_balancer_address(deployment):
    return deployment.uri.split("/")[2]


def service_id_of(address):
    with WireClient(address) as client:
        return client.run(HELLO)["serviceId"]


def test_load_balancer_distributes_connections_over_services(deployment, load_balancer_address):
    assert deployment.uri.endswith("/?loadBalanced=true")
    services = [service_id_of(load_balancer_address) for _ in range(4)]
    assert services[0] == services[2] != services[1] == services[3]


def test_connection_keeps_its_service(load_balancer_address):
    with WireClient(load_balancer_address) as client:
        assert client.run(HELLO)["serviceId"] == client.run({"hello": 1})["serviceId"]


def test_hello_without_load_balanced_option_is_refused(load_balancer_address):
    with WireClient(load_balancer_address) as client:
        reply = client.run({"hello": 1})
    assert (reply["code"], reply["codeName"]) == (354, "LoadBalancerSupportMismatch")


def test_killed_service_receives_no_connections(deployment, load_balancer_address):
    survivor = deployment.members[1].service_id
    deployment.members[0].kill()
    assert {service_id_of(load_balancer_address) for _ in range(3)} == {survivor}


def test_load_balancer_closes_connections_if_no_service_is_alive(deployment, load_balancer_address):
    for member in deployment.members:
        member.kill()
    with WireClient(load_balancer_address) as client:
        assert client.server_closes_connection()


def test_services_share_the_data(deployment):
    with WireClient(deployment.members[0].address) as client:
        assert client.run(HELLO)["msg"] == "isdbgrid"
        assert client.run({"insert": "c", "documents": [{"_id": 1}]}, "db")["n"] == 1
    with WireClient(deployment.members[1].address) as client:
        assert client.run(HELLO)["ok"] == 1
        assert client.run({"find": "c"}, "db")["cursor"]["firstBatch"] == [{"_id": 1}]


@pytest.mark.parametrize(
    "preamble",
    [
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1234 27017\r\n",
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12),
        b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00",
    ],
)
def test_service_accepts_proxy_protocol(deployment, preamble):
    with WireClient(deployment.members[0].address) as client:
        client.socket.sendall(preamble)
        assert client.run(HELLO)["serviceId"] == deployment.members[0].service_id


def test_sharded_deployment_has_no_service_id():
    with Deployment.sharded() as deployment, WireClient(deployment.members[0].address) as client:
        assert "serviceId" not in client.run(HELLO)


def test_uri_of_one_service_selects_load_balanced_mode(deployment):
    uri = deployment.uri_of(deployment.members[1].address)
    assert uri.endswith("/?loadBalanced=true")
    with MongoClient(uri) as client:
        assert client.admin.command("ping")["ok"] == 1
