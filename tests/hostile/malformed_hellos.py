"""Campaign in which a server first sends malformed hello replies and then correct replies.

After the correct replies, the client must recover.
"""

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
from tests.hostile.callback_server import CallbackServer, good_reply, hello, message
from tests.hostile.invariants import CampaignResults, CommandEventChecker, Violation, attempt, silent_stderr
from tests.hostile.malformed_documents import damage_message, encode_document, mutate_document, random_value
from tests.hostile.malformed_replies import hello_message, quick_checks
from tests.support.greenlets import living_greenlets

_CONCURRENT_CASE_COUNT = 8
_MAX_STALENESS_PREFERENCE = Nearest(max_staleness=90)
_W2_CONCERN = WriteConcern(2)
_HELLO_FIELDS = (
    "hosts", "passives", "arbiters", "me", "primary", "setName", "tags", "topologyVersion", "lastWrite", "$clusterTime",
    "electionId", "connectionId", "logicalSessionTimeoutMinutes", "maxBsonObjectSize", "maxMessageSizeBytes",
    "maxWireVersion", "maxWriteBatchSize", "minWireVersion", "setVersion", "ok", "msg", "secondary", "hidden",
    "isreplicaset", "arbiterOnly", "compression", "serviceId", "saslSupportedMechs", "speculativeAuthenticate",
    "isWritablePrimary", "helloOk", "code", "errmsg", "errorLabels",
)  # fmt: skip


class _Case:
    """One case of the campaign: a client, and a server that first sends malformed hello replies."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = rng = random.Random(f"{seed}:{number}")
        self.min_bad_hello_count = rng.choice((1, 2, 3))  # minimum number of malformed hello replies
        self.damages_bytes = rng.random() < 0.25
        self.replies_are_correct = False
        self.hello_count = 0

    def answer(self, name: str, command: dict[str, Any], request_id: int, flags: int) -> bytes | None:
        if name != "hello":
            return message(encode_document(good_reply(name, command)), request_id)
        reply = hello(self.peer.name)
        if "topologyVersion" in command and command["topologyVersion"] == reply["topologyVersion"]:
            gevent.sleep(0.01)
        if self.replies_are_correct:
            # The client must accept the hello reply, because the reply has a new process ID, and the
            # greatest electionId and setVersion.
            reply["topologyVersion"] = {"processId": ObjectId(b"n" * 12), "counter": Int64(5)}
            reply["electionId"], reply["setVersion"] = ObjectId(b"\xff" * 12), 2**63 - 1
            return hello_message(reply, command, request_id)
        self.hello_count += 1
        sent_reply = reply
        if self.hello_count <= self.min_bad_hello_count or self.rng.random() < 0.5:
            sent_reply = mutate_document(reply, self.rng) if self.rng.random() < 0.5 else reply
            for _ in range(self.rng.choice((1, 1, 2))):
                sent_reply[self.rng.choice(_HELLO_FIELDS)] = random_value(self.rng)
        raw = hello_message(sent_reply, command, request_id)
        return damage_message(raw, self.rng) if self.damages_bytes else raw

    def run(self) -> BaseException | None:
        """Run two operations while the server sends malformed hello replies.

        Return the error of the first operation, or None.

        :raises Violation: an operation raises an undocumented error, or the client does not
            recover.
        """
        checker, rng = CommandEventChecker(), self.rng
        with CallbackServer(self.answer) as self.peer:
            options: dict[str, Any] = {
                "serverSelectionTimeoutMS": 40, "connectTimeoutMS": 60, "heartbeatFrequencyMS": 500,
                "event_listeners": [checker], "retryWrites": rng.random() < 0.5,
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
                    lambda: client.d.with_options(read_preference=_MAX_STALENESS_PREFERENCE).c.find_one(),
                    lambda: client.d.c.with_options(write_concern=_W2_CONCERN).insert_one({}),
                )
                error = attempt(rng.choice(operations))
                attempt(rng.choice(operations))
                self.replies_are_correct = True
                self._recover(client)
            if checker.open_commands or checker.faults:
                raise Violation(f"without end event: {checker.open_commands}, faults: {checker.faults}")
        return error

    def _recover(self, client: MongoClient[Any]) -> None:
        """Check that an operation succeeds, unless a malformed reply made the client remove or reject
        the server.
        """
        # The time limit is long, because connections may time out several times on a busy machine.
        end = monotonic() + 20
        address = "127.0.0.1", self.peer.port
        while True:
            error = attempt(client.d.c.find_one)
            if error is None:
                return
            if address not in client.topology_description.server_descriptions():
                return  # a malformed hello reply has removed the server from the topology
            if isinstance(error, ConfigurationError):
                return  # a malformed hello reply has incompatible wire versions
            if monotonic() > end:
                raise Violation(f"the client does not recover: {error!r:.500}")
            gevent.sleep(0.01)


class MalformedHellos:
    """Campaign of malformed hello replies. The seed and the case number determine each case."""

    name = "hellos"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.findings = CampaignResults(self.name, seed)

    def run(self, case_count: int, seconds: float | None = None, first_number: int = 0) -> CampaignResults:
        """Run at most `case_count` cases within the time limit.

        Eight cases run concurrently, because a case mostly waits.
        """
        end = None if seconds is None else monotonic() + seconds
        counts_before = resource_counts()
        pool = Pool(_CONCURRENT_CASE_COUNT)
        try:
            with quick_checks(), silent_stderr():
                for number in range(first_number, first_number + case_count):
                    if (end is not None and monotonic() > end) or len(self.findings.violations) >= 50:
                        break
                    pool.spawn(self._run_case, number)
                pool.join()
        except Violation as violation:
            self.findings.violations.append((-1, str(violation)))
        self._check_resources(counts_before)
        return self.findings

    def _run_case(self, number: int) -> None:
        self.findings.case_count += 1
        try:
            self.findings.count_outcome(_Case(self.seed, number).run())
        except Violation as violation:
            self.findings.violations.append((number, str(violation)))

    def _check_resources(self, before: tuple[int, int]) -> None:
        for _ in range(100):
            gc.collect()
            greenlets, descriptors = resource_counts()
            if greenlets <= before[0] and descriptors <= before[1] + 2:
                return
            gevent.sleep(0.02)
        self.findings.violations.append((-1, f"left: greenlets and descriptors {resource_counts()}, before {before}"))


def resource_counts() -> tuple[int, int]:
    """Return the number of living greenlets and the number of open file descriptors."""
    return len(living_greenlets()), len(os.listdir("/proc/self/fd"))
