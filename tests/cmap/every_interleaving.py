"""All interleavings of a pool: its own code in greenlets, which go on only when a step says so.

A step runs a callback of the loop, lets the server accept or refuse a connection, interrupts a check-out wherever it
is, clears, closes or forks the pool, or lets time pass. Each order of steps is tried once: what looks like a state seen
before, down to the lines at which the greenlets stand, is not followed again. After each step the invariants must hold.
Then all that can go on does, and the pool must come to rest with nothing left behind (*liveness*).
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
from tests.support.listeners import HearsPools
from tests.support.scheduler import Scheduler, Task

Step = tuple[Any, ...]
_ADDRESS = ("h", 27017)
EVERYTHING = frozenset(("clear", "clear interrupting", "close", "fork", "interrupt", "refused", "broken", "time"))


class Play(NamedTuple):
    """How large a pool is, and what may happen to it.

    :param happens: of :data:`EVERYTHING`.
    :param listener_switches: the events during whose delivery other greenlets may run.
    """

    check_outs: int = 3
    max_pool_size: int = 2
    min_pool_size: int = 2
    max_connecting: int = 1
    happens: frozenset[str] = EVERYTHING
    listener_switches: frozenset[str] = frozenset()


class _Listener(HearsPools):
    """Counts the events, looks at their order, and switches during some of them."""

    def __init__(self, switches: frozenset[str]) -> None:
        self.switches = switches
        self.heard: Counter[str] = Counter()
        self.state = ""  # of the pool, as the last event says
        self.open: set[int] = set()  # the connections that are created and not closed
        self.faults: list[str] = []

    def hear(self, event: Any) -> None:
        name = type(event).__name__.removesuffix("Event")
        self.heard[name] += 1
        self._look_at(name, getattr(event, "connection_id", 0))
        me = getcurrent()
        if name in self.switches and isinstance(me, Task):
            going_on = Scheduler.current.run_callback(me.switch)
            try:
                Scheduler.current.switch()
            finally:
                going_on.stop()

    def _look_at(self, name: str, connection_id: int) -> None:
        if name in ("PoolReady", "PoolCleared", "PoolClosed"):
            if name == self.state != "":
                self.faults.append("an event repeats the state of the pool")
            self.state = name
        elif name == "ConnectionCheckedOut" and self.state == "PoolClosed":
            self.faults.append("a check-out succeeds in a closed pool")
        elif name == "ConnectionCreated":
            if self.open and connection_id <= max(self.open):
                self.faults.append("a connection has the number of another one")
            self.open.add(connection_id)
        if connection_id and connection_id not in self.open:
            self.faults.append("a connection has an event outside of its life")
        if name == "ConnectionClosed":
            self.open.discard(connection_id)


class _InOrder(Delivery):
    """Remembers the order in which events are noted, and in which they are delivered."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = 0
        self.delivered: list[int] = []

    def note(self, publish: Callable[..., None], *what: object) -> bool:
        number, self.noted = self.noted, self.noted + 1

        def published(*given: object) -> None:
            self.delivered.append(number)
            publish(*given)

        return super().note(published, *what)

    def reset_after_fork(self) -> None:
        super().reset_after_fork()
        self.noted, self.delivered = 0, []


class _Owner:
    """In the place of the topology, which has nothing to do here."""

    def connection_established(self, connection: Connection) -> None:
        pass

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        pass


class Establishing(NamedTuple):
    """What a greenlet that establishes a connection waits for."""

    connection: Connection
    answers: list[Exception | None]


