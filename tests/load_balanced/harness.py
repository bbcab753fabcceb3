"""What these tests stand on: clients of services behind a load balancer, and looks at what they hold."""

from __future__ import annotations

import gc
from typing import Any

import gevent
from bson import ObjectId

from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.sdam.harness import Recorder
from tests.support.server import ScriptedServer, eventually

Client = MongoClient[dict[str, Any]]
SERVICE = ObjectId("5" * 24)
DOCUMENTS = [{"_id": number} for number in range(10)]
PINNING = ("ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckOutFailed", "ConnectionCheckedIn")

__all__ = [
    "DOCUMENTS",
    "PINNING",
    "SERVICE",
    "Client",
    "Recorder",
    "balanced",
    "block",
    "break_off",
    "collect",
    "connections",
    "eventually",
    "held",
    "refuse",
    "services_of",
]


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


def fail(deployment: Deployment, command: str, **data: Any) -> None:
    """Let the next command of that name fail."""
    deployment.set_fail_point("failCommand", {"times": 1}, {"failCommands": [command], **data})


def block(deployment: Deployment, command: str, seconds: float = 0.15) -> None:
    """Let the next command of that name wait before it is executed."""
    fail(deployment, command, blockConnection=True, blockTimeMS=int(seconds * 1000))


def refuse(deployment: Deployment, command: str, code: int, *labels: str) -> None:
    """Let the next command of that name fail with an error of the server."""
    fail(deployment, command, errorCode=code, errorLabels=list(labels))


def break_off(deployment: Deployment, command: str) -> None:
    """Close the connection in the place of a reply to the next command of that name."""
    fail(deployment, command, closeConnection=True)
