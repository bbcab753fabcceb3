"""Random lives of pools, with every step checked: what is true of a pool whatever happens to it in whatever order.

The pools are real; only establishing is replaced, so that each handshake hangs until a step decides what becomes of it.
Steps may follow each other before any greenlet has had a turn (``settled=False``), so that several things happen "at
once". The second machine has listeners that yield, so that everybody can be killed within an event, too.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, ClassVar

import gevent
import hypothesis.strategies as st
import pytest
from gevent import getcurrent
from gevent.event import AsyncResult, Event
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gmongo.cmap.connection import Connection
from gmongo.cmap.handshake import Hello
from gmongo.errors import AutoReconnect, InvalidOperation, PyMongoError
from tests.cmap.harness import Recorder, line, make_pool, short_name

ADDRESS = ("db.example", 27017)
IN_A_RUN = 100  # steps
HELLO = {"ok": 1, "maxWireVersion": 25, "maxMessageSizeBytes": 48_000_000}


class Wire:
    """Stands for a transport: it is open or closed, and its handshake hangs until somebody decides about it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.closed = False
        self.handshake: AsyncResult[None] = AsyncResult()

    @property
    def undecided(self) -> bool:
        return not self.handshake.ready()

    def interrupt(self, error: BaseException) -> None:
        self.closed = True
        if self.undecided:
            self.handshake.set_exception(error)

    def close(self) -> None:
        self.interrupt(AutoReconnect("closed"))

    def limit_messages(self, _size: int) -> None:
        pass

    def hold_hub(self, _hold: bool) -> None:
        pass


class Task:
    """A greenlet that checks a connection out, and holds it until it is told to let go."""

    def __init__(self, machine: PoolMachine, impatient: bool) -> None:
        self.events: list[str] = []  # of its check-out and check-in
        self.killed = False
        self.connection: Connection | None = None
        self.let_go = Event()
        self.unexpected: BaseException | None = None
        self._pool = machine.pool
        self._deadline = monotonic() - 1 if impatient else None
        self.greenlet = gevent.spawn(self._run)

    def _run(self) -> None:
        try:
            with self._pool.checkout(self._deadline) as self.connection:
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
    def handed(self) -> bool:
        """Whether the queue lies behind it."""
        return self.ended or "Created" in self.events

    @property
    def holding(self) -> bool:
        return self.connection is not None and not self.greenlet.dead and "CheckedIn" not in self.events


