"""Soak test: operations, interruptions, forks and server faults with the garbage collector off.

Each step has a new simulated deployment and a new client. Greenlets (*workers*) run operations of
each kind. Kills and timeouts interrupt the workers, and the process forks. The faults of the
deployment include elections, closed connections, malformed replies, frozen or overloaded members,
and restarts. At the end of each step, all faults end, and the step checks the invariants. The seed
and the step number determine the random choices of a step, so that a run can continue an earlier run.
"""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic
from types import FrameType
from typing import Any

import gevent
from bson.errors import BSONError
from gevent import GreenletExit, Timeout
from gevent.util import format_run_info

from gmongo import CursorType, InsertOne, MongoClient, UpdateOne
from gmongo.cmap.connection import Connection
from gmongo.cmap.pin import PinnedConnection
from gmongo.cmap.pool import Pool
from gmongo.engines.server_cursor import ServerCursor
from gmongo.errors import DuplicateKeyError, PyMongoError
from gmongo.execution.server_session import ServerSession
from gmongo.sdam.monitor import Monitor
from gmongo.sdam.topology import Topology
from gmongo.testing import Deployment
from gmongo.wire.transport import Transport
from tests.hostile.forks import FORK_FUNCTIONS, Child, InheritedUseDetector, repeat_until_success
from tests.hostile.invariants import CampaignResults, Violation, check_nothing_in_use, silent_stderr
from tests.hostile.malformed_hellos import resource_counts
from tests.hostile.malformed_replies import quick_checks
from tests.hostile.resource_growth import ResourceGrowth, measure_resources
from tests.support.garbage import freeze_living_objects
from tests.support.listeners import ForwardingPoolListener

TOPOLOGIES: dict[str, Callable[[], Deployment]] = {
    "standalone": lambda: Deployment.standalone(log=False),
    "replica-set": lambda: Deployment.replica_set(members=3, election_delay=0.02, log=False),
    "sharded": lambda: Deployment.sharded(mongos=2, log=False),
    "load-balanced": lambda: Deployment.load_balanced(services=2, log=False),
}
_WORKER_COUNT = 16
_COMMANDS = ("find", "insert", "update", "getMore", "aggregate", "commitTransaction", "abortTransaction", "hello")
_FIXED_COUNT = 40  # Number of documents that no operation changes.
_COUNTER_COUNT = 8
_END_LIMIT = 30.0  # Seconds in which all workers must end after the last interruption.
# Seconds in which the client must publish the remaining pool events after its close.
_CLOSE_GRACE = 10.0
_FORK_COUNT = 2  # Number of forks in each step.
_OPERATIONS_BETWEEN_FAULTS = 30  # Minimum number of operations between two faults.
_CHILD_INTERRUPTS = 100  # Number of interruptions in a forked child.


class WorkerObject:
    """An object in the local variables of a worker.

    After the end of the worker, no reference to the object may exist.
    """

    alive = 0

    def __init__(self) -> None:
        WorkerObject.alive += 1

    def __del__(self) -> None:
        WorkerObject.alive -= 1


