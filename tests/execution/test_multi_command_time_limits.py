"""Timeouts of operations that send several commands: bulk writes, retries, transactions and GridFS files."""

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
from tests.execution.harness import overload_reply, reply_in_sequence
from tests.support.clients import Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut_reply, send_no_reply
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("in_time")


def _delayed(seconds: float, reply: Any) -> Any:
    gevent.sleep(seconds)
    return reply


@pytest.mark.parametrize("ordered", [True, False])
def test_all_batches_of_bulk_write_share_one_timeout(server: ScriptedServer, connect: Connect, ordered: bool) -> None:
    server.hello_extra["maxWriteBatchSize"] = 1
    server.replies["insert"] = {"ok": 1, "n": 1}
    server.fail("insert", *[lambda peer, message: (gevent.sleep(0.02), peer.send(message))] * 2, send_no_reply)
    client = connect(f"mongodb://{server.name}")
    client.db.command("ping")
    with pytest.raises(PyMongoError) as raised, gmongo.timeout(0.6):
        client.db.c.bulk_write([InsertOne({"_id": number}) for number in range(10)], ordered=ordered)
    assert raised.value.timeout
    limits = [command["maxTimeMS"] for command in server.commands("insert")]
    assert len(limits) == 3
    assert limits[0] > limits[1] + 10 > limits[2] + 20


def test_backoff_shortens_max_time_ms_of_the_retry(server: ScriptedServer, connect: Connect) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=10_000, baseBackoffMS=20)
    reply_in_sequence(server, "find", overload_reply(), overload_reply())
    client.db.c.find_one()
    limits = [command["maxTimeMS"] for command in server.commands("find")]
    assert limits == pytest.approx([10_000, 9_980, 9_940], abs=1)


def test_client_timeout_does_not_limit_handshakes_of_background_run(connect: Connect) -> None:
    with ScriptedReplicaSet(1) as members:
        (server,) = members.members
        server.hello_edit = lambda command, reply: _delayed(0.06, reply)
        client = connect(f"mongodb://{server.name}", timeoutMS=10, minPoolSize=1)
        eventually(lambda: client.pool_stats() and client.pool_stats()[0]["available"] == 1)
        server.hello_edit = None
        server.fail("find", cut_reply(0))


def test_with_transaction_raises_after_timeout_and_abort_has_a_new_timeout(
    virtual_time: VirtualTime, server: ScriptedServer, connect: Connect, recorder: Recorder
) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=60, serverMonitoringMode="poll")
    client.db.command("ping")
    server.fail("insert", send_no_reply)
    server.fail("abortTransaction", send_no_reply)
    begin = virtual_time.monotonic()
    failed: list[float] = []
    recorder.hooks["CommandFailed"] = lambda _event: failed.append(virtual_time.monotonic() - begin)
    with client.start_session() as session:
        with pytest.raises(PyMongoError) as raised:
            session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
        assert raised.value.timeout
        assert virtual_time.monotonic() - begin == pytest.approx(0.06)
        eventually(lambda: len(failed) == 2)
    assert [event.command_name for event in recorder.events_named("CommandFailed")] == ["insert", "abortTransaction"]
    assert failed == pytest.approx([0.06, 0.12])


@pytest.mark.parametrize(
    ("error", "is_retried"), [(OperationFailure("unreachable", 6), True), (NetworkTimeout("too late"), False)]
)
def test_after_deadline_only_timeout_error_is_raised_without_retry(error: PyMongoError, is_retried: bool) -> None:
    """Check which errors the driver raises after the deadline.

    After an error that is no timeout, the driver retries. The retry raises a timeout error, whose
    cause is the first error.
    """
    read = Operation(OperationContext("db"))
    read.retryable = True
    with MongoClient[Any](connect=False) as client:
        retry = Retry(client._executor.policy, _clock.monotonic() - 1)
        retry.failed(error, Attempt(read, None))
    if is_retried:
        assert retry.delay == 0
    else:
        assert retry.delay is None
        assert retry.error is error


STEPS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "write": ("upload", lambda file: file.write(bytes(5_000_000))),
    "close": ("upload", lambda file: file.close()),
    "read": ("download", lambda file: file.read()),
    "read with size": ("download", lambda file: file.read(2)),
    "readline": ("download", lambda file: file.readline()),
    "readchunk": ("download", lambda file: file.readchunk()),
    "iteration": ("download", lambda file: next(iter(file))),
    "read after seek": ("download", lambda file: (file.seek(3), file.read(1))),
}


@pytest.mark.parametrize("file_method", STEPS)
def test_all_steps_of_a_gridfs_file_share_one_timeout(
    deployment: Deployment, connect: Connect, recorder: Any, monkeypatch: pytest.MonkeyPatch, file_method: str
) -> None:
    client = connect(deployment, timeoutMS=1_000_000)
    bucket = GridFSBucket(client.db, chunk_size_bytes=100_000)
    which, run = STEPS[file_method]
    if which == "upload":
        file: Any = bucket.open_upload_stream("f")
        file.write(b"some")
    else:
        file = bucket.open_download_stream(bucket.upload_from_stream("f", b"some\nlines"))
    now = _clock.monotonic
    monkeypatch.setattr(_clock, "monotonic", lambda: now() + 2_000)
    recorder.clear()
    with pytest.raises(PyMongoError) as raised:
        run(file)
    assert raised.value.timeout
    assert recorder.commands == []
