"""Cursors that the application has dropped: the process that opened a cursor ends the cursor."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import gevent
import pytest
from bson.errors import InvalidBSON
from gevent import GreenletExit
from gevent.event import Event

from gmongo.engines.cursor_killer import CursorKiller, DroppedCursor
from gmongo.errors import AutoReconnect
from tests.support.wait import becomes_true


class Executor:
    """An executor that records operations, and that a test can fork."""

    def __init__(self):
        self.epoch = 0
        self.run_operations = []
        self.topology = SimpleNamespace(hub=gevent.get_hub())
        self.commands = SimpleNamespace(orphan_taker=None)

    def run(self, operation, session):
        self.run_operations.append((self.epoch, operation.command(None)["cursors"]))


class Pin:
    releases = 0

    def release(self):
        self.releases += 1


def start_killer():
    executor = Executor()
    return executor, CursorKiller(executor)


def dropped_cursor(number, pin=None, namespace="db.c", port=1):
    return DroppedCursor(number, namespace, ("127.0.0.1", port), None, pin)


@pytest.mark.parametrize("make_pin", [lambda: None, Pin])
def test_forked_child_does_not_end_cursors_of_parent(make_pin):
    executor, cursor_killer = start_killer()
    inherited = make_pin()
    cursor_killer.take(dropped_cursor(1, inherited))
    executor.epoch = 1  # the child starts with a copy of the pending cursor
    cursor_killer.take(dropped_cursor(2, make_pin()))
    gevent.idle()
    assert executor.run_operations == [(1, [2])]
    assert inherited is None or inherited.releases == 0


def test_pinned_cursor_does_not_wait_for_unpinned_cursor():
    executor, may_run = Executor(), Event()
    run = executor.run
    executor.run = lambda operation, session: (operation.pin or may_run.wait(), run(operation, session))
    cursor_killer = CursorKiller(executor)
    pins = [Pin(), Pin()]
    cursor_killer.take(dropped_cursor(1))
    cursor_killer.take(dropped_cursor(2, pins[0]))
    cursor_killer.take(dropped_cursor(3, pins[1]))
    gevent.idle()
    assert executor.run_operations == [(0, [2]), (0, [3])]
    assert [pin.releases for pin in pins] == [1, 1]
    may_run.set()
    gevent.idle()
    assert executor.run_operations[2:] == [(0, [1])]


def test_reap_ends_cursors_before_greenlet_starts():
    executor, pin = Executor(), Pin()
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(dropped_cursor(1))
    cursor_killer.take(dropped_cursor(2, pin))
    cursor_killer.reap()
    assert executor.run_operations == [(0, [2]), (0, [1])]
    gevent.idle()
    assert (len(executor.run_operations), pin.releases) == (2, 1)


def test_cursor_dropped_after_idle_period_is_ended():
    executor, cursor_killer = start_killer()
    for number in (1, 2, 3):
        cursor_killer.take(dropped_cursor(number))
        gevent.idle()
        assert executor.run_operations[-1] == (0, [number])


@pytest.mark.parametrize("error", [AutoReconnect("lost"), InvalidBSON("no reply"), GreenletExit()])
def test_failed_kill_releases_pin_and_next_cursor_is_ended(error):
    executor, pin = Executor(), Pin()
    run, executor.run = executor.run, lambda operation, session: raise_error(error)
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(dropped_cursor(1))
    cursor_killer.take(dropped_cursor(2, pin))
    gevent.idle()
    assert pin.releases == 1
    executor.run = run
    cursor_killer.take(dropped_cursor(3))
    gevent.idle()
    assert executor.run_operations == [(0, [3])]


@pytest.mark.parametrize("make_pin", [lambda: None, Pin])
def test_cursor_is_ended_if_greenlet_is_killed_before_start(make_pin, monkeypatch):
    executor, killed = Executor(), []

    def spawn(function):
        greenlet = gevent.spawn(function)
        if not killed:
            killed.append(greenlet)
            greenlet.kill(block=False)
        return greenlet

    monkeypatch.setattr("gmongo.engines.cursor_killer.spawn", spawn)
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(dropped_cursor(1, make_pin()))
    gevent.idle()
    assert killed[0].dead and executor.run_operations == [(0, [1])]


def raise_error(error):
    raise error


def test_cursor_dropped_while_greenlet_ends_is_ended():
    class Queue(deque):
        """A queue whose emptiness check runs a finalizer."""

        late = [dropped_cursor(2)]

        def __bool__(self):
            found = len(self) > 0
            if not found and self.late:
                cursor_killer.take(self.late.pop())
            return found

    executor, cursor_killer = start_killer()
    cursor_killer._unpinned = Queue()
    cursor_killer.take(dropped_cursor(1))
    assert becomes_true(lambda: executor.run_operations == [(0, [1]), (0, [2])])


def test_cursor_after_killed_operation_is_ended():
    executor = Executor()
    run = executor.run
    executor.run = lambda *given: (
        raise_error(GreenletExit()) if given[0].command(None)["cursors"] == [1] else run(*given)
    )
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(dropped_cursor(1))
    cursor_killer.take(dropped_cursor(2, port=2))
    gevent.idle()
    gevent.idle()
    assert executor.run_operations == [(0, [2])]


def test_closed_client_releases_pin_of_dropped_cursor():
    executor, released = Executor(), []
    executor.topology.hub = None
    cursor_killer = CursorKiller(executor)
    cursor_killer.take(dropped_cursor(1, SimpleNamespace(release_soon=lambda: released.append(1))))
    cursor_killer.take(dropped_cursor(2))
    gevent.idle()
    assert (released, executor.run_operations) == ([1], [])


def test_one_command_ends_all_dropped_cursors_of_a_namespace_and_server():
    executor, cursor_killer = start_killer()
    for cursor in (
        dropped_cursor(1),
        dropped_cursor(2, namespace="db.d"),
        dropped_cursor(3),
        dropped_cursor(4, port=2),
        dropped_cursor(5),
    ):
        cursor_killer.take(cursor)
    assert executor.run_operations == []
    gevent.idle()
    assert executor.run_operations == [(0, [1, 3, 5]), (0, [2]), (0, [4])]


def test_cursor_of_interrupted_operation_is_ended():
    executor, cursor_killer = start_killer()
    executor.commands.orphan_taker()(SimpleNamespace(cursor_id=7, namespace="db.c", address=("h", 1), pin=None))
    gevent.idle()
    assert executor.run_operations == [(0, [7])]
    del cursor_killer
    assert executor.commands.orphan_taker() is None  # the client owns the cursor killer