class PoolMachine(RuleBasedStateMachine):
    """What can happen to a pool, and what must be true after it."""

    yields: ClassVar[bool] = False  # whether listeners let others run
    passes: ClassVar[int] = 15  # turns of the loop until nothing moves any more
    steps: ClassVar[int] = 0

    @initialize(
        sizes=st.tuples(st.integers(0, 3), st.integers(0, 2)), max_connecting=st.integers(1, 2), clears=st.booleans()
    )
    def begin(self, sizes: tuple[int, int], max_connecting: int, clears: bool) -> None:
        largest, smallest = sizes
        self.largest, self.max_connecting = largest, max_connecting
        self.wires: list[Wire] = []
        self.tasks: list[Task] = []
        self.faults: list[str] = []
        self.owners: dict[Any, Task] = {}
        self.recorder = Recorder()
        for kind in ("Started", "Failed", "CheckedOut", "CheckedIn", "Created", "Ready", "Closed", "PoolCleared"):
            self.recorder.hooks[kind] = self._heard
        self.pool = make_pool(
            ADDRESS,
            self.recorder,
            ready=False,
            clears=clears,
            max_pool_size=largest,
            min_pool_size=min(smallest, largest or smallest),
            max_connecting=max_connecting,
            max_idle_time=3600,
            upkeep_interval=60,
        )
        self.pool.ready()
        self.settle()

    def teardown(self) -> None:
        if hasattr(self, "pool"):
            self.recorder.hooks.clear()
            self.pool.close()
            gevent.killall([task.greenlet for task in self.tasks])
            for wire in self.wires:
                wire.close()
            self.settle()
            assert self.pool.stats()["total"] == 0

    # What happens

    def establish(self, connection: Connection, _options: Any, _ref: bool = True, **_rest: Any) -> None:
        """Takes the place of ``gmongo.cmap.handshake.establish``."""
        wire = Wire(connection)
        self.wires.append(wire)
        connection._attach(wire)  # type: ignore[arg-type]
        wire.handshake.get()
        connection.established(Hello(HELLO, 0.0))

    def _heard(self, event: Any) -> None:
        task = self.owners.get(getcurrent())
        kind = short_name(event)
        if task is not None and kind in ("Started", "Failed", "CheckedOut", "CheckedIn", "Created"):
            if kind in ("Created", "CheckedOut") and not self.yields:
                self._check_turn(task)
            task.events.append(kind)
        self._check_limits()
        if self.yields:
            gevent.sleep(0)

    def _check_turn(self, task: Task) -> None:
        """Nobody who came earlier still waits when this one is served."""
        for earlier in self.tasks[: self.tasks.index(task)]:
            if earlier.started and not earlier.handed and not earlier.killed:
                self.faults.append(f"a check-out was overtaken: {self.recorder.story}")

    def _act(self, action: Any, *arguments: Any, **keywords: Any) -> None:
        self.acting = gevent.spawn(action, *arguments, **keywords)
        gevent.sleep(0)

    def settle(self) -> None:
        """Let everybody run as far as possible, and those whose time is up time out."""
        if any(not task.ended and task._deadline is not None for task in self.tasks):
            gevent.sleep(0.001)
        for _ in range(self.passes):
            gevent.sleep(0)
        self.settled = True

    def _end(self, settled: bool) -> None:
        self.settled = False
        if settled:
            self.settle()

    # Steps

    @rule(impatient=st.integers(0, 3).map(lambda number: number == 0), settled=st.booleans())
    def check_out(self, impatient: bool, settled: bool) -> None:
        task = Task(self, impatient)
        self.tasks.append(task)
        self.owners[task.greenlet] = task
        self._end(settled)

    @precondition(lambda self: any(task.holding for task in self.tasks))
    @rule(data=st.data(), state=st.sampled_from(["good", "good", "error", "in mid-message"]), settled=st.booleans())
    def check_in(self, data: Any, state: str, settled: bool) -> None:
        task = data.draw(st.sampled_from([task for task in self.tasks if task.holding]))
        if state == "error":
            task.connection.error = task.connection.error or AutoReconnect("lost")
        elif state == "in mid-message":
            task.connection.mid_message = True
        task.let_go.set()
        self._end(settled)

    @precondition(lambda self: any(wire.undecided for wire in self.wires))
    @rule(data=st.data(), well=st.booleans(), settled=st.booleans())
    def decide_handshake(self, data: Any, well: bool, settled: bool) -> None:
        wire = data.draw(st.sampled_from([wire for wire in self.wires if wire.undecided]))
        if well:
            wire.handshake.set(None)
        else:
            wire.handshake.set_exception(AutoReconnect("refused"))
        self._end(settled)

    @precondition(lambda self: any(not task.greenlet.dead for task in self.tasks))
    @rule(data=st.data(), settled=st.booleans())
    def kill(self, data: Any, settled: bool) -> None:
        task = data.draw(st.sampled_from([task for task in self.tasks if not task.greenlet.dead]))
        task.killed = True
        task.greenlet.kill(block=False)
        self._end(settled)

    @rule(interrupt=st.booleans(), settled=st.booleans())
    def clear(self, interrupt: bool, settled: bool) -> None:
        self._act(self.pool.clear, AutoReconnect("cleared"), interrupt=interrupt)
        self._end(settled)

    @rule(settled=st.booleans())
    def ready(self, settled: bool) -> None:
        self._act(self.pool.ready)
        self._end(settled)

    @precondition(lambda self: self.pool.stats()["state"] == "paused")
    @rule()
    def recover(self) -> None:
        self._act(self.pool.ready)
        self._end(True)

    @precondition(lambda self: self.pool.stats()["available"])
    @rule(data=st.data())
    def grow_idle(self, data: Any) -> None:
        data.draw(st.sampled_from(list(self.pool.inventory.available))).idle_since -= 10_000
        self.settled = False

    @rule(settled=st.booleans())
    def run_the_background(self, settled: bool) -> None:
        self.pool._alarm.ring()
        self._end(settled)

    @rule(chance=st.integers(0, 15), settled=st.booleans())
    def close(self, chance: int, settled: bool) -> None:
        if chance == 0:
            self._act(self.pool.close)
        self._end(settled)

    @precondition(lambda self: self.pool.stats()["state"] == "closed")
    @rule(sizes=st.tuples(st.integers(0, 3), st.integers(0, 2)), max_connecting=st.integers(1, 2), clears=st.booleans())
    def begin_again(self, sizes: tuple[int, int], max_connecting: int, clears: bool) -> None:
        self.settle()
        self.all_is_well()
        self.teardown()
        self.begin(sizes, max_connecting, clears)

    # What is true

    @invariant()
    def all_is_well(self) -> None:
        if not hasattr(self, "pool"):
            return
        PoolMachine.steps += 1
        self._check_limits()
        assert not self.faults, self.faults
        if self.settled:
            self._check_nothing_is_lost()
            self._check_queue()
            self._check_tasks()
            self._check_events()

    def _check_limits(self) -> None:
        stats = self.pool.stats()
        if stats["total"] != stats["pending"] + stats["available"] + stats["in_use"]:
            self.faults.append(f"the counts do not add up: {stats}")
        if self.largest and stats["total"] > self.largest:
            self.faults.append(f"more than {self.largest} connections: {stats}")
        if stats["pending"] > self.max_connecting:
            self.faults.append(f"more than {self.max_connecting} are being established: {stats}")

    def _check_nothing_is_lost(self) -> None:
        inventory = self.pool.inventory
        everything = [*inventory.pending, *inventory.available, *inventory.in_use]
        assert len(everything) == len(set(everything)) == self.pool.stats()["total"]
        assert inventory.in_use == {task.connection for task in self.tasks if task.holding}, self.recorder.story
        for wire in self.wires:
            kept = wire.connection in everything
            assert kept or wire.closed, f"{wire.connection} is open and nowhere: {self.recorder.story}"
            assert not (kept and wire.closed) or wire.connection.error is not None
        assert {wire.connection for wire in self.wires if wire.undecided} == inventory.pending

    def _check_queue(self) -> None:
        stats, inventory = self.pool.stats(), self.pool.inventory
        if stats["waiting"]:
            assert stats["state"] == "ready", f"somebody waits in vain: {self.recorder.story}"
            assert not inventory.available, f"somebody waits in spite of an available one: {self.recorder.story}"
            assert not inventory.has_room(), f"somebody waits in spite of room: {self.recorder.story}"

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
                lives[event.connection_id].append(short_name(event))
        for life in lives.values():
            assert is_a_life(life), life
        inventory = self.pool.inventory
        there = {each.id for each in (*inventory.pending, *inventory.available, *inventory.in_use)}
        assert {number for number, life in lives.items() if "Closed" not in life} == there
        states = [line(event) for event in self.recorder.events if short_name(event) in ("PoolReady", "PoolCleared")]
        if not self.yields:
            assert all(first != second for first, second in zip(states, states[1:], strict=False)), states


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


