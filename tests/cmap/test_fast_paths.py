"""Fast path of check-outs, and waiters that keep the event loop alive."""

from __future__ import annotations

import gevent
import pytest

from gmongo.cmap.pool import Pool
from gmongo.cmap.wait_queue import WaitQueue
from tests.cmap.harness import make_pool
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder
from tests.support.server import ScriptedServer


@pytest.mark.parametrize("has_listener", [False, True])
def test_check_out_of_available_connection_takes_fast_path(
    server: ScriptedServer,
    recorder: PoolRecorder,
    monkeypatch: pytest.MonkeyPatch,
    has_listener: bool,
) -> None:
    pool = make_pool(server.address, recorder if has_listener else None)
    with checked_out(pool) as connection:
        pass
    monkeypatch.setattr(Pool, "_obtain_connection", lambda *_: pytest.fail("slow path"))
    with checked_out(pool) as second_connection:
        assert second_connection is connection
    pool.close()
    assert len(recorder.events) == (12 if has_listener else 0)


def test_wait_queue_with_waiters_keeps_event_loop_alive() -> None:
    loop = gevent.get_hub().loop
    initial_count, queue = loop.activecnt, WaitQueue[str]()

    def active_watcher_count() -> int:
        return loop.activecnt - initial_count

    first, second = queue.join(), queue.join("find")
    assert active_watcher_count() == 1 and [waiter.operation for waiter in queue.waiters] == [
        None,
        "find",
    ]
    queue.leave(first)
    assert active_watcher_count() == 1
    queue.leave(second)
    queue.leave(second)
    assert active_watcher_count() == 0
    queue.join()
    assert active_watcher_count() == 1
    queue.hand_over("item")
    assert active_watcher_count() == 0
    queue.join()
    queue.evict(AssertionError)
    assert active_watcher_count() == 0 and queue.oldest_wait() is None
