"""The cursor killer ends cursors that the application has dropped without closing.

The tests use an executor that sends no commands.
"""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from unittest.mock import Mock, call

import gevent
import pytest
from bson.errors import InvalidBSON
from gevent import GreenletExit
from gevent.event import Event

from gmongo.engines.cursor_killer import CursorKiller, DroppedCursor
from gmongo.errors import AutoReconnect
from tests.support.wait import becomes_true


class RecordingExecutor:
    """An executor that records the cursor IDs of each ``killCursors`` operation. The executor sends
    no commands.
    """

    def __init__(self):
        self.epoch = 0
        self.killed_cursors = []
        self.topology = SimpleNamespace(hub=gevent.get_hub())
        self.commands = SimpleNamespace(orphan_taker=None)
        self.sessions = Mock()

    def run(self, operation, session):
        self.killed_cursors.append((self.epoch, operation.command(None)["cursors"]))


class CountingPin:
    release_count = 0

    def release(self):
        self.release_count += 1


def make_cursor_killer():
    executor = RecordingExecutor()
    return executor, CursorKiller(executor)


def make_dropped_cursor(cursor_id, pin=None, namespace="db.c", port=1):
    return DroppedCursor(cursor_id, namespace, ("127.0.0.1", port), None, pin)


def test_end_of_pinned_cursor_does_not_wait_for_unpinned_cursor():
    executor, may_run = RecordingExecutor(), Event()
    run = executor.run
    executor.run = lambda operation, session: (operation.pin or may_run.wait(), run(operation, session))
    cursor_killer = CursorKiller(executor)
    pins = [CountingPin(), CountingPin()]
    cursor_killer.take(make_dropped_cursor(1))
    cursor_killer.take(make_dropped_cursor(2, pins[0]))
    cursor_killer.take(make_dropped_cursor(3, pins[1]))
    gevent.idle()
    assert executor.killed_cursors == [(0, [2]), (0, [3])]
    assert [pin.release_count for pin in pins] == [1, 1]
    may_run.set()
    gevent.idle()
    assert executor.killed_cursors[2:] == [(0, [1])]


def test_reap_ends_dropped_cursors_before_killer_greenlet_starts():
    executor, pin = RecordingExecutor(), CountingPin()
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(make_dropped_cursor(1))
    cursor_killer.take(make_dropped_cursor(2, pin))
    cursor_killer.reap()
    assert executor.killed_cursors == [(0, [2]), (0, [1])]
    gevent.idle()
    assert (len(executor.killed_cursors), pin.release_count) == (2, 1)


@pytest.mark.parametrize("error", [AutoReconnect("lost"), InvalidBSON("no reply"), GreenletExit()])
def test_failed_kill_releases_pin_and_next_cursor_is_ended(error):
    executor, pin = RecordingExecutor(), CountingPin()
    run, executor.run = executor.run, lambda operation, session: raise_error(error)
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(make_dropped_cursor(1))
    cursor_killer.take(make_dropped_cursor(2, pin))
    gevent.idle()
    assert pin.release_count == 1
    assert executor.sessions.leave_cursor.call_count == (0 if isinstance(error, GreenletExit) else 2)
    executor.run = run
    cursor_killer.take(make_dropped_cursor(3))
    gevent.idle()
    assert executor.killed_cursors == [(0, [3])]


@pytest.mark.parametrize("make_pin", [lambda: None, CountingPin])
def test_cursor_is_ended_if_killer_greenlet_is_killed_before_start(make_pin, monkeypatch):
    executor, killed_greenlets = RecordingExecutor(), []

    def spawn(function):
        greenlet = gevent.spawn(function)
        if not killed_greenlets:
            killed_greenlets.append(greenlet)
            greenlet.kill(block=False)
        return greenlet

    monkeypatch.setattr("gmongo.engines.cursor_killer.spawn", spawn)
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(make_dropped_cursor(1, make_pin()))
    gevent.idle()
    assert killed_greenlets[0].dead and executor.killed_cursors == [(0, [1])]


def raise_error(error):
    raise error


def test_cursor_dropped_while_killer_greenlet_ends_is_ended():
    class QueueWithFinalizer(deque):
        """A queue that drops a second cursor, as a finalizer may do, while the killer checks whether
        the queue is empty.
        """

        remaining_cursors = [make_dropped_cursor(2)]

        def __bool__(self):
            has_items = len(self) > 0
            if not has_items and self.remaining_cursors:
                cursor_killer.take(self.remaining_cursors.pop())
            return has_items

    executor, cursor_killer = make_cursor_killer()
    cursor_killer._unpinned_cursors = QueueWithFinalizer()
    cursor_killer.take(make_dropped_cursor(1))
    assert becomes_true(lambda: executor.killed_cursors == [(0, [1]), (0, [2])])


def test_closed_client_releases_pin_of_dropped_cursor():
    executor, released = RecordingExecutor(), []
    executor.topology.hub = None
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(make_dropped_cursor(1, SimpleNamespace(release_soon=lambda: released.append(1))))
    cursor_killer.take(make_dropped_cursor(2))
    gevent.idle()
    assert (released, executor.killed_cursors) == ([1], [])


def test_one_command_ends_dropped_cursors_of_one_namespace_and_server():
    executor, cursor_killer = make_cursor_killer()
    for cursor in (
        make_dropped_cursor(1),
        make_dropped_cursor(2, namespace="db.d"),
        make_dropped_cursor(3),
        make_dropped_cursor(4, port=2),
        make_dropped_cursor(5),
    ):
        cursor_killer.take(cursor)
    assert executor.killed_cursors == []
    gevent.idle()
    assert executor.killed_cursors == [(0, [1, 3, 5]), (0, [2]), (0, [4])]


def test_cursor_of_interrupted_operation_is_ended():
    executor, cursor_killer = make_cursor_killer()
    executor.commands.orphan_taker()(SimpleNamespace(cursor_id=7, namespace="db.c", address=("h", 1), pin=None))
    gevent.idle()
    assert executor.killed_cursors == [(0, [7])]
    del cursor_killer
    # The executor has only a weak reference to the killer.
    assert executor.commands.orphan_taker() is None


def test_end_of_dropped_cursor_stops_read_ahead_and_ends_session():
    _executor, cursor_killer = make_cursor_killer()
    read_ahead, session = Mock(), Mock()
    cursor_killer.take(DroppedCursor(1, "db.c", ("127.0.0.1", 1), session, None, read_ahead))
    gevent.idle()
    assert (read_ahead.mock_calls, session.mock_calls) == ([call.stop()], [call.end_implicit()])


@pytest.mark.parametrize("make_pin", [lambda: None, CountingPin])
def test_cursor_that_parent_process_dropped_is_not_ended_after_fork(make_pin):
    executor, cursor_killer = make_cursor_killer()
    cursor_killer.take(make_dropped_cursor(1, pin := make_pin()))
    executor.epoch += 1
    cursor_killer.take(make_dropped_cursor(2))
    gevent.idle()
    assert (executor.killed_cursors, pin and pin.release_count) == ([(1, [2])], pin and 0)
