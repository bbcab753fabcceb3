"""Helper functions: topology descriptions, the state of a client, and the hello commands that a
scripted server has received.
"""

from __future__ import annotations

from typing import Any

import gevent
from bson import Int64

from gmongo.client_options import ClientOptions
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology_description import TopologyDescription, initial_description
from gmongo.sdam.transitions import update_topology
from tests.support.clients import Client
from tests.support.server import ScriptedServer


def topology_with(
    *servers: ServerDescription, uri: str = "mongodb://a,b/?replicaSet=rs&localThresholdMS=15"
) -> TopologyDescription:
    """Return the topology description after the descriptions `servers` have been applied in order."""
    topology = initial_description(ClientOptions(uri, None, {}).topology())
    for server in servers:
        topology = update_topology(topology, server)
    return topology


def description_of(client: Client, server: ScriptedServer) -> Any:
    return client.topology_description.server_descriptions()[server.address]


def pool_stats_of(client: Client, server: ScriptedServer) -> dict[str, Any]:
    (pool,) = [pool for pool in client.pool_stats() if pool["address"] == server.address]
    return pool


def awaitable_hellos(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the received hello commands that have a ``topologyVersion``."""
    return [command for command in server.commands("hello") if "topologyVersion" in command]


def plain_hellos(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the received hello commands that have no ``topologyVersion`` and are not part of a
    handshake.
    """
    return [command for command in server.commands("hello") if "topologyVersion" not in command]


def streaming_connection_number(server: ScriptedServer) -> int:
    """Return the number of the connection that received the last awaitable hello command."""
    return [each.connection for each in server.received if "topologyVersion" in each.command][-1]


def newer_topology_version(version: dict[str, Any], increment: int = 1) -> dict[str, Any]:
    """Return a ``topologyVersion`` whose counter is higher than the counter of `version`."""
    return {**version, "counter": Int64(version["counter"] + increment)}


def wait_for_absent_events(seconds: float = 0.03) -> None:
    """Wait for a short time before a test checks that no event has occurred."""
    gevent.sleep(seconds)
