"""Clocks that jump: a machine that slept for an hour, and a wall clock that is set back or forth."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest

import gmongo
from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.hostile.witness import Commands, attempt, check_at_rest

_real_monotonic, _real_time = time.monotonic, time.time


class Clocks:
    """Both clocks, and how far they have been moved."""

    def __init__(self) -> None:
        self.monotonic = self.wall = 0.0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Move the clocks of the driver; those of gevent's loop have their own idea of time, as after a suspension."""
        patch.setattr("gmongo._clock.monotonic", lambda: _real_monotonic() + self.monotonic)
        for name, module in list(sys.modules.items()):
            ours = name.startswith("gmongo.") and not name.startswith("gmongo.testing")
            if ours and getattr(module, "time", None) is _real_time:
                patch.setattr(module, "time", lambda: _real_time() + self.wall)


JUMPS: dict[str, Callable[[Clocks], None]] = {
    "an hour of sleep": lambda clocks: setattr(clocks, "monotonic", clocks.monotonic + 3600),
    "a year of sleep": lambda clocks: setattr(clocks, "monotonic", clocks.monotonic + 3e7),
    "a wall clock set back": lambda clocks: setattr(clocks, "wall", -1e8),
    "a wall clock set forth": lambda clocks: setattr(clocks, "wall", 1e9),
}


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS.keys())
@pytest.mark.parametrize("topology", ["replica_set", "load_balanced"])
def test_a_client_outlives_a_jump(
    topology: str, jump: Callable[[Clocks], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gmongo
    clocks, commands = Clocks(), Commands()
    clocks.install(monkeypatch)
    options: dict[str, Any] = {
        "maxPoolSize": 4, "maxIdleTimeMS": 60_000, "waitQueueTimeoutMS": 10_000, "event_listeners": [commands],
        "serverSelectionTimeoutMS": 5000,
    }  # fmt: skip
    with getattr(Deployment, topology)() as deployment, MongoClient(deployment.uri, **options) as client:
        client.t.t.insert_many([{"_id": number} for number in range(20)])
        cursor = client.t.t.find({}, batch_size=5)
        next(cursor)
        with client.start_session() as session:
            session.start_transaction()
            client.t.t.insert_one({"_id": 100}, session=session)
            deployment.network.latency = 0.05
            busy = [gevent.spawn(client.t.t.find_one, {"_id": number}) for number in range(6)]
            gevent.sleep(0.06)
            jump(clocks)  # some wait for a reply, and some for a connection
            gevent.joinall(busy, timeout=10)
            assert [each.value for each in busy if each.successful()]
            assert all(each.ready() for each in busy)
            deployment.network.latency = 0
            attempt(session.commit_transaction)
        attempt(lambda: list(cursor))
        cursor.close()
        for number in range(5):
            assert client.t.t.find_one({"_id": number}) == {"_id": number}
        check_at_rest(client, commands)
