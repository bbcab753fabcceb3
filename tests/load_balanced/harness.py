"""What these tests stand on: clients of services behind a load balancer, and looks at what they hold."""

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


def balanced(server: ScriptedServer, **options: str) -> str:
    """The URI of a scripted server that is taken for a load balancer."""
    more = "".join(f"&{name}={value}" for name, value in options.items())
    return f"mongodb://{server.name}/?loadBalanced=true{more}"


def held(client: Client) -> dict[str, int]:
    """For what connections are in use, without what is not."""
    (pool,) = client.pool_stats()
    return {purpose: number for purpose, number in pool["in_use_by"].items() if number}


def collect() -> None:
    """Let finalisers run, and then what they have left to greenlets."""
    gc.collect()
    gevent.sleep(0)


def connections(deployment: Deployment, *names: str) -> list[int]:
    """On which connections commands arrived, in their order."""
    return [command.connection for command in deployment.commands.named(*names)]


def services_of(recorder: Recorder, *names: str) -> set[Any]:
    """The services that commands were sent to, as the events tell it."""
    return {event.service_id for event in recorder.of("CommandStarted") if event.command_name in names}
