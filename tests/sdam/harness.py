"""What these tests stand on: clients of scripted servers, and somebody who writes down all that they tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gevent
from bson import Int64

from gmongo import MongoClient
from gmongo.monitoring import (
    CommandListener,
    ConnectionPoolListener,
    ServerHeartbeatListener,
    ServerListener,
    TopologyListener,
)
from tests.support.server import ScriptedServer, eventually

Client = MongoClient[dict[str, Any]]


def short_name(event: Any) -> str:
    """``ServerHeartbeatStartedEvent`` is ``HeartbeatStarted``, ``ServerClosedEvent`` is ``ServerClosed``."""
    return type(event).__name__.removesuffix("Event").replace("ServerHeartbeat", "Heartbeat")


def line(event: Any) -> str:
    """An event in a few words, such as ``HeartbeatStarted awaited``."""
    words = [short_name(event)]
    if getattr(event, "awaited", False):
        words.append("awaited")
    if hasattr(event, "new_description"):
        new = event.new_description
        words.append(getattr(new, "server_type_name", None) or new.topology_type_name)
    if getattr(event, "interrupt_connections", False):
        words.append("interrupting")
    return " ".join(words)


class Recorder(CommandListener, ConnectionPoolListener, ServerHeartbeatListener, ServerListener, TopologyListener):
    """Keeps all events of all kinds in order. ``hooks`` lets a test act inside a listener: short name -> what to do."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.hooks: dict[str, Callable[[Any], None]] = {}

    def _record(self, event: Any) -> None:
        self.events.append(event)
        hook = self.hooks.get(short_name(event))
        if hook is not None:
            hook(event)

    started = succeeded = failed = opened = closed = description_changed = _record
    pool_created = pool_ready = pool_cleared = pool_closed = _record
    connection_created = connection_ready = connection_closed = _record
    connection_check_out_started = connection_check_out_failed = _record
    connection_checked_out = connection_checked_in = _record

    def of(self, kind: str) -> list[Any]:
        """The events with that short name."""
        return [event for event in self.events if short_name(event) == kind]

    @property
    def story(self) -> list[str]:
        """All events in a few words each."""
        return [line(event) for event in self.events]

    def only(self, *kinds: str) -> list[str]:
        """Those of the story whose short name begins with one of `kinds`."""
        return [each for each in self.story if each.startswith(kinds)]

    def forget(self) -> None:
        self.events.clear()

    def wait_for(self, words: str, count: int = 1) -> Any:
        """Wait until `count` lines of the story begin with `words`; returns the event of the last of them."""
        eventually(lambda: sum(each.startswith(words) for each in self.story) >= count)
        return [event for event in self.events if line(event).startswith(words)][count - 1]


def make_client(host: str | list[str], recorder: Recorder, heartbeat: float | None = None, **options: Any) -> Client:
    """A client that has begun to look for its servers.

    :param heartbeat: seconds between two checks; unlike the option, it may be less than half a second.
    """
    options = {"event_listeners": [recorder], "serverSelectionTimeoutMS": 5000, **options}
    client: Client = MongoClient(host, connect=False, **options)
    if heartbeat is not None:
        client._topology.settings = replace(client._topology.settings, heartbeat_frequency=heartbeat)
    client._topology.open()
    return client


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
