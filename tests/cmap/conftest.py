"""Fixtures for pool tests: a server, a recorder, and functions that create pools and clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo.cmap.pool import Pool
from tests.cmap.harness import make_pool
from tests.support.clients import Client
from tests.support.critical_sections import fail_on_switches
from tests.support.recorder import PoolRecorder
from tests.support.server import ScriptedServer


@pytest.fixture(autouse=True)
def no_switch_in_critical_sections() -> Iterator[None]:
    """Fail the test if a greenlet switch occurs in a critical section of a pool."""
    with fail_on_switches():
        yield


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def recorder() -> PoolRecorder:
    """Return a listener that records all pool events of the test."""
    return PoolRecorder()


@pytest.fixture
def new_pool(server: ScriptedServer, recorder: PoolRecorder) -> Iterator[Callable[..., Pool]]:
    """Yield a function that creates a pool for the fixture `server`. The function has the keyword
    arguments of ``make_pool``. Close the created pools at the end of the test.
    """
    pools: list[Pool] = []

    def create_pool(**options: Any) -> Pool:
        pools.append(make_pool(server.address, recorder, **options))
        return pools[-1]

    yield create_pool
    recorder.hooks.clear()
    for pool in pools:
        pool.close()


@pytest.fixture
def new_client(server: ScriptedServer, connect: Callable[..., Client]) -> Callable[..., Client]:
    """Return a function that creates a client, by default for the scripted server."""
    return lambda host=server, **options: connect(host, **options)
