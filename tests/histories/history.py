"""One history: a deployment, a client, the actors that use it, and what goes wrong meanwhile."""

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
    DOCUMENTS,
    Actor,
    Follower,
    Inserter,
    Mover,
    Reader,
    Updater,
    Violation,
    Watcher,
    answer_to,
)
from tests.histories.faults import Faults

TOPOLOGIES = ("standalone", "replica_set", "sharded", "load_balanced")
_LENGTH = 20.0  # seconds in which things go wrong
_PATIENCE = 3600.0  # for all operations to end, once everything works again
# A transaction whose owner was killed lets go of its documents after this.
_PARAMETERS = {"transactionLifetimeLimitSeconds": 20, "ttlMonitorSleepSecs": 1}
_DATE = datetime.datetime(2030, 1, 1)


class History:
    """What the seed says, and what came of it.

    :ivar outcomes: how many operations came to which end.
    :ivar told: what went wrong, with its time.
    :ivar digest: of all that the members received, and when; the same for the same seed.
    """

    def __init__(self, topology: str, seed: int) -> None:
        self.topology = topology
        self.seed = seed
        self.outcomes: Counter[str] = Counter()
        self.told: list[str] = []
        self.digest = ""
        self._chance = random.Random(f"{topology} {seed}")

    def run(self) -> None:
        """Let it happen.

        :raises Violation: something happened that must not.
        """
        lots = self._chance.random()  # what is left to chance in the driver
        with VirtualTime(start=1_000_000.0, date=_DATE, seed=lots) as time, self._deployment() as deployment:
            with MongoClient(deployment.uri, **self._options()) as client:
                self._happen(time, deployment, client)
            self.digest = _digest(deployment)

    def _deployment(self) -> Deployment:
        choose = self._chance.choice
        if self.topology == "replica_set":
            made = Deployment.replica_set(
                choose((1, 2, 3, 3, 3)), election_delay=choose((0.01, 1, 12)), parameters=_PARAMETERS
            )
        elif self.topology == "standalone":
            made = Deployment.standalone()
        else:
            made = getattr(Deployment, self.topology)(choose((1, 2, 3)), parameters=_PARAMETERS)
        return made

    def _options(self) -> dict[str, Any]:
        choose = self._chance.choice
        return {
            "connectTimeoutMS": choose((500, 20_000)),
            "heartbeatFrequencyMS": choose((2_000, 10_000, 10_000)),
            # Behind a load balancer cursors and transactions keep their connections: there have to be more than those.
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

    def _happen(self, time: VirtualTime, deployment: Deployment, client: MongoClient[Any]) -> None:
        _prepare(client)
        faults = Faults(deployment, time, random.Random(self._chance.random()))
        self.told = faults.told
        actors = self._actors(deployment, client)
        end = time.monotonic() + _LENGTH
        count = self._chance.choice((3, 6, 12))
        work = [gevent.spawn(actor.run, count, _LENGTH / count) for actor in actors]
        faults.run(self._chance.choice((2, 5, 10)), end)
        faults.mend()
        with MongoClient(deployment.uri) as other:
            self._finish(actors, work, other)
            for actor in actors:
                actor.check(other)
            self._count(actors)
        _check_at_rest(client)

    def _actors(self, deployment: Deployment, client: MongoClient[Any]) -> list[Actor]:
        def made(kind: Any, name: str, *more: Any) -> Any:
            return kind(name, client, random.Random(self._chance.random()), *more)

        actors = [made(Inserter, "a"), made(Inserter, "b"), made(Updater, "u"), made(Updater, "v")]
        actors += [made(Reader, "r"), made(Reader, "s")]
        if self.topology != "standalone":
            actors += [made(Mover, "m"), made(Mover, "n"), made(Follower, "f", deployment), made(Watcher, "w")]
        return actors

    def _finish(self, actors: list[Actor], work: list[Any], other: MongoClient[Any]) -> None:
        """Wait for all to end; the watcher's last event is that of a document of ours."""
        watchers = [greenlet for actor, greenlet in zip(actors, work, strict=True) if isinstance(actor, Watcher)]
        others = [greenlet for greenlet in work if greenlet not in watchers]
        self._join(others)
        other.history.inserts.insert_one({"_id": "last"})
        for actor in actors:
            if isinstance(actor, Watcher):
                actor.ends = True
        self._join(watchers)

    def _join(self, work: list[Any]) -> None:
        gevent.joinall(work, timeout=_PATIENCE)
        for greenlet in work:
            if not greenlet.dead:
                where = "".join(traceback.format_stack(greenlet.gr_frame, 12))
                raise Violation(f"an operation does not end:\n{where}")
            if greenlet.exception is not None:
                raise greenlet.exception

    def _count(self, actors: list[Actor]) -> None:
        for actor in actors:
            for name, count in actor.outcomes.items():
                self.outcomes[f"{type(actor).__name__} {name}"] += count


def _prepare(client: MongoClient[Any]) -> None:
    database = client.history
    database.questions.insert_many([{"_id": number, "answer": answer_to(number)} for number in range(DOCUMENTS)])
    database.lists.insert_many([{"_id": number, "tokens": [], "count": 0} for number in range(3)])
    database.accounts.insert_many([{"_id": number, "amount": 0, "given": [], "taken": []} for number in range(4)])
    database.create_collection("inserts")


def _check_at_rest(client: MongoClient[Any]) -> None:
    """Nothing is in use while no operation runs; and the client works."""
    for _ in range(5):
        try:
            client.admin.command("ping")
            break
        except PyMongoError:
            gevent.sleep(30)
    else:
        raise Violation("the client does not work though everything else does")
    gevent.sleep(20)
    busy = [stats for stats in client.pool_stats() if stats["in_use"] or stats["waiting"]]
    if busy:
        raise Violation(f"connections are in use without a user: {busy}")


def _digest(deployment: Deployment) -> str:
    found = hashlib.sha256()
    addresses = {member.address: number for number, member in enumerate(deployment.members)}
    for command in deployment.commands:
        found.update(f"{command.time:.6f} {addresses[command.member]} {command.name}\n".encode())
    return found.hexdigest()[:16]
