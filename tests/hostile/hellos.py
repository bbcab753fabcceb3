"""Hellos that no server should send, and then good ones: the client has to find back."""

from __future__ import annotations

import gc
import os
import random
from time import monotonic
from typing import Any

import gevent
from bson import Int64, ObjectId
from gevent.pool import Pool

from gmongo import MongoClient, WriteConcern
from gmongo.errors import ConfigurationError
from gmongo.read_preferences import Nearest
from tests.hostile.mutation import damaged, encoded, mutated, value
from tests.hostile.peer import HostilePeer, good_reply, hello, message
from tests.hostile.replies import hello_message, quick_checks
from tests.hostile.witness import Commands, Findings, Violation, attempt, silent_stderr
from tests.support.greenlets import living

_AT_ONCE = 8
_STALE = Nearest(max_staleness=90)
_W2 = WriteConcern(2)
_FIELDS = (
    "hosts", "passives", "arbiters", "me", "primary", "setName", "tags", "topologyVersion", "lastWrite", "$clusterTime",
    "electionId", "connectionId", "logicalSessionTimeoutMinutes", "maxBsonObjectSize", "maxMessageSizeBytes",
    "maxWireVersion", "maxWriteBatchSize", "minWireVersion", "setVersion", "ok", "msg", "secondary", "hidden",
    "isreplicaset", "arbiterOnly", "compression", "serviceId", "saslSupportedMechs", "speculativeAuthenticate",
    "isWritablePrimary", "helloOk", "code", "errmsg", "errorLabels",
)  # fmt: skip


class _Case:
    """One client, and the server that lies to it."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = rng = random.Random(f"{seed}:{number}")
        self.lies = rng.choice((1, 2, 3))  # how many hellos are wrong
        self.damages = rng.random() < 0.25
        self.honest = False
        self.told = 0

    def answer(self, name: str, command: dict[str, Any], number: int, flags: int) -> bytes | None:
        if name != "hello":
            return message(encoded(good_reply(name, command)), number)
        reply = hello(self.peer.name)
        if "topologyVersion" in command and command["topologyVersion"] == reply["topologyVersion"]:
            gevent.sleep(0.01)
        if self.honest:
            # Of another process, and of a newer election, or the client is right to hold to what it was told.
            reply["topologyVersion"] = {"processId": ObjectId(b"n" * 12), "counter": Int64(5)}
            reply["electionId"], reply["setVersion"] = ObjectId(b"\xff" * 12), 2**63 - 1
            return hello_message(reply, command, number)
        self.told += 1
        wrong = reply
        if self.told <= self.lies or self.rng.random() < 0.5:
            wrong = mutated(reply, self.rng) if self.rng.random() < 0.5 else reply
            for _ in range(self.rng.choice((1, 1, 2))):
                wrong[self.rng.choice(_FIELDS)] = value(self.rng)
        raw = hello_message(wrong, command, number)
        return damaged(raw, self.rng) if self.damages else raw

    def run(self) -> BaseException | None:
        """Let a client use the server; returns the first error it had.

        :raises Violation: it had one that is not documented, or does not find back.
        """
        commands, rng = Commands(), self.rng
        with HostilePeer(self.answer) as self.peer:
            options: dict[str, Any] = {
                "serverSelectionTimeoutMS": 40, "connectTimeoutMS": 60, "heartbeatFrequencyMS": 500,
                "event_listeners": [commands], "retryWrites": rng.random() < 0.5,
                "serverMonitoringMode": rng.choice(("poll", "stream")),
            }  # fmt: skip
            kind = rng.randrange(3)
            if kind == 0:
                options["directConnection"] = True
            elif kind == 1:
                options["replicaSet"] = "rs"
            with MongoClient(self.peer.name, **options) as client:
                operations = (
                    client.d.c.find_one,
                    lambda: client.d.c.insert_many([{}, {}]),
                    lambda: client.d.with_options(read_preference=_STALE).c.find_one(),
                    lambda: client.d.c.with_options(write_concern=_W2).insert_one({}),
                )
                error = attempt(rng.choice(operations))
                attempt(rng.choice(operations))
                self.honest = True
                self._recover(client)
            if commands.open or commands.faults:
                raise Violation(f"commands {commands.open} {commands.faults}")
        return error

    def _recover(self, client: MongoClient[Any]) -> None:
        """The server is honest from now on, and is used, unless the topology is rightly without it."""
        end = monotonic() + 20  # a busy machine misses the limits of a connection a few times
        address = "127.0.0.1", self.peer.port
        while True:
            error = attempt(client.d.c.find_one)
            if error is None:
                return
            if address not in client.topology_description.server_descriptions():
                return  # it was told that the replica set has other members, or the server another kind
            if isinstance(error, ConfigurationError):
                return  # it is a member of another replica set than it was asked to be
            if monotonic() > end:
                raise Violation(f"it does not find back: {error!r:.500}")
            gevent.sleep(0.01)


class Hellos:
    """A campaign, as :class:`tests.hostile.replies.Replies`."""

    name = "hellos"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.findings = Findings(self.name, seed)

    def run(self, cases: int, seconds: float | None = None, first: int = 0) -> Findings:
        """Run so many cases, or as many as fit; some at a time, since most of each is waiting."""
        end = None if seconds is None else monotonic() + seconds
        before = census()
        pool = Pool(_AT_ONCE)
        try:
            with quick_checks(), silent_stderr():
                for number in range(first, first + cases):
                    if (end is not None and monotonic() > end) or len(self.findings.violations) >= 50:
                        break
                    pool.spawn(self._case, number)
                pool.join()
        except Violation as violation:
            self.findings.violations.append((-1, str(violation)))
        self._check_gone(before)
        return self.findings

    def _case(self, number: int) -> None:
        self.findings.cases += 1
        try:
            self.findings.add(_Case(self.seed, number).run())
        except Violation as violation:
            self.findings.violations.append((number, str(violation)))

    def _check_gone(self, before: tuple[int, int]) -> None:
        for _ in range(100):
            gc.collect()
            greenlets, descriptors = census()
            if greenlets <= before[0] and descriptors <= before[1] + 2:
                return
            gevent.sleep(0.02)
        self.findings.violations.append((-1, f"left: greenlets and descriptors {census()}, before {before}"))


def census() -> tuple[int, int]:
    """How many greenlets and descriptors there are."""
    return len(living()), len(os.listdir("/proc/self/fd"))
