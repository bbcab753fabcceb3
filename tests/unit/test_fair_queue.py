from __future__ import annotations

import time

import gevent
import pytest
from gevent import GreenletExit, Timeout

from gmongo import _clock
from gmongo.cmap.wait_queue import WaitQueue


class Late(Exception):
    pass


@pytest.fixture
def queue():
    with gevent.Timeout(5):
        yield WaitQueue()


@pytest.fixture
def returned():
    return []


def wait(queue, limit, returned, timed_out=Late):
    """Wait as a check-out does: what was handed to a waiter that leaves goes to `returned`."""
    waiter = queue.join()
    try:
        return waiter.sleep(limit, timed_out)
    except BaseException:
        item = queue.leave(waiter)
        if item is not None:
            returned.append(item)
        raise


def start(queue, count, returned, limit=None):
    waiters = [gevent.spawn(wait, queue, limit, returned) for _ in range(count)]
    gevent.sleep(0)
    assert len(queue.waiters) == count
    return waiters


def test_first_come_first_served(queue, returned):
    waiters = start(queue, 3, returned)
    for item in "abc":
        queue.hand(item)
    assert len(queue.waiters) == 0
    gevent.joinall(waiters)
    assert [waiter.value for waiter in waiters] == ["a", "b", "c"]
    assert returned == []


@pytest.mark.parametrize("times", [1, 3])
def test_all_go_on_in_order_though_some_have_yet_to_go_on_for_what_came_before(queue, times):
    order = []

    def look_twice(name):
        waiter = queue.join()
        for _ in range(2):
            order.append(name + waiter.sleep(None, Late))
            waiter.item = None
            if order == ["a1", "b1"]:
                for _ in range(times):
                    queue.hand_to_all("2")
        queue.leave(waiter)

    waiters = [gevent.spawn(look_twice, name) for name in "abcd"]
    gevent.sleep(0)
    queue.hand_to_all("1")
    gevent.idle()
    assert order == ["a1", "b1", "b2", "a2", "c2", "d2"]  # b was awake
    assert len(queue.waiters) == 2
    queue.hand_to_all("3")
    gevent.joinall(waiters)
    gevent.sleep(0)  # and no waiter is woken once more
    assert order[6:] == ["c3", "d3"]


def test_hand_does_not_switch(queue, returned):
    (waiter,) = start(queue, 1, returned)
    queue.hand("a")
    assert not waiter.ready()
    assert waiter.get() == "a"


def test_limit(queue, returned):
    error = Late()
    with pytest.raises(Late) as caught:
        wait(queue, 0.01, returned, lambda: error)
    assert caught.value is error
    assert len(queue.waiters) == 0


@pytest.mark.parametrize("limit", [0, -1])
def test_no_time_at_all(queue, returned, limit):
    with pytest.raises(Late):
        wait(queue, limit, returned)
    assert len(queue.waiters) == 0


def test_a_waiter_that_leaves_is_gone_at_once(queue, returned):
    first, second, third = start(queue, 3, returned)
    second.kill()
    assert len(queue.waiters) == 2
    queue.hand("a")
    queue.hand("b")
    gevent.joinall([first, third])
    assert (first.value, third.value) == ("a", "b")


@pytest.mark.parametrize("thrown", [GreenletExit, Timeout, ValueError])
def test_what_was_handed_to_a_waiter_that_is_ended_is_given_back_once(queue, returned, thrown):
    (waiter,) = start(queue, 1, returned)
    error = thrown()
    waiter.kill(error, block=False)
    queue.hand("a")
    gevent.joinall([waiter])
    assert returned == ["a"]
    assert waiter.exception is error or waiter.value is error
    assert len(queue.waiters) == 0


def test_kill_after_waking_comes_too_late(queue, returned):
    """A waiter that has woken owns what it was handed."""
    taken = []

    def take():
        taken.append(wait(queue, None, returned))
        gevent.sleep(10)

    waiter = gevent.spawn(take)
    gevent.sleep(0)
    queue.hand("a")
    waiter.kill(block=False)
    gevent.joinall([waiter])
    assert (taken, returned) == (["a"], [])


def test_eviction(queue, returned):
    waiters = start(queue, 3, returned)
    detached = queue.detach()
    assert len(queue.waiters) == 0
    queue.evict(detached, lambda: ConnectionError("cleared"))
    gevent.joinall(waiters)
    assert [str(waiter.exception) for waiter in waiters] == ["cleared"] * 3
    assert len({id(waiter.exception) for waiter in waiters}) == 3  # a traceback for each


def test_a_waiter_that_is_ended_between_detaching_and_eviction(queue, returned):
    first, second = start(queue, 2, returned)
    detached = queue.detach()
    first.kill()
    queue.evict(detached, lambda: ConnectionError("cleared"))
    gevent.joinall([second])
    assert isinstance(second.exception, ConnectionError)
    assert isinstance(first.value, GreenletExit)


def test_newcomers_after_a_detachment_queue_up_anew(queue, returned):
    (old,) = start(queue, 1, returned)
    detached = queue.detach()
    (new,) = start(queue, 1, returned)
    queue.hand("a")
    queue.evict(detached, ConnectionError)
    gevent.joinall([old, new])
    assert new.value == "a"
    assert isinstance(old.exception, ConnectionError)


def test_age_of_the_head(queue, returned, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(_clock, "monotonic", lambda: now)
    assert queue.oldest() is None
    (first,) = start(queue, 1, returned)
    now += 3
    second = gevent.spawn(wait, queue, None, returned)
    gevent.sleep(0)
    now += 4
    assert queue.oldest() == 7
    first.kill()
    assert queue.oldest() == 4
    queue.hand("a")
    assert second.get() == "a" and queue.oldest() is None


def test_wait_without_limit_keeps_the_hub_running(queue, returned):
    """Otherwise the main greenlet would end with LoopExit while nothing else goes on."""
    main = gevent.getcurrent()
    gevent.get_hub().loop.timer(0.05, ref=False).start(lambda: queue.hand("a"))
    assert wait(queue, None, returned) == "a"
    assert gevent.getcurrent() is main


def test_many_waiters_that_come_and_go(queue, returned):
    """Every item ends in exactly one place."""
    taken = []
    waiters = [gevent.spawn(lambda: taken.append(wait(queue, None, returned))) for _ in range(200)]
    gevent.sleep(0)
    for number, waiter in enumerate(waiters):
        if number % 3 == 0:
            waiter.kill(block=False)
        if number % 2 == 0:
            queue.hand(number)
        if number % 7 == 0:
            gevent.sleep(0)
    gevent.sleep(0.01)
    assert sorted(taken + returned) == list(range(0, 200, 2))
    gevent.killall(waiters)
    assert len(queue.waiters) == 0


def test_a_turn_that_has_come_is_not_lost_when_the_loop_is_late(queue, returned):
    """Both timers have gone off when the loop comes to look, that of the limit as the second."""
    (waiter,) = start(queue, 1, returned, limit=0.05)
    handing = gevent.get_hub().loop.timer(0.02)
    handing.start(queue.hand, "a")
    time.sleep(0.1)
    assert waiter.get() == "a"
    assert returned == []
