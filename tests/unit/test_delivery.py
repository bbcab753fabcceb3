"""Listeners receive one event at a time, in the order of occurrence (CMAP-06)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any
from unittest.mock import Mock

import gevent
import pytest
from gevent import GreenletExit, getcurrent
from gevent.event import Event

from gmongo.events import delivery as delivery_module
from gmongo.events.delivery import Delivery
from gmongo.testing import VirtualTime
from tests.support.greenlets import living_greenlets
from tests.support.wait import eventually


@pytest.fixture(autouse=True)
def time_limit_of_test() -> Iterator[None]:
    with gevent.Timeout(20):
        yield


@pytest.fixture
def delivery() -> Delivery:
    return Delivery()


@pytest.fixture
def short_listener_limit(monkeypatch: Any) -> None:
    """Shorten the time after which a listener counts as stuck."""
    monkeypatch.setattr(delivery_module, "_MAX_WAIT", 0.03)
    monkeypatch.setattr(delivery_module, "_ADDITIONAL_WAIT", 0.01)


def queue_and_deliver(delivery: Delivery, *events: Any) -> None:
    """Queue events, and deliver all queued events. Each event is a tuple: a function, and the
    arguments of the function.
    """
    for publish, *arguments in events:
        delivery.record(publish, *arguments)
    delivery.deliver()


def spawn(function: Any, *arguments: Any) -> gevent.Greenlet[..., Any]:
    """Start a greenlet, and run the greenlet until its first switch."""
    greenlet = gevent.spawn(function, *arguments)
    gevent.sleep(0)
    return greenlet


class BlockingListener:
    """A listener that blocks until the test opens the gate."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self._gate = Event()

    def block(self, event: Any) -> None:
        self.received.append(event)
        self._gate.wait()

    def open(self) -> None:
        self._gate.set()


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kill_point", ["before start", "inside listener"])
def test_killed_substitute_of_delivering_greenlet_is_replaced(delivery: Delivery, count: int, kill_point: str) -> None:
    listener, old_greenlets = BlockingListener(), set(living_greenlets())
    delivering_greenlet = spawn(queue_and_deliver, delivery, (listener.block, 0))
    victim = spawn(queue_and_deliver, delivery, *[(listener.block, number) for number in range(1, 6)])
    victim.kill()
    first_gate, listener._gate = listener._gate, Event()
    first_gate.set()
    delivering_greenlet.join()
    for _ in range(count):
        if kill_point == "inside listener":
            gevent.sleep(0.005)
        gevent.killall(
            [each for each in living_greenlets() if each not in old_greenlets and each is not getcurrent()], block=False
        )
        gevent.sleep(0.005)
    listener.open()
    assert eventually(lambda: not delivery._events)
    assert listener.received == [0, 1, 2, 3, 4, 5]


