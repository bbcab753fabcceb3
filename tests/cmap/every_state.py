"""All states of a pool: its state machine under every order of what its users, its background and its monitor may do.

There are no sockets and no greenlets, and the clock stands still. A step is one call of the machine by one of several
check-outs, by the background, or by the monitor. Each order of steps is tried once: what looks like a state seen before
is not followed again. After each step the invariants must hold, and *liveness*: what can go on is awake, or a step that
comes will wake it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

from gmongo import _clock
from gmongo.cmap.connection import Connection
from gmongo.cmap.options import ConnectionOptions, PoolOptions
from gmongo.cmap.state import PoolState, StateMachine
from gmongo.cmap.wait_queue import Waiter
from gmongo.errors import AutoReconnect, PyMongoError
from tests.support.exploration import Exploration, explore

Step = tuple[Any, ...]


class Sizes(NamedTuple):
    """How large a pool is, and how many check-outs there are at most."""

    check_outs: int = 3
    max_pool_size: int = 2
    min_pool_size: int = 2
    max_connecting: int = 1


class _Silent:
    """In the place of the publisher: there is no listener."""

    def wanted(self) -> bool:
        return False

    def note(self, *_what: Any) -> bool:
        return False

    @property
    def delivery(self) -> _Silent:
        return self

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_what: None


class _Clock:
    """The time that the machine sees; of the one world that is looked at."""

    now = 0.0


class World:
    """A pool, its check-outs and its background, at one moment.

    :param sizes: of the pool.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        _Clock.now = 1000.0
        options = PoolOptions(
            max_pool_size=sizes.max_pool_size, min_pool_size=sizes.min_pool_size, max_connecting=sizes.max_connecting
        )
        self.machine = StateMachine(("h", 1), options, ConnectionOptions(), _Silent())  # type: ignore[arg-type]
        # What each check-out has: nothing, a place in the queue, or a connection, pending or in use.
        self.found: list[Connection | Waiter[Connection] | None] = [None] * sizes.check_outs
        self.populating: Connection | None = None  # what the background establishes

    # The steps that may come next

    def steps(self) -> Iterator[Step]:
        machine = self.machine
        for number, found in enumerate(self.found):
            for name in self._steps_of(found):
                yield name, number
        if machine.upkeep_wakeup._is_set:
            yield ("run upkeep",)
        if self.populating is not None:
            yield ("populated",)
            yield ("not populated",)
        if machine.rest() > 0 and not machine.upkeep_wakeup._is_set:
            yield ("end of the rest",)
        if machine.state is PoolState.PAUSED:
            yield ("ready",)
        if machine.state is PoolState.READY:
            yield ("clear",)
        if machine.state is not PoolState.CLOSED:
            yield ("close",)

    def _steps_of(self, found: Connection | Waiter[Connection] | None) -> tuple[str, ...]:
        if found is None:
            return ("request",)
        if isinstance(found, Waiter):
            if found.error is not None:
                return ("leave",)
            return ("give up",) if found.item is None else ("give up", "wake")
        if found in self.machine.pending:
            return ("established", "not established", "give up")
        return ("check in", "check in spoilt") if found in self.machine.in_use else ("forget",)

    # Taking them

    def take(self, step: Step) -> None:
        """Take a step; what the machine refuses ends the check-out."""
        name, *number = step
        try:
            if number:
                self._take_of_check_out(name, number[0])
            else:
                self._take_of_pool(name)
        except PyMongoError:
            pass
        self.machine.take_dropped()

    def _take_of_check_out(self, name: str, number: int) -> None:
        machine, found = self.machine, self.found[number]
        self.found[number] = None
        if name == "request":
            self.found[number] = machine.take_fit() or machine.request()
        elif name == "give up":
            machine.give_up(found)  # type: ignore[arg-type]
        elif name == "wake":
            assert isinstance(found, Waiter) and found.item is not None
            try:
                machine.confirm(found.item)
            except PyMongoError:
                machine.give_up(found)
            else:
                self.found[number] = found.item
        elif name == "established":
            self._establish(found)
            machine.use(found)  # type: ignore[arg-type]
            self.found[number] = found
        elif name == "not established":
            self._fail(found)
        elif name.startswith("check in"):
            found.mid_message = name.endswith("spoilt")  # type: ignore[union-attr]
            machine.check_in(found)  # type: ignore[arg-type]

    def _take_of_pool(self, name: str) -> None:
        machine = self.machine
        if name == "run upkeep":
            machine.upkeep_wakeup.clear()
            machine.remove_perished()
            if self.populating is None and machine.is_short():
                self.populating = machine.begin_populating()
        elif name == "end of the rest":
            _Clock.now += 100
            machine.upkeep_wakeup.set()  # its pause is as long as the rest
        elif name in ("populated", "not populated"):
            connection, self.populating = self.populating, None
            if name == "populated":
                self._establish(connection)
                machine.keep(connection)  # type: ignore[arg-type]
            else:
                self._fail(connection)
        elif name == "clear":
            machine.clear(AutoReconnect("cleared"), None, False)
        else:
            {"ready": machine.ready, "close": machine.close}[name]()

    def _establish(self, connection: Any) -> None:
        self.machine.begin(connection)
        self.machine.established(connection, 0.01)

    def _fail(self, connection: Any) -> None:
        self.machine.begin(connection)
        connection.error = AutoReconnect("refused")
        self.machine.fail(connection)

    # Looking at it

    def faults(self) -> Iterator[str]:
        """What must never be so."""
        machine, sizes = self.machine, self._sizes
        yield from faults_of(machine, sizes.max_pool_size, sizes.max_connecting)
        held = {each.item if isinstance(each, Waiter) else each for each in self.found} | {self.populating}
        if not (machine.in_use | machine.pending) <= held:
            yield "nothing will give a connection back"
        if machine.upkeep_wakeup._is_set:
            return  # the background comes next
        fit = any(machine._perished_reason(each) is None for each in machine.available)
        if machine.state is PoolState.READY and machine.queue.waiters and (fit or machine.has_room()):
            yield "a waiter sleeps that could be served"
        if machine.is_short() and self.populating is None:
            yield "the background sleeps, and minPoolSize is not reached"

    def look(self) -> Any:
        """What the state looks like: two that look the same have the same future."""
        machine = self.machine
        return (
            machine.state,
            machine.fit_generation == machine.generations.current,
            machine._may_populate,
            machine.upkeep_wakeup._is_set,
            machine.rest() > 0,
            self._look_at(self.populating),
            tuple(sorted(map(repr, map(self._look_at, self.found)))),
            tuple(look_at(machine, each) for each in machine.available),
            len(machine.pending),
            len(machine.in_use),
        )

    def _look_at(self, found: Any) -> Any:
        machine = self.machine
        if isinstance(found, Waiter):
            waiters = list(machine.queue.waiters)
            place = waiters.index(found) if found in machine.queue.waiters else None
            return place, found.error is not None, found.item and self._look_at(found.item)
        if found is None:
            return None
        return look_at(machine, found)

    def end(self) -> Iterator[str]:
        """Nothing goes on by itself here."""
        return iter(())


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


def explore_states(sizes: Sizes, depth: int, until: str | None = None) -> Exploration:
    """Take every order of at most `depth` steps, from the beginning of a pool."""
    with patch.object(_clock, "monotonic", lambda: _Clock.now):
        return explore(lambda: World(sizes), depth, until)
