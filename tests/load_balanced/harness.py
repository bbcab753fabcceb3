"""Functions for clients of services behind a load balancer."""

from __future__ import annotations

import gc
from typing import Any

import gevent
from bson import ObjectId

from gmongo.testing import Deployment
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

SERVICE = ObjectId("5" * 24)
DOCUMENTS = [{"_id": number} for number in range(10)]
PINNING = ("ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckOutFailed", "ConnectionCheckedIn")


def load_balanced_uri(server: ScriptedServer, **options: str) -> str:
    """Return the URI of a scripted server in load-balanced mode."""
    more = "".join(f"&{name}={value}" for name, value in options.items())
    return f"mongodb://{server.name}/?loadBalanced=true{more}"


def connection_uses(client: Client) -> dict[str, int]:
    """Return the number of connections in use by purpose, without zeros."""
    (pool,) = client.pool_stats()
    return {purpose: number for purpose, number in pool["in_use_by"].items() if number}


def collect() -> None:
    """Run finalisers, and the greenlets that the finalisers start."""
    gc.collect()
    gevent.sleep(0)


def connections(deployment: Deployment, *names: str) -> list[int]:
    """Return the connection of each received command, in order."""
    return [command.connection for command in deployment.commands.named(*names)]


def services_of(recorder: Recorder, *names: str) -> set[Any]:
    """Return the services of the published commands."""
    return {event.service_id for event in recorder.of("CommandStarted") if event.command_name in names}
