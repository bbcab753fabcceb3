"""Pools and clients of the tests' own, which are gone after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo.cmap.pool import Pool
from tests.cmap.harness import make_pool
from tests.support.clients import Client
from tests.support.critical_sections import check
from tests.support.recorder import PoolRecorder
from tests.support.server import ScriptedServer


@pytest.fixture(autouse=True)
def critical_sections() -> Iterator[None]:
    """All tests here fail if a greenlet switches in a critical section of a pool."""
    with check():
        yield


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A standalone server."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def recorder() -> PoolRecorder:
    """Hears everything of the pools of the test."""
    return PoolRecorder()


@pytest.fixture
def new_pool(server: ScriptedServer, recorder: PoolRecorder) -> Iterator[Callable[..., Pool]]:
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
def new_client(server: ScriptedServer, connect: Callable[..., Client]) -> Callable[..., Client]:
    """Makes clients; of the server, unless they are told otherwise."""
    return lambda host=server, **options: connect(host, **options)
