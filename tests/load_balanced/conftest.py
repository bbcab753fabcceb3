"""Fixtures that start services behind a load balancer, and connect clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.load_balanced.harness import DOCUMENTS, SERVICE_ID
from tests.support.clients import Client
from tests.support.fixtures import virtual_time_limit_of
from tests.support.server import ScriptedServer

time_limit = virtual_time_limit_of(20)


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Start two services behind a load balancer. The collection ``db.c`` contains ten documents."""
    with Deployment.load_balanced(2) as deployment:
        client: Client = MongoClient(deployment.uri)
        client.db.c.insert_many([dict(document) for document in DOCUMENTS])
        client.close()
        deployment.commands.clear()
        yield deployment


@pytest.fixture
def service() -> Iterator[ScriptedServer]:
    """Start a scripted server that reports a ``serviceId``.

    Clients connect directly, without a load balancer.
    """
    with ScriptedServer() as server:
        server.hello_extra = {"serviceId": SERVICE_ID, "msg": "isdbgrid"}
        yield server


@pytest.fixture
def client(deployment: Deployment, connect: Callable[..., Client]) -> Client:
    return connect(deployment)


@pytest.fixture
def head_start() -> float:
    """Return the seconds for which `start_greenlet` waits, so that the greenlet sends its command."""
    return 0.03
