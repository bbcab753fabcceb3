"""Explorer that runs the greenlets of a pool in every possible order of a limited number of steps.

A greenlet of the pool runs only when a step switches to the greenlet. For example, a step runs a
callback of the event loop, starts or interrupts a check-out, or accepts or refuses a connection.
Other steps advance the clock, clear or close the pool, or simulate a fork of the process.

The explorer checks the invariants after each step. The explorer does not continue from a state that
equals an earlier state. A state includes the current code lines of all greenlets. After each
sequence of steps, the explorer runs all greenlets to the end. At the end, no greenlet may wait for a
connection, and no connection may be checked out (*liveness*).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gevent import GreenletExit
from greenlet import getcurrent

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.cmap.pool_state import PoolState, StateMachine
from gmongo.cmap.wait_queue import Waiter
from gmongo.errors import AutoReconnect
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from tests.support.listeners import ForwardingPoolListener
from tests.support.scheduler import Scheduler, Task

Step = tuple[Any, ...]
_ADDRESS = ("h", 27017)
ALL_OPTIONAL_STEPS = frozenset(
    ("clear", "clear interrupting", "close", "fork", "interrupt", "refused", "broken", "time")
)


class PoolLimits(NamedTuple):
    """Limits of an explored pool and of its check-outs, and the optional steps of the explorer.

    :param steps_allowed: the optional steps, a subset of :data:`ALL_OPTIONAL_STEPS`.
    :param switching_event_names: the names of the events whose listeners let other greenlets run.
    """

    max_check_outs: int = 3
    max_pool_size: int = 2
    min_pool_size: int = 2
    max_connecting: int = 1
    steps_allowed: frozenset[str] = ALL_OPTIONAL_STEPS
    switching_event_names: frozenset[str] = frozenset()


class _Listener(ForwardingPoolListener):
    """A listener that counts the pool events, checks the order of the events, and switches to other
    greenlets during some events.
    """

    def __init__(self, switching_event_names: frozenset[str]) -> None:
        self.switching_event_names = switching_event_names
        self.event_counts: Counter[str] = Counter()
        self.last_state_event = ""  # the name of the last PoolReady, PoolCleared or PoolClosed event
        self.open_ids: set[int] = set()  # the IDs of the open connections
        self.violations: list[str] = []

    def handle(self, event: Any) -> None:
        name = type(event).__name__.removesuffix("Event")
        self.event_counts[name] += 1
        self._check_order(name, getattr(event, "connection_id", 0))
        own_greenlet = getcurrent()
        if name in self.switching_event_names and isinstance(own_greenlet, Task):
            callback = Scheduler.current.run_callback(own_greenlet.switch)
            try:
                Scheduler.current.switch()
            finally:
                callback.stop()

    def _check_order(self, name: str, connection_id: int) -> None:
        if name in ("PoolReady", "PoolCleared", "PoolClosed"):
            if name == self.last_state_event != "":
                self.violations.append("an event repeats the state of the pool")
            self.last_state_event = name
        elif name == "ConnectionCheckedOut" and self.last_state_event == "PoolClosed":
            self.violations.append("a check-out succeeds in a closed pool")
        elif name == "ConnectionCreated":
            if self.open_ids and connection_id <= max(self.open_ids):
                self.violations.append("two connections have one ID")
            self.open_ids.add(connection_id)
        if connection_id and connection_id not in self.open_ids:
            self.violations.append("a connection has an event before its creation or after its close")
        if name == "ConnectionClosed":
            self.open_ids.discard(connection_id)


class _RecordingDelivery(Delivery):
    """A delivery that records the order of queued events and the order of delivered events."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded_count = 0
        self.delivered_numbers: list[int] = []

    def record(self, publish: Callable[..., None], *arguments: object) -> bool:
        number, self.recorded_count = self.recorded_count, self.recorded_count + 1

        def publish_and_count(*arguments: object) -> None:
            self.delivered_numbers.append(number)
            publish(*arguments)

        return super().record(publish_and_count, *arguments)

    def reset_after_fork(self) -> None:
        super().reset_after_fork()
        self.recorded_count, self.delivered_numbers = 0, []


class _PassiveOwner:
    """A pool owner that ignores established connections and errors."""

    def connection_established(self, connection: Connection) -> None:
        pass

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        pass


