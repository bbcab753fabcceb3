"""What these tests look at: descriptions and pools of clients, hellos that arrived at scripted servers."""

from __future__ import annotations

from typing import Any

import gevent
from bson import Int64

from tests.support.clients import Client
from tests.support.server import ScriptedServer


def description_of(client: Client, server: ScriptedServer) -> Any:
    return client.topology_description.server_descriptions()[server.address]


def pool_of(client: Client, server: ScriptedServer) -> dict[str, Any]:
    (pool,) = [pool for pool in client.pool_stats() if pool["address"] == server.address]
    return pool


def awaitable(server: ScriptedServer) -> list[dict[str, Any]]:
    """The awaitable hellos that have arrived."""
    return [command for command in server.commands("hello") if "topologyVersion" in command]


def plain(server: ScriptedServer) -> list[dict[str, Any]]:
    """The hellos that have arrived and want an answer at once; not those that open connections."""
    return [command for command in server.commands("hello") if "topologyVersion" not in command]


def connection_that_streams(server: ScriptedServer) -> int:
    """The number of the newest connection on which the server is to stream."""
    return [each.connection for each in server.received if "topologyVersion" in each.command][-1]


def newer(version: dict[str, Any], by: int = 1) -> dict[str, Any]:
    """A topologyVersion after `version`."""
    return {**version, "counter": Int64(version["counter"] + by)}


def settle(seconds: float = 0.03) -> None:
    """Leave time for what must not happen."""
    gevent.sleep(seconds)
