"""Events reach listeners in the order in which they were noted, one at a time, whatever listeners do (CMAP-06)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextvars import ContextVar
from random import Random
from typing import Any

import gevent
import pytest
from gevent import getcurrent
from gevent.event import Event

from gmongo.events import delivery as delivery_module
from gmongo.events.delivery import Delivery
from gmongo.testing import VirtualTime
from tests.support.greenlets import living
from tests.support.wait import eventually

NAME: ContextVar[str] = ContextVar("NAME", default="")


class Foreign(BaseException):
    """Thrown by code that knows nothing of the driver."""


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    with gevent.Timeout(20):
        yield


@pytest.fixture
def delivery() -> Delivery:
    return Delivery()


@pytest.fixture
def quick(monkeypatch: Any) -> None:
    """A listener that does not return is found soon."""
    monkeypatch.setattr(delivery_module, "_PATIENCE", 0.03)
    monkeypatch.setattr(delivery_module, "_GRACE", 0.01)


def do(delivery: Delivery, *steps: Any) -> None:
    """Note steps, each a function and its arguments, and deliver them."""
    for publish, *what in steps:
        delivery.note(publish, *what)
    delivery.deliver()


def spawn(function: Any, *arguments: Any) -> gevent.Greenlet[..., Any]:
    """Start a greenlet, and let it run until it first switches."""
    greenlet = gevent.spawn(function, *arguments)
    gevent.sleep(0)
    return greenlet


class Gate:
    """A listener that does not return before it is opened."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self._event = Event()

    def hold(self, what: Any) -> None:
        self.heard.append(what)
        self._event.wait()

    def open(self) -> None:
        self._event.set()


def test_a_greenlet_that_causes_events_waits_for_listeners(delivery: Delivery) -> None:
    """So there are never more of them on their way than greenlets that cause them."""
    most = 0

    def hear(_what: int) -> None:
        nonlocal most
        most = max(most, len(delivery._events))
        gevent.sleep(0.0001)

    def happen() -> None:
        for number in range(20):
            do(delivery, (hear, number))

    gevent.joinall([gevent.spawn(happen) for _ in range(10)], raise_error=True)
    assert most <= 10


@pytest.mark.parametrize("thrown", [gevent.GreenletExit, gevent.Timeout, Foreign, ValueError])
@pytest.mark.parametrize("when", ["in its listener", "while it waits"])
def test_one_is_interrupted(delivery: Delivery, thrown: Any, when: str) -> None:
    """It ends at once; what it had to deliver comes in its place, with its context, and holds no greenlet up."""
    gate, contexts = Gate(), []

    def hear(what: Any) -> None:
        gate.heard.append(what)
        contexts.append(NAME.get())

    def victim() -> None:
        NAME.set("victim")
        do(delivery, (gate.hold if when == "in its listener" else hear, "a"), (hear, "b"))

    before = Gate()
    if when == "while it waits":
        spawn(do, delivery, (before.hold, 0))
    doomed = spawn(victim)
    others = [spawn(do, delivery, (hear, number)) for number in range(3)]
    error = thrown()
    doomed.kill(error)
    assert doomed.exception is error or doomed.value is error
    before.open()
    gevent.joinall(others, raise_error=True)
    assert gate.heard == ["a", "b", 0, 1, 2]
    assert contexts[-4:] == ["victim", "", "", ""]
    assert not delivery.pending


def test_cleanup_does_not_wait(delivery: Delivery) -> None:
    gate = Gate()
    first = spawn(do, delivery, (gate.hold, 1))
    delivery.note(gate.heard.append, 2)
    delivery.deliver(wait=False)
    assert gate.heard == [1]
    third = spawn(do, delivery, (gate.heard.append, 3))
    gate.open()
    gevent.joinall([first, third])
    assert gate.heard == [1, 2, 3]


def test_what_is_left_while_nothing_is_delivered_comes_at_once(delivery: Delivery) -> None:
    heard: list[int] = []
    delivery.note(heard.append, 1)
    delivery.deliver(wait=False)
    assert heard == [1]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("when", ["before it begins", "in its listener"])