class PoolEventCounter(ForwardingPoolListener):
    """Listener that counts the pool events of each class."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def handle(self, event: Any) -> None:
        self.counts[type(event).__name__] += 1

    def faults(self, open_connections: int) -> list[str]:
        counts = self.counts
        balanced_events = {
            "check-outs": (
                "ConnectionCheckOutStartedEvent",
                "ConnectionCheckedOutEvent",
                "ConnectionCheckOutFailedEvent",
            ),
            "check-ins": ("ConnectionCheckedOutEvent", "ConnectionCheckedInEvent"),
        }
        faults = [
            f"{kind}: {[counts[name] for name in event_names]}"
            for kind, event_names in balanced_events.items()
            if counts[event_names[0]] != sum(counts[name] for name in event_names[1:])
        ]
        if counts["ConnectionCreatedEvent"] != counts["ConnectionClosedEvent"] + open_connections:
            faults.append(f"connections: {dict(counts)}, open {open_connections}")
        return faults


class Step:
    """One step of the soak test.

    :param topology: a name in :data:`TOPOLOGIES`.
    :param interrupt_limit: the number of interruptions in the parent, without the interruptions in
        forked children.
    """

    database = "soak"
    options: Mapping[str, Any] = {}
    """Client options that the step adds to the random options."""

    def __init__(self, topology: str, seed: int, number: int, interrupt_limit: int) -> None:
        self.topology = topology
        self.rng = random.Random(f"{topology}:{seed}:{number}")
        self.remaining_interrupts = interrupt_limit
        self.interrupt_count = self.child_interrupt_count = self.operation_count = 0
        self.fault_count = self.fork_count = 0
        self.outcomes: Counter[str] = Counter()
        self.violations: list[str] = []
        self._last_number = 0
        self._forks_at = sorted(self.rng.randrange(interrupt_limit) for _ in range(_FORK_COUNT))
        self._children: set[gevent.Greenlet] = set()
        self._is_child = False
        self._pace = 0.005  # average duration in seconds of an operation that is not interrupted
        self._acknowledged: set[int] = set()
        self._pairs: list[tuple[int, int]] = []
        self._attempted: Counter[int] = Counter()
        self._acknowledged_counts: Counter[int] = Counter()
        self._greenlets: dict[gevent.Greenlet, Callable[[int, WorkerObject], None]] = {}
        transactions = () if topology == "standalone" else (self._transaction, self._with_transaction)
        streams = (self._watch,) if topology in ("replica-set", "sharded") else ()
        self._worker_operations = (
            self._read, self._read, self._read_all, self._leave_cursor, self._insert, self._increment, self._bulk,
            *transactions, *streams,
        )  # fmt: skip

    def run(self) -> None:
        """Run the workers while the deployment has faults.

        Then end the faults, wait for the end of the workers, and check the invariants.

        :raises Violation: an invariant is violated.
        """
        self._checker, self._pool_events = InheritedUseDetector(), PoolEventCounter()
        with self._start_deployment() as self.deployment:
            options = {
                **self.options,
                "maxPoolSize": self.rng.choice((3, 6, 20)), "waitQueueTimeoutMS": 10000, "connectTimeoutMS": 5000,
                "serverSelectionTimeoutMS": 4000, "baseBackoffMS": 2, "minPoolSize": self.rng.choice((0, 2)),
            }  # fmt: skip
            if self.topology != "load-balanced":
                options["heartbeatFrequencyMS"] = 500
            client = MongoClient(self.deployment.uri, event_listeners=[self._checker, self._pool_events], **options)
            self.db = client[self.database]
            with client:
                self._prepare()
                self._run_with_faults()
                try:
                    self._check(client)
                except PyMongoError as error:
                    raise Violation(f"an operation fails after the end of all faults: {error!r}") from error
            limit = monotonic() + _CLOSE_GRACE
            while (faults := self._pool_events.faults(0)) and monotonic() < limit:
                gevent.sleep(0.01)
            if faults or self._checker.open_commands:
                raise Violation(f"after close(): {faults}, without end event: {self._checker.open_commands}")
        self.db = self.deployment = None  # type: ignore[assignment]

    def _start_deployment(self) -> Any:
        return TOPOLOGIES[self.topology]()

    def _prepare(self) -> None:
        self.db.fixed.insert_many([{"_id": number, "of": number} for number in range(_FIXED_COUNT)])
        self.db.counters.insert_many([{"_id": number, "v": 0} for number in range(_COUNTER_COUNT)])
        self.db.create_collection("facts")
        self.db.create_collection("pairs")
        self.deployment.network.random = random.Random(self.rng.random())
        self.deployment.network.latency = self.rng.choice((0, 0.0005, 0.002))

    def _run_with_faults(self) -> None:
        self._fault_greenlet = gevent.spawn(self._cause_faults)
        try:
            self._interrupt_workers()
        finally:
            self._fault_greenlet.kill()
            self._end_faults()
        self.deployment.network.latency = 0
        self._wait_for_workers()
        gevent.joinall(list(self._children))
        if self.violations:
            raise Violation(self.violations[0])

    def _interrupt_workers(self) -> None:
        while self.remaining_interrupts > 0 and not self.violations:
            while len(self._greenlets) < _WORKER_COUNT:
                self._start_worker()
            if self._forks_at and self.interrupt_count >= self._forks_at[0]:
                self._fork(self._forks_at.pop(0))
            gevent.sleep(0.0005)

    def _wait_for_workers(self) -> None:
        limit = monotonic() + _END_LIMIT
        while self._greenlets and monotonic() < limit:
            gevent.sleep(0.005)
        if self._greenlets:
            where = "\n".join(format_run_info())[-6000:]
            raise Violation(f"{len(self._greenlets)} workers do not end within {_END_LIMIT} s: {where}")

    def _start_worker(self) -> None:
        rng = self.rng
        self._last_number += 1
        operation, number, limit = rng.choice(self._worker_operations), self._last_number, None
        delay = min(0.5, rng.expovariate(1) * rng.choice((0.05, 0.2, 0.5, 3)) * self._pace)
        if rng.random() < 0.35:
            limit = delay
        worker = gevent.Greenlet(self._run_operation, operation, number, limit)
        self._greenlets[worker] = operation
        worker.link(self._greenlets.pop)
        worker.start()
        if limit is None and rng.random() < 0.9:
            gevent.spawn_later(delay, self._kill, worker, rng.random() < 0.1)

    def _kill(self, worker: gevent.Greenlet, kills_twice: bool) -> None:
        if not worker.dead:
            self.interrupt_count += 1
            self.remaining_interrupts -= 1
            worker.kill(block=False)
            if kills_twice:
                gevent.sleep(0)
                worker.kill(block=False)

    def _run_operation(self, operation: Callable[[int, WorkerObject], None], number: int, limit: float | None) -> None:
        worker_object, timeout = WorkerObject(), None if limit is None else Timeout(limit)
        self.operation_count += 1
        started = monotonic()
        try:
            if timeout is None:
                operation(number, worker_object)
            else:
                with timeout:
                    operation(number, worker_object)
        except GreenletExit:
            self.outcomes["killed"] += 1
        except Timeout as error:
            if error is not timeout:
                self.violations.append(f"{operation.__name__}: a foreign timeout was raised: {error!r}")
            self.interrupt_count += 1
            self.remaining_interrupts -= 1
            self.outcomes["timed out"] += 1
        except (PyMongoError, BSONError) as error:
            self.outcomes[type(error).__name__] += 1
        except BaseException as error:
            self.violations.append(f"{operation.__name__}: {type(error).__name__}: {error}")
        else:
            self.outcomes["done"] += 1
            self._pace += (monotonic() - started - self._pace) / 50
        finally:
            timeout = None

    def _fork(self, number: int) -> None:
        self.fork_count += 1
        child = Child(self.rng.choice(FORK_FUNCTIONS), self.deployment.close, lambda: self._run_child(number))
        waiter = gevent.spawn(self._await_child, child)
        self._children.add(waiter)
        waiter.link(self._children.discard)

    def _await_child(self, child: Child) -> None:
        try:
            result = child.end()
        except Violation as violation:
            self.violations.append(f"in a forked child: {violation}")
            return
        self.child_interrupt_count += result["interrupts"]
        self.operation_count += result["operations"]
        self._acknowledged.update(result["acknowledged"])
        self._pairs.extend((number, done) for number, done in result["pairs"])
        for totals, child_counts in ((self._attempted, result["tried"]), (self._acknowledged_counts, result["done"])):
            totals.update({int(counter): count for counter, count in child_counts.items()})

    def _run_child(self, number: int) -> dict[str, Any]:
        """In a forked child, kill the writing workers, run new workers, and check the invariants.

        :raises Violation: an invariant is violated.
        """
        self._is_child = True
        gevent.killall(list(self._children), block=False)
        reads = (self._read, self._read_all, self._leave_cursor, self._watch)
        gevent.killall([worker for worker, operation in self._greenlets.items() if operation not in reads], block=False)
        self._checker.mark_forked()
        client = self.db.client
        repeat_until_success(lambda: client.admin.command("ping"))
        # Copies of reading workers must continue with new connections and sessions of the child.
        self._wait_for_workers()
        if self.violations:
            raise Violation(f"an inherited reader: {self.violations[0]}")
        check_nothing_in_use(client, self._checker)
        connections_before = sum(stats["total"] for stats in client.pool_stats())
        self._pool_events.counts.clear()
        self._acknowledged, self._pairs, self._attempted, self._acknowledged_counts = set(), [], Counter(), Counter()
        self.interrupt_count = self.operation_count = 0
        self.remaining_interrupts, self._forks_at, self._last_number = _CHILD_INTERRUPTS, [], (number + 1) * 1_000_000
        self._interrupt_workers()
        self._wait_for_workers()
        if self.violations:
            raise Violation(self.violations[0])
        stored_ids = {each["_id"] for each in repeat_until_success(lambda: list(self.db.facts.find()))}
        if lost_ids := self._acknowledged - stored_ids:
            raise Violation(f"acknowledged writes are lost: {sorted(lost_ids)[:10]}")
        check_nothing_in_use(client, self._checker)
        faults = self._pool_events.faults(sum(stats["total"] for stats in client.pool_stats()) - connections_before)
        client.close()
        if used_objects := self._checker.faults_of_child():
            faults.append(f"sessions and cursors of the parent were used: {used_objects[:5]}")
        gevent.sleep(0.01)
        if WorkerObject.alive:
            faults.append(f"{WorkerObject.alive} ended workers have living locals")
        if faults:
            raise Violation("; ".join(faults))
        return {
            "interrupts": self.interrupt_count, "operations": self.operation_count, "pairs": self._pairs,
            "acknowledged": list(self._acknowledged), "tried": self._attempted, "done": self._acknowledged_counts,
        }  # fmt: skip

    def _cause_faults(self) -> None:
        rng = self.rng
        while True:
            operation_count = self.operation_count
            gevent.sleep(rng.uniform(0.05, 0.4))
            while self.operation_count < operation_count + _OPERATIONS_BETWEEN_FAULTS:
                gevent.sleep(0.01)
            if self._is_child:
                return
            self.fault_count += 1
            member = rng.choice(self.deployment.members)
            rng.choice(self._fault_kinds())(member)
            gevent.sleep(rng.uniform(0.01, 0.1))
            if self._is_child:  # the parent runs the servers and ends their faults
                return
            self._end_faults()

    def _fault_kinds(self) -> list[Callable[[Any], Any]]:
        rng, commands = self.rng, (*_COMMANDS, None)
        kinds: list[Callable[[Any], Any]] = [
            lambda member: member.drop_after(rng.choice((0, 10, 30, 100)), rng.choice(commands)),
            lambda member: member.garbage(rng.choice(commands)),
            lambda member: setattr(self.deployment.network, "loss", rng.choice((0.02, 0.2))),
            lambda member: self.deployment.rate_limit(requests=rng.choice((50, 500)), connections=200),
            lambda member: member.freeze(),
            lambda member: member.partition(),
            lambda member: member.delay(rng.choice((0.01, 0.05))),
            lambda member: member.kill(),
            self._fail_commands,
        ]
        if self.topology == "replica-set":
            kinds += [self._step_down] * 3
        return kinds

    def _step_down(self, member: Any) -> None:
        if self.deployment.members.has_primary:
            self.deployment.members.primary.step_down(1)

    def _fail_commands(self, member: Any) -> None:
        code = self.rng.choice((10107, 11600, 91, 189, 462, 112))
        data: dict[str, Any] = {"failCommands": ["find", "insert", "update", "getMore", "commitTransaction"]}
        data |= {"closeConnection": True} if self.rng.random() < 0.3 else {"errorCode": code}
        self.deployment.set_fail_point("failCommand", {"times": self.rng.choice((1, 5))}, data, member=member)

    def _end_faults(self) -> None:
        self.deployment.network.loss = 0
        self.deployment.rate_limit()
        for member in self.deployment.members:
            if not member.alive:
                member.restart()
            member.thaw()
            if member.faults.partitioned:
                member.heal()
            member.faults.clear()
        self.deployment.set_fail_point("failCommand", "off", {})

    def _read(self, number: int, worker_object: WorkerObject) -> None:
        expected = number % _FIXED_COUNT
        actual = self.db.fixed.find_one({"_id": expected})
        if actual != {"_id": expected, "of": expected}:
            self.violations.append(f"expected {expected}, read {actual}")

    def _read_all(self, number: int, worker_object: WorkerObject) -> None:
        actual = sorted(each["_id"] for each in self._cursor(number, 7))
        if actual != list(range(_FIXED_COUNT)):
            self.violations.append(f"read {actual}")

    def _cursor(self, number: int, batch_size: int) -> Any:
        """Return a cursor over the documents that no operation changes.

        `number` selects one of three kinds of cursor.
        """
        kind = number // 8 % 3
        cursor = self.db.fixed.find({}, batch_size=batch_size, cursor_type=CursorType.EXHAUST if kind == 1 else 0)
        return cursor.read_ahead(1 + number % 2) if kind == 2 else cursor

    def _leave_cursor(self, number: int, worker_object: WorkerObject) -> None:
        cursor = self._cursor(number, 3)
        for _ in range(number % 8):
            next(cursor)

    def _insert(self, number: int, worker_object: WorkerObject) -> None:
        try:
            self.db.facts.insert_one({"_id": number})
        except DuplicateKeyError:
            self.violations.append(f"a retryable write was executed twice: {number}")
        self._acknowledged.add(number)

    def _increment(self, number: int, worker_object: WorkerObject) -> None:
        counter = number % _COUNTER_COUNT
        self._attempted[counter] += 1
        self.db.counters.update_one({"_id": counter}, {"$inc": {"v": 1}})
        self._acknowledged_counts[counter] += 1

    def _bulk(self, number: int, worker_object: WorkerObject) -> None:
        self.db.facts.bulk_write(
            [InsertOne({"_id": number}), UpdateOne({"_id": number}, {"$set": {"a": 1}}), InsertOne({"_id": -number})]
        )
        self._acknowledged |= {number, -number}

    def _write_pair(self, number: int, session: Any) -> None:
        self.db.pairs.insert_one({"_id": number}, session=session)
        self.db.pairs.insert_one({"_id": -number}, session=session)

    def _transaction(self, number: int, worker_object: WorkerObject) -> None:
        self._pairs.append((number, 0))
        with self.db.client.start_session() as session:
            with session.start_transaction():
                self._write_pair(number, session)
            self._pairs.append((number, 1))

    def _with_transaction(self, number: int, worker_object: WorkerObject) -> None:
        self._pairs.append((number, 0))
        with self.db.client.start_session() as session:
            session.with_transaction(lambda session: self._write_pair(number, session))
            self._pairs.append((number, 1))

    def _watch(self, number: int, worker_object: WorkerObject) -> None:
        with self.db.facts.watch(max_await_time_ms=5) as stream:
            stream.try_next()

    def _check(self, client: MongoClient[Any]) -> None:
        with Timeout(30, Violation("the client is not usable after the faults")):
            self._check_usable(client)
        check_nothing_in_use(client, self._checker)
        total = sum(stats["total"] for stats in client.pool_stats())
        if faults := self._pool_events.faults(total):
            raise Violation("; ".join(faults))
        stored_ids = {each["_id"] for each in self.db.facts.find()}
        if lost_ids := self._acknowledged - stored_ids:
            raise Violation(f"acknowledged writes are lost: {sorted(lost_ids)[:10]}")
        for each in self.db.counters.find():
            number = each["_id"]
            if not self._acknowledged_counts[number] <= each["v"] <= self._attempted[number]:
                bounds = f"{self._acknowledged_counts[number]} acknowledged and {self._attempted[number]} attempted"
                if self.topology != "standalone" or each["v"] < self._acknowledged_counts[number]:
                    raise Violation(f"counter {number} is {each['v']}, with increments: {bounds}")
        pairs = {each["_id"] for each in self.db.pairs.find()}
        halves = {number for number in pairs if -number not in pairs}
        committed = {number for number, done in self._pairs if done}
        if halves or committed - pairs:
            raise Violation(f"transactions: halves {sorted(halves)[:10]}, lost {sorted(committed - pairs)[:10]}")

    def _check_usable(self, client: MongoClient[Any]) -> None:
        while True:
            try:
                if self.db.fixed.find_one({"_id": 1}) == {"_id": 1, "of": 1}:
                    return
            except PyMongoError:
                gevent.sleep(0.01)


_CLASSES_NEVER_IN_CYCLES = (WorkerObject, Connection, PinnedConnection, ServerCursor, ServerSession)
_CLASSES_RELEASED_WITH_CLIENT = (*_CLASSES_NEVER_IN_CYCLES, MongoClient, Pool, Topology, Monitor, Transport)


class Soak:
    """The soak campaign: a sequence of steps with one topology.

    :param topology: a name in :data:`TOPOLOGIES`.
    """

    name = "soak"

    def __init__(self, topology: str, seed: int, interrupts_per_step: int = 4000) -> None:
        self.topology = topology
        self.seed = seed
        self.findings = CampaignResults(f"soak {topology}", seed)
        self.interrupt_count = self.child_interrupt_count = self.operation_count = 0
        self.fault_count = self.command_count = self.fork_count = 0
        self.growth = ResourceGrowth()
        self._interrupts_per_step = interrupts_per_step

    def run(
        self,
        interrupt_limit: int,
        seconds: float | None = None,
        first_number: int = 0,
        report: Callable[[str], None] = lambda text: None,
    ) -> CampaignResults:
        """Run steps until at least `interrupt_limit` interruptions, or until the time limit.

        :param first_number: the number of the first step.
        """
        end = None if seconds is None else monotonic() + seconds
        freeze_living_objects()
        gc.disable()
        counts_before = resource_counts()
        number = first_number
        try:
            with quick_checks():
                while self.interrupt_count < interrupt_limit and (end is None or monotonic() < end):
                    known_count = len(self.findings.violations)
                    self._step(number, counts_before)
                    number += 1
                    report(f"{self.line()}, next step {number}")
                    for step, violation in self.findings.violations[known_count:]:
                        report(f"step {step}: {violation}")
        finally:
            gc.enable()
            freeze_living_objects()
        self.findings.violations += [(number, fault) for fault in self.growth.faults()]
        return self.findings

    def line(self) -> str:
        """Return one line of text with the current counts of the campaign."""
        return (
            f"{self.topology}: {self.interrupt_count} interrupts, {self.operation_count} operations, "
            f"{self.command_count} commands, {self.fault_count} faults, {self.fork_count} forks, "
            f"{self.child_interrupt_count} interrupts in forked children, {self.findings.case_count} steps, "
            f"{len(self.findings.violations)} violations, {self.growth.line()}"
        )

    def _step(self, number: int, counts_before: tuple[int, int]) -> None:
        step = Step(self.topology, self.seed, number, self._interrupts_per_step)
        self.findings.case_count += 1
        try:
            with silent_stderr():
                step.run()
                self._check_released(counts_before)
        except Violation as violation:
            self.findings.violations.append((number, str(violation)))
        self.interrupt_count += step.interrupt_count
        self.operation_count += step.operation_count
        self.fault_count += step.fault_count
        self.fork_count += step.fork_count
        self.child_interrupt_count += step.child_interrupt_count
        self.command_count += step._checker.command_count
        for outcome, count in step.outcomes.items():
            self.findings.outcomes[outcome] = self.findings.outcomes.get(outcome, 0) + count
        del step
        self._check_cycles(number)
        self.growth.add(measure_resources())

    def _check_released(self, counts_before: tuple[int, int]) -> None:
        """Check that the objects of ended workers, and all new file descriptors, are released without
        the garbage collector.
        """
        gevent.sleep(0.01)
        if WorkerObject.alive:
            raise Violation(f"{WorkerObject.alive} ended workers have living locals")
        for _ in range(100):
            descriptors = len(os.listdir("/proc/self/fd"))
            if descriptors <= counts_before[1] + 4:
                return
            gevent.sleep(0.01)
        raise Violation(f"{descriptors} descriptors, {counts_before[1]} before")

    def _check_cycles(self, number: int) -> None:
        """Check that no reference cycle contains a worker object, connection, cursor or session, and
        that the objects of the client do not outlive the client.
        """
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        counts = Counter(type(each).__name__ for each in gc.garbage if isinstance(each, _CLASSES_NEVER_IN_CYCLES))
        frames = {f"{each.f_code.co_name}:{each.f_lineno}" for each in gc.garbage if isinstance(each, FrameType)}
        gc.garbage.clear()
        gc.collect()
        if counts:
            self.findings.violations.append((number, f"in cycles: {dict(counts)}, frames {sorted(frames)[:40]}"))
        for _ in range(150):  # The monitor of a closed client may still run for a short time.
            gc.collect()  # A reference cycle may have become garbage after the previous collection.
            remaining = [each for each in gc.get_objects() if isinstance(each, _CLASSES_RELEASED_WITH_CLIENT)]
            if not remaining:
                return
            names = Counter(type(each).__name__ for each in remaining)
            del remaining
            gevent.sleep(0.02)
        self.findings.violations.append((number, f"outlives the client: {dict(names)}"))