def test_substitute_killed_before_its_start_is_replaced(delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[Any] = []

    class Substitute(gevent.Greenlet):  # type: ignore[type-arg]
        def start(self) -> None:
            super().start()
            if not killed:
                killed.append(self)
                self.kill(block=False)

    monkeypatch.setattr(delivery_module, "Greenlet", Substitute)
    listener = BlockingListener()
    spawn(queue_and_deliver, delivery, (listener.block, 0))
    spawn(queue_and_deliver, delivery, (listener.received.append, 1)).kill()
    listener.open()
    assert eventually(lambda: not delivery._events)
    assert listener.received == [0, 1] and killed


def test_listener_may_wait_for_greenlet_that_causes_events(delivery: Delivery, short_listener_limit: None) -> None:
    received: list[str] = []

    def wait_for_other_greenlet() -> None:
        other = gevent.spawn(queue_and_deliver, delivery, (received.append, "other"))
        other.get(timeout=5)
        received.append("outer")

    queue_and_deliver(delivery, (wait_for_other_greenlet,))
    gevent.sleep(0.01)
    assert received == ["outer", "other"]


@pytest.mark.parametrize("how_listener_ends", ["returns", "killed"])
def test_stuck_listener_delays_no_greenlet_and_no_event_is_lost(
    virtual_time: VirtualTime, delivery: Delivery, short_listener_limit: None, caplog: Any, how_listener_ends: str
) -> None:
    listener = BlockingListener()
    blocked_greenlet = spawn(queue_and_deliver, delivery, (listener.block, 0))
    waiting_greenlet = spawn(queue_and_deliver, delivery, (listener.received.append, 1))
    waiting_greenlet.get(timeout=5)
    assert "a listener has not returned" in caplog.text
    for number in range(2, 50):
        before = virtual_time.monotonic()
        queue_and_deliver(delivery, (listener.received.append, number))
        assert virtual_time.monotonic() == before
    assert listener.received == [0]
    if how_listener_ends == "killed":
        blocked_greenlet.kill()
    listener.open()
    assert eventually(lambda: not delivery._events)
    assert listener.received == list(range(50))
    queue_and_deliver(delivery, (listener.received.append, 50))
    assert listener.received[-1] == 50


def test_events_above_limit_are_dropped(
    delivery: Delivery, short_listener_limit: None, monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setattr(delivery_module, "_MAX_UNDELIVERED", 20)
    listener = BlockingListener()
    blocked_greenlet = spawn(queue_and_deliver, delivery, (listener.block, 0))
    spawn(queue_and_deliver, delivery, (listener.received.append, 1)).get(timeout=5)
    for number in range(2, 100):
        queue_and_deliver(delivery, (listener.received.append, number))
    assert len(delivery._events) <= 22
    listener.open()
    blocked_greenlet.join()
    assert eventually(lambda: not delivery._events)
    assert listener.received == list(range(21))
    assert any(text.startswith("79 events were not delivered") for text in caplog.messages)
    assert delivery.record(listener.received.append, "again")
    delivery.deliver()
    assert listener.received[-1] == "again"


def test_substitute_has_delivered_its_events_if_killed_during_report_of_dropped_events(
    delivery: Delivery, short_listener_limit: None, monkeypatch: Any
) -> None:
    monkeypatch.setattr(delivery, "_report_dropped", Mock(side_effect=GreenletExit))
    listener = BlockingListener()
    blocked_greenlet = spawn(queue_and_deliver, delivery, (listener.block, 0))
    for number in range(1, 4):
        spawn(queue_and_deliver, delivery, (listener.received.append, number)).get(timeout=5)
    listener.open()
    blocked_greenlet.join()
    assert eventually(lambda: not delivery._events)
    assert listener.received == [0, 1, 2, 3]


def test_blocked_event_loop_does_not_count_as_stuck_listener(
    delivery: Delivery, short_listener_limit: None, caplog: Any
) -> None:
    listener = BlockingListener()
    first = spawn(queue_and_deliver, delivery, (listener.block, 1))
    second = spawn(queue_and_deliver, delivery, (listener.received.append, 2))
    # The event loop is blocked until the listener's limit and the timer that opens the gate have
    # both expired. The event loop runs the timer of the limit first.
    gevent.spawn_later(0.05, listener.open)
    time.sleep(0.1)
    gevent.joinall([first, second])
    assert listener.received == [1, 2]
    assert caplog.text == ""


def test_forked_child_delivers_no_events_of_parent(delivery: Delivery) -> None:
    """Check that the child delivers only events of the child, and that inherited greenlets end."""
    listener, received = BlockingListener(), []
    inherited_greenlets = [
        spawn(queue_and_deliver, delivery, (listener.block, 0), (received.append, 1)),
        spawn(queue_and_deliver, delivery, (received.append, 2)),
    ]
    spawn(queue_and_deliver, delivery, (received.append, 3)).kill()
    delivery.reset_after_fork()
    queue_and_deliver(delivery, (received.append, "of the child"))
    listener.open()
    gevent.joinall(inherited_greenlets)
    assert received == ["of the child"]
    queue_and_deliver(delivery, (received.append, "more"))
    assert received == ["of the child", "more"]


def test_forked_child_forgets_stuck_listener_of_parent(short_listener_limit: None) -> None:
    delivery, listener, received = Delivery(), BlockingListener(), []
    inherited_greenlet = spawn(queue_and_deliver, delivery, (listener.block, 0))
    queue_and_deliver(delivery, (received.append, "left"))
    assert delivery._is_stuck and not received
    delivery.reset_after_fork()
    assert not delivery._is_stuck and not delivery._events
    listener.open()
    inherited_greenlet.join()


@pytest.mark.requirement("CMAP-06", "CMAP-40")
@pytest.mark.parametrize("seed", range(30))
def test_all_listeners_receive_random_events_in_one_order(short_listener_limit: None, seed: int) -> None:
    """Kill random greenlets that queue and deliver events. Listeners let other greenlets run, or
    cause new events.
    """
    delivery, random = Delivery(), Random(seed)
    recorded: list[int] = []
    received: list[list[int]] = [[], []]
    running_listeners = 0

    def cause_events() -> None:
        for _ in range(random.randint(1, 3)):
            recorded.append(len(recorded))
            delivery.record(publish, recorded[-1])

    def publish(number: int) -> None:
        nonlocal running_listeners
        running_listeners += 1
        assert running_listeners == 1
        try:
            for each in received:
                try:
                    each.append(number)
                    sleep_or_cause_events()
                except BaseException:  # like `monitoring.publish`, continue with the next listener
                    if each is received[-1]:
                        raise
        finally:
            running_listeners -= 1

    def sleep_or_cause_events() -> None:
        draw = random.random()
        if draw < 0.3:
            gevent.sleep(0)
        elif draw < 0.4:
            gevent.sleep(random.choice([0.0005, 0.002]))
        elif draw < 0.45 and len(recorded) < 400:
            cause_events()
            delivery.deliver()

    def cause_and_deliver_events() -> None:
        while len(recorded) < 300:
            cause_events()
            delivery.deliver(wait=random.random() < 0.9)
            gevent.sleep(random.choice([0, 0, 0.001]))

    workers = [gevent.spawn(cause_and_deliver_events) for _ in range(8)]
    while not all(each.ready() for each in workers):
        gevent.sleep(0.002)
        if random.random() < 0.3:
            random.choice(workers).kill(block=False)
            workers.append(gevent.spawn(cause_and_deliver_events))
    assert eventually(lambda: not delivery._events)
    assert received == [recorded, recorded]
    assert not delivery._events_by_greenlet
    assert delivery._substitute_event_count == 0


def test_fork_inside_of_block_ends_the_block(delivery: Delivery) -> None:
    received: list[str] = []
    delivery.__enter__()
    delivery.reset_after_fork()
    delivery.record(received.append, "event of the child")
    delivery.deliver()
    assert received == ["event of the child"]
