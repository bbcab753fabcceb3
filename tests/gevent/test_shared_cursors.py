"""Tests that a cursor returns no document twice, even if greenlets share the cursor or a decoder
fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import bson
import gevent
import pytest
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.errors import InvalidBSON
from bson.int64 import Int64
from gevent import GreenletExit

import gmongo
from gmongo import MongoClient
from gmongo.cursor import CursorType
from gmongo.errors import AutoReconnect, InvalidOperation
from gmongo.execution.executor import Executor
from gmongo.testing import Deployment
from tests.gevent.switching.harness import EventRecorder
from tests.gevent.switching.tracing import SecondGreenletStarter
from tests.support.fail_points import block
from tests.support.wait import becomes_true, eventually

DOCUMENT_COUNT = 9
NUMBERS = list(range(DOCUMENT_COUNT))
# Text that makes documents large, so that the driver yields to other greenlets during the decoding.
LARGE_TEXT = "x" * 20_000


class Decoder(TypeDecoder):  # type: ignore[misc]
    """Type decoder that calls the function ``on_decode`` for each decoded number."""

    bson_type = Int64

    def __init__(self) -> None:
        self.on_decode: Callable[[int], None] = lambda number: None

    def transform_bson(self, value: int) -> int:
        self.on_decode(value)
        return value


class ReaderSetup:
    """A deployment that contains documents, and clients that read the documents."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.recorder = EventRecorder()
        self.client: MongoClient[Any] = MongoClient(
            deployment.uri, serverMonitoringMode="poll", event_listeners=[self.recorder]
        )
        self.plain_collection = self.client.test.documents
        self.decoder = Decoder()
        options = CodecOptions(type_registry=TypeRegistry([self.decoder]))
        # To publish a command event, the driver decodes the documents again, so the client with the
        # decoder has no listener.
        self.client_without_listeners: MongoClient[Any] = MongoClient(deployment.uri, serverMonitoringMode="poll")
        self.decoded_collection = self.client_without_listeners.test.get_collection("documents", codec_options=options)
        for name, more in (("documents", {}), ("large_documents", {"text": LARGE_TEXT})):
            self.client.test[name].insert_many([{"_id": n, "n": Int64(n), **more} for n in NUMBERS])

    def large_documents(self) -> Any:
        return self.client_without_listeners.test.get_collection(
            "large_documents", codec_options=self.decoded_collection.codec_options
        )

    def open_cursor_ids(self) -> set[int]:
        return set(self.deployment._cluster.store._state.cursors._open)

    def unclosed_cursor_ids(self) -> set[int]:
        """Return the cursor IDs that ``client`` has received, and whose cursors are still open on the
        server.
        """
        return self.recorder.cursor_ids & self.open_cursor_ids()


@pytest.fixture(scope="module")
def setup() -> Iterator[ReaderSetup]:
    with Deployment.replica_set(members=1) as deployment:
        setup = ReaderSetup(deployment)
        yield setup
        setup.client.close()
        setup.client_without_listeners.close()


@pytest.fixture(autouse=True)
def reset_decoder(setup: ReaderSetup) -> Iterator[None]:
    yield
    setup.decoder.on_decode = lambda number: None
    assert setup.recorder.concurrent_commands == []


class InsertStream:
    """Iterator that reads a change stream. The iterator returns one inserted document for each number
    in :data:`NUMBERS`, and then ends.
    """

    def __init__(self, collection: Any) -> None:
        self.stream = collection.watch(max_await_time_ms=5, batch_size=2)
        self.left_count = DOCUMENT_COUNT
        self.deadline = time.monotonic() + 10  # time limit for the return of all changes
        collection.database.command("insert", collection.name, documents=[{"n": Int64(n)} for n in NUMBERS])

    def __iter__(self) -> InsertStream:
        return self

    def __next__(self) -> Any:
        while self.left_count:
            assert time.monotonic() < self.deadline, f"the change stream did not return {self.left_count} changes"
            change = self.stream.try_next()
            if change is not None:
                self.left_count -= 1
                return change["fullDocument"]
        raise StopIteration

    def close(self) -> None:
        self.stream.close()


