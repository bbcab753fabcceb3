"""Functions that observe clients of services behind a load balancer."""

from __future__ import annotations

import gc
from typing import Any

import gevent
from bson import ObjectId

from gmongo.testing import Deployment
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

SERVICE_ID = ObjectId("5" * 24)
DOCUMENTS = [{"_id": number} for number in range(10)]
PIN_EVENTS = ("ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckOutFailed", "ConnectionCheckedIn")
# Names of the events of one check-out and one check-in.
CHECK_OUT_AND_IN = ["ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckedIn"]


def load_balanced_uri(server: ScriptedServer) -> str:
    """Return a URI that connects a client to a scripted server in load-balanced mode."""
    return f"mongodb://{server.name}/?loadBalanced=true"


def connection_uses(client: Client) -> dict[str, int]:
    """Return the number of checked-out connections by purpose.

    The result omits purposes without a connection.
    """
    (pool,) = client.pool_stats()
    return {purpose: number for purpose, number in pool["in_use_by"].items() if number}


def collect_garbage() -> None:
    """Collect garbage, and run the greenlets that finalizers have started."""
    gc.collect()
    gevent.sleep(0)


def connections_of_commands(deployment: Deployment, *names: str) -> list[int]:
    """Return, in order of arrival, the connection ID of each received command whose name is in
    `names`.
    """
    return [command.connection for command in deployment.commands.named(*names)]


def service_ids_of_commands(recorder: Recorder, *names: str) -> set[Any]:
    """Return the service IDs in the CommandStartedEvents of the commands whose name is in `names`."""
    return {event.service_id for event in recorder.events_named("CommandStarted") if event.command_name in names}
