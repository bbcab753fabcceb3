"""A history: a deployment, a client, actors that run operations, and faults."""

from __future__ import annotations

import datetime
import hashlib
import random
import traceback
from collections import Counter
from typing import Any

import gevent

from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.testing import Deployment, VirtualTime
from tests.histories.actors import (
    FIXED_COUNT,
    Actor,
    CausalReader,
    Inserter,
    Reader,
    TransferActor,
    Updater,
    Violation,
    Watcher,
    stored_answer,
)
from tests.histories.faults import Faults

TOPOLOGIES = ("standalone", "replica_set", "sharded", "load_balanced")
_FAULT_SECONDS = 20.0  # Seconds, at the beginning of a history, in which the history causes faults.
_END_SECONDS = 3600.0  # Seconds in which all operations must end after all faults are repaired.
# After 20 s, the server aborts the transaction of a killed greenlet, so that other operations can
# write its documents.
_SERVER_PARAMETERS = {"transactionLifetimeLimitSeconds": 20, "ttlMonitorSleepSecs": 1}
_DATE = datetime.datetime(2030, 1, 1)


class History:
    """A history. After :meth:`run`, the attributes contain the results.

    :ivar outcomes: the number of operations by actor class and outcome.
    :ivar faults: for each fault, a line of text with the virtual time and the kind of the fault.
    :ivar digest: a hash of the names, times and servers of all commands. Each run of the history
        has the same digest.
    """

    def __init__(self, topology: str, seed: int) -> None:
        self.topology = topology
        self.seed = seed
        self.outcomes: Counter[str] = Counter()
        self.faults: list[str] = []
        self.digest = ""
        self._rng = random.Random(f"{topology} {seed}")

    def run(self) -> None:
        """Run the history, and check the invariants.

        :raises Violation: an invariant is violated.
        """
        seed = self._rng.random()  # the seed of the random choices that the driver makes
        with (
            VirtualTime(start=1_000_000.0, date=_DATE, seed=seed) as time,
            self._create_deployment() as deployment,
        ):
            with MongoClient(deployment.uri, **self._choose_options()) as client:
                self._run_actors(time, deployment, client)
            self.digest = _digest(deployment)

    def _create_deployment(self) -> Deployment:
        choose = self._rng.choice
        if self.topology == "replica_set":
            deployment = Deployment.replica_set(
                choose((1, 2, 3, 3, 3)),
                election_delay=choose((0.01, 1, 12)),
                parameters=_SERVER_PARAMETERS,
            )
        elif self.topology == "standalone":
            deployment = Deployment.standalone()
        else:
            deployment = getattr(Deployment, self.topology)(choose((1, 2, 3)), parameters=_SERVER_PARAMETERS)
        return deployment

    def _choose_options(self) -> dict[str, Any]:
        choose = self._rng.choice
        return {
            "connectTimeoutMS": choose((500, 20_000)),
            "heartbeatFrequencyMS": choose((2_000, 10_000, 10_000)),
            # With a load balancer, each open cursor and each transaction occupies a connection, so
            # the pool must not be small.
            "maxPoolSize": choose((8, 100) if self.topology == "load_balanced" else (2, 4, 100)),
            "maxConnecting": choose((1, 2)),
            "minPoolSize": choose((0, 0, 1)),
            "maxIdleTimeMS": choose((None, 5_000)),
            "serverMonitoringMode": choose(("auto", "poll", "stream")),
            "serverSelectionTimeoutMS": choose((2_000, 30_000)),
            "socketTimeoutMS": choose((None, 3_000)),
            "waitQueueTimeoutMS": choose((None, 5_000)),
            "timeoutMS": choose((None, None, None, 8_000)),
        }

    def _run_actors(self, time: VirtualTime, deployment: Deployment, client: MongoClient[Any]) -> None:
        _insert_documents(client)
        faults = Faults(deployment, time, random.Random(self._rng.random()))
        self.faults = faults.log
        actors = self._create_actors(deployment, client)
        end = time.monotonic() + _FAULT_SECONDS
        count = self._rng.choice((3, 6, 12))
        greenlets = [gevent.spawn(actor.run, count, _FAULT_SECONDS / count) for actor in actors]
        faults.run(self._rng.choice((2, 5, 10)), end)
        faults.repair()
        with MongoClient(deployment.uri) as final_client:
            self._finish(actors, greenlets, final_client)
            for actor in actors:
                actor.check(final_client)
            self._count_outcomes(actors)
        _check_no_connection_in_use(client)

    def _create_actors(self, deployment: Deployment, client: MongoClient[Any]) -> list[Actor]:
        def new_actor(kind: Any, name: str, *arguments: Any) -> Any:
            return kind(name, client, random.Random(self._rng.random()), *arguments)

        actors = [
            new_actor(Inserter, "a"),
            new_actor(Inserter, "b"),
            new_actor(Updater, "u"),
            new_actor(Updater, "v"),
        ]
        actors += [new_actor(Reader, "r"), new_actor(Reader, "s")]
        if self.topology != "standalone":
            actors += [
                new_actor(TransferActor, "m"),
                new_actor(TransferActor, "n"),
                new_actor(CausalReader, "f", deployment),
                new_actor(Watcher, "w"),
            ]
        return actors

    def _finish(self, actors: list[Actor], greenlets: list[Any], final_client: MongoClient[Any]) -> None:
        """Wait until all actors except the watchers have ended.

        Then insert a document whose change event ends the watchers.
        """
        watchers = [greenlet for actor, greenlet in zip(actors, greenlets, strict=True) if isinstance(actor, Watcher)]
        others = [greenlet for greenlet in greenlets if greenlet not in watchers]
        self._join(others)
        final_client.history.inserts.insert_one({"_id": "last"})
        for actor in actors:
            if isinstance(actor, Watcher):
                actor.may_end = True
        self._join(watchers)

    def _join(self, greenlets: list[Any]) -> None:
        gevent.joinall(greenlets, timeout=_END_SECONDS)
        for greenlet in greenlets:
            if not greenlet.dead:
                where = "".join(traceback.format_stack(greenlet.gr_frame, 12))
                raise Violation(f"an operation does not end:\n{where}")
            if greenlet.exception is not None:
                raise greenlet.exception

    def _count_outcomes(self, actors: list[Actor]) -> None:
        for actor in actors:
            for name, count in actor.outcomes.items():
                self.outcomes[f"{type(actor).__name__} {name}"] += count


