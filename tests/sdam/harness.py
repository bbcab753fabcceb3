"""Functions that read descriptions, pools and the hellos of scripted servers."""

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


def awaitable_hellos(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the received awaitable hellos."""
    return [command for command in server.commands("hello") if "topologyVersion" in command]


def plain_hellos(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the received hellos without ``topologyVersion`` and without handshakes."""
    return [command for command in server.commands("hello") if "topologyVersion" not in command]


def streaming_connection(server: ScriptedServer) -> int:
    """Return the number of the newest streaming connection."""
    return [each.connection for each in server.received if "topologyVersion" in each.command][-1]


def newer_version(version: dict[str, Any], by: int = 1) -> dict[str, Any]:
    """Return a topologyVersion after `version`."""
    return {**version, "counter": Int64(version["counter"] + by)}


def settle(seconds: float = 0.03) -> None:
    """Wait, before a test checks that an event is absent."""
    gevent.sleep(seconds)