class PendingEstablishment(NamedTuple):
    """A pending connection. A step adds the outcome to ``answers``: an error, or None for success."""

    connection: Connection
    answers: list[Exception | None]


class PoolSystem:
    """An explored pool and the greenlets that use the pool."""

    def __init__(self, limits: PoolLimits) -> None:
        self.limits = limits
        self.scheduler = Scheduler()
        self.delivery = _RecordingDelivery()
        self.listener = _Listener(limits.switching_event_names)
        self.pool = Pool(
            _ADDRESS,
            PoolSettings(
                max_pool_size=limits.max_pool_size,
                min_pool_size=limits.min_pool_size,
                max_connecting=limits.max_connecting,
            ),
            ConnectionSettings(),
            PoolEvents(_ADDRESS, (self.listener,), self.delivery, None, silent=False),
            _PassiveOwner(),
        )
        self.delivery.deliver()
        self.check_out_tasks: list[Task] = []
        self.establishing: dict[Task, PendingEstablishment] = {}
        self.in_use: dict[Task, Connection] = {}
        self.requesters: list[Task] = []  # the greenlets that check out a connection, in the order of their requests
        self.forked = self.used_in_child = False
        self.violations: list[str] = []
        PoolSystem.current = self

    current: PoolSystem

    def establish(
        self, connection: Connection, _options: Any, _ref: bool, on_hello: Callable[[], None], _deadline: float | None
    ) -> None:
        """Replace ``establish``: wait for the step that accepts or refuses the connection."""
        task = getcurrent()
        assert isinstance(task, Task)
        self._check_queue_order(task)
        pending = self.establishing[task] = PendingEstablishment(connection, [])
        try:
            self.scheduler.switch()
        finally:
            del self.establishing[task]
        if connection.error is not None:
            raise connection.error
        if not pending.answers:
            self.violations.append("a greenlet that establishes a connection is woken too early")
        elif pending.answers[0] is not None:
            raise pending.answers[0]
        on_hello()

    def _check_out(self) -> None:
        task = getcurrent()
        assert isinstance(task, Task)
        self.requesters.append(task)
        try:
            connection = self.pool.check_out()
        except GreenletExit:
            # Check out again, like an application that catches a timeout and repeats the operation.
            self.requesters.remove(task)
            self.requesters.append(task)
            connection = self.pool.check_out()
        self._check_queue_order(task)
        if connection.error is not None and not connection.inherited and not self.limits.switching_event_names:
            self.violations.append("a check-out gets a broken connection")
        self.in_use[task] = connection
        try:
            self.scheduler.switch()
        except BaseException as error:
            connection.mid_message = True
            self.pool.check_in(connection, error)
            raise
        finally:
            del self.in_use[task]
        self.pool.check_in(connection, connection.error)

    def _check_queue_order(self, task: Task) -> None:
        waiting = {waiter.greenlet for waiter in self.pool.machine.queue.waiters}
        if task in self.requesters and waiting.intersection(self.requesters[: self.requesters.index(task)]):
            self.violations.append("a check-out is overtaken")

    def _use_in_child(self) -> None:
        self.used_in_child = True
        self.pool.reset_after_fork()
        self.pool.ready()

    def steps(self) -> Iterator[Step]:
        state, limits = self.pool.machine.state, self.limits
        if len(self.check_out_tasks) < limits.max_check_outs:
            yield ("check out",)
        for number, task in enumerate(self.scheduler.tasks):
            for name in self._steps_of(task):
                yield name, number
        if self.scheduler.has_ready():
            yield ("run",)
        elif self.scheduler.has_timer() and "time" in limits.steps_allowed:
            yield ("time",)
        if self.forked and not self.used_in_child:
            yield ("use in child",)
        elif state is PoolState.PAUSED:
            yield ("ready",)
        else:
            yield from ((name,) for name in ("clear", "clear interrupting") if name in limits.steps_allowed)
        if state is not PoolState.CLOSED:
            yield from ((name,) for name in ("close", "fork") if name in limits.steps_allowed and not self.forked)

    def _steps_of(self, task: Task) -> Iterator[str]:
        steps_allowed = self.limits.steps_allowed
        if task in self.establishing:
            yield "accepted"
            if "refused" in steps_allowed and self.establishing[task].connection.error is None:
                yield "refused"
        elif task in self.in_use:
            yield "check in"
            if "broken" in steps_allowed:
                yield "check in broken"
        if task in self.check_out_tasks and not task.dead and "interrupt" in steps_allowed:
            yield "interrupt"

    def execute_step(self, step: Step) -> None:
        name, *numbers = step
        for number in numbers:
            self._execute_step_of_task(name, self.scheduler.tasks[number])
        if not numbers:
            self._execute_step_of_pool(name)

    def _execute_step_of_task(self, name: str, task: Task) -> None:
        if name == "interrupt":
            task.throw(GreenletExit)
            return
        if name in ("accepted", "refused"):
            self.establishing[task].answers.append(AutoReconnect("refused") if name == "refused" else None)
        elif name == "check in broken":
            self.in_use[task].mark_unusable(AutoReconnect("broken"))
        task.switch()

    def _execute_step_of_pool(self, name: str) -> None:
        pool, cause = self.pool, AutoReconnect("cleared")
        if name == "run":
            self.scheduler.run_next()
        elif name == "time":
            self.scheduler.advance_to_next_timer()
        elif name == "check out":
            self.check_out_tasks.append(Task(self._check_out))
            self.check_out_tasks[-1].switch()
        elif name == "fork":
            self.forked = True
            self.listener.event_counts.clear()
            self.listener.last_state_event = ""
            pool.mark_forked(lambda: AutoReconnect("forked"))
        else:
            action = {
                "clear": lambda: pool.clear(cause),
                "clear interrupting": lambda: pool.clear(cause, interrupt=True),
                "close": pool.close,
                "ready": pool.ready,
                "use in child": self._use_in_child,
            }[name]
            Task(action).switch()

    def find_violations(self) -> Iterator[str]:
        """Check the invariants that must hold after each step. Yield each violation."""
        machine, limits = self.pool.machine, self.limits
        yield from self.violations
        yield from self.listener.violations
        yield from violations_of_connections(machine, limits.max_pool_size, limits.max_connecting)
        if not self.scheduler.has_ready() and not self.delivery._events and not self.forked:
            yield from self._violations_while_waiting()
        connections = list(self.in_use.values())
        if len(connections) != len(set(connections)):
            yield "a connection is used twice"
        if self.delivery.delivered_numbers != list(range(len(self.delivery.delivered_numbers))):
            yield "events are out of order"

    def _violations_while_waiting(self) -> Iterator[str]:
        """Yield the violations of the invariants that must hold while no greenlet is runnable."""
        machine = self.pool.machine
        if machine.state is not PoolState.READY:
            if machine.queue.waiters:
                yield "a waiter sleeps in a pool that is not ready"
        elif machine.queue.waiters and (machine.available or machine.has_room()):
            yield "a waiter that could be served sleeps"
        if any(each.generation != machine.generations.current for each in machine.available):
            yield "a stale connection is kept"
        if machine.needs_connection() and machine._populate_attempt is None and not machine.background_wakeup._is_set:
            yield "the background sleeps, and minPoolSize is not reached"

    def state_view(self) -> Any:
        """Return a value that identifies the state of the system.

        Each later step has the same effect on two systems with equal values.
        """
        machine = self.pool.machine
        states = {task: self._state_of_task(task) for task in self.scheduler.tasks if not task.dead}
        self.scheduler.has_ready(), self.scheduler.has_timer()
        return (
            machine.state,
            self.forked,
            self.used_in_child,
            machine.fit_generation == machine.generations.current,
            machine._may_populate,
            machine.background_wakeup._is_set,
            machine.remaining_backoff() > 0,
            len(self.check_out_tasks),
            tuple(sorted(map(repr, states.values()))),
            tuple(connection_state(machine, each) for each in machine.available),
            tuple(
                repr(states.get(_greenlet_of_callback(each.callback))) + _name_of_callback(each.callback)
                for each in self.scheduler.ready
            ),
            tuple(round(each.due - self.scheduler.now, 6) for each in self.scheduler.timers),
            tuple(repr(states.get(self._owner_of(turn))) for turn, _publish, _what in self.delivery._events),
        )

    def _owner_of(self, turn: Any) -> Any:
        return next((task for task, own in self.delivery._events_by_greenlet.items() if own is turn), None)

    def _state_of_task(self, task: Task) -> Any:
        queue = list(self.pool.machine.queue.waiters)
        waiter = _waiter_of(task)
        connection = self.in_use.get(task) or (
            self.establishing[task].connection if task in self.establishing else None
        )
        return (
            task.stack_lines(),
            waiter in queue and queue.index(waiter),
            waiter is not None and (waiter.error is not None, connection_state(self.pool.machine, waiter.item)),
            connection_state(self.pool.machine, connection),
        )

    def run_to_end(self) -> Iterator[str]:
        """Run all greenlets until each greenlet has ended or waits. Yield the violations."""
        try:
            self._run_until_blocked()
            yield from self._violations_when_blocked()
        finally:
            self.scheduler.end()

    def _run_until_blocked(self) -> None:
        for _ in range(1000):
            self.scheduler.run_all()
            running = [*self.establishing, *self.in_use]
            if running:
                self._execute_step_of_task("check in" if running[0] in self.in_use else "accepted", running[0])
            elif self.pool.machine.remaining_backoff() > 0 and self.scheduler.has_timer():
                self.scheduler.advance_to_next_timer()
            else:
                return
        self.violations.append("the greenlets never block")

    def _violations_when_blocked(self) -> Iterator[str]:
        machine, counts = self.pool.machine, self.listener.event_counts
        yield from self.find_violations()
        if not all(task.dead for task in self.check_out_tasks):
            yield "a check-out waits for ever"
        if not self.forked and (machine.in_use or machine.pending or machine.draining):
            yield "no greenlet will check a connection in"
        if self.used_in_child:
            # Let the background greenlet of the parent process run, so that the greenlet ends.
            for _ in range(len(self.scheduler.timers)):
                self.scheduler.advance_to_next_timer()
                self.scheduler.run_all()
        if sum("_repeat" in dict(task.stack_lines()) for task in self.scheduler.tasks) > 1:
            yield "two background greenlets run for one pool"
        if self.delivery._events or len(self.delivery.delivered_numbers) != self.delivery.recorded_count:
            yield "events are not delivered"
        if machine.state is PoolState.READY and machine.total < self.limits.min_pool_size:
            yield "minPoolSize is not reached"
        if not self.forked and not self.limits.switching_event_names:
            started_count, failed_count = counts["ConnectionCheckOutStarted"], counts["ConnectionCheckOutFailed"]
            if started_count != failed_count + counts["ConnectionCheckedOut"]:
                yield "a check-out lacks its start event or its end event"
            if counts["ConnectionCheckedOut"] != counts["ConnectionCheckedIn"]:
                yield "a check-in has no event"
            if counts["ConnectionCreated"] != counts["ConnectionClosed"] + machine.total:
                yield "a connection is not closed"