class YieldingMachine(PoolMachine):
    """The same with listeners that yield in every event."""

    yields = True
    passes = 60


def run(machine: type[PoolMachine], examples: int, monkeypatch: Any) -> int:
    """Run a machine, and return how many steps it has taken."""
    running: list[PoolMachine] = []

    class Machine(machine):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            super().__init__()
            running[:] = [self]

    monkeypatch.setattr("gmongo.cmap.pool.establish", lambda *args, **kw: running[0].establish(*args, **kw))
    PoolMachine.steps = 0
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=IN_A_RUN,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            print_blob=True,
        ),
    )
    return PoolMachine.steps


@pytest.mark.requirement(
    "CMAP-26", "CMAP-37", "CMAP-38", "CMAP-39", "CMAP-40", "CMAP-42", "CMAP-44", "CMAP-57", "CMAP-58", "CMAP-63",
    "CMAP-64", "CMAP-65", "CMAP-66", "CMAP-89", "CMAP-112", "CMAP-120", "CMAP-126", "CMAP-203", "CMAP-204",
)  # fmt: skip
def test_random_lives(monkeypatch: Any) -> None:
    assert run(PoolMachine, 250, monkeypatch) >= 10_000


@pytest.mark.requirement("CMAP-37", "CMAP-38", "CMAP-44", "CMAP-57", "CMAP-58", "CMAP-180", "CMAP-204")
def test_random_lives_with_listeners_that_yield(monkeypatch: Any) -> None:
    assert run(YieldingMachine, 80, monkeypatch) >= 2_000