def _insert_documents(client: MongoClient[Any]) -> None:
    database = client.history
    database.questions.insert_many([{"_id": number, "answer": stored_answer(number)} for number in range(FIXED_COUNT)])
    database.lists.insert_many([{"_id": number, "tokens": [], "count": 0} for number in range(3)])
    database.accounts.insert_many([{"_id": number, "amount": 0, "given": [], "taken": []} for number in range(4)])
    database.create_collection("inserts")


def _check_no_connection_in_use(client: MongoClient[Any]) -> None:
    """Check that the client can run an operation, and that no connection is in use afterwards."""
    for _ in range(5):
        try:
            client.admin.command("ping")
            break
        except PyMongoError:
            gevent.sleep(30)
    else:
        raise Violation("an operation fails after the repair of all faults")
    gevent.sleep(20)
    busy_pools = [stats for stats in client.pool_stats() if stats["in_use"] or stats["waiting"]]
    if busy_pools:
        raise Violation(f"connections are in use, but no operation runs: {busy_pools}")


def _digest(deployment: Deployment) -> str:
    digest = hashlib.sha256()
    member_numbers = {member.address: number for number, member in enumerate(deployment.members)}
    for command in deployment.commands:
        digest.update(f"{command.time:.6f} {member_numbers[command.member]} {command.name}\n".encode())
    return digest.hexdigest()[:16]
