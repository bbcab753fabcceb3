"""Time limits of operations that take several commands: cursors, bulks, retries, transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

import gmongo
from gmongo import InsertOne, MongoClient, _clock
from gmongo.errors import NetworkTimeout, OperationFailure, PyMongoError
from gmongo.execution.attempt import Attempt
from gmongo.execution.operation import Operation
from gmongo.execution.operation_context import OperationContext
from gmongo.execution.retry import Retry
from gmongo.gridfs import GridFSBucket
from gmongo.testing import Deployment, VirtualTime
from tests.execution.harness import in_turn, rejected
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut, silent
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("in_time")


# Several commands


def _later(seconds: float, reply: Any) -> Any:
    gevent.sleep(seconds)
    return reply


@pytest.mark.parametrize("ordered", [True, False])
def test_a_bulk_of_several_batches(server: ScriptedServer, connect: Callable[..., Client], ordered: bool) -> None:
    """The limit is that of the whole: each batch has what the ones before it have left."""
    server.hello_extra["maxWriteBatchSize"] = 1
    server.replies["insert"] = {"ok": 1, "n": 1}
    server.fail("insert", *[lambda peer, message: (gevent.sleep(0.02), peer.send(message))] * 2, silent)
    client = connect(f"mongodb://{server.name}")
    client.db.command("ping")
    with pytest.raises(PyMongoError) as raised, gmongo.timeout(0.6):
        client.db.c.bulk_write([InsertOne({"_id": number}) for number in range(10)], ordered=ordered)
    assert raised.value.timeout
    limits = [command["maxTimeMS"] for command in server.commands("insert")]
    assert len(limits) == 3
    assert limits[0] > limits[1] + 10 > limits[2] + 20


# Retries


def test_a_wait_after_overload_is_within_the_limit(server: ScriptedServer, connect: Callable[..., Client]) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=10_000, baseBackoffMS=20)
    in_turn(server, "find", rejected(), rejected())
    client.db.c.find_one()
    limits = [command["maxTimeMS"] for command in server.commands("find")]
    assert limits == pytest.approx([10_000, 9_980, 9_940], abs=1)  # whole milliseconds, of a sum of fractions


# The driver's own time


def test_minimum_pool_size_is_filled_in_its_own_time(connect: Callable[..., Client]) -> None:
    with ScriptedReplicaSet(1) as members:
        (server,) = members.members
        server.hello_edit = lambda command, reply: _later(0.06, reply)
        client = connect(f"mongodb://{server.name}", timeoutMS=10, minPoolSize=1)
        eventually(lambda: client.pool_stats() and client.pool_stats()[0]["available"] == 1)
        server.hello_edit = None
        server.fail("find", cut(0))


def test_with_transaction_raises_at_its_limit_and_the_abort_takes_the_limit_again(
    virtual_time: VirtualTime, server: ScriptedServer, connect: Callable[..., Client], recorder: Recorder
) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=60, serverMonitoringMode="poll")
    client.db.command("ping")
    server.fail("insert", silent)
    server.fail("abortTransaction", silent)
    begin = virtual_time.monotonic()
    failed: list[float] = []
    recorder.hooks["CommandFailed"] = lambda _event: failed.append(virtual_time.monotonic() - begin)
    with client.start_session() as session:
        with pytest.raises(PyMongoError) as raised:
            session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
        assert raised.value.timeout
        assert virtual_time.monotonic() - begin == pytest.approx(0.06)
        eventually(lambda: len(failed) == 2)
    assert [event.command_name for event in recorder.of("CommandFailed")] == ["insert", "abortTransaction"]
    assert failed == pytest.approx([0.06, 0.12])


@pytest.mark.parametrize(
    ("error", "goes_on"), [(OperationFailure("unreachable", 6), True), (NetworkTimeout("too late"), False)]
)
def test_after_the_deadline_a_time_out_is_the_end_and_nothing_else(error: PyMongoError, goes_on: bool) -> None:
    """Another error is tried again, in vain, so that the application is told of a time-out, with this as its cause."""
    read = Operation(OperationContext("db"))
    read.retryable = True
    with MongoClient[Any](connect=False) as client:
        retry = Retry(client._executor.policy, _clock.monotonic() - 1)
        retry.failed(error, Attempt(read, None))
    if goes_on:
        assert retry.delay == 0
    else:
        assert retry.delay is None
        assert retry.error is error


# Files

STEPS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "write": ("upload", lambda file: file.write(bytes(5_000_000))),
    "close": ("upload", lambda file: file.close()),
    "read": ("download", lambda file: file.read()),
    "read a part": ("download", lambda file: file.read(2)),
    "read a line": ("download", lambda file: file.readline()),
    "read a chunk": ("download", lambda file: file.readchunk()),
    "iterate": ("download", lambda file: next(iter(file))),
    "seek and read": ("download", lambda file: (file.seek(3), file.read(1))),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_time_of_a_file_is_that_of_all_its_steps(
    deployment: Deployment, connect: Callable[..., Client], recorder: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    client = connect(deployment, timeoutMS=1_000_000)
    bucket = GridFSBucket(client.db, chunk_size_bytes=100_000)
    which, run = STEPS[step]
    if which == "upload":
        file: Any = bucket.open_upload_stream("f")
        file.write(b"some")
    else:
        file = bucket.open_download_stream(bucket.upload_from_stream("f", b"some\nlines"))
    now = _clock.monotonic
    monkeypatch.setattr(_clock, "monotonic", lambda: now() + 2_000)
    recorder.forget()
    with pytest.raises(PyMongoError) as raised:
        run(file)
    assert raised.value.timeout
    assert recorder.commands == []
