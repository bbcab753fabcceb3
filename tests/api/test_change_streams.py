"""Change streams resume after errors and interruptions, and release their cursors and sessions."""

from __future__ import annotations

import gc
import weakref

import gevent
import pytest
from bson import DatetimeMS, Int64, Timestamp
from bson.errors import InvalidBSON

import gmongo
from gmongo import MongoClient
from gmongo.errors import (
    ConfigurationError,
    InvalidOperation,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from tests.support.faults import cut_reply, send_no_reply, with_false_header
from tests.support.recorder import Recorder
from tests.support.scripted_server import ScriptedServer, cursor_reply
from tests.support.wait import eventually

STEPDOWN_ERROR = {
    "ok": 0,
    "code": 10107,
    "errmsg": "stepped down",
    "errorLabels": ["ResumableChangeStreamError"],
}


@pytest.fixture
def client(deployment, recorder):
    with MongoClient(deployment.uri, event_listeners=[recorder]) as client:
        client.drop_database("watched")
        client.watched.create_collection("c")
        recorder.clear()
        yield client


@pytest.fixture
def collection(client):
    return client.watched.c


@pytest.mark.parametrize("max_await_time_ms", [200, 300])
def test_max_await_time_ms_above_timeout_raises_configuration_error(deployment, max_await_time_ms):
    recorder = Recorder()
    with MongoClient(deployment.uri, timeoutMS=200, event_listeners=[recorder]) as client:
        with pytest.raises(ConfigurationError, match="max_await_time_ms must be less than the time that is left"):
            client.watched.c.watch(max_await_time_ms=max_await_time_ms)
        assert recorder.commands == []


def test_dropped_change_stream_kills_cursor_and_releases_session(collection, recorder):
    stream = collection.watch()
    reference = weakref.ref(stream)
    del stream
    gc.collect()
    assert reference() is None
    eventually(lambda: "killCursors" in recorder.commands)
    lsid = recorder.command("aggregate")["lsid"]

    def session_is_reused():
        recorder.clear()
        collection.find_one()
        return recorder.command("find")["lsid"] == lsid

    eventually(session_is_reused)


def test_failed_watch_releases_implicit_session(collection, recorder):
    with pytest.raises(OperationFailure):
        collection.watch([{"$unsupported": {}}])
    collection.find_one()
    assert recorder.command("aggregate")["lsid"] == recorder.command("find")["lsid"]


def change_document(number):
    return {"_id": {"_data": str(number)}, "number": number}


class StreamMember(ScriptedServer):
    """Replica set member that sends scripted replies for a change stream.

    :param scripted_replies: for each `aggregate` and `getMore` in order, the list of changes in the
        batch, or a complete reply document. Later batches are empty.
    :param has_token: True if cursor replies have a ``postBatchResumeToken``.
    """

    def __init__(self, *scripted_replies, has_token=True, wire_version=21):
        super().__init__({"aggregate": self._aggregate, "getMore": self._get_more}, member=self._member_fields)
        self.scripted_replies = list(scripted_replies)
        self.has_token = has_token
        self.hello_extra = {"maxWireVersion": wire_version}
        self.batch_number = 0

    def _member_fields(self, _server):
        return {"setName": "rs", "hosts": [self.name], "me": self.name}

    def _aggregate(self, command):
        return self._next_reply("firstBatch")

    def _get_more(self, command):
        gevent.sleep(0.001)
        return self._next_reply("nextBatch")

    def _next_reply(self, batch_field):
        batch = self.scripted_replies.pop(0) if self.scripted_replies else []
        if isinstance(batch, dict):
            return batch
        self.batch_number += 1
        cursor = {"id": Int64(self.batch_number), "ns": "db.c", batch_field: batch}
        if self.has_token:
            cursor["postBatchResumeToken"] = {"_data": f"batch {self.batch_number}"}
        return {"ok": 1, "cursor": cursor, "operationTime": Timestamp(self.batch_number, 1)}

    def stage_options(self):
        """Return the options of the stage `$changeStream` in each `aggregate` command that the
        member has received.
        """
        return [command["pipeline"][0]["$changeStream"] for command in self.commands("aggregate")]


def connect_to(server, **options):
    return MongoClient(f"mongodb://{server.name}/?replicaSet=rs", **options)


def test_change_stream_without_token_resumes_at_operation_time():
    with (
        StreamMember([], STEPDOWN_ERROR, [], STEPDOWN_ERROR, has_token=False) as server,
        connect_to(server) as client,
    ):
        with client.db.c.watch() as stream:
            for _ in range(3):
                stream.try_next()
        assert server.stage_options() == [{}, *[{"startAtOperationTime": Timestamp(1, 1)}] * 2]


UNREADABLE_CHANGE = {**change_document(2), "date": DatetimeMS(2**62)}


@pytest.mark.parametrize(
    "first_replies",
    [
        ([], [change_document(1), UNREADABLE_CHANGE, change_document(3)]),
        ([], [change_document(1)], STEPDOWN_ERROR, [UNREADABLE_CHANGE, change_document(3)]),
    ],
    ids=["getMore", "first batch after resume"],
)
def test_change_stream_continues_after_change_that_cannot_be_decoded(first_replies):
    replies = [*first_replies, *[first_replies[-1]] * 2]  # each resume receives the last batch again
    with (
        StreamMember(*replies) as server,
        connect_to(server) as client,
        client.db.c.watch() as stream,
    ):
        numbers, error_count = [], 0
        while 3 not in numbers:
            try:
                change = stream.try_next()
                numbers += [change["number"]] if change else []
            except InvalidBSON:
                error_count += 1
        assert sorted(set(numbers)) == [1, 3] and error_count >= 1 and stream.alive


def test_change_stream_stays_open_if_its_session_is_in_use():
    with StreamMember([], [], [change_document(1)]) as server, connect_to(server) as client:
        server.replies["find"] = lambda _command: gevent.sleep(0.2) or cursor_reply([])
        with client.start_session() as session, client.db.c.watch(session=session) as stream:
            assert stream.try_next() is None
            other = gevent.spawn(client.db.c.find_one, session=session)
            server.wait_for("find")
            with pytest.raises(InvalidOperation, match="in use by another greenlet"):
                stream.try_next()
            other.join()
            assert stream.alive and stream.try_next()["number"] == 1


def test_time_limit_of_next_covers_end_of_old_cursor():
    with (
        StreamMember([]) as server,
        connect_to(server, timeoutMS=200) as client,
        client.db.c.watch() as stream,
    ):
        server.fail("getMore", send_no_reply)
        server.fail("killCursors", send_no_reply)
        with pytest.raises(NetworkTimeout):
            next(stream)
        assert len(server.commands("getMore")) == 1 and server.commands("killCursors") == []


def test_resume_kills_the_cursor_after_an_error_reply():
    with (
        StreamMember([], [], STEPDOWN_ERROR, [change_document(1)]) as server,
        connect_to(server) as client,
        client.db.c.watch() as stream,
    ):
        for _ in range(2):
            stream.try_next()
        names = [each.name for each in server.received if each.name in ("aggregate", "getMore", "killCursors")]
        assert names == ["aggregate", "getMore", "getMore", "killCursors", "aggregate"]


def test_second_error_during_resume_ends_the_change_stream():
    with (
        StreamMember([], STEPDOWN_ERROR, {"ok": 0, "code": 8, "errmsg": "no"}) as server,
        connect_to(server) as client,
    ):
        with client.db.c.watch() as stream, pytest.raises(OperationFailure, match="no"):
            next(stream)
        assert not stream.alive
        assert len(server.commands("aggregate")) == 2


def _expire_gevent_timeout(stream):
    with gevent.Timeout(0.1, False):
        stream.try_next()


def _expire_gmongo_timeout(stream):
    with pytest.raises(PyMongoError) as caught, gmongo.timeout(0.1):
        stream.try_next()
    assert caught.value.timeout


def _kill_greenlet(stream):
    reader = gevent.spawn(stream.try_next)
    gevent.sleep(0.1)
    reader.kill()


@pytest.mark.parametrize("interrupt", [_expire_gevent_timeout, _expire_gmongo_timeout, _kill_greenlet])
def test_iteration_after_interruption_resumes_and_sends_get_more(virtual_time, interrupt):
    with (
        StreamMember([], [], [], [change_document(1)]) as server,
        connect_to(server) as client,
        client.db.c.watch() as stream,
    ):
        server.fail("getMore", send_no_reply)
        interrupt(stream)
        assert stream.try_next() == change_document(1)
        assert len(server.commands("aggregate")) == 2


def test_iteration_after_interruption_resumes_again_after_network_error():
    with (
        StreamMember([], [], [], STEPDOWN_ERROR, [change_document(1)]) as server,
        connect_to(server) as client,
    ):
        with client.db.c.watch() as stream:
            server.fail("getMore", send_no_reply)
            _expire_gevent_timeout(stream)
            assert stream.try_next() == change_document(1)
        assert len(server.commands("aggregate")) == 3


def test_change_stream_resumes_after_server_outage(virtual_time):
    with (
        StreamMember([], [change_document(1)]) as server,
        connect_to(server, serverSelectionTimeoutMS=200) as client,
        client.db.c.watch() as stream,
    ):
        server.stop()
        for _ in range(2):
            with pytest.raises(ServerSelectionTimeoutError):
                next(stream)
            assert stream.alive
        server.start()
        assert next(stream) == change_document(1)
        assert server.stage_options()[-1] == {"resumeAfter": {"_data": "batch 1"}}


@pytest.mark.parametrize(
    "fault",
    [cut_reply(0), cut_reply(10), with_false_header(length=-1), with_false_header(response_to=77)],
)
def test_change_stream_resumes_after_network_error(fault):
    with (
        StreamMember([], [change_document(1)], [change_document(2)]) as server,
        connect_to(server) as client,
        client.db.c.watch() as stream,
    ):
        server.fail("getMore", fault)
        assert next(stream) == change_document(2)
        assert len(server.commands("aggregate")) == 2
