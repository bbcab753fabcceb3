"""Pools and clients of the tests' own, which are gone after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo.cmap.pool import Pool
from tests.cmap.harness import Recorder, make_pool
from tests.support.server import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A standalone server."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def recorder() -> Recorder:
    """Hears everything of the pools of the test."""
    return Recorder()


@pytest.fixture
def new_pool(server: ScriptedServer, recorder: Recorder) -> Iterator[Callable[..., Pool]]:
    """Makes pools of connections to the server; the arguments are those of ``make_pool``."""
    pools: list[Pool] = []

    def make(**options: Any) -> Pool:
        pools.append(make_pool(server.address, recorder, **options))
        return pools[-1]

    yield make
    recorder.hooks.clear()
    for pool in pools:
        pool.close()


@pytest.fixture
def new_client(server: ScriptedServer, recorder: Recorder) -> Iterator[Callable[..., MongoClient[dict[str, Any]]]]:
    """Makes clients; of the server, unless they are told otherwise."""
    clients: list[MongoClient[dict[str, Any]]] = []

    def make(host: str | list[str] = "", **options: Any) -> MongoClient[dict[str, Any]]:
        options = {"event_listeners": [recorder], "serverSelectionTimeoutMS": 5000, **options}
        client: MongoClient[dict[str, Any]] = MongoClient(host or server.name, **options)
        clients.append(client)
        return client

    yield make
    recorder.hooks.clear()
    for client in clients:
        client._topology.close()  # without the good-byes, which a bad server would not answer


@pytest.fixture
def go() -> Iterator[Callable[..., gevent.Greenlet[..., Any]]]:
    """Starts greenlets, and lets them run as far as they can without I/O."""
    greenlets: list[gevent.Greenlet[..., Any]] = []

    def start(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> gevent.Greenlet[..., Any]:
        greenlets.append(gevent.Greenlet(function, *arguments, **keywords))
        greenlets[-1].start()
        gevent.sleep(0)
        return greenlets[-1]

    yield start
    gevent.killall(greenlets, timeout=5)
