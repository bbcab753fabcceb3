"""Clients with a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gmongo import MongoClient
from tests.support.recorder import PoolRecorder, Recorder

Client = MongoClient[dict[str, Any]]
Connect = Callable[..., Client]


def make_client(host: Any, recorder: Any, heartbeat: float | None = None, **options: Any) -> Client:
    """Create a client and start its monitors.

    :param recorder: Listener for all events of the client.
    :param heartbeat: Interval of server checks in seconds. The option ``heartbeatFrequencyMS`` has a minimum of 500 ms.
    """
    options = {"event_listeners": [recorder], "serverSelectionTimeoutMS": 5000, **options}
    if heartbeat is None:
        return MongoClient(host, **options)
    client: Client = MongoClient(host, **{**options, "connect": False})
    client._topology.settings = replace(client._topology.settings, heartbeat_frequency=heartbeat)
    client._topology.open()
    return client


@contextmanager
def clients_of(recorder: Recorder | PoolRecorder) -> Iterator[Connect]:
    """Yield a function that creates clients for deployments, scripted servers or URIs. Close the clients at the end."""
    clients: list[Client] = []

    def make(*hosts: Any, **options: Any) -> Client:
        names = [getattr(host, "uri", None) or getattr(host, "name", host) for host in hosts]
        clients.append(make_client(names[0] if len(names) == 1 else names, recorder, **options))
        return clients[-1]

    yield make
    recorder.hooks.clear()
    for client in clients:
        client._topology.close()  # without `endSessions`, because a faulty server may not reply
