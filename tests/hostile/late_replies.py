"""Campaign of interrupted operations whose replies arrive late.

The client reads late replies to keep its connections (``drainLateReplies``).

A reply contains the number of its request, so that the campaign detects a reply to another
request. The server replies after a random time. The size of the reply is random. An interruption
can occur before, during or after the receipt of the reply.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Any

import bson
import gevent
from bson import Int64

import gmongo
from gmongo import MongoClient
from gmongo.cmap.connection import Connection
from gmongo.errors import PyMongoError
from tests.hostile.callback_server import OP_COMPRESSED, OP_MSG, CallbackServer, hello, message
from tests.hostile.invariants import CampaignResults, CommandEventChecker, Violation, check_nothing_in_use
from tests.hostile.malformed_replies import hello_message

_WORKER_COUNT = 24
INTERRUPTS_PER_STEP = 4000
_MAX_BYTES = 150_000
_DATABASE = "late"
# Milliseconds that the client waits for a late reply (``drainLateRepliesMS``).
_SHORT_WAIT, _LONG_WAIT = (2, 2_000)
# Sizes of replies in bytes. Most replies fit into the receive buffer of the driver, and some exceed
# ``drainLateRepliesBytes``.
_SIZES = (0, 0, 0, 0, 100, 5_000, 60_000, 70_000, 140_000, 400_000)
_WEIGHTS = (60, 60, 60, 60, 60, 30, 3, 3, 2, 1)


class _Interruption(Exception):
    """An exception of the application with which the campaign interrupts a worker."""


class _Server:
    """Server whose replies contain the number that the request contains."""

    def __init__(self, rng: random.Random, compresses: bool) -> None:
        self.rng = rng
        self.compresses = compresses
        self.cursor_ids = count(1)
        self.open_cursors: set[int] = set()  # IDs of the cursors that the client has not killed
        self.peer = CallbackServer(self.answer)
        self._filling = {size: bytes(size) for size in _SIZES}

    def answer(self, name: str, command: dict[str, Any], request_id: int, flags: int) -> bytes | None:
        if name == "hello":
            reply = {**hello(self.peer.name), **({"compression": ["zlib"]} if self.compresses else {})}
            return hello_message(reply, command, request_id)
        if name == "killCursors":
            self.open_cursors -= set(command["cursors"])
            return message(bson.encode({"ok": 1.0}), request_id)
        if name in ("endSessions", "killSessions"):
            return message(bson.encode({"ok": 1.0}), request_id)
        delay = self.rng.random() * 0.004 - 0.001
        if delay > 0:
            gevent.sleep(delay)
        return self._compress(message(bson.encode(self._content(name, command)), request_id))

    def _content(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        if name != "find":
            return {"ok": 1.0, "n": 1, "number": command["number"]}
        filling = self._filling[self.rng.choices(_SIZES, _WEIGHTS)[0]]
        document = {"_id": command["filter"]["_id"], "filling": filling}
        cursor_id = 0
        if not command.get("singleBatch"):
            # A reply with a cursor is smaller than ``drainLateRepliesBytes``. Otherwise, the client
            # would not read the cursor ID in a late reply.
            document["filling"] = filling[:30_000]
            cursor_id = next(self.cursor_ids)
            self.open_cursors.add(cursor_id)
        return {"ok": 1.0, "cursor": {"id": Int64(cursor_id), "ns": f"{_DATABASE}.c", "firstBatch": [document]}}

    def _compress(self, plain_message: bytes) -> bytes:
        if not self.compresses:
            return plain_message
        _, request_id, response_to, _ = struct.unpack_from("<iiii", plain_message)
        payload = struct.pack("<iiB", OP_MSG, len(plain_message) - 16, 2) + zlib.compress(plain_message[16:], 1)
        return struct.pack("<iiii", 16 + len(payload), request_id, response_to, OP_COMPRESSED) + payload


class _LateReplyCounter:
    """Context manager that counts late replies. `read_count` is the number of late replies that
    the driver has read completely.
    """

    def __init__(self) -> None:
        self.read_count = self.given_up_count = 0

    def __enter__(self) -> _LateReplyCounter:
        self._original = original = Connection.read_late_reply

        def read(connection: Connection, seconds: float, max_bytes: int) -> None:
            try:
                original(connection, seconds, max_bytes)
            except BaseException:
                self.given_up_count += 1
                raise
            self.read_count += 1

        Connection.read_late_reply = read  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Connection.read_late_reply = self._original  # type: ignore[method-assign]


class _Step:
    """One step of the campaign: a server, a client, and workers that the step interrupts."""

    def __init__(self, seed: int, number: int, interrupt_limit: int) -> None:
        self.rng = rng = random.Random(f"{seed}:{number}")
        self.numbers = count(number * 10_000_000)
        self.server = _Server(random.Random(rng.random()), compresses=rng.random() < 0.2)
        self.remaining_interrupts = interrupt_limit
        self.interrupt_count = self.answer_count = 0
        self.faults: list[str] = []
        self.drain_milliseconds = rng.choice((_SHORT_WAIT, _LONG_WAIT, _LONG_WAIT))
        self.checker = CommandEventChecker()
        self._pace = 0.002  # average duration in seconds of a request that is not interrupted

    def run(self) -> None:
        """Run the workers, interrupt the workers at random times, and check the invariants.

        :raises Violation: an invariant is violated.
        """
        options: dict[str, Any] = {
            "maxPoolSize": self.rng.choice((4, 30, 100)),
            "drainLateReplies": True,
            "drainLateRepliesMS": self.drain_milliseconds,
            "drainLateRepliesBytes": _MAX_BYTES,
            "serverMonitoringMode": "poll",
            **({"compressors": "zlib"} if self.server.compresses else {}),
            **({"event_listeners": [self.checker]} if self.rng.random() < 0.3 else {}),
        }
        with self.server.peer, MongoClient(f"mongodb://{self.server.peer.name}/?replicaSet=rs", **options) as client:
            self.collection: Any = client[_DATABASE].c
            for _ in range(20):
                self._request()
            workers = [gevent.spawn(self._run_worker) for _ in range(_WORKER_COUNT)]
            while self.remaining_interrupts > 0 and not self.faults:
                gevent.sleep(self.rng.random() * self._pace)
                index = self.rng.randrange(_WORKER_COUNT)
                if workers[index].dead:
                    workers[index] = gevent.spawn(self._run_worker)
                elif self.rng.random() < 0.5:
                    workers[index].kill(block=False)
                else:
                    workers[index].kill(_Interruption, block=False)
            gevent.killall(workers)
            if self.faults:
                raise Violation("; ".join(self.faults[:3]))
            self._request()  # The request must succeed, because no interruption occurs.
            self._wait_for_late_replies(client)
            check_nothing_in_use(client, self.checker)

    def _wait_for_late_replies(self, client: MongoClient[Any]) -> None:
        for _ in range(1000):
            # If a connection closes before the client reads a reply, the client cannot kill the
            # cursor in the reply. With a short wait, each closed connection may leave a cursor.
            closed_count = self.server.peer.closed_count if self.drain_milliseconds == _SHORT_WAIT else 0
            if len(self.server.open_cursors) <= closed_count and not client.pool_stats()[0]["draining"]:
                return
            gevent.sleep(0.002)
        raise Violation(f"after the wait: {client.pool_stats()}, cursors {sorted(self.server.open_cursors)[:5]}")

    def _run_worker(self) -> None:
        try:
            while self.remaining_interrupts > 0 and not self.faults:
                self._request_with_interruption()
        except _Interruption:
            self._count_interruption()

    def _count_interruption(self) -> None:
        self.interrupt_count += 1
        self.remaining_interrupts -= 1

    def _request_with_interruption(self) -> None:
        limit = self.rng.random() * 4 * self._pace
        own_timeout = gevent.Timeout(limit)
        try:
            if self.rng.random() < 0.5:
                with own_timeout:
                    self._request()
            else:
                with gmongo.timeout(limit):
                    self._request()
        except gevent.Timeout as timeout:
            if timeout is not own_timeout:
                self.faults.append(f"a foreign timeout was raised: {timeout!r}")
            self._count_interruption()
        except PyMongoError as error:
            if not error.timeout:
                self.faults.append(f"{type(error).__name__}: {error}")
            self._count_interruption()
        except gevent.GreenletExit:
            self._count_interruption()
            raise

    def _request(self) -> None:
        started = monotonic()
        number = next(self.numbers)
        kind = self.rng.random()
        if kind < 0.5:
            reply_number = self.collection.find_one({"_id": number})["_id"]
        elif kind < 0.7:
            with self.collection.find({"_id": number}) as cursor:
                reply_number = next(cursor)["_id"]
        else:
            reply_number = self.collection.database.command("ask", number=number)["number"]
        if reply_number != number:
            self.faults.append(f"request {number} got the reply to request {reply_number}")
        self.answer_count += 1
        # The average increases on a busy machine.
        self._pace += (monotonic() - started - self._pace) / 20


class LateReplies:
    """Campaign of steps with late replies.

    :param seed: number that determines all random choices. Measured times also affect the run.
    :param interrupts_per_step: the number of interruptions in each step.
    """

    def __init__(self, seed: int, interrupts_per_step: int = INTERRUPTS_PER_STEP) -> None:
        self.findings = CampaignResults("late replies", seed)
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
        :param seconds: the time limit of the campaign in seconds, or None for no limit.
        :param report: function that receives texts about the progress.
        """
        findings, end, number = self.findings, None if seconds is None else monotonic() + seconds, first_number
        answer_count, counter = 0, _LateReplyCounter()
        while findings.case_count < interrupt_limit and (end is None or monotonic() < end):
            step = _Step(findings.seed, number, min(self._interrupts_per_step, interrupt_limit - findings.case_count))
            try:
                with counter:
                    step.run()
            except Violation as violation:
                findings.violations.append((number, str(violation)))
            findings.case_count += step.interrupt_count
            answer_count += step.answer_count
            number += 1
            findings.outcomes = {
                "right replies": answer_count,
                "late replies read": counter.read_count,
                "late replies given up": counter.given_up_count,
            }
            report(f"{findings.report()}; next step {number}")
        return findings
