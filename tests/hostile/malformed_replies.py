"""Campaign in which a server sends malformed replies to many kinds of operations.

The seed of the campaign determines the replies.
"""

from __future__ import annotations

import gc
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import gevent
from bson import CodecOptions
from bson.raw_bson import RawBSONDocument

from gmongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne
from gmongo.sdam import monitor
from tests.hostile.callback_server import CallbackServer, good_reply, hello, message
from tests.hostile.invariants import (
    CampaignResults,
    CommandEventChecker,
    Violation,
    attempt,
    check_nothing_in_use,
    silent_stderr,
)
from tests.hostile.malformed_documents import damage_message, encode_document, mutate_document

_RAW_OPTIONS: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)
_CHECK_INTERVAL = 20  # cases


def _run_transaction(client: MongoClient[Any]) -> None:
    with client.start_session() as session, session.start_transaction():
        client.d.c.insert_one({}, session=session)
        client.d.c.find_one({}, session=session)


def _insert_with_transaction(client: MongoClient[Any]) -> None:
    with gevent.Timeout(0.05, False), client.start_session() as session:
        session.with_transaction(lambda session: client.d.c.insert_one({}, session=session))


def _read_in_session(client: MongoClient[Any]) -> None:
    with client.start_session() as session:
        client.d.c.find_one({}, session=session)
        client.d.c.find_one({}, session=session)


def _watch(client: MongoClient[Any]) -> None:
    with client.d.c.watch() as stream:
        stream.try_next()
        stream.try_next()
        stream.try_next()


def _bulk_write(client: MongoClient[Any]) -> None:
    result = client.d.c.bulk_write([InsertOne({}), UpdateOne({}, {"$set": {"a": 1}}, upsert=True), DeleteOne({})])
    assert repr(result.upserted_ids)


def _client_bulk_write(client: MongoClient[Any]) -> None:
    models = [InsertOne({}, namespace="d.c"), ReplaceOne({}, {}, namespace="d.c"), DeleteOne({}, namespace="d.e")]
    assert repr(client.bulk_write(models, verbose_results=True).insert_results)


def _update(client: MongoClient[Any]) -> None:
    result = client.d.c.update_one({}, {"$set": {"a": 1}}, upsert=True)
    assert repr((result.matched_count, result.modified_count, result.upserted_id, result.raw_result))


OPERATIONS: tuple[Callable[[MongoClient[Any]], Any], ...] = (
    lambda c: c.d.c.find_one({"_id": 1}),
    lambda c: list(c.d.c.find()),
    lambda c: list(c.d.c.find(batch_size=1)),
    lambda c: list(c.d.c.find_raw_batches()),
    lambda c: c.d.c.with_options(codec_options=_RAW_OPTIONS).find_one(),
    lambda c: list(c.d.c.with_options(codec_options=_RAW_OPTIONS).find()),
    lambda c: c.d.c.insert_one({}),
    lambda c: c.d.c.insert_many([{}, {}]),
    _update,
    lambda c: c.d.c.replace_one({}, {}),
    lambda c: c.d.c.delete_one({}).deleted_count,
    lambda c: c.d.c.find_one_and_update({}, {"$set": {"a": 1}}),
    lambda c: list(c.d.c.aggregate([])),
    lambda c: list(c.d.aggregate([{"$documents": []}, {"$out": "x"}])),
    lambda c: c.d.c.distinct("a"),
    lambda c: c.d.c.count_documents({}),
    lambda c: c.d.c.estimated_document_count(),
    lambda c: c.d.list_collection_names(),
    lambda c: c.list_database_names(),
    lambda c: c.d.c.index_information(),
    lambda c: c.d.c.create_index("a"),
    lambda c: c.d.c.drop_index("a"),
    lambda c: c.d.c.options(),
    lambda c: c.d.drop_collection("c"),
    lambda c: c.d.validate_collection("c"),
    lambda c: c.d.command("ping"),
    lambda c: c.d.command("ping", codec_options=_RAW_OPTIONS),
    lambda c: c.d.c.find().explain(),
    lambda c: c.server_info(),
    _bulk_write,
    _client_bulk_write,
    _run_transaction,
    _insert_with_transaction,
    _read_in_session,
    _watch,
)


