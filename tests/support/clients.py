"""Clients that are recorded."""

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
    """A client that has begun to look for its servers.

    :param host: as ``MongoClient`` takes it.
    :param recorder: hears everything of the client.
    :param heartbeat: seconds between two checks; unlike the option, it may be less than half a second.
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
    """Makes clients as :func:`make_client` does, of deployments, scripted servers or URIs, and ends them all."""
    clients: list[Client] = []

    def make(*hosts: Any, **options: Any) -> Client:
        names = [getattr(host, "uri", None) or getattr(host, "name", host) for host in hosts]
        clients.append(make_client(names[0] if len(names) == 1 else names, recorder, **options))
        return clients[-1]

    yield make
    recorder.hooks.clear()
    for client in clients:
        client._topology.close()  # without the good-byes, which a bad server would not answer