CURSOR_FACTORIES: dict[str, Callable[[ReaderSetup], Any]] = {
    "find": lambda setup: setup.plain_collection.find(batch_size=2),
    "aggregate": lambda setup: setup.plain_collection.aggregate([], batchSize=2),
    "raw find": lambda setup: setup.plain_collection.find_raw_batches(batch_size=2),
    "raw aggregate": lambda setup: setup.plain_collection.aggregate_raw_batches([], batchSize=2),
    "exhaust": lambda setup: setup.plain_collection.find(batch_size=2, cursor_type=CursorType.EXHAUST),
    "read ahead": lambda setup: setup.plain_collection.find(batch_size=2).read_ahead(),
    "command": lambda setup: setup.client.test.cursor_command("find", "documents", batchSize=2).batch_size(2),
    "decoded": lambda setup: setup.decoded_collection.find(batch_size=3),
    "decoded ahead": lambda setup: setup.decoded_collection.find(batch_size=3).read_ahead(),
    "large_documents": lambda setup: setup.large_documents().find(batch_size=5),
    "changes": lambda setup: InsertStream(setup.client.test.changes),
    "decoded changes": lambda setup: InsertStream(
        setup.decoded_collection.database.changes.with_options(setup.decoded_collection.codec_options)
    ),
}
DECODED_KINDS = [kind for kind in CURSOR_FACTORIES if kind.startswith(("decoded", "large_documents"))]


def numbers(document: Any) -> list[int]:
    """Return a list: the number of a document, or the numbers of all documents of a raw batch."""
    return [each["n"] for each in bson.decode_all(document)] if isinstance(document, bytes) else [document["n"]]


def read_by_next(cursor: Any, iterator: Any, taken_numbers: list[int]) -> None:
    while True:
        try:
            taken_numbers += numbers(next(cursor))
        except StopIteration:
            return


def read_by_shared_iterator(cursor: Any, iterator: Any, taken_numbers: list[int]) -> None:
    for document in iterator:
        taken_numbers += numbers(document)


def read_by_own_iterator(cursor: Any, iterator: Any, taken_numbers: list[int]) -> None:
    for document in cursor:
        taken_numbers += numbers(document)
        gevent.sleep(0)


def read_to_list(cursor: Any, iterator: Any, taken_numbers: list[int]) -> None:
    for document in cursor.to_list() if hasattr(cursor, "to_list") else list(cursor):
        taken_numbers += numbers(document)


def read_concurrently(
    setup: ReaderSetup, kind: str, read: Callable[..., None], switch_number: int, other_count: int, kills_first: bool
) -> bool:
    """Read a cursor in a greenlet. At switch `switch_number` of the greenlet, start further greenlets
    that read the cursor. Return True if the first greenlet has reached the switch.
    """
    cursor, taken_numbers = CURSOR_FACTORIES[kind](setup), list[int]()
    iterator = iter(cursor)
    first = gevent.Greenlet(read, cursor, iterator, taken_numbers)
    other_greenlets: list[gevent.Greenlet] = []

    def start_others() -> None:
        other_greenlets.extend(gevent.spawn(read, cursor, iterator, taken_numbers) for _ in range(other_count))

    with gevent.Timeout(10), SecondGreenletStarter(switch_number, first, start_others, kills_first) as starter:
        first.start()
        first.join()
        gevent.joinall(other_greenlets)
    errors = [each.exception for each in (first, *other_greenlets) if each.exception is not None]
    message = f"{kind}, {read.__name__}, switch {switch_number}: {taken_numbers}, {errors}"
    assert len(set(taken_numbers)) == len(taken_numbers), message
    if kills_first and other_greenlets:
        assert all(isinstance(error, AutoReconnect) for error in errors), message
        # A killed greenlet that runs `read_to_list` loses the documents in its list.
        assert errors or read is read_to_list or sorted(taken_numbers) == NUMBERS, message
    else:
        assert (errors, sorted(taken_numbers)) == ([], NUMBERS), message
    cursor.close()
    return starter.reached


