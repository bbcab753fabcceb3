"""Random lives of pools, with every step checked: what is true of a pool whatever happens to it in whatever order.

The pools are real; only establishing is replaced, so that each handshake hangs until a step decides what becomes of it.
Steps may follow each other before any greenlet has had a turn, so that several things happen "at once". In the second
test, listeners yield in every event, so that anything can happen inside of them, too. A life follows from its seed.
"""

from __future__ import annotations

from contextvars import ContextVar
from itertools import pairwise
from random import Random
from typing import Any

import gevent
import hypothesis.strategies as st
import pytest
from gevent.event import AsyncResult, Event
from hypothesis import HealthCheck, Phase, given, settings

from gmongo import _clock
from gmongo.cmap.connection import Connection
from gmongo.cmap.handshake import Hello
from gmongo.errors import AutoReconnect, InvalidOperation, PyMongoError
from tests.cmap.harness import make_pool
from tests.support.critical_sections import check
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder, pool_line, pool_word

ADDRESS = ("db.example", 27017)
STEPS_OF_A_LIFE = 100
HELLO = {"ok": 1, "maxWireVersion": 25, "maxMessageSizeBytes": 48_000_000}


class Wire:
    """Stands for a transport: it is open or closed, and its handshake hangs until the test decides about it. So does
    the reading of a late reply.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.closed = False
        self.handshake: AsyncResult[None] = AsyncResult()
        self.late: AsyncResult[None] | None = None

    @property
    def undecided(self) -> bool:
        return not self.handshake.ready()

    @property
    def is_late(self) -> bool:
        return self.late is not None and not self.late.ready()

    def wait_for_reply(self) -> None:
        self.late = AsyncResult()
        if self.closed:
            self.late.set_exception(AutoReconnect("closed"))
        self.late.get()

    def interrupt(self, error: BaseException) -> None:
        self.closed = True
        if self.undecided:
            self.handshake.set_exception(error)
        if self.late is not None and self.is_late:
            self.late.set_exception(error)

    def close(self) -> None:
        self.interrupt(AutoReconnect("closed"))

    def limit_messages(self, _size: int) -> None:
        pass

    def hold_hub(self, _hold: bool) -> None:
        pass


# Which task it is. What happens to one that is killed is delivered by another greenlet, in its context.
ASKING: ContextVar[Any] = ContextVar("ASKING", default=None)


class Task:
    """A greenlet that checks a connection out, and holds it until it is told to let go."""

    def __init__(self, life: Life, impatient: bool) -> None:
        self.events: list[str] = []  # of its check-out and check-in
        self.connection: Connection | None = None
        self.let_go = Event()
        self.unexpected: BaseException | None = None
        self._pool = life.pool
        self._deadline = _clock.monotonic() - 1 if impatient else None
        self.greenlet = gevent.spawn(self._run)

    def _run(self) -> None:
        ASKING.set(self)
        try:
            with checked_out(self._pool, self._deadline) as self.connection:
                self.let_go.wait()
        except PyMongoError as error:
            if isinstance(error, InvalidOperation):
                self.unexpected = error
        except Exception as error:
            self.unexpected = error

    @property
    def started(self) -> bool:
        return "Started" in self.events

    @property
    def ended(self) -> bool:
        return "CheckedOut" in self.events or "Failed" in self.events

    @property
    def holding(self) -> bool:
        return self.connection is not None and not self.greenlet.dead and "CheckedIn" not in self.events


class Life:
    """A pool, and everything that has to do with it.

    :param seed: what decides about everything.
    :param yields: whether listeners let others run.
    """

    def __init__(self, seed: int, yields: bool) -> None:
        self.random = Random(seed)
        self.yields = yields
        self.passes = 400 if yields else 15  # turns of the loop until nothing moves any more
        self.steps = 0
        self.settled = True
        self.wires: list[Wire] = []
        self.tasks: list[Task] = []
        self.faults: list[str] = []
        self.recorder = PoolRecorder()
        for kind in ("Started", "Failed", "CheckedOut", "CheckedIn", "Created", "Ready", "Closed", "PoolCleared"):
            self.recorder.hooks[kind] = self._heard
        self.largest, self.max_connecting = self.random.randint(0, 3), self.random.randint(1, 2)

    def live(self) -> int:
        """Take a hundred steps, or as many as it takes to be closed; returns how many they were."""
        self.begin()
        try:
            while self.steps < STEPS_OF_A_LIFE and self.pool.stats()["state"] != "closed":
                self.step()
            for _ in range(5):  # after the close, too
                self.step()
        finally:
            self.end()
        return self.steps

    def begin(self) -> None:
        smallest = self.random.randint(0, 2)
        self.pool = make_pool(
            ADDRESS,
            self.recorder,
            ready=False,
            clears=self.random.random() < 0.5,
            max_pool_size=self.largest,
            min_pool_size=min(smallest, self.largest or smallest),
            max_connecting=self.max_connecting,
            max_idle_time=3600,
            upkeep_interval=60,
            drains=self.random.random() < 0.7,
        )
        self.pool.ready()
        self.settle()

    def end(self) -> None:
        self.recorder.hooks.clear()
        self.pool.close()
        gevent.killall([task.greenlet for task in self.tasks])
        for wire in self.wires:
            wire.close()
        self.settle()
        assert self.pool.stats()["total"] == 0

    def step(self) -> None:
        """Do one thing, perhaps let all greenlets go on, and check."""
        (action,) = self.random.choices(list(ACTIONS), list(ACTIONS.values()))
        if not action(self):
            return  # it cannot happen now
        self.steps += 1
        self.settled = False
        if self.random.random() < 0.5:
            self.settle()
        self.check()

    # What happens

    def establish(self, connection: Connection, *_rest: Any) -> None:
        """Takes the place of ``gmongo.cmap.handshake.establish``."""
        wire = Wire(connection)
        self.wires.append(wire)
        connection.attach(wire)  # type: ignore[arg-type]
        wire.handshake.get()
        connection.established(Hello(HELLO, 0.0), None)

    @staticmethod
    def read_late_reply(connection: Connection, *_rest: Any) -> None:
        """Takes the place of the connection's method."""
        connection._transport.wait_for_reply()  # type: ignore[union-attr]
        connection.mid_message, connection.error = False, None
        connection.late_reply = connection.unanswered = None

    def _heard(self, event: Any) -> None:
        task = ASKING.get()
        kind = pool_word(event)
        if task is not None and kind in ("Started", "Failed", "CheckedOut", "CheckedIn", "Created"):
            if kind in ("Created", "CheckedOut") and not self.yields:
                self._check_turn(task)
            task.events.append(kind)
        states = self.recorder.only("PoolReady", "PoolCleared", "PoolClosed")
        if kind == "Created" and task is None and states[-1:] != ["PoolReady"]:
            self.faults.append(f"populated while it was not ready: {self.recorder.story}")
        if kind == "CheckedOut" and states[-1:] == ["PoolClosed"]:
            self.faults.append(f"a check-out from a closed pool: {self.recorder.story}")
        self._check_limits()
        if self.yields:
            gevent.sleep(0)

    def _check_turn(self, task: Task) -> None:
        """No waiter that came earlier still waits when this one is served."""
        queue = {waiter.greenlet for waiter in self.pool.machine.queue.waiters}
        if any(earlier.greenlet in queue for earlier in self.tasks[: self.tasks.index(task)]):
            self.faults.append(f"a check-out was overtaken: {self.recorder.story}")

    def _act(self, action: Any, *arguments: Any, **keywords: Any) -> None:
        gevent.spawn(action, *arguments, **keywords)

    def settle(self) -> None:
        """Let all greenlets run as far as possible, and those whose time is up time out."""
        if any(not task.ended and task._deadline is not None for task in self.tasks):
            gevent.sleep(0.001)
        for _ in range(self.passes):
            gevent.sleep(0)
        self.settled = True

    def pick(self, candidates: list[Any]) -> Any:
        return self.random.choice(candidates) if candidates else None

    # Steps; each returns whether it could be taken

    def check_out(self) -> bool:
        if sum(not task.greenlet.dead for task in self.tasks) >= 8:
            return False
        impatient = self.random.random() < 0.2
        for _ in range(self.random.randint(1, 3)):
            task = Task(self, impatient)
            self.tasks.append(task)
        return True

    def check_in(self) -> bool:
        task = self.pick([task for task in self.tasks if task.holding])
        if task is None:
            return False
        state = self.pick(["good", "good", "good", "error", "in mid-message", "unanswered", "unanswered"])
        if state == "error":
            task.connection.error = task.connection.error or AutoReconnect("lost")
        elif state == "in mid-message":
            task.connection.mid_message = True
        elif state == "unanswered" and task.connection.error is None:
            task.connection.mid_message, task.connection.error = True, AutoReconnect("interrupted")
            task.connection.late_reply = lambda _body: None
        task.let_go.set()
        return True

    def hand_over(self) -> bool:
        """A check-in whose connection goes to a waiter, into which something is thrown in the same instant."""
        task = self.pick([task for task in self.tasks if task.holding])
        if task is None or not self.pool.stats()["waiting"]:
            return False
        task.let_go.set()
        if self.random.random() < 0.4:
            gevent.Greenlet.kill(next(iter(self.pool.machine.queue.waiters)).greenlet, block=False)
        else:
            self.turn_the_state()
        return True

    def decide_handshake(self) -> bool:
        wire = self.pick([wire for wire in self.wires if wire.undecided])
        if wire is None:
            return False
        if self.random.random() < 0.2:
            wire.handshake.set_exception(AutoReconnect("refused"))
        else:
            wire.handshake.set(None)
        return True

    def let_all_connect(self) -> bool:
        undecided = [wire for wire in self.wires if wire.undecided]
        for wire in undecided:
            wire.handshake.set(None)
        return bool(undecided)

    def decide_late_reply(self) -> bool:
        wire = self.pick([wire for wire in self.wires if wire.is_late])
        if wire is None or wire.late is None:
            return False
        if self.random.random() < 0.2:
            wire.late.set_exception(AutoReconnect("too late"))
        else:
            wire.late.set(None)
        return True

    def kill(self) -> bool:
        task = self.pick([task for task in self.tasks if not task.greenlet.dead])
        if task is not None:
            task.greenlet.kill(block=False)
        return task is not None

    def turn_the_state(self) -> bool:
        what = self.random.random()
        if what < 0.05:
            gevent.spawn(self.pool.close)
        elif what < 0.9:
            gevent.spawn(self.pool.clear, AutoReconnect("cleared"), interrupt=what < 0.4)
        if self.random.random() < 0.6:
            gevent.spawn(self.pool.ready)
        return True

    def recover(self) -> bool:
        paused: bool = self.pool.stats()["state"] == "paused"
        if paused:
            gevent.spawn(self.pool.ready)
        return paused

    def grow_idle(self) -> bool:
        connection = self.pick(list(self.pool.machine.available))
        if connection is None:
            return False
        connection.idle_since -= 10_000
        if self.random.random() < 0.5:
            self.pool.machine.upkeep_wakeup.set()
        return True

    # What is true

    def check(self) -> None:
        self._check_limits()
        assert not self.faults, self.faults
        if self.settled:
            self._check_nothing_is_lost()
            self._check_queue()
            self._check_tasks()
            self._check_events()

    def _check_limits(self) -> None:
        stats = self.pool.stats()
        if stats["total"] != stats["pending"] + stats["available"] + stats["in_use"] + stats["draining"]:
            self.faults.append(f"the counts do not add up: {stats}")
        if self.largest and stats["total"] > self.largest:
            self.faults.append(f"more than {self.largest} connections: {stats}")
        if stats["pending"] > self.max_connecting:
            self.faults.append(f"more than {self.max_connecting} are being established: {stats}")

    def _check_nothing_is_lost(self) -> None:
        machine = self.pool.machine
        everything = [*machine.pending, *machine.available, *machine.in_use, *machine.draining]
        assert len(everything) == len(set(everything)) == self.pool.stats()["total"]
        assert machine.in_use == {task.connection for task in self.tasks if task.holding}, self.recorder.story
        for wire in self.wires:
            kept = wire.connection in everything
            assert kept or wire.closed, f"{wire.connection} is open and nowhere: {self.recorder.story}"
            assert not (kept and wire.closed) or wire.connection.error is not None
        stale = [each for each in (*machine.available, *machine.draining) if each.generation != self.pool.generation]
        assert not stale, f"{stale} were kept: {self.recorder.story}"
        assert {wire.connection for wire in self.wires if wire.undecided} == machine.pending
        assert {wire.connection for wire in self.wires if wire.is_late} == machine.draining

    def _check_queue(self) -> None:
        stats, machine = self.pool.stats(), self.pool.machine
        if stats["waiting"]:
            assert stats["state"] == "ready", f"a greenlet waits in vain: {self.recorder.story}"
            assert not machine.available, f"a greenlet waits in spite of an available one: {self.recorder.story}"
            assert not machine.has_room(), f"a greenlet waits in spite of room: {self.recorder.story}"

    def _check_tasks(self) -> None:
        asking = [task for task in self.tasks if task.started and not task.ended]
        for task in self.tasks:
            assert task.unexpected is None, task.unexpected
            ends = task.events.count("CheckedOut") + task.events.count("Failed")
            assert ends == (task.started and task not in asking)
            assert not task.greenlet.dead or task not in asking, f"a start without an end: {self.recorder.story}"
            assert task.events.count("CheckedIn") == (task.greenlet.dead and "CheckedOut" in task.events)
        establishing = sum("Created" in task.events for task in asking)
        assert len(asking) == self.pool.stats()["waiting"] + establishing

    def _check_events(self) -> None:
        created = [event.connection_id for event in self.recorder.of("Created")]
        assert created == list(range(1, len(created) + 1))
        lives: dict[int, list[str]] = {number: [] for number in created}
        for event in self.recorder.events:
            if getattr(event, "connection_id", 0):
                lives[event.connection_id].append(pool_word(event))
        for life in lives.values():
            assert is_a_life(life), life
        machine = self.pool.machine
        there = {each.id for each in (*machine.pending, *machine.available, *machine.in_use, *machine.draining)}
        assert {number for number, life in lives.items() if "Closed" not in life} == there
        kinds = ("PoolReady", "PoolCleared")
        states = [pool_line(event) for event in self.recorder.events if pool_word(event) in kinds]
        assert all(first != second for first, second in pairwise(states)), states


