"""Tests of clock jumps: the machine is suspended, or the wall clock changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo import MongoClient, _clock
from gmongo.testing import Deployment
from tests.hostile.invariants import CommandEventChecker, attempt, check_nothing_in_use
from tests.support.recorder import Recorder


class ClockOffsets:
    """Seconds that the test adds to the monotonic clock and to the wall clock."""

    def __init__(self) -> None:
        self.monotonic = self.wall = 0.0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Add the offsets to the driver's clocks. The clock of gevent's event loop is unchanged."""
        monotonic, wall = _clock.monotonic, _clock.time
        patch.setattr("gmongo._clock.monotonic", lambda: monotonic() + self.monotonic)
        patch.setattr("gmongo._clock.time", lambda: wall() + self.wall)


JUMPS: dict[str, Callable[[ClockOffsets], None]] = {
    "suspension of an hour": lambda offsets: setattr(offsets, "monotonic", offsets.monotonic + 3600),
    "suspension of a year": lambda offsets: setattr(offsets, "monotonic", offsets.monotonic + 3e7),
    "wall clock set back": lambda offsets: setattr(offsets, "wall", offsets.wall - 1e8),
    "wall clock set forward": lambda offsets: setattr(offsets, "wall", offsets.wall + 1e8),
}


def check_durations(recorder: Recorder) -> None:
    """Check that the pool closed no connection for the reason ``idle``, and that the durations of
    check-outs, heartbeats and commands are plausible.
    """
    assert "idle" not in [event.reason for event in recorder.events_named("ConnectionClosed")]
    durations = [
        event.duration
        for kind in ("ConnectionCheckedOut", "HeartbeatSucceeded")
        for event in recorder.events_named(kind)
    ] + [event.duration_micros / 1e6 for event in recorder.events_named("CommandSucceeded")]
    assert not [each for each in durations if abs(each) > 1e7]


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS.keys())
@pytest.mark.parametrize("topology", ["replica_set", "load_balanced"])
def test_client_continues_after_clock_jump(
    topology: str, jump: Callable[[ClockOffsets], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets, commands, recorder = ClockOffsets(), CommandEventChecker(), Recorder()
    offsets.install(monkeypatch)
    options: dict[str, Any] = {
        "maxPoolSize": 4, "maxIdleTimeMS": 60_000, "waitQueueTimeoutMS": 10_000, "serverSelectionTimeoutMS": 5000,
        "event_listeners": [commands, recorder],
    }  # fmt: skip
    with (
        getattr(Deployment, topology)() as deployment,
        MongoClient(deployment.uri, **options) as client,
    ):
        client.t.t.insert_many([{"_id": number} for number in range(20)])
        cursor = client.t.t.find({}, batch_size=5)
        next(cursor)
        with client.start_session() as session:
            session.start_transaction()
            client.t.t.insert_one({"_id": 100}, session=session)
            deployment.network.latency = 0.05
            readers = [gevent.spawn(client.t.t.find_one, {"_id": number}) for number in range(6)]
            gevent.sleep(0.06)
            jump(offsets)  # at this time, reads wait for replies or for connections
            gevent.joinall(readers, timeout=10)
            assert [each.value for each in readers if each.successful()]
            assert all(each.ready() for each in readers)
            deployment.network.latency = 0
            attempt(session.commit_transaction)
        attempt(lambda: list(cursor))
        cursor.close()
        jump(offsets)  # all connections are available
        for number in range(5):
            assert client.t.t.find_one({"_id": number}) == {"_id": number}
        check_nothing_in_use(client, commands)
    if not offsets.monotonic:
        check_durations(recorder)
