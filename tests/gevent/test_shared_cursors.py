"""Documents of cursors and streams that greenlets share, or whose decoders fail: none is lost, and none comes twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import bson
import gevent
import pytest
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.int64 import Int64
from gevent import GreenletExit, get_hub

from gmongo import MongoClient
from gmongo.cursor import CursorType
from gmongo.errors import AutoReconnect
from gmongo.testing import Deployment
from tests.gevent.switching.harness import Tracer, Witness
from tests.gevent.switching.thrown import KILL
from tests.support.wait import comes_true

COUNT = 9
NUMBERS = list(range(COUNT))
LARGE = "x" * 20_000  # a batch of this many bytes for each document is decoded in several runs


class Decoder(TypeDecoder):  # type: ignore[misc]
    """Calls a function for each number that is decoded."""

    bson_type = Int64

    def __init__(self) -> None:
        self.act: Callable[[int], None] = lambda number: None

    def transform_bson(self, value: int) -> int:
        self.act(value)
        return value


class Stage:
    """A deployment with documents, and a client that reads them."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.witness = Witness()
        self.client: MongoClient[Any] = MongoClient(
            deployment.uri, serverMonitoringMode="poll", event_listeners=[self.witness]
        )
        self.plain = self.client.test.documents
        self.decoder = Decoder()
        options = CodecOptions(type_registry=TypeRegistry([self.decoder]))
        self.decoded = self.plain.with_options(codec_options=options)
        for name, more in (("documents", {}), ("large", {"text": LARGE})):
            self.client.test[name].insert_many([{"_id": n, "n": Int64(n), **more} for n in NUMBERS])

    def large(self) -> Any:
        return self.client.test.get_collection("large", codec_options=self.decoded.codec_options)

    def left_cursors(self) -> set[int]:
        """The cursors that are open on the server, but for those whose first reply was lost."""
        return self.witness.cursors & set(self.deployment._cluster.store._state.cursors._open)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Deployment.replica_set(members=1) as deployment:
        stage = Stage(deployment)
        yield stage
        stage.client.close()


@pytest.fixture(autouse=True)
def no_action(stage: Stage) -> Iterator[None]:
    yield
    stage.decoder.act = lambda number: None


class Changes:
    """A change stream with the methods of a cursor, over the changes that :data:`NUMBERS` name."""

    def __init__(self, collection: Any) -> None:
        self.stream = collection.watch(max_await_time_ms=5, batch_size=2)
        self.left = COUNT
        collection.database.command("insert", collection.name, documents=[{"n": Int64(n)} for n in NUMBERS])

    def __iter__(self) -> Changes:
        return self

    def __next__(self) -> Any:
        while self.left:
            change = self.stream.try_next()
            if change is not None:
                self.left -= 1
                return change["fullDocument"]
        raise StopIteration

    def close(self) -> None:
        self.stream.close()


KINDS: dict[str, Callable[[Stage], Any]] = {
    "find": lambda stage: stage.plain.find(batch_size=2),
    "aggregate": lambda stage: stage.plain.aggregate([], batchSize=2),
    "raw find": lambda stage: stage.plain.find_raw_batches(batch_size=2),
    "raw aggregate": lambda stage: stage.plain.aggregate_raw_batches([], batchSize=2),
    "exhaust": lambda stage: stage.plain.find(batch_size=2, cursor_type=CursorType.EXHAUST),
    "read ahead": lambda stage: stage.plain.find(batch_size=2).read_ahead(),
    "command": lambda stage: stage.client.test.cursor_command("find", "documents", batchSize=2).batch_size(2),
    "decoded": lambda stage: stage.decoded.find(batch_size=3),
    "decoded ahead": lambda stage: stage.decoded.find(batch_size=3).read_ahead(),
    "in runs": lambda stage: stage.large().find(batch_size=5),
    "changes": lambda stage: Changes(stage.client.test.changes),
    "decoded changes": lambda stage: Changes(stage.decoded.database.changes.with_options(stage.decoded.codec_options)),
}
DECODED = [kind for kind in KINDS if kind.startswith(("decoded", "in runs"))]


def numbers(document: Any) -> list[int]:
    """The numbers of a document, or of the documents of a raw batch."""
    return [each["n"] for each in bson.decode_all(document)] if isinstance(document, bytes) else [document["n"]]


def by_next(cursor: Any, iterator: Any, taken: list[int]) -> None:
    while True:
        try:
            taken += numbers(next(cursor))
        except StopIteration:
            return


def by_one_iterator(cursor: Any, iterator: Any, taken: list[int]) -> None:
    for document in iterator:
        taken += numbers(document)


def by_own_iterator(cursor: Any, iterator: Any, taken: list[int]) -> None:
    for document in cursor:
        taken += numbers(document)
        gevent.sleep(0)


def by_list(cursor: Any, iterator: Any, taken: list[int]) -> None:
    for document in cursor.to_list() if hasattr(cursor, "to_list") else list(cursor):
        taken += numbers(document)


class Entry(Tracer):
    """Lets other greenlets enter at one switch of the first greenlet, and may then kill the first one."""

    def __init__(self, point: int, first: gevent.Greenlet, enter: Callable[[], None], kills: bool) -> None:
        super().__init__(point, KILL, lambda each: each is first)
        self._first, self._enter, self._kills = first, enter, kills

    def _throw(self) -> None:
        if not self.thrown:
            self.thrown.append(GreenletExit())
            self._enter()
            if self._kills:
                get_hub().loop.run_callback(self._first.kill, GreenletExit, False)


def run(stage: Stage, kind: str, read: Callable[..., None], point: int, others: int, kills: bool) -> bool:
    """Read a cursor in one greenlet, and from one of its switches on in others, too.

    :returns: whether the first greenlet has come to the switch.
    """
    cursor, taken = KINDS[kind](stage), list[int]()
    iterator = iter(cursor)
    first = gevent.Greenlet(read, cursor, iterator, taken)
    entered: list[gevent.Greenlet] = []

    def enter() -> None:
        entered.extend(gevent.spawn(read, cursor, iterator, taken) for _ in range(others))

    with gevent.Timeout(10), Entry(point, first, enter, kills) as entry:
        first.start()
        first.join()
        gevent.joinall(entered)
    errors = [each.exception for each in (first, *entered) if each.exception is not None]
    what = f"{kind}, {read.__name__}, switch {point}: {taken}, {errors}"
    assert len(set(taken)) == len(taken), what
    if kills and entered:
        assert all(isinstance(error, AutoReconnect) for error in errors), what
        # by_list loses what the killed greenlet has in its list
        assert errors or read is by_list or sorted(taken) == NUMBERS, what
    else:
        assert (errors, sorted(taken)) == ([], NUMBERS), what
    cursor.close()
    return entry.reached


@pytest.mark.parametrize("kills", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("others", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("read", [by_next, by_one_iterator, by_own_iterator, by_list])
@pytest.mark.parametrize("kind", KINDS)
def test_greenlets_that_share_a_cursor_get_each_document_once(
    stage: Stage, kind: str, read: Callable[..., None], others: int, kills: bool
) -> None:
    stage.decoder.act = lambda number: gevent.sleep(0)
    point = 0
    while run(stage, kind, read, point, others, kills):
        point += 1
    assert point >= 2
    assert comes_true(lambda: not stage.left_cursors())
