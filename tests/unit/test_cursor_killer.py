"""Cursors that the application has dropped are ended by the process that opened them."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import gevent
import pytest
from bson.errors import InvalidBSON
from gevent import GreenletExit
from gevent.event import Event

from gmongo.engines.cursor_killer import CursorKiller, Dropped
from gmongo.errors import AutoReconnect
from tests.support.wait import comes_true


class Executor:
    """Notes what is run, and can be forked."""

    def __init__(self):
        self.epoch = 0
        self.run_operations = []
        self.topology = SimpleNamespace(hub=gevent.get_hub())
        self.commands = SimpleNamespace(orphan_taker=None)

    def run(self, operation, session):
        self.run_operations.append((self.epoch, operation.command(None)["cursors"]))


class Pin:
    """A connection that a cursor holds."""

    releases = 0

    def release(self):
        self.releases += 1


def dropped(number, pin=None, namespace="db.c", port=1):
    return Dropped(number, namespace, ("127.0.0.1", port), None, pin)


@pytest.mark.parametrize("make_pin", [lambda: None, Pin])
def test_a_forked_child_leaves_its_parents_to_the_parent(make_pin):
    executor = Executor()
    reaper = CursorKiller(executor)
    inherited = make_pin()
    reaper.take(dropped(1, inherited))
    executor.epoch = 1  # what the parent took waits still, and a child has begun with a copy of it
    reaper.take(dropped(2, make_pin()))
    gevent.idle()
    assert executor.run_operations == [(1, [2])]
    assert inherited is None or inherited.releases == 0


def test_one_with_a_connection_of_its_own_does_not_queue_behind_one_that_waits_for_one():
    executor, let_go = Executor(), Event()
    run = executor.run
    executor.run = lambda operation, session: (operation.pin or let_go.wait(), run(operation, session))
    reaper = CursorKiller(executor)
    pins = [Pin(), Pin()]
    reaper.take(dropped(1))
    reaper.take(dropped(2, pins[0]))
    reaper.take(dropped(3, pins[1]))
    gevent.idle()
    assert executor.run_operations == [(0, [2]), (0, [3])]
    assert [pin.releases for pin in pins] == [1, 1]
    let_go.set()
    gevent.idle()
    assert executor.run_operations[2:] == [(0, [1])]


def test_closing_ends_what_no_greenlet_has_begun_with():
    executor, pin = Executor(), Pin()
    reaper = CursorKiller(executor)
    reaper.take(dropped(1))
    reaper.take(dropped(2, pin))
    reaper.reap()
    assert executor.run_operations == [(0, [2]), (0, [1])]
    gevent.idle()
    assert (len(executor.run_operations), pin.releases) == (2, 1)


def test_those_that_are_dropped_later_are_ended_too():
    executor = Executor()
    reaper = CursorKiller(executor)
    for number in (1, 2, 3):
        reaper.take(dropped(number))
        gevent.idle()
        assert executor.run_operations[-1] == (0, [number])


@pytest.mark.parametrize("error", [AutoReconnect("lost"), InvalidBSON("no reply"), GreenletExit()])
def test_one_that_cannot_be_ended_gives_back_what_it_held_and_the_next_are_ended(error):
    executor, pin = Executor(), Pin()
    run, executor.run = executor.run, lambda operation, session: throw(error)
    reaper = CursorKiller(executor)
    reaper.take(dropped(1))
    reaper.take(dropped(2, pin))
    gevent.idle()
    assert pin.releases == 1
    executor.run = run
    reaper.take(dropped(3))
    gevent.idle()
    assert executor.run_operations == [(0, [3])]


@pytest.mark.parametrize("make_pin", [lambda: None, Pin])
def test_cursors_are_ended_when_the_greenlet_is_killed_before_it_begins(make_pin, monkeypatch):
    executor, killed = Executor(), []

    def spawn(function):
        greenlet = gevent.spawn(function)
        if not killed:
            killed.append(greenlet)
            greenlet.kill(block=False)
        return greenlet

    monkeypatch.setattr("gmongo.engines.cursor_killer.spawn", spawn)
    reaper = CursorKiller(executor)
    reaper.take(dropped(1, make_pin()))
    gevent.idle()
    assert killed[0].dead and executor.run_operations == [(0, [1])]


def throw(error):
    raise error


def test_one_that_is_dropped_while_the_greenlet_ends_is_ended_too():
    class Queue(deque):
        """A finaliser runs as the greenlet finds it empty."""

        late = [dropped(2)]

        def __bool__(self):
            found = len(self) > 0
            if not found and self.late:
                reaper.take(self.late.pop())
            return found

    executor = Executor()
    reaper = CursorKiller(executor)
    reaper._unpinned = Queue()
    reaper.take(dropped(1))
    assert comes_true(lambda: executor.run_operations == [(0, [1]), (0, [2])])


def test_those_behind_one_at_which_the_greenlet_is_killed_are_ended():
    executor = Executor()
    run = executor.run
    executor.run = lambda *given: throw(GreenletExit()) if given[0].command(None)["cursors"] == [1] else run(*given)
    reaper = CursorKiller(executor)
    reaper.take(dropped(1))
    reaper.take(dropped(2, port=2))
    gevent.idle()
    gevent.idle()
    assert executor.run_operations == [(0, [2])]


def test_after_the_client_is_closed_a_connection_is_given_back_all_the_same():
    executor, given_back = Executor(), []
    executor.topology.hub = None
    reaper = CursorKiller(executor)
    reaper.take(dropped(1, SimpleNamespace(release_soon=lambda: given_back.append(1))))
    reaper.take(dropped(2))
    gevent.idle()
    assert (given_back, executor.run_operations) == ([1], [])


def test_one_command_ends_all_dropped_cursors_of_a_namespace_and_server():
    executor = Executor()
    reaper = CursorKiller(executor)
    for cursor in (dropped(1), dropped(2, namespace="db.d"), dropped(3), dropped(4, port=2), dropped(5)):
        reaper.take(cursor)
    assert executor.run_operations == []
    gevent.idle()
    assert executor.run_operations == [(0, [1, 3, 5]), (0, [2]), (0, [4])]


def test_it_takes_cursors_of_interrupted_operations():
    executor = Executor()
    reaper = CursorKiller(executor)
    executor.commands.orphan_taker()(SimpleNamespace(cursor_id=7, namespace="db.c", address=("h", 1), pin=None))
    gevent.idle()
    assert executor.run_operations == [(0, [7])]
    del reaper
    assert executor.commands.orphan_taker() is None  # it goes with the client