@pytest.mark.one_in(6)
@pytest.mark.parametrize("kills_first", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("other_count", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("read", [read_by_next, read_by_shared_iterator, read_by_own_iterator, read_to_list])
@pytest.mark.parametrize("kind", CURSOR_FACTORIES)
def test_greenlets_that_share_cursor_get_each_document_once(
    setup: ReaderSetup, kind: str, read: Callable[..., None], other_count: int, kills_first: bool
) -> None:
    setup.decoder.on_decode = lambda number: gevent.sleep(0)
    switch_number = 0
    while read_concurrently(setup, kind, read, switch_number, other_count, kills_first):
        switch_number += 1
    assert switch_number >= 2
    assert becomes_true(lambda: not setup.unclosed_cursor_ids())


class Interruption(BaseException):
    """BaseException that a decoder raises, like a ``gevent.Timeout`` that expires in the decoder."""


@pytest.mark.parametrize("failing_number", [*NUMBERS, pytest.param(None, id="every")])
@pytest.mark.parametrize("kind", DECODED_KINDS)
def test_interrupted_decoder_loses_no_document(setup: ReaderSetup, kind: str, failing_number: int | None) -> None:
    failed_numbers: set[int] = set()

    def raise_for_number(number: int) -> None:
        if failing_number in (number, None) and number not in failed_numbers:
            failed_numbers.add(number)
            raise Interruption

    setup.decoder.on_decode = raise_for_number
    cursor, taken_numbers = CURSOR_FACTORIES[kind](setup), list[int]()
    iterator = iter(cursor)
    for source in (cursor, iterator) * DOCUMENT_COUNT * 2:
        try:
            taken_numbers += numbers(next(source))
        except Interruption:
            assert "changes" in kind or cursor.alive
        except StopIteration:
            break
    assert taken_numbers == NUMBERS
    cursor.close()


@pytest.mark.parametrize("failing_number", NUMBERS)
@pytest.mark.parametrize("kind", [kind for kind in DECODED_KINDS if "changes" not in kind])
def test_decoding_error_ends_cursor(setup: ReaderSetup, kind: str, failing_number: int) -> None:
    def raise_for_number(number: int) -> None:
        if number == failing_number:
            raise ValueError("no such number")

    setup.decoder.on_decode = raise_for_number
    open_ids_before = setup.open_cursor_ids()
    cursor, taken_numbers = CURSOR_FACTORIES[kind](setup), list[int]()
    with pytest.raises(InvalidBSON, match="no such number"):
        taken_numbers.extend(document["n"] for document in cursor)
    assert taken_numbers == NUMBERS[: len(taken_numbers)]
    assert len(taken_numbers) <= failing_number
    assert (list(cursor), cursor.alive) == ([], False)
    assert becomes_true(lambda: setup.open_cursor_ids() <= open_ids_before)


def test_decoding_error_of_change_stream_skips_one_change(setup: ReaderSetup) -> None:
    def raise_for_number(number: int) -> None:
        if number == 4:
            raise ValueError("no such number")

    setup.decoder.on_decode = raise_for_number
    changes, taken_numbers = CURSOR_FACTORIES["decoded changes"](setup), list[int]()
    for _ in NUMBERS:
        try:
            taken_numbers += numbers(next(changes))
        except InvalidBSON:
            changes.left_count -= 1
    assert taken_numbers == [number for number in NUMBERS if number != 4]
    changes.close()


def test_decoder_that_reads_its_own_cursor_raises_invalid_operation(setup: ReaderSetup) -> None:
    cursor = setup.decoded_collection.find()
    setup.decoder.on_decode = lambda number: next(cursor)
    with pytest.raises((InvalidOperation, InvalidBSON), match="cannot read the cursor"):
        next(cursor)


@pytest.mark.parametrize("kind", CURSOR_FACTORIES)
@pytest.mark.parametrize("error_class", [GreenletExit, gevent.Timeout])
def test_interrupted_with_block_of_cursor_kills_cursor_later(
    setup: ReaderSetup, kind: str, error_class: type[BaseException]
) -> None:
    cursor = CURSOR_FACTORIES[kind](setup)
    cursor = getattr(cursor, "stream", cursor)
    if "changes" not in kind:
        next(cursor)
    with patch.object(Executor, "run", side_effect=AssertionError) as run:
        cursor.__exit__(error_class, error_class(), None)
    assert not run.called and not cursor.alive
    assert becomes_true(lambda: not setup.unclosed_cursor_ids())


def test_interrupted_with_block_of_change_stream_keeps_explicit_session(setup: ReaderSetup) -> None:
    with setup.client.start_session() as session:
        setup.plain_collection.watch(session=session).__exit__(GreenletExit, GreenletExit(), None)
        setup.client._cursor_killer.reap()
        assert setup.plain_collection.find_one(session=session) is not None


def test_close_of_change_stream_ends_its_iteration(setup: ReaderSetup) -> None:
    stream = setup.plain_collection.watch()
    reader = gevent.spawn(list, stream)
    gevent.sleep(0.05)
    stream.close()
    assert reader.get(timeout=5) == []
    assert becomes_true(lambda: not setup.unclosed_cursor_ids())


def test_kill_of_reader_after_close_of_cursor_ends_the_reader(setup: ReaderSetup) -> None:
    block(setup.deployment, "getMore", 0.2)
    setup.deployment.commands.clear()
    cursor = setup.plain_collection.find(batch_size=2)
    next(cursor)
    reader = gevent.spawn(list, cursor)
    eventually(lambda: setup.deployment.commands.named("getMore"))
    cursor.close()
    reader.kill()
    assert isinstance(reader.value, GreenletExit)


def test_close_during_query_closes_cursor_after_first_batch(setup: ReaderSetup) -> None:
    block(setup.deployment, "find", 0.2)
    setup.deployment.commands.clear()
    cursor = setup.plain_collection.find(batch_size=2)
    reader = gevent.spawn(list, cursor)
    eventually(lambda: setup.deployment.commands.named("find"))
    cursor.close()
    assert len(reader.get(timeout=5)) <= 2
    assert becomes_true(lambda: not setup.unclosed_cursor_ids())


def test_timeout_of_greenlet_does_not_end_query_of_waiting_greenlet(setup: ReaderSetup) -> None:
    block(setup.deployment, "find", 0.4)
    cursor = setup.plain_collection.find()

    def read_within_limit(seconds: float) -> None:
        with gmongo.timeout(seconds):
            next(cursor)

    limited, unlimited = gevent.spawn(read_within_limit, 0.1), gevent.spawn(next, cursor)
    waiting = gevent.spawn(read_within_limit, 0.05)
    assert unlimited.get(timeout=5)["n"] in NUMBERS
    assert getattr(limited.exception, "timeout", False)
    assert "another greenlet waited for documents of the same cursor" in str(waiting.exception)


@pytest.mark.parametrize("kind", ["cursor", "change stream"])
@pytest.mark.parametrize("end", ["close", "interrupt"])
def test_session_of_cursor_is_not_reused_before_end_of_get_more(setup: ReaderSetup, kind: str, end: str) -> None:
    collection = setup.plain_collection
    cursor = collection.find(batch_size=2) if kind == "cursor" else collection.watch(max_await_time_ms=5)
    next(cursor) if kind == "cursor" else cursor.try_next()
    block(setup.deployment, "getMore", 0.3)
    setup.deployment.commands.clear()
    reader = gevent.spawn(list, cursor)
    eventually(lambda: setup.deployment.commands.named("getMore"))
    if end == "close":
        cursor.close()
    else:
        cursor.__exit__(GreenletExit, GreenletExit(), None)
        setup.client._cursor_killer.reap()
    assert not reader.ready()
    (get_more,) = setup.deployment.commands.named("getMore")
    assert get_more.body["lsid"] not in [session.lsid for session in setup.client._executor.sessions._idle]
    reader.join(timeout=5)
    assert setup.client._executor.sessions.in_use == 0