def is_a_life(life: list[str]) -> bool:
    """Created, then perhaps Ready and uses, then perhaps Closed, and nothing after that."""
    rest = life[1:-1] if life[-1] == "Closed" else life[1:]
    uses = rest[1:]
    whole = uses[: len(uses) // 2 * 2]
    return (
        life[0] == "Created"
        and (not rest or rest[0] == "Ready")
        and whole == ["CheckedOut", "CheckedIn"] * (len(whole) // 2)
        and uses[len(whole) :] in ([], ["CheckedOut"])
    )


# How often each is tried. Most lives should get far.
ACTIONS = {
    Life.check_out: 5,
    Life.check_in: 4,
    Life.hand_over: 4,
    Life.decide_handshake: 4,
    Life.let_all_connect: 2,
    Life.recover: 4,
    Life.decide_late_reply: 4,
    Life.grow_idle: 2,
    Life.turn_the_state: 1,
    Life.kill: 1,
}


def live(lives: int, yields: bool, monkeypatch: Any) -> int:
    """Live so many lives, and return how many steps they took together."""
    steps: list[int] = []

    @settings(
        max_examples=lives,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # a shorter seed is no shorter life
    )
    @given(seed=st.integers(0, 2**64 - 1))
    def run(seed: int) -> None:
        life = Life(seed, yields)
        monkeypatch.setattr("gmongo.cmap.establishing.establish", life.establish)
        monkeypatch.setattr(Connection, "read_late_reply", life.read_late_reply)
        steps.append(life.live())

    run()
    return sum(steps)


@pytest.fixture(autouse=True)
def critical_sections() -> None:
    """To watch them takes several times as long, so that is done in a few lives only, below."""


def test_critical_sections_in_random_lives(monkeypatch: Any) -> None:
    with check():
        assert live(8, True, monkeypatch) >= 100


@pytest.mark.requirement(
    "CMAP-26", "CMAP-37", "CMAP-38", "CMAP-39", "CMAP-40", "CMAP-42", "CMAP-44", "CMAP-57", "CMAP-58", "CMAP-63",
    "CMAP-64", "CMAP-65", "CMAP-66", "CMAP-89", "CMAP-112", "CMAP-120", "CMAP-126", "CMAP-203", "CMAP-204",
)  # fmt: skip
@pytest.mark.long
def test_random_lives(monkeypatch: Any) -> None:
    assert live(180, False, monkeypatch) >= 10_000


@pytest.mark.requirement("CMAP-37", "CMAP-38", "CMAP-44", "CMAP-57", "CMAP-58", "CMAP-180", "CMAP-204")
@pytest.mark.long
def test_random_lives_with_listeners_that_yield(monkeypatch: Any) -> None:
    assert live(60, True, monkeypatch) >= 3_000