def violations_of_connections(machine: StateMachine, max_pool_size: int, max_connecting: int) -> Iterator[str]:
    """Check the invariants about the connections of a pool. Yield each violation."""
    sets = [machine.pending, set(machine.available), machine.in_use, machine.draining]
    if sum(map(len, sets)) != len(set().union(*sets)):
        yield "a connection is in two sets"
    if machine.total > max_pool_size:
        yield "there are more connections than maxPoolSize"
    if len(machine.pending) > max_connecting:
        yield "the pool establishes more connections than maxConnecting"
    if machine.state is PoolState.CLOSED and machine.available:
        yield "a closed pool has available connections"


def connection_state(machine: StateMachine, connection: Connection | None) -> Any:
    """Return the properties of a connection that affect later steps, or None without a connection."""
    if connection is None:
        return None
    named_sets = (machine.pending, "pending"), (machine.in_use, "in use")
    set_name = next((name for named_set, name in named_sets if connection in named_set), "elsewhere")
    is_current = connection.generation == machine.generations.current
    return set_name, is_current, connection.error is not None, connection.mid_message, connection.inherited


def _greenlet_of_callback(callback: Any) -> Any:
    """Return the greenlet to which a callback switches, or None if the callback does not switch."""
    return getattr(getattr(callback, "func", callback), "__self__", None)


def _name_of_callback(callback: Any) -> str:
    return getattr(getattr(callback, "func", callback), "__name__", "")


def _waiter_of(task: Task) -> Waiter[Connection] | None:
    frame = task.gr_frame
    while frame is not None:
        instance = frame.f_locals.get("self")
        if isinstance(instance, Waiter):
            return instance
        frame = frame.f_back
    return None
