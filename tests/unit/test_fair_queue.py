from __future__ import annotations

import time

import gevent
import pytest
from gevent import GreenletExit, Timeout

from gmongo import _clock
from gmongo.cmap.wait_queue import WaitQueue


class LateError(Exception):
    pass


@pytest.fixture
def queue():
    with gevent.Timeout(5):
        yield WaitQueue()


@pytest.fixture
def returned():
    return []


def wait(queue, limit, returned, timed_out=LateError):
    """Wait like a check-out. An item that a leaving waiter has received goes to `returned`."""
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


def test_waiters_receive_items_in_order_of_arrival(queue, returned):
    waiters = start(queue, 3, returned)
    for item in "abc":
        queue.hand_over(item)
    assert len(queue.waiters) == 0
    gevent.joinall(waiters)
    assert [waiter.value for waiter in waiters] == ["a", "b", "c"]
    assert returned == []


@pytest.mark.parametrize("times", [1, 3])
def test_hand_to_all_keeps_order_of_waiters_that_already_woke(queue, times):
    order = []

    def wait_twice(name):
        waiter = queue.join()
        for _ in range(2):
            order.append(name + waiter.sleep(None, LateError))
            waiter.item = None
            if order == ["a1", "b1"]:
                for _ in range(times):
                    queue.hand_over_to_all("2")
        queue.leave(waiter)

    waiters = [gevent.spawn(wait_twice, name) for name in "abcd"]
    gevent.sleep(0)
    queue.hand_over_to_all("1")
    gevent.idle()
    assert order == ["a1", "b1", "b2", "a2", "c2", "d2"]  # waiter b was already awake
    assert len(queue.waiters) == 2
    queue.hand_over_to_all("3")
    gevent.joinall(waiters)
    gevent.sleep(0)  # a second wakeup of a waiter would raise an error here
    assert order[6:] == ["c3", "d3"]


def test_hand_returns_before_waiter_runs(queue, returned):
    (waiter,) = start(queue, 1, returned)
    queue.hand_over("a")
    assert not waiter.ready()
    assert waiter.get() == "a"


def test_wait_raises_given_error_after_timeout(queue, returned):
    error = LateError()
    with pytest.raises(LateError) as caught:
        wait(queue, 0.01, returned, lambda: error)
    assert caught.value is error
    assert len(queue.waiters) == 0


@pytest.mark.parametrize("limit", [0, -1])
def test_expired_timeout_raises_and_leaves_queue(queue, returned, limit):
    with pytest.raises(LateError):
        wait(queue, limit, returned)
    assert len(queue.waiters) == 0


def test_killed_waiter_leaves_queue_immediately(queue, returned):
    first, second, third = start(queue, 3, returned)
    second.kill()
    assert len(queue.waiters) == 2
    queue.hand_over("a")
    queue.hand_over("b")
    gevent.joinall([first, third])
    assert (first.value, third.value) == ("a", "b")


@pytest.mark.parametrize("thrown", [GreenletExit, Timeout, ValueError])
def test_item_of_interrupted_waiter_is_returned_once(queue, returned, thrown):
    (waiter,) = start(queue, 1, returned)
    error = thrown()
    waiter.kill(error, block=False)
    queue.hand_over("a")
    gevent.joinall([waiter])
    assert returned == ["a"]
    assert waiter.exception is error or waiter.value is error
    assert len(queue.waiters) == 0


def test_woken_waiter_keeps_item_despite_kill(queue, returned):
    taken = []

    def take():
        taken.append(wait(queue, None, returned))
        gevent.sleep(10)

    waiter = gevent.spawn(take)
    gevent.sleep(0)
    queue.hand_over("a")
    waiter.kill(block=False)
    gevent.joinall([waiter])
    assert (taken, returned) == (["a"], [])


def test_eviction_raises_own_error_in_each_waiter(queue, returned):
    waiters = start(queue, 3, returned)
    detached = queue.detach()
    assert len(queue.waiters) == 0
    queue.evict(detached, lambda: ConnectionError("cleared"))
    gevent.joinall(waiters)
    assert [str(waiter.exception) for waiter in waiters] == ["cleared"] * 3
    assert len({id(waiter.exception) for waiter in waiters}) == 3


def test_waiter_killed_after_detach_is_not_evicted(queue, returned):
    first, second = start(queue, 2, returned)
    detached = queue.detach()
    first.kill()
    queue.evict(detached, lambda: ConnectionError("cleared"))
    gevent.joinall([second])
    assert isinstance(second.exception, ConnectionError)
    assert isinstance(first.value, GreenletExit)


def test_waiter_after_detach_is_not_evicted(queue, returned):
    (old,) = start(queue, 1, returned)
    detached = queue.detach()
    (new,) = start(queue, 1, returned)
    queue.hand_over("a")
    queue.evict(detached, ConnectionError)
    gevent.joinall([old, new])
    assert new.value == "a"
    assert isinstance(old.exception, ConnectionError)


def test_oldest_returns_waiting_time_of_first_waiter(queue, returned, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(_clock, "monotonic", lambda: now)
    assert queue.oldest_wait() is None
    (first,) = start(queue, 1, returned)
    now += 3
    second = gevent.spawn(wait, queue, None, returned)
    gevent.sleep(0)
    now += 4
    assert queue.oldest_wait() == 7
    first.kill()
    assert queue.oldest_wait() == 4
    queue.hand_over("a")
    assert second.get() == "a" and queue.oldest_wait() is None


def test_wait_without_timeout_keeps_event_loop_alive(queue, returned):
    """Without a watcher, gevent raises LoopExit in the main greenlet."""
    main = gevent.getcurrent()
    gevent.get_hub().loop.timer(0.05, ref=False).start(lambda: queue.hand_over("a"))
    assert wait(queue, None, returned) == "a"
    assert gevent.getcurrent() is main


def test_each_item_is_taken_or_returned_exactly_once(queue, returned):
    taken = []
    waiters = [gevent.spawn(lambda: taken.append(wait(queue, None, returned))) for _ in range(200)]
    gevent.sleep(0)
    for number, waiter in enumerate(waiters):
        if number % 3 == 0:
            waiter.kill(block=False)
        if number % 2 == 0:
            queue.hand_over(number)
        if number % 7 == 0:
            gevent.sleep(0)
    gevent.sleep(0.01)
    assert sorted(taken + returned) == list(range(0, 200, 2))
    gevent.killall(waiters)
    assert len(queue.waiters) == 0


def test_item_is_not_lost_if_event_loop_is_late(queue, returned):
    """Both timers expire before the next loop iteration, the timer of the limit last."""
    (waiter,) = start(queue, 1, returned, limit=0.05)
    handing = gevent.get_hub().loop.timer(0.02)
    handing.start(queue.hand_over, "a")
    time.sleep(0.1)
    assert waiter.get() == "a"
    assert returned == []
