"""A client uses the simulated services behind a load balancer."""

from __future__ import annotations

from typing import Any

import pytest
from bson import ObjectId

from gmongo.errors import AutoReconnect, ServerSelectionTimeoutError
from gmongo.testing import Deployment
from tests.support.clients import Client


def hello_commands(deployment: Deployment) -> list[Any]:
    return deployment.commands.named("hello", "isMaster", "ismaster")


@pytest.mark.requirement("LB-73", "LB-76", "LB-77", "LB-78")
def test_each_service_behind_load_balancer_has_own_service_id(
    deployment: Deployment, client: Client, recorder: Any
) -> None:
    cursors = [client.db.c.find(batch_size=2) for _ in range(4)]
    for cursor in cursors:
        next(cursor)
    service_ids = [event.service_id for event in recorder.events_named("CommandStarted")]
    assert set(service_ids) == {member.service_id for member in deployment.members}
    assert all(isinstance(each, ObjectId) for each in service_ids)
    assert len(service_ids) == 4
    for cursor in cursors:
        cursor.close()


@pytest.mark.requirement("LB-74")
def test_client_works_with_and_without_proxy_protocol(deployment: Deployment, connect: Any) -> None:
    # A direct connection to a service begins without a PROXY header, which only a load balancer
    # sends.
    direct_uri = f"mongodb://{deployment.members[0].address}/?loadBalanced=true"
    assert connect(direct_uri).db.c.find_one() == connect(deployment).db.c.find_one() == {"_id": 0}


@pytest.mark.requirement("LB-75")
def test_certificate_of_service_must_match_name_of_load_balancer(connect: Any) -> None:
    with Deployment.load_balanced(2, tls=True) as deployment:
        connect(deployment).db.c.insert_one({})
        other_uri = deployment.uri.replace("127.0.0.1", "127.0.0.2")
        assert other_uri != deployment.uri
        with pytest.raises(AutoReconnect):
            connect(other_uri, retryReads=False).db.c.find_one()


@pytest.mark.requirement("LB-79", "LB-85")
def test_service_rejects_client_without_load_balanced_option(deployment: Deployment, connect: Any) -> None:
    client = connect(
        deployment.uri.replace("loadBalanced=true", "loadBalanced=false"),
        serverSelectionTimeoutMS=100,
    )
    with pytest.raises(ServerSelectionTimeoutError, match="load balanc"):
        client.db.c.find_one()
    (server,) = client.topology_description.server_descriptions().values()
    assert (server.server_type_name, server.error.code) == ("Unknown", 354)
    assert not any("loadBalanced" in hello.body for hello in hello_commands(deployment)[1:] if hello.connection > 1)