def test_a_substitute_that_is_killed_is_replaced(delivery: Delivery, times: int, when: str) -> None:
    """As ``gevent.killall`` of all there is does."""
    gate, known = Gate(), set(living())
    first = spawn(do, delivery, (gate.hold, 0))
    doomed = spawn(do, delivery, *[(gate.hold, number) for number in range(1, 6)])
    doomed.kill()
    gate_of_first, gate._event = gate._event, Event()
    gate_of_first.set()
    first.join()
    for _ in range(times):
        if when == "in its listener":
            gevent.sleep(0.005)
        gevent.killall([each for each in living() if each not in known and each is not getcurrent()], block=False)
        gevent.sleep(0.005)
    gate.open()
    assert eventually(lambda: not delivery.pending)
    assert gate.heard == [0, 1, 2, 3, 4, 5]


def test_a_substitute_that_never_begins_is_replaced(delivery: Delivery) -> None:
    """It is killed in the instant in which it is made."""
    gate = Gate()

    def first() -> None:
        do(delivery, (gate.hold, 0))
        assert left.substitute is not None
        left.substitute.kill(block=False)

    before = spawn(first)
    doomed = spawn(do, delivery, (gate.heard.append, 1))
    left = delivery._turns[doomed]
    doomed.kill()
    third = spawn(do, delivery, (gate.heard.append, 2))
    gate.open()
    gevent.joinall([before, third], timeout=5, raise_error=True)
    assert gate.heard == [0, 1, 2]


def test_a_listener_that_uses_the_client(delivery: Delivery) -> None:
    """What it causes comes after the event that it hears, and after what others have noted meanwhile."""
    heard: list[str] = []

    def use() -> None:
        heard.append("outer")
        gevent.sleep(0.001)
        do(delivery, (heard.append, "inner 1"))
        do(delivery, (heard.append, "inner 2"))
        heard.append("end of outer")

    outer = spawn(do, delivery, (use,), (heard.append, "next"))
    other = spawn(do, delivery, (heard.append, "other"))
    gevent.joinall([outer, other], raise_error=True)
    assert heard == ["outer", "end of outer", "next", "other", "inner 1", "inner 2"]


def test_a_listener_that_waits_for_another_greenlet_that_uses_the_client(delivery: Delivery, quick: None) -> None:
    """The other one goes on after a while, and its events come after."""
    heard: list[str] = []

    def use() -> None:
        other = gevent.spawn(do, delivery, (heard.append, "other"))
        other.get(timeout=5)
        heard.append("outer")

    do(delivery, (use,))
    gevent.sleep(0.01)
    assert heard == ["outer", "other"]


@pytest.mark.parametrize("end", ["returns", "killed"])
def test_a_listener_does_not_return(
    virtual_time: VirtualTime, delivery: Delivery, quick: None, caplog: Any, end: str
) -> None:
    """After a while, others go on without waiting. What happens to them comes in order when it has ended."""
    gate = Gate()
    hung = spawn(do, delivery, (gate.hold, 0))
    waited = spawn(do, delivery, (gate.heard.append, 1))
    waited.get(timeout=5)
    assert "a listener has not returned" in caplog.text
    for number in range(2, 50):
        before = virtual_time.monotonic()
        do(delivery, (gate.heard.append, number))
        assert virtual_time.monotonic() == before
    assert gate.heard == [0]
    if end == "killed":
        hung.kill()
    gate.open()
    assert eventually(lambda: not delivery.pending)
    assert gate.heard == list(range(50))
    do(delivery, (gate.heard.append, 50))
    assert gate.heard[-1] == 50


