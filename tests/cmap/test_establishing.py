"""A pool creates, establishes and closes connections (CMAP-82 to CMAP-93, CMAP-125, CMAP-126)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect
from gmongo.testing import VirtualTime
from tests.cmap.harness import connection_counts, fill_pool, owner_of
from tests.support.server import cut_reply
from tests.support.wait import eventually


@pytest.mark.requirement("CMAP-11", "CMAP-82", "CMAP-83", "CMAP-88", "CMAP-89", "CMAP-119", "CMAP-203")
def test_connection_counts_change_before_listener_runs(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool(clears_on_failure=False)
    counts_at_events: list[Any] = []

    def record_counts(event: Any) -> None:
        counts_at_events.append((type(event).__name__, connection_counts(pool), server.connection_count))

    for kind in ("Created", "Ready", "CheckedOut", "CheckedIn", "Closed"):
        recorder.hooks[kind] = record_counts
    connection = pool.check_out()
    pool.check_in(connection)
    pool.close()
    assert counts_at_events == [
        ("ConnectionCreatedEvent", (1, 1, 0, 0), 0),
        ("ConnectionReadyEvent", (1, 1, 0, 0), 1),
        ("ConnectionCheckedOutEvent", (1, 0, 0, 1), 1),
        # When the pool publishes the check-in event, the connection is already available.
        ("ConnectionCheckedInEvent", (1, 0, 1, 0), 1),
        ("ConnectionClosedEvent", (0, 0, 0, 0), 1),
    ]


@pytest.mark.requirement("CMAP-85", "CMAP-86", "CMAP-117")
def test_handshake_is_first_message_of_connection(new_client: Any, server: Any) -> None:
    new_client().db.c.find_one()
    number = server.connections_of("find")[0]
    assert [each.name for each in server.received if each.connection == number][:2] == ["handshake", "find"]


@pytest.mark.requirement("CMAP-86", "CMAP-187", "CMAP-188", "CMAP-200")
def test_ready_and_checked_out_events_have_handshake_duration(
    virtual_time: VirtualTime, new_pool: Any, server: Any, recorder: Any
) -> None:
    server.fail("handshake", lambda peer, message: (gevent.sleep(0.05), peer.send(message)))
    new_pool().check_out()
    assert (
        recorder.events_named("Ready")[0].duration
        == recorder.events_named("CheckedOut")[0].duration
        == pytest.approx(0.05)
    )


@pytest.mark.requirement("CMAP-200", "CMAP-201")
def test_checked_out_duration_includes_wait_queue_time(
    virtual_time: VirtualTime, new_pool: Any, recorder: Any, start_greenlet: Any
) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    checking_out = start_greenlet(pool.check_out)
    gevent.sleep(0.03)
    pool.check_in(connection)
    checking_out.get(timeout=5)
    assert recorder.events_named("CheckedOut")[-1].duration == pytest.approx(0.03)


@pytest.mark.requirement("CMAP-84")
def test_wall_clock_changes_do_not_affect_durations_in_pool(
    virtual_time: VirtualTime, new_pool: Any, recorder: Any, monkeypatch: Any
) -> None:
    wall_times = iter(range(0, 10**9, 10**6))
    monkeypatch.setattr("gmongo._clock.time", lambda: next(wall_times))
    pool = new_pool(max_idle_time=60)
    fill_pool(pool, 1)
    pool.check_out()
    assert {event.duration for event in recorder.events_named("Ready") + recorder.events_named("CheckedOut")} == {0}
    assert not recorder.events_named("Closed")


@pytest.mark.requirement("CMAP-87", "CMAP-125", "CMAP-126", "CMAP-193", "CMAP-199")
def test_failed_handshake_clears_pool_and_fails_check_out(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool()
    server.fail("handshake", cut_reply(5))
    recorder.clear()
    with pytest.raises(AutoReconnect) as raised:
        pool.check_out()
    assert owner_of(pool).failures == [raised.value]
    assert recorder.event_lines == ["Started", "Created 1", "PoolCleared", "Closed 1 error", "Failed connectionError"]
    assert connection_counts(pool) == (0, 0, 0, 0)
    eventually(lambda: not server.peers)


@pytest.mark.requirement("CMAP-90")
def test_pool_close_does_not_wait_for_stalled_server(new_pool: Any, server: Any) -> None:
    pool = new_pool()
    fill_pool(pool, 5)
    server.reading.clear()
    server.answering.clear()
    with gevent.Timeout(1):
        pool.close()


@pytest.mark.requirement("CMAP-93", "CMAP-128", "CMAP-136", "CMAP-107", "CMAP-130")
def test_last_checked_in_connection_is_checked_out_first(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    first, second = pool.check_out(), pool.check_out()
    pool.check_in(first)
    assert connection_counts(pool) == (2, 0, 1, 1)
    pool.check_in(second)
    assert connection_counts(pool) == (2, 0, 2, 0)
    recorder.clear()
    assert pool.check_out() is second
    assert recorder.event_lines == ["Started", "CheckedOut 2"]
    assert connection_counts(pool) == (2, 0, 1, 1)
