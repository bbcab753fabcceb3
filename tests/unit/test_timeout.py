"""A time limit raises an error in the greenlet whose block or exchange takes too long.

If the event loop was blocked, the driver extends the limit, except for an exchange without a reply.
"""

from __future__ import annotations

import itertools
import weakref
from contextlib import suppress
from functools import partial
from time import monotonic
from types import SimpleNamespace
from unittest.mock import Mock

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmongo import _clock
from gmongo.cmap.connection import Connection
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.cmap.progress import Progress
from gmongo.cmap.server_connection import _make_timeout_error
from gmongo.errors import AutoReconnect
from gmongo.wire import timeout as limit_module
from gmongo.wire.timeout import TimeLimit, interrupt_after


@pytest.mark.parametrize(("loop_iterations", "finishes"), [(1, True), (2, False)])
def test_block_may_run_for_one_loop_iteration_after_delayed_timer(loop_iterations, finishes, virtual_time):
    finished_blocks = []

    def run_loop_iterations():
        with suppress(ValueError), interrupt_after(0.1, ValueError()):
            gevent.sleep(0.05)
            for _ in range(loop_iterations - 1):
                gevent.sleep(0.01)
            finished_blocks.append(True)

    greenlet = gevent.spawn(run_loop_iterations)
    gevent.sleep(0)
    virtual_time.suspend(0.3)
    greenlet.join()
    assert finished_blocks == [True] * finishes


class LoopWithOneTimer:
    """An event loop with one timer. The test sets the time of the loop."""

    approx_timer_resolution = 1e-6

    def __init__(self):
        self.now = 0.0
        self.loop = self

    def timer(self, seconds, ref, priority):
        self.due = self.now + seconds
        return self

    def start(self, fire, update):
        self.fire = fire

    def close(self):
        self.fire = None


@settings(max_examples=200)
@given(
    st.lists(st.floats(0.001, 3), min_size=9, max_size=9),
    st.sampled_from([0.2, 1.0, 3.0]),
    st.sampled_from([None, False, True]),
)
def test_limit_fires_within_two_loop_iterations(durations, seconds, has_reply):
    """If a reply has arrived, the driver extends the limit by the delay of the event loop, at most
    by `seconds`.
    """
    loop, thrown = LoopWithOneTimer(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gmongo.wire.timeout.get_hub", lambda: loop)
        patch.setattr("gmongo._background.get_hub", lambda: loop)
        patch.setattr("gmongo.wire.timeout.getcurrent", lambda: SimpleNamespace(throw=thrown.append))
        patch.setattr(_clock, "monotonic", lambda: loop.now)
        limit = recording_limit([])
        limit.begin(seconds, None if has_reply is None else SimpleNamespace(has_arrived=lambda: has_reply))
        delays = []
        for length in itertools.cycle(durations):
            loop.now += length
            if loop.now >= loop.due:
                delays.append(loop.now - seconds)
                loop.fire()
            if thrown:
                break
    assert len(thrown) == 1
    delay = delays[0]
    if delay <= 0.05 or has_reply is False:
        assert len(delays) == 1
    elif has_reply is None:
        assert loop.now <= seconds + delay + max(durations) + 1e-5
    else:
        assert seconds + delay + min(delay, seconds) - 1e-9 <= loop.now
        assert loop.now <= seconds + delay + min(delay, seconds) + max(durations) + 1e-5


def recording_limit(expired_limits):
    """Return a time limit that appends its seconds to `expired_limits` at the end of the limit."""

    def make_error(seconds):
        expired_limits.append(seconds)
        return ValueError("too late")

    return TimeLimit(make_error)


def test_each_exchange_ends_after_its_own_timeout():
    limit, errors = recording_limit(expired_limits := []), []
    # Some deadlines are before the expiry of the running timer, and some are after the expiry.
    for seconds in (60, 0.02, 0.03, 60, 0.01):
        begin = monotonic()
        limit.begin(seconds)
        try:
            gevent.sleep(60 if seconds < 1 else 0.001)
        except ValueError as error:
            errors.append(str(error))
            assert monotonic() - begin >= seconds
        finally:
            limit.end()
    assert (expired_limits, errors) == ([0.02, 0.03, 0.01], ["too late"] * 3)
    limit.close()


def test_timer_raises_no_error_after_end_of_exchange(virtual_time):
    limit = recording_limit(expired_limits := [])
    limit.begin(0.01)
    limit.end()
    gevent.sleep(0.03)
    assert expired_limits == []
    assert limit._timer is None  # the time limit has no timer, because no exchange runs


def test_timeout_of_0_or_less_raises_at_begin_of_exchange():
    limit = recording_limit(expired_limits := [])
    for seconds in (0, -1):
        with pytest.raises(ValueError):
            limit.begin(seconds)
    assert expired_limits == [0, -1]


def test_timer_of_exchange_does_not_keep_event_loop_alive():
    loop, limit = gevent.get_hub().loop, recording_limit([])
    watcher_count = loop.activecnt
    limit.begin(60)
    assert limit._timer.active
    assert loop.activecnt == watcher_count
    limit.end()
    limit.close()


def test_timer_of_exchange_does_not_keep_dropped_connection_in_memory():
    connection = Connection(("127.0.0.1", 1))
    with pytest.raises(AutoReconnect):  # fails, because the connection has no socket
        connection.exchange(1, [b""], 60, bytes)
    limit = connection._limit = TimeLimit(partial(_make_timeout_error, connection.address, connection._usual_limit))
    limit.begin(60)
    limit.end()
    connection_ref = weakref.ref(connection)
    del connection
    assert connection_ref() is None
    limit.close()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "limit 500 ms: the limit of the operation"), (0.0, "ended before the exchange")]
)
def test_timeout_error_during_establishment_names_limit_unless_limit_had_ended(seconds, text):
    connection = Connection(("127.0.0.1", 1))
    connection.progress = Progress("127.0.0.1", ConnectionSettings())
    assert text in str(connection.make_timeout_error(seconds))


def test_closed_connection_stops_timer_of_exchange():
    connection = Connection(("127.0.0.1", 1))
    limit = connection._limit = TimeLimit(partial(_make_timeout_error, connection.address, connection._usual_limit))
    limit.begin(60)
    limit.end()
    connection.close()
    assert limit._timer is None


@pytest.mark.parametrize(("options", "watcher_count"), [({}, 1), ({"ref": True}, 1), ({"ref": False}, 0)])
def test_limit_of_block_keeps_event_loop_alive_unless_ref_is_false(options, watcher_count):
    loop = gevent.get_hub().loop
    before = loop.activecnt
    with interrupt_after(10, TimeoutError(), **options):
        assert loop.activecnt - before == watcher_count
    assert loop.activecnt == before
    with interrupt_after(None, TimeoutError(), **options):
        assert loop.activecnt == before


def test_timer_with_later_deadline_is_replaced(monkeypatch):
    timers = []

    def make_timer(seconds, **_options):
        timers.append(Mock(seconds=seconds))
        return timers[-1]

    monkeypatch.setattr(limit_module, "get_hub", lambda: Mock(loop=Mock(timer=make_timer)))
    limit = TimeLimit(ValueError)
    for seconds in (10, 20, 5):
        limit.begin(seconds)
        limit.end()
    assert [each.seconds for each in timers] == [10, 5]
    assert [each.close.called for each in timers] == [True, False]
    limit.close()
    assert timers[1].close.called