class MalformedReplies:
    """Campaign of malformed replies.

    The seed and the case number determine each case, so that a single case can be repeated.

    :param seed: the seed of the campaign.
    :param share_of_damage: the share of malformed replies whose bytes are damaged. The remaining
        malformed replies are valid BSON with wrong content.
    """

    name = "replies"

    def __init__(self, seed: int, share_of_damage: float = 0.0) -> None:
        self.seed = seed
        self.findings = CampaignResults(self.name if not share_of_damage else "framing", seed)
        self._share_of_damage = share_of_damage
        self._rng = random.Random()
        self._malformed_count = 0  # number of malformed replies that the server will still send

    def _answer(self, name: str, command: dict[str, Any], request_id: int, flags: int) -> bytes | None:
        if name == "hello":
            return hello_message(hello(self._peer.name), command, request_id)
        reply = good_reply(name, command)
        if self._malformed_count <= 0 or (name in ("endSessions", "killCursors") and self._rng.random() < 0.7):
            return message(encode_document(reply), request_id)
        self._malformed_count -= 1
        if self._rng.random() < self._share_of_damage:
            return damage_message(message(encode_document(reply), request_id), self._rng)
        return message(encode_document(mutate_document(reply, self._rng)), request_id)

    @contextmanager
    def client(self) -> Iterator[tuple[MongoClient[Any], CommandEventChecker]]:
        """Yield a new client of the server, and the listener that records the commands of
        the client.
        """
        checker = CommandEventChecker()
        options = {
            "event_listeners": [checker], "serverSelectionTimeoutMS": 3000, "baseBackoffMS": 1, "maxPoolSize": 5,
            "serverMonitoringMode": "poll", "heartbeatFrequencyMS": 500, "waitQueueTimeoutMS": 3000,
        }  # fmt: skip
        if self._share_of_damage:
            # If the length in a damaged message is too large, the client waits until the timeout.
            options["socketTimeoutMS"] = 30
        with MongoClient(self._peer.name, replicaSet="rs", **options) as client:
            yield client, checker

    def run(self, case_count: int, seconds: float | None = None, first_number: int = 0) -> CampaignResults:
        """Run at most `case_count` cases within the time limit."""
        end = None if seconds is None else monotonic() + seconds
        with quick_checks(), CallbackServer(self._answer) as self._peer:
            number = first_number
            while (
                number < first_number + case_count
                and (end is None or monotonic() < end)
                and len(self.findings.violations) < 50
            ):
                number = self._run_with_one_client(number, min(first_number + case_count, number + 2000))
        return self.findings

    def _run_with_one_client(self, number: int, end_number: int) -> int:
        """Run cases with one client, until a violation occurs or the case `end_number` is reached.

        Return the number of the next case.
        """
        try:
            with silent_stderr(), self.client() as (client, checker):
                while number < end_number:
                    number += 1
                    self.findings.case_count += 1
                    self._run_case(client, checker, number - 1)
                gc.collect()
                check_nothing_in_use(client, checker)
        except Violation as violation:
            self.findings.violations.append((number - 1, str(violation)))
        return number

    def _run_case(self, client: MongoClient[Any], checker: CommandEventChecker, number: int) -> None:
        self._rng = rng = random.Random(f"{self.seed}:{number}")
        operation = rng.choice(OPERATIONS)
        self._malformed_count = rng.choice((1, 1, 1, 2, 4))
        try:
            self.findings.count_outcome(attempt(lambda: operation(client)))
            self._malformed_count = 0
            if number % _CHECK_INTERVAL == 0:
                check_nothing_in_use(client, checker)
                check_correct_reply(client, number)
        except Violation as violation:
            operation_index = OPERATIONS.index(operation)
            raise Violation(f"operation {operation_index}: {violation}") from violation


def check_correct_reply(client: MongoClient[Any], number: int) -> None:
    """Check that the client accepts a correct reply.

    :raises Violation: the client rejects the reply, or returns a reply that belongs to another
        request.
    """
    with gevent.Timeout(5, Violation("the client does not use the server within 5 s")):
        try:
            if client.d.c.find_one({"_id": number}) != {"_id": number}:
                raise Violation("the operation has returned a reply that belongs to another request")
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"the client rejects a correct reply: {error!r:.300}") from error


def hello_message(reply: dict[str, Any], command: dict[str, Any], request_id: int) -> bytes:
    body = encode_document(reply)
    if "$db" in command:
        return message(body, request_id)
    return struct.pack("<iiiiiqii", 36 + len(body), 1, request_id, 1, 8, 0, 0, 1) + body


@contextmanager
def quick_checks() -> Iterator[None]:
    """Reduce the minimum interval between server checks to 5 ms while the block runs."""
    before = monitor.MIN_HEARTBEAT_FREQUENCY
    monitor.MIN_HEARTBEAT_FREQUENCY = 0.005
    try:
        yield
    finally:
        monitor.MIN_HEARTBEAT_FREQUENCY = before
