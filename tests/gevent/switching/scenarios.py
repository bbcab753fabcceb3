"""Scenarios for the places in the driver at which an operation or a driver greenlet waits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent

from gmongo import CursorType, DeleteOne, InsertOne, UpdateOne, WriteConcern
from gmongo.cmap.pool import _populate, _read_late_reply
from gmongo.engines.read_ahead import ReadAhead as Ahead
from gmongo.errors import AutoReconnect, PyMongoError
from gmongo.gridfs import GridFS, GridOut
from gmongo.testing import Deployment
from tests.gevent.switching.harness import Scenario, ScenarioRun, Tracer
from tests.gevent.switching.interruptions import ApplicationError
from tests.support.fail_points import fail
from tests.support.pools import checked_out
from tests.support.wait import becomes_true

# More bytes than fit into the socket buffers, so that each send or receive waits.
LARGE = b"x" * 12_000_000
OVERLOAD_LABELS = ["SystemOverloadedError", "RetryableError"]


class EmptyPool(Scenario):
    name = "check-out from an empty pool"
    starts_with_connection = False

    def prepare(self, run_state: ScenarioRun) -> None:
        run_state.find_server()

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return run_state.db.facts.find_one({"_id": 5})


class FirstUseOfClient(Scenario):
    name = "first use of a client"
    starts_with_connection = False

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return run_state.db.facts.find_one({"_id": 5})


class ExpiredIdleConnection(EmptyPool):
    name = "check-out that closes an idle connection"
    starts_with_connection = True
    options = {"maxIdleTimeMS": 1}

    def prepare(self, run_state: ScenarioRun) -> None:
        gevent.sleep(0.01)


class FailedHandshake(EmptyPool):
    name = "handshake that the server rejects"
    clears_pool = True

    def prepare(self, run_state: ScenarioRun) -> None:
        run_state.find_server()
        fail(run_state.deployment, "hello", "isMaster", errorCode=91)  # ShutdownInProgress


class FullPool(Scenario):
    """Two greenlets wait for the only connection. The harness interrupts the first greenlet."""

    name = "check-out from a full pool"
    options = {"maxPoolSize": 1}
    min_switches = 2

    def prepare(self, run_state: ScenarioRun) -> None:
        run_state.kept["connection"] = run_state.pool.check_out()

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return run_state.db.facts.find_one({"_id": 5})

    def run_others(self, run_state: ScenarioRun) -> None:
        gevent.sleep(0)
        run_state.others.append(gevent.spawn(run_state.db.facts.find_one, {"_id": 6}))
        gevent.sleep(0)
        self.let_waiters_continue(run_state)

    def let_waiters_continue(self, run_state: ScenarioRun) -> None:
        run_state.pool.check_in(run_state.kept["connection"])

    def check(self, run_state: ScenarioRun) -> None:
        assert [other.value for other in run_state.others if other.successful()] in ([], [{"_id": 6, "of": 6}])


class LostConnection(FullPool):
    """The main greenlet checks in the only connection, which has failed. A waiting greenlet
    creates a new connection.
    """

    name = "check-out from a full pool whose connection is lost"

    def let_waiters_continue(self, run_state: ScenarioRun) -> None:
        run_state.kept["connection"].error = AutoReconnect("lost")
        run_state.pool.check_in(run_state.kept["connection"])


class PausingPool(FullPool):
    """While the greenlet waits for a connection, the test clears the pool and marks the pool as
    ready.
    """

    name = "check-out from a pausing pool"
    clears_pool = True

    def let_waiters_continue(self, run_state: ScenarioRun) -> None:
        run_state.pool.clear(AutoReconnect("cleared by the test"))
        run_state.pool.ready()
        run_state.pool.check_in(run_state.kept["connection"])


class ScramAuthentication(EmptyPool):
    name = "handshake with SCRAM"
    min_switches = 3

    def deployment(self) -> Deployment:
        return Deployment.replica_set(members=1, users={"ada": "lovelace"})


class TlsHandshake(EmptyPool):
    name = "handshake with TLS"
    min_switches = 3

    def deployment(self) -> Deployment:
        return Deployment.replica_set(members=1, tls=True)


class OneOperation(Scenario):
    """One operation of a client that has an available connection."""

    def __init__(self, name: str, call: Callable[[Any], Any], min_switches: int = 1) -> None:
        self.name = name
        self._call = call
        self.min_switches = min_switches

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return self._call(run_state.db)


class ClientBulkWrite(OneOperation):
    min_server_version = (8, 0)


class OpenCursor(Scenario):
    """Base class of scenarios with a cursor that has not returned all of its documents."""

    def prepare(self, run_state: ScenarioRun) -> None:
        run_state.kept["cursor"] = cursor = run_state.db.facts.find(batch_size=2)
        next(cursor)


class ReadRemainingBatches(OpenCursor):
    name = "getMore"
    min_switches = 3

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return read_in_with_block(run_state.kept.pop("cursor"))


class DropOpenCursor(OpenCursor):
    name = "getMore of a cursor without close"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return len(list(run_state.kept.pop("cursor")))


class CloseCursor(OpenCursor):
    name = "cursor close"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        run_state.kept.pop("cursor").close()


class LeaveReadAhead(Scenario):
    """The greenlet leaves the ``with`` block of a cursor with read-ahead.

    The driver kills the cursor on a second connection of the pool.
    """

    name = "close of a cursor with read-ahead"

    def prepare(self, run_state: ScenarioRun) -> None:
        with checked_out(run_state.pool):
            run_state.db.facts.find_one()

    def run_operation(self, run_state: ScenarioRun) -> Any:
        with run_state.db.facts.find(batch_size=2).read_ahead() as cursor:
            return next(cursor)


class ExhaustCursor(Scenario):
    """An exhaust cursor. The server streams the batches slowly, so that the driver waits for each
    batch.
    """

    name = "exhaust cursor"
    min_switches = 3

    def deployment(self) -> Deployment:
        deployment = Deployment.replica_set(members=1)
        deployment.network.latency = 0.003
        return deployment

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return read_in_with_block(run_state.db.facts.find(batch_size=2, cursor_type=CursorType.EXHAUST))


class DropExhaustCursor(ExhaustCursor):
    name = "exhaust cursor without close"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return len(list(run_state.db.facts.find(batch_size=2, cursor_type=CursorType.EXHAUST)))


class LeaveExhaustCursor(ExhaustCursor):
    name = "close of an exhaust cursor"
    min_switches = 2

    def run_operation(self, run_state: ScenarioRun) -> Any:
        with run_state.db.facts.find(batch_size=2, cursor_type=CursorType.EXHAUST) as cursor:
            return [next(cursor) for _ in range(3)]


class Backoff(Scenario):
    name = "retry with backoff"
    min_switches = 3

    def prepare(self, run_state: ScenarioRun) -> None:
        run_state.client._executor.overload.base_backoff = 0.001
        fail(run_state.deployment, "insert", times=2, errorCode=462, errorLabels=OVERLOAD_LABELS)

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return run_state.db.written.insert_one({"a": 1}).acknowledged

    def check(self, run_state: ScenarioRun) -> None:
        run_state.deployment.set_fail_point("failCommand", "off")


class Retry(Backoff):
    name = "retry without backoff"
    min_switches = 2

    def prepare(self, run_state: ScenarioRun) -> None:
        fail(run_state.deployment, "find", errorCode=262)

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return run_state.db.facts.find_one({"_id": 1})


def read_in_with_block(cursor: Any) -> int:
    """Return the number of documents that a cursor returns inside its ``with`` block."""
    with cursor:
        return len(list(cursor))


def run_transaction(db: Any) -> None:
    with db.client.start_session() as session, session.start_transaction():
        db.written.insert_one({"a": 1}, session=session)
        db.facts.find_one({"_id": 1}, session=session)


def insert_with_transaction(db: Any) -> None:
    with db.client.start_session() as session:
        session.with_transaction(lambda each: db.written.insert_one({"a": 1}, session=each))


def insert_and_abort(db: Any) -> None:
    with db.client.start_session() as session:
        session.start_transaction()
        db.written.insert_one({"a": 1}, session=session)
        session.abort_transaction()


def watch_insert(db: Any) -> None:
    with db.written.watch(max_await_time_ms=5) as stream:
        db.written.insert_one({"a": 1})
        stream.next()
        stream.try_next()


def unacknowledged_collection(db: Any) -> Any:
    """Return a collection with write concern ``w=0``."""
    return db.get_collection("written", write_concern=WriteConcern(w=0))


def write_in_batches(db: Any) -> Any:
    requests = [InsertOne({"a": 1}), UpdateOne({"a": 1}, {"$set": {"b": 1}}), DeleteOne({"b": 1}), InsertOne({"a": 2})]
    return db.written.bulk_write(requests)


def write_with_client(db: Any) -> Any:
    models = [
        InsertOne({"a": 1}, namespace="test.written"),
        UpdateOne({"a": 1}, {"$set": {"b": 1}}, namespace="test.w"),
    ]
    return db.client.bulk_write(models, verbose_results=True)


class UploadFile(Scenario):
    """An interrupted upload leaves no chunks without a file, and no unreadable file."""

    name = "GridFS upload"
    min_switches = 3
    fields: dict[str, Any] = {}

    def prepare(self, run_state: ScenarioRun) -> None:
        run_state.kept["fs"] = GridFS(run_state.db)
        run_state.kept["fs"].put(b"first")

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return run_state.kept["fs"].put(b"0123456789", chunkSize=4, **self.fields)

    def check(self, run_state: ScenarioRun) -> None:
        files, chunks = run_state.db.fs.files, run_state.db.fs.chunks
        assert becomes_true(lambda: set(chunks.distinct("files_id")) <= set(files.distinct("_id"))), "chunks are left"
        for file in run_state.kept["fs"].find():
            file.read()
        files.delete_many({})
        chunks.delete_many({})


class UploadWithId(UploadFile):
    name = "GridFS upload with an _id"
    fields = {"_id": 5}


class WriteAndAbort(UploadFile):
    """Upload a file without a ``with`` block. After an interruption, each later call raises
    an error until ``abort``.
    """

    name = "GridFS upload without with block"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        file = run_state.kept["file"] = run_state.kept["fs"].new_file(chunkSize=4)
        file.write(b"0123456789")
        file.close()

    def check(self, run_state: ScenarioRun) -> None:
        file = run_state.kept["file"]
        if run_state.error is not None:
            for later_call in (file.close, lambda: file.write(b"more")):
                with suppress(PyMongoError, ApplicationError):
                    later_call()
                    raise AssertionError("a failed upload does not raise its error again")
            file.abort()
        super().check(run_state)


class DownloadFile(Scenario):
    """After the interruption of a download, the next read returns the next bytes of the file."""

    name = "GridFS download in pieces"
    min_switches = 3
    # Each chunk has one byte, so that the cursor needs two batches.
    content = b"".join(b"line %d\n" % number for number in range(15))

    def read(self, run_state: ScenarioRun) -> Any:
        """Return the next bytes of the file, or empty bytes at the end."""
        return run_state.kept["file"].read(50)

    def prepare(self, run_state: ScenarioRun) -> None:
        files = GridFS(run_state.db)
        run_state.kept["file"] = GridOut(run_state.db.fs, files.put(self.content, chunkSize=1))
        run_state.kept["pieces"] = []

    def run_operation(self, run_state: ScenarioRun) -> Any:
        while piece := self.read(run_state):
            run_state.kept["pieces"].append(piece)

    def check(self, run_state: ScenarioRun) -> None:
        self.run_operation(run_state)
        assert b"".join(run_state.kept["pieces"]) == self.content


class DownloadChunks(DownloadFile):
    """Download a file that has 101 chunks.

    The first batch contains all chunks, and the second batch is empty.
    """

    name = "GridFS download by chunks"
    content = b"x" * 101

    def read(self, run_state: ScenarioRun) -> Any:
        return run_state.kept["file"].readchunk()


class DownloadLines(DownloadFile):
    """Read lines of a file.

    After each read, the server loses the cursor of the chunks, and the driver opens a new cursor.
    """

    name = "GridFS download by lines after a lost cursor"
    needs_simulation = True

    def read(self, run_state: ScenarioRun) -> Any:
        piece = b"".join(run_state.kept["file"].readlines(60))
        run_state.deployment._cluster.store._state.cursors._open.clear()
        return piece


class CloseClient(Scenario):
    name = "client close"
    closes_client = True

    def run_operation(self, run_state: ScenarioRun) -> Any:
        run_state.client.close()


class ClientInWithBlock(Scenario):
    """Use a client in a ``with`` block. The interruption ends the block, and the end of the block
    closes the client.
    """

    name = "with block of a client"
    closes_client = True

    def run_operation(self, run_state: ScenarioRun) -> Any:
        with run_state.client as client:
            client.test.facts.find_one({"_id": 1})


class PinnedCursor(Scenario):
    name = "pinned cursor behind a load balancer"
    options = {"serverMonitoringMode": "auto"}
    ends_cursors = True
    min_switches = 3

    def deployment(self) -> Deployment:
        return Deployment.load_balanced(services=1)

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return read_in_with_block(run_state.db.facts.find(batch_size=2, limit=5))


class PinnedReadAhead(PinnedCursor):
    name = "read-ahead behind a load balancer"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return read_in_with_block(run_state.db.facts.find(batch_size=2).read_ahead())


class PinnedTransaction(PinnedCursor):
    name = "pinned transaction behind a load balancer"
    min_switches = 2

    def run_operation(self, run_state: ScenarioRun) -> Any:
        run_transaction(run_state.db)


class DriverGreenlet(Scenario):
    """Base class of scenarios in which the harness interrupts a driver greenlet."""

    interrupts_driver = True


class FetchAhead(DriverGreenlet):
    """The harness interrupts a driver greenlet that reads a batch ahead."""

    name = "greenlet that reads ahead"

    def start(self, run_state: ScenarioRun) -> Callable[[Any], bool]:
        def read() -> Any:
            try:
                return len(list(run_state.db.facts.find(batch_size=2).read_ahead()))
            except Exception as error:
                return repr(error)

        run_state.kept["reader"] = gevent.spawn(read)
        return lambda each: isinstance(getattr(getattr(each, "_run", None), "__self__", None), Ahead)

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        return bool(run_state.kept["reader"].ready())

    def check(self, run_state: ScenarioRun) -> None:
        value = run_state.kept["reader"].value
        assert value == 8 or value.startswith(("AutoReconnect", "NetworkTimeout", "ApplicationError")), value


class ConnectionAfterLateReply(EmptyPool):
    """After an interruption, the driver reads the late reply of the interrupted command.

    After the driver has read the reply, a second greenlet checks out the only connection.
    """

    name = "find on a drained connection"
    options = {"drainLateReplies": True, "maxPoolSize": 1}
    starts_with_connection = True

    def run_others(self, run_state: ScenarioRun) -> None:
        gevent.sleep(0)
        run_state.others.append(gevent.spawn(run_state.db.facts.find_one, {"_id": 6}))

    def check(self, run_state: ScenarioRun) -> None:
        assert [other.value for other in run_state.others] == [{"_id": 6, "of": 6}]


class LargeLateReply(ConnectionAfterLateReply):
    """The late reply arrives in pieces, and is larger than the receive buffer of the driver."""

    name = "large find on a drained connection"
    min_switches = 2

    def prepare(self, run_state: ScenarioRun) -> None:
        run_state.db.large.replace_one({"_id": 5}, {"_id": 5, "much": LARGE[:700_000]}, upsert=True)

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return run_state.db.large.find_one({"_id": 5})


class CursorOfLateReply(ConnectionAfterLateReply):
    """The late reply contains a cursor, which the driver kills."""

    name = "cursor on a drained connection"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        return list(run_state.db.facts.find({}, batch_size=3))


class LateReply(DriverGreenlet):
    """The harness interrupts the driver greenlet that reads a late reply.

    After the interruption, the driver must reuse or close the connection.
    """

    name = "read of a late reply"
    options = {"drainLateReplies": True, "maxPoolSize": 1}

    def start(self, run_state: ScenarioRun) -> Callable[[Any], bool]:
        self._kill_find(run_state)
        return lambda each: getattr(each, "_run", None) is _read_late_reply

    def _kill_find(self, run_state: ScenarioRun) -> None:
        fail(run_state.client, "find", blockConnection=True, blockTimeMS=10)
        killed = run_state.kept["killed"] = gevent.spawn(run_state.db.facts.find_one, {"_id": 5})
        gevent.spawn_later(0.003, killed.kill)

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        if tracer.traced_greenlet is None and run_state.kept["killed"].dead and not run_state.pool.stats()["draining"]:
            self._kill_find(run_state)  # on a busy machine, the reply of the first find arrived before the kill
        return tracer.traced_greenlet is not None and bool(tracer.traced_greenlet.dead)

    def check(self, run_state: ScenarioRun) -> None:
        assert run_state.db.facts.find_one({"_id": 6}) == {"_id": 6, "of": 6}


class MonitorCheck(DriverGreenlet):
    name = "monitor check"
    starts_with_connection = False
    options = {"heartbeatFrequencyMS": 500}
    max_switches = 6

    def start(self, run_state: ScenarioRun) -> Callable[[Any], bool]:
        run_state.client._topology.open()
        (server,) = run_state.client._topology.servers.values()
        run_state.kept["monitor"] = server.monitor
        greenlet = run_state.kept["greenlet"] = server.monitor._background.greenlet
        return lambda each: each is greenlet

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        run_state.kept["monitor"].request_check()
        is_done = tracer.reached if tracer.switch_number is not None else True
        return run_state.kept["greenlet"].dead or (is_done and tracer.switch_count > (tracer.switch_number or 0) + 3)


class StreamingMonitor(MonitorCheck):
    name = "monitor check with streaming"
    options = {"serverMonitoringMode": "stream", "heartbeatFrequencyMS": 500}
    needs_simulation = True

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        run_state.deployment.members[0].changed()
        return super().has_ended(run_state, tracer)


class PopulatePool(DriverGreenlet):
    name = "population of a pool"
    options = {"minPoolSize": 2}
    starts_with_connection = False
    min_switches = 2

    def start(self, run_state: ScenarioRun) -> Callable[[Any], bool]:
        run_state.kept["opening"] = gevent.spawn(run_state.find_server)
        return lambda each: getattr(each, "_run", None) is _populate

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        return tracer.traced_greenlet is not None and bool(tracer.traced_greenlet.dead)

    def check(self, run_state: ScenarioRun) -> None:
        assert becomes_true(lambda: run_state.pool.stats()["available"] >= 2), "the pool is below minPoolSize"


class MaintainPool(DriverGreenlet):
    name = "pool upkeep"
    options = {"minPoolSize": 1}
    has_time_limit = False
    max_switches = 3

    def start(self, run_state: ScenarioRun) -> Callable[[Any], bool]:
        run_state.pool.machine.background_wakeup.set()
        greenlet = run_state.kept["greenlet"] = run_state.pool._background.greenlet
        return lambda each: each is greenlet

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        if run_state.kept["greenlet"].dead:
            return True
        run_state.pool.machine.background_wakeup.set()
        return tracer.switch_count > (tracer.switch_number or 0) + 2


SCENARIOS: list[Scenario] = [
    FirstUseOfClient(),
    EmptyPool(),
    ExpiredIdleConnection(),
    FailedHandshake(),
    FullPool(),
    LostConnection(),
    PausingPool(),
    ScramAuthentication(),
    TlsHandshake(),
    OneOperation("insert", lambda db: db.written.insert_one({"a": 1})),
    OneOperation("find", lambda db: db.facts.find_one({"_id": 5})),
    OneOperation("insert without acknowledgement", lambda db: unacknowledged_collection(db).insert_one({"a": LARGE})),
    OneOperation("bulk write in batches", write_in_batches, 4),
    ClientBulkWrite("client bulk write", write_with_client),
    ReadRemainingBatches(),
    DropOpenCursor(),
    CloseCursor(),
    # The harness interrupts the iterating greenlet, not the driver greenlet that reads ahead.
    OneOperation("read-ahead", lambda db: read_in_with_block(db.facts.find(batch_size=2).read_ahead()), 3),
    OneOperation("unclosed read-ahead", lambda db: len(list(db.facts.aggregate([], batchSize=2).read_ahead(2))), 3),
    LeaveReadAhead(),
    ExhaustCursor(),
    DropExhaustCursor(),
    LeaveExhaustCursor(),
    OneOperation("transaction", run_transaction, 2),
    OneOperation("with_transaction", insert_with_transaction, 2),
    OneOperation("aborted transaction", insert_and_abort, 2),
    Backoff(),
    Retry(),
    OneOperation("change stream", watch_insert, 3),
    UploadFile(),
    UploadWithId(),
    WriteAndAbort(),
    DownloadFile(),
    DownloadChunks(),
    DownloadLines(),
    CloseClient(),
    ClientInWithBlock(),
    PinnedCursor(),
    PinnedReadAhead(),
    PinnedTransaction(),
    FetchAhead(),
    ConnectionAfterLateReply(),
    LargeLateReply(),
    CursorOfLateReply(),
    LateReply(),
    MonitorCheck(),
    StreamingMonitor(),
    PopulatePool(),
    MaintainPool(),
]
