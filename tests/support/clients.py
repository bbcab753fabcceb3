"""Create clients whose event listener is a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gmongo import MongoClient
from tests.support.recorder import PoolRecorder, Recorder

Client = MongoClient[dict[str, Any]]
Connect = Callable[..., Client]


def make_client(host: Any, recorder: Any, heartbeat_interval: float | None = None, **options: Any) -> Client:
    """Create a client with the event listener `recorder`. `heartbeat_interval` is a number
    of seconds.
    """
    options = {"event_listeners": [recorder], "serverSelectionTimeoutMS": 5000, **options}
    if heartbeat_interval is None:
        return MongoClient(host, **options)
    # The option `heartbeatFrequencyMS` rejects intervals below 500 ms.
    client: Client = MongoClient(host, **{**options, "connect": False})
    client._topology.settings = replace(client._topology.settings, heartbeat_frequency=heartbeat_interval)
    client._topology.open()
    return client


@contextmanager
def client_factory(recorder: Recorder | PoolRecorder) -> Iterator[Connect]:
    """Yield `create_client`, a function that creates a client.

    The positional arguments of `create_client` are deployments, scripted servers, host names or
    URIs. At the end of the block, close all clients that `create_client` has created.
    """
    clients: list[Client] = []

    def create_client(*hosts: Any, **options: Any) -> Client:
        names = [getattr(host, "uri", None) or getattr(host, "name", host) for host in hosts]
        clients.append(make_client(names[0] if len(names) == 1 else names, recorder, **options))
        return clients[-1]

    yield create_client
    recorder.hooks.clear()
    for client in clients:
        # `client.close` would wait for the reply to `endSessions`. A faulty server may never send
        # the reply.
        client._topology.close()