def test_only_so_many_are_kept(delivery: Delivery, quick: None, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(delivery_module, "_MOST_LEFT", 20)
    gate = Gate()
    hung = spawn(do, delivery, (gate.hold, 0))
    spawn(do, delivery, (gate.heard.append, 1)).get(timeout=5)
    for number in range(2, 100):
        do(delivery, (gate.heard.append, number))
    assert len(delivery._events) <= 22
    gate.open()
    hung.join()
    assert eventually(lambda: not delivery.pending)
    assert gate.heard == list(range(21))
    assert "79 events were not delivered" in caplog.text
    assert delivery.note(gate.heard.append, "again")
    delivery.deliver()
    assert gate.heard[-1] == "again"


def test_an_application_that_holds_the_loop_is_no_listener_that_does_not_return(
    delivery: Delivery, quick: None, caplog: Any
) -> None:
    gate = Gate()
    first = spawn(do, delivery, (gate.hold, 1))
    second = spawn(do, delivery, (gate.heard.append, 2))
    gevent.spawn_later(0.05, gate.open)  # both are late, and this one is the later
    time.sleep(0.1)
    gevent.joinall([first, second])
    assert gate.heard == [1, 2]
    assert caplog.text == ""


def test_what_is_held_in_is_delivered_after_it(delivery: Delivery) -> None:
    heard: list[int] = []
    with delivery:
        do(delivery, (heard.append, 1))
        with delivery:
            do(delivery, (heard.append, 2))
        delivery.deliver()
        assert heard == []
    delivery.deliver()
    assert heard == [1, 2]


def test_a_forked_child_has_nothing_to_deliver(delivery: Delivery) -> None:
    """Greenlets that deliver or wait in the parent go on in the child too, and end there without a trace."""
    gate, heard = Gate(), []
    inherited = [spawn(do, delivery, (gate.hold, 0), (heard.append, 1)), spawn(do, delivery, (heard.append, 2))]
    spawn(do, delivery, (heard.append, 3)).kill()
    delivery.reset_after_fork()
    do(delivery, (heard.append, "of the child"))
    gate.open()
    gevent.joinall(inherited)
    assert heard == ["of the child"]
    do(delivery, (heard.append, "more"))
    assert heard == ["of the child", "more"]


def test_a_child_does_not_go_on_without_its_listeners_though_the_parent_did(quick: None) -> None:
    """One of the parent's has not returned for so long that its operations wait for it no more."""
    delivery, gate, heard = Delivery(), Gate(), []
    inherited = spawn(do, delivery, (gate.hold, 0))
    do(delivery, (heard.append, "left"))
    assert delivery._stuck and not heard
    delivery.reset_after_fork()
    assert not delivery._stuck and not delivery.pending
    gate.open()
    inherited.join()


@pytest.mark.requirement("CMAP-06", "CMAP-40")
@pytest.mark.parametrize("seed", range(30))
def test_the_order_is_the_same_for_all_whatever_listeners_do(quick: None, seed: int) -> None:
    """Random greenlets note and deliver, are killed, and have listeners that yield, dawdle and use the client."""
    delivery, random = Delivery(), Random(seed)
    noted: list[int] = []
    heard: list[list[int]] = [[], []]
    inside = 0

    def happen() -> None:
        for _ in range(random.randint(1, 3)):
            noted.append(len(noted))
            delivery.note(publish, noted[-1])

    def publish(number: int) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        try:
            for each in heard:
                try:
                    each.append(number)
                    listen()
                except BaseException:  # as `monitoring.publish` does, which goes on with the next listener
                    if each is heard[-1]:
                        raise
        finally:
            inside -= 1

    def listen() -> None:
        what = random.random()
        if what < 0.3:
            gevent.sleep(0)
        elif what < 0.4:
            gevent.sleep(random.choice([0.0005, 0.002]))
        elif what < 0.45 and len(noted) < 400:
            happen()
            delivery.deliver()

    def live() -> None:
        while len(noted) < 300:
            happen()
            delivery.deliver(wait=random.random() < 0.9)
            gevent.sleep(random.choice([0, 0, 0.001]))

    crowd = [gevent.spawn(live) for _ in range(8)]
    while not all(each.ready() for each in crowd):
        gevent.sleep(0.002)
        if random.random() < 0.3:
            random.choice(crowd).kill(block=False)
            crowd.append(gevent.spawn(live))
    assert eventually(lambda: not delivery.pending)
    assert heard == [noted, noted]
    assert not delivery._turns
    assert delivery._left == 0
