"""The pool opens connections in the background up to minPoolSize (CMAP-94 to CMAP-103, CMAP-237,
CMAP-238).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import _clock
from gmongo.cmap import pool as pool_module
from gmongo.cmap.handshake import establish
from tests.cmap.harness import connection_counts
from tests.support.server import cut_reply, hold_reply
from tests.support.wait import eventually

SHORT_INTERVAL_OPTIONS = {"background_interval": 0.005}


@pytest.mark.requirement("CMAP-08", "CMAP-61", "CMAP-97", "CMAP-99", "CMAP-101", "CMAP-103")
def test_ready_pool_opens_min_pool_size_connections(new_pool: Any, recorder: Any) -> None:
    pool = new_pool(min_pool_size=3, background_interval=60)
    recorder.wait_for("Ready", 3)
    gevent.sleep(0.01)
    assert connection_counts(pool) == (3, 0, 3, 0)
    pool.populate()  # the pool needs no connection
    assert recorder.event_lines[2:] == ["Created 1", "Ready 1", "Created 2", "Ready 2", "Created 3", "Ready 3"]
    pool.close()
    assert eventually(pool._background.greenlet.ready, 5)


def test_pool_populates_after_dropped_ready_event(new_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmongo.events.delivery._MAX_UNDELIVERED", 0)
    pool = new_pool(min_pool_size=1, background_interval=60)
    assert eventually(lambda: connection_counts(pool) == (1, 0, 1, 0))


@pytest.mark.requirement("CMAP-91", "CMAP-94", "CMAP-238")
def test_hanging_handshake_of_background_run_does_not_delay_check_out(
    new_pool: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    gate = Event()
    server.fail("handshake", hold_reply(gate))
    pool = new_pool(min_pool_size=5, max_connecting=2, **SHORT_INTERVAL_OPTIONS)
    server.wait_for("handshake")
    checking_out = start_greenlet(pool.check_out)
    # Connection 1 is pending, because the server does not reply to its handshake.
    assert checking_out.get(timeout=5).id == 2
    pool.check_in(checking_out.value)
    assert pool.check_out() is checking_out.value
    assert connection_counts(pool)[1:] == (1, 0, 1)
    assert recorder.lines_starting_with("Ready") == ["Ready 2"]
    gate.set()
    recorder.wait_for("Ready", 5)


@pytest.mark.requirement("CMAP-175", "BP-72")
def test_population_failures_cause_exponential_backoff(
    new_pool: Any, server: Any, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gmongo.cmap.pool_state._FIRST_BACKOFF", 0.02)
    server.fail("handshake", *[cut_reply(0)] * 5)
    pool = new_pool(min_pool_size=2, background_interval=0.1, clears_on_failure=False)
    times = [_clock.monotonic()]
    backoffs: list[float] = []

    def record_backoff() -> None:
        while True:
            backoffs.append(pool.machine.remaining_backoff())
            gevent.sleep(0.005)

    watcher = gevent.spawn(record_backoff)
    recorder.hooks["Created"] = lambda event: times.append(_clock.monotonic())
    recorder.wait_for("Ready", 2)
    intervals = [later - earlier for earlier, later in pairwise(times[1:7])]
    assert intervals == pytest.approx([0.02, 0.04, 0.08, 0.1, 0.1])
    watcher.kill()
    assert max(backoffs) <= 0.1
    assert pool.machine.remaining_backoff() == 0
    eventually(lambda: connection_counts(pool) == (2, 0, 2, 0))


@pytest.mark.requirement("CMAP-97")
@pytest.mark.parametrize("min_pool_size", [0, 3])
def test_end_of_handshake_frees_slot_for_waiter_and_background_run(
    new_pool: Any, start_greenlet: Any, min_pool_size: int
) -> None:
    pool = new_pool(min_pool_size=min_pool_size, max_connecting=1, background_interval=60)
    check_outs = [start_greenlet(pool.check_out) for _ in range(2)]
    assert [each.get(timeout=5).id for each in check_outs] == [1, 2]
    assert eventually(lambda: connection_counts(pool) == (max(2, min_pool_size), 0, min_pool_size // 3, 2), 5)


def test_only_establishment_in_background_does_not_keep_event_loop_alive(
    new_pool: Any, server: Any, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs: list[bool] = []
    monkeypatch.setattr(pool_module, "establish", lambda *args: refs.append((args[0].ref, args[2])) or establish(*args))
    pool = new_pool(min_pool_size=1, background_interval=60)
    recorder.wait_for("Ready")
    assert [pool.check_out().ref for _ in range(2)] == [True, True]
    assert refs == [(False, False), (True, True)]