class World:
    """A pool and its greenlets at one moment."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.scheduler = Scheduler()
        self.delivery = _InOrder()
        self.listener = _Listener(play.listener_switches)
        self.pool = Pool(
            _ADDRESS,
            PoolSettings(
                max_pool_size=play.max_pool_size, min_pool_size=play.min_pool_size, max_connecting=play.max_connecting
            ),
            ConnectionSettings(),
            PoolEvents(_ADDRESS, (self.listener,), self.delivery, None, silent=False),
            _Owner(),
        )
        self.delivery.deliver()
        self.check_outs: list[Task] = []
        self.establishing: dict[Task, Establishing] = {}
        self.in_use: dict[Task, Connection] = {}
        self.asking: list[Task] = []  # the greenlets that check out, in the order of their requests
        self.forked = self.used_in_child = False
        self.astray: list[str] = []
        World.current = self

    current: World

    # What the greenlets do

    def establish(self, connection: Connection, _options: Any, _ref: bool, on_hello: Callable[[], None]) -> None:
        """In the place of connecting and the handshake."""
        task = getcurrent()
        assert isinstance(task, Task)
        self._look_for_overtaken(task)
        found = self.establishing[task] = Establishing(connection, [])
        try:
            self.scheduler.switch()
        finally:
            del self.establishing[task]
        if connection.error is not None:
            raise connection.error
        if not found.answers:
            self.astray.append("a greenlet that establishes a connection is woken too early")
        elif found.answers[0] is not None:
            raise found.answers[0]
        on_hello()

    def _check_out(self) -> None:
        task = getcurrent()
        assert isinstance(task, Task)
        self.asking.append(task)
        try:
            connection = self.pool.check_out()
        except GreenletExit:  # as after a timeout that the application catches
            self.asking.remove(task)
            self.asking.append(task)
            connection = self.pool.check_out()
        self._look_for_overtaken(task)
        if connection.error is not None and not connection.inherited and not self.play.listener_switches:
            self.astray.append("a check-out gets a broken connection")
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

    def _look_for_overtaken(self, task: Task) -> None:
        waiting = {waiter.greenlet for waiter in self.pool.machine.queue.waiters}
        if task in self.asking and waiting.intersection(self.asking[: self.asking.index(task)]):
            self.astray.append("a check-out is overtaken")

    def _use_in_child(self) -> None:
        self.used_in_child = True
        self.pool.reset_after_fork()
        self.pool.ready()

    # The steps that may come next

    def steps(self) -> Iterator[Step]:
        state, play = self.pool.state, self.play
        if len(self.check_outs) < play.check_outs:
            yield ("check out",)
        for number, task in enumerate(self.scheduler.tasks):
            for name in self._steps_of(task):
                yield name, number
        if self.scheduler.has_ready():
            yield ("run",)
        elif self.scheduler.has_timer() and "time" in play.happens:
            yield ("time",)
        if self.forked and not self.used_in_child:
            yield ("use in child",)
        elif state is PoolState.PAUSED:
            yield ("ready",)
        else:
            yield from ((name,) for name in ("clear", "clear interrupting") if name in play.happens)
        if state is not PoolState.CLOSED:
            yield from ((name,) for name in ("close", "fork") if name in play.happens and not self.forked)

    def _steps_of(self, task: Task) -> Iterator[str]:
        happens = self.play.happens
        if task in self.establishing:
            yield "accepted"
            if "refused" in happens and self.establishing[task].connection.error is None:
                yield "refused"
        elif task in self.in_use:
            yield "check in"
            if "broken" in happens:
                yield "check in broken"
        if task in self.check_outs and not task.dead and "interrupt" in happens:
            yield "interrupt"

    # Taking them

    def take(self, step: Step) -> None:
        name, *numbers = step
        for number in numbers:
            self._take_of(name, self.scheduler.tasks[number])
        if not numbers:
            self._take_of_pool(name)

    def _take_of(self, name: str, task: Task) -> None:
        if name == "interrupt":
            task.throw(GreenletExit)
            return
        if name in ("accepted", "refused"):
            self.establishing[task].answers.append(AutoReconnect("refused") if name == "refused" else None)
        elif name == "check in broken":
            self.in_use[task].mark_unusable(AutoReconnect("broken"))
        task.switch()

    def _take_of_pool(self, name: str) -> None:
        pool, cause = self.pool, AutoReconnect("cleared")
        if name == "run":
            self.scheduler.run_next()
        elif name == "time":
            self.scheduler.pass_time()
        elif name == "check out":
            self.check_outs.append(Task(self._check_out))
            self.check_outs[-1].switch()
        elif name == "fork":
            self.forked = True
            self.listener.heard.clear()
            self.listener.state = ""
            pool.mark_forked(lambda: AutoReconnect("forked"))
        else:
            work = {
                "clear": lambda: pool.clear(cause),
                "clear interrupting": lambda: pool.clear(cause, interrupt=True),
                "close": pool.close,
                "ready": pool.ready,
                "use in child": self._use_in_child,
            }[name]
            Task(work).switch()

    # Looking at it

    def faults(self) -> Iterator[str]:
        """What must never be so."""
        machine, play = self.pool.machine, self.play
        yield from self.astray
        yield from self.listener.faults
        yield from faults_of(machine, play.max_pool_size, play.max_connecting)
        if not self.scheduler.has_ready() and not self.delivery.pending and not self.forked:
            yield from self._faults_of_sleepers()
        users = list(self.in_use.values())
        if len(users) != len(set(users)):
            yield "a connection is used twice"
        if self.delivery.delivered != list(range(len(self.delivery.delivered))):
            yield "events are out of order"

    def _faults_of_sleepers(self) -> Iterator[str]:
        """Yield the faults of a moment in which no greenlet is awake."""
        machine = self.pool.machine
        if machine.state is not PoolState.READY:
            if machine.queue.waiters:
                yield "a waiter sleeps in a pool that is not ready"
        elif machine.queue.waiters and (machine.available or machine.has_room()):
            yield "a waiter sleeps that could be served"
        if any(each.generation != machine.generations.current for each in machine.available):
            yield "a stale connection is kept"
        if machine.is_short() and machine._populating is None and not machine.upkeep_wakeup._is_set:
            yield "the background sleeps, and minPoolSize is not reached"

    def look(self) -> Any:
        """What the state looks like: two that look the same have the same future."""
        machine = self.pool.machine
        looks = {task: self._look_at(task) for task in self.scheduler.tasks if not task.dead}
        self.scheduler.has_ready(), self.scheduler.has_timer()
        return (
            machine.state,
            self.forked,
            self.used_in_child,
            machine.fit_generation == machine.generations.current,
            machine._may_populate,
            machine.upkeep_wakeup._is_set,
            machine.rest() > 0,
            len(self.check_outs),
            tuple(sorted(map(repr, looks.values()))),
            tuple(look_at(machine, each) for each in machine.available),
            tuple(repr(looks.get(_target(each.callback))) + _name(each.callback) for each in self.scheduler.ready),
            tuple(round(each.due - self.scheduler.now, 6) for each in self.scheduler.timers),
            tuple(repr(looks.get(self._owner_of(turn))) for turn, _publish, _what in self.delivery._events),
        )

    def _owner_of(self, turn: Any) -> Any:
        return next((task for task, own in self.delivery._turns.items() if own is turn), None)

    def _look_at(self, task: Task) -> Any:
        queue = list(self.pool.machine.queue.waiters)
        waiter = _waiter_of(task)
        connection = self.in_use.get(task) or (
            self.establishing[task].connection if task in self.establishing else None
        )
        return (
            task.stands_at(),
            waiter in queue and queue.index(waiter),
            waiter is not None and (waiter.error is not None, look_at(self.pool.machine, waiter.item)),
            look_at(self.pool.machine, connection),
        )

    # Its end

    def end(self) -> Iterator[str]:
        """Let all that can go on do so; what is wrong then."""
        try:
            self._come_to_rest()
            yield from self._faults_at_rest()
        finally:
            self.scheduler.end()

    def _come_to_rest(self) -> None:
        for _ in range(1000):
            self.scheduler.run_all()
            going_on = [*self.establishing, *self.in_use]
            if going_on:
                self._take_of("check in" if going_on[0] in self.in_use else "accepted", going_on[0])
            elif self.pool.machine.rest() > 0 and self.scheduler.has_timer():
                self.scheduler.pass_time()
            else:
                return
        self.astray.append("it does not come to rest")

    def _faults_at_rest(self) -> Iterator[str]:
        machine, heard = self.pool.machine, self.listener.heard
        yield from self.faults()
        if not all(task.dead for task in self.check_outs):
            yield "a check-out waits for ever"
        if not self.forked and (machine.in_use or machine.pending or machine.draining):
            yield "nothing will give a connection back"
        if self.used_in_child:  # the copy of the parent's background ends when it wakes
            for _ in range(len(self.scheduler.timers)):
                self.scheduler.pass_time()
                self.scheduler.run_all()
        if sum("_repeat" in dict(task.stands_at()) for task in self.scheduler.tasks) > 1:
            yield "two greenlets keep the pool"
        if self.delivery.pending or len(self.delivery.delivered) != self.delivery.noted:
            yield "events are not delivered"
        if machine.state is PoolState.READY and machine.total < self.play.min_pool_size:
            yield "minPoolSize is not reached"
        if not self.forked and not self.play.listener_switches:
            started, ended = heard["ConnectionCheckOutStarted"], heard["ConnectionCheckOutFailed"]
            if started != ended + heard["ConnectionCheckedOut"]:
                yield "a check-out has not both events"
            if heard["ConnectionCheckedOut"] != heard["ConnectionCheckedIn"]:
                yield "a check-in has no event"
            if heard["ConnectionCreated"] != heard["ConnectionClosed"] + machine.total:
                yield "a connection is not closed"


def faults_of(machine: StateMachine, max_pool_size: int, max_connecting: int) -> Iterator[str]:
    """What must never be so with the connections of a pool."""
    sets = [machine.pending, set(machine.available), machine.in_use, machine.draining]
    if sum(map(len, sets)) != len(set().union(*sets)):
        yield "a connection is in two sets"
    if machine.total > max_pool_size:
        yield "there are more connections than maxPoolSize"
    if len(machine.pending) > max_connecting:
        yield "more are being established than maxConnecting"
    if machine.state is PoolState.CLOSED and machine.available:
        yield "a closed pool has available connections"


def look_at(machine: StateMachine, connection: Connection | None) -> Any:
    """What matters of a connection for what may come."""
    if connection is None:
        return None
    places = (machine.pending, "pending"), (machine.in_use, "in use")
    where = next((name for place, name in places if connection in place), "elsewhere")
    is_current = connection.generation == machine.generations.current
    return where, is_current, connection.error is not None, connection.mid_message, connection.inherited


def _target(callback: Any) -> Any:
    """The greenlet that a callback lets go on, if it does no more."""
    return getattr(getattr(callback, "func", callback), "__self__", None)


def _name(callback: Any) -> str:
    return getattr(getattr(callback, "func", callback), "__name__", "")


def _waiter_of(task: Task) -> Waiter[Connection] | None:
    frame = task.gr_frame
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Waiter):
            return found
        frame = frame.f_back
    return None
