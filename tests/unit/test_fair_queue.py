from __future__ import annotations

import time

import gevent
import pytest
from gevent import GreenletExit, Timeout

from gmongo.cmap.wait_queue import WaitQueue


class WaitTimeout(Exception):
    pass


@pytest.fixture
def queue():
    with gevent.Timeout(5):
        yield WaitQueue()


@pytest.fixture
def returned_items():
    return []


def wait_like_check_out(queue, seconds, returned_items, make_error=WaitTimeout):
    """Wait for an item. An interrupted waiter adds its unused item to `returned_items`."""
    waiter = queue.join()
    try:
        return waiter.sleep(seconds, make_error)
    except BaseException:
        item = queue.leave(waiter)
        if item is not None:
            returned_items.append(item)
        raise


def start_waiters(queue, count, returned_items, seconds=None):
    waiters = [gevent.spawn(wait_like_check_out, queue, seconds, returned_items) for _ in range(count)]
    gevent.sleep(0)
    assert len(queue.waiters) == count
    return waiters


@pytest.mark.parametrize("times", [1, 3])
def test_repeated_hand_over_to_all_does_not_move_scheduled_waiters(queue, times):
    order = []

    def wait_twice(name):
        waiter = queue.join()
        for _ in range(2):
            order.append(name + waiter.sleep(None, WaitTimeout))
            waiter.item = None
            if order == ["a1", "b1"]:
                for _ in range(times):
                    queue.hand_over_to_all("2")
        queue.leave(waiter)

    waiters = [gevent.spawn(wait_twice, name) for name in "abcd"]
    gevent.sleep(0)
    queue.hand_over_to_all("1")
    gevent.idle()
    assert order == ["a1", "b1", "b2", "a2", "c2", "d2"]
    # Waiter "b" receives the second item before "a", because "a" already sleeps again, and "b" is awake.
    assert len(queue.waiters) == 2
    queue.hand_over_to_all("3")
    gevent.joinall(waiters)
    gevent.sleep(0)  # raises an error if the queue wakes a waiter twice
    assert order[6:] == ["c3", "d3"]


@pytest.mark.parametrize("limit", [0, -1])
def test_expired_timeout_raises_and_leaves_queue(queue, returned_items, limit):
    with pytest.raises(WaitTimeout):
        wait_like_check_out(queue, limit, returned_items)
    assert len(queue.waiters) == 0


@pytest.mark.parametrize("exception_class", [GreenletExit, Timeout, ValueError])
def test_item_of_interrupted_waiter_is_returned_once(queue, returned_items, exception_class):
    (waiter,) = start_waiters(queue, 1, returned_items)
    error = exception_class()
    waiter.kill(error, block=False)
    queue.hand_over("a")
    gevent.joinall([waiter])
    assert returned_items == ["a"]
    assert waiter.exception is error or waiter.value is error
    assert len(queue.waiters) == 0


def test_eviction_raises_separate_error_in_each_waiter(queue, returned_items):
    waiters = start_waiters(queue, 3, returned_items)
    queue.evict(lambda: ConnectionError("cleared"))
    assert len(queue.waiters) == 0
    gevent.joinall(waiters)
    assert [str(waiter.exception) for waiter in waiters] == ["cleared"] * 3
    assert len({id(waiter.exception) for waiter in waiters}) == 3


def test_each_item_is_taken_or_returned_exactly_once(queue, returned_items):
    taken = []
    waiters = [gevent.spawn(lambda: taken.append(wait_like_check_out(queue, None, returned_items))) for _ in range(200)]
    gevent.sleep(0)
    for number, waiter in enumerate(waiters):
        if number % 3 == 0:
            waiter.kill(block=False)
        if number % 2 == 0:
            queue.hand_over(number)
        if number % 7 == 0:
            gevent.sleep(0)
    gevent.sleep(0.01)
    assert sorted(taken + returned_items) == list(range(0, 200, 2))
    gevent.killall(waiters)
    assert len(queue.waiters) == 0


def test_item_is_not_lost_if_event_loop_is_blocked(queue, returned_items):
    """Two timers expire in one loop iteration: the timer that hands over the item, then the timer of
    the limit.
    """
    (waiter,) = start_waiters(queue, 1, returned_items, seconds=0.05)
    timer = gevent.get_hub().loop.timer(0.02)
    timer.start(queue.hand_over, "a")
    time.sleep(0.1)
    assert waiter.get() == "a"
    assert returned_items == []
