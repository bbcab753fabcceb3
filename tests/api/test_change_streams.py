"""Change streams: the prose tests of the specification, and what happens when things go wrong."""

from __future__ import annotations

import gc
import weakref

import gevent
import pytest
from bson import SON, Int64, Timestamp
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.raw_bson import RawBSONDocument

import gmongo
from gmongo import MongoClient
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from gmongo.testing import Deployment
from tests.support.fail_points import fail
from tests.support.faults import cut, forged, silent
from tests.support.recorder import Recorder
from tests.support.single import ScriptedServer
from tests.support.wait import eventually

RESUMABLE = {"ok": 0, "code": 10107, "errmsg": "stepped down", "errorLabels": ["ResumableChangeStreamError"]}


@pytest.fixture(scope="module")
def deployment():
    with Deployment.replica_set(log=False) as deployment:
        yield deployment


@pytest.fixture
def client(deployment, recorder):
    with MongoClient(deployment.uri, event_listeners=[recorder]) as client:
        client.drop_database("watched")
        client.watched.create_collection("c")
        recorder.forget()
        yield client


@pytest.fixture
def collection(client):
    return client.watched.c


# What is watched


def test_options_are_sent(collection, recorder):
    time = Timestamp(2_000_000_000, 1)
    with collection.watch(
        [{"$match": {"operationType": "insert"}}],
        full_document="updateLookup",
        full_document_before_change="whenAvailable",
        max_await_time_ms=7,
        batch_size=3,
        collation={"locale": "en"},
        start_at_operation_time=time,
        comment="why",
        show_expanded_events=True,
    ) as stream:
        stream.try_next()
    command = recorder.command("aggregate")
    assert command["pipeline"] == [
        {
            "$changeStream": {
                "fullDocument": "updateLookup",
                "fullDocumentBeforeChange": "whenAvailable",
                "showExpandedEvents": True,
                "startAtOperationTime": time,
            }
        },
        {"$match": {"operationType": "insert"}},
    ]
    assert (command["cursor"], command["collation"]) == ({"batchSize": 3}, {"locale": "en"})
    get_more = recorder.command("getMore")
    assert (get_more["maxTimeMS"], get_more["batchSize"], get_more["comment"]) == (7, 3, "why")
    assert recorder.command("killCursors")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"pipeline": {}}, TypeError),
        ({"full_document": 1}, TypeError),
        ({"full_document_before_change": 1}, TypeError),
        ({"resume_after": "token"}, TypeError),
        ({"start_at_operation_time": 5}, TypeError),
        ({"batch_size": -1}, ValueError),
        ({"batch_size": True}, TypeError),
        ({"max_await_time_ms": "1"}, TypeError),
        ({"show_expanded_events": 1}, TypeError),
    ],
)
def test_mistakes_of_the_caller(collection, recorder, options, kind):
    with pytest.raises(kind, match=next(iter(options))):
        collection.watch(**options)
    assert recorder.commands == []


@pytest.mark.parametrize("wait", [200, 300])
def test_the_server_may_not_wait_longer_than_the_operation_may_take(deployment, wait):
    recorder = Recorder()
    with MongoClient(deployment.uri, timeoutMS=200, event_listeners=[recorder]) as client:
        with pytest.raises(ConfigurationError, match="max_await_time_ms must be less than the time that is left"):
            client.watched.c.watch(max_await_time_ms=wait)
        assert recorder.commands == []


# Sessions


def test_a_dropped_stream_gives_everything_back(collection, recorder):
    stream = collection.watch()
    reference = weakref.ref(stream)
    del stream
    gc.collect()
    assert reference() is None
    eventually(lambda: "killCursors" in recorder.commands)
    lsid = recorder.command("aggregate")["lsid"]

    def is_back():
        recorder.forget()
        collection.find_one()
        return recorder.command("find")["lsid"] == lsid

    eventually(is_back)


def test_a_stream_that_could_not_be_opened_keeps_no_session(collection, recorder):
    with pytest.raises(OperationFailure):
        collection.watch([{"$unsupported": {}}])
    collection.find_one()
    assert recorder.command("aggregate")["lsid"] == recorder.command("find")["lsid"]


# Resuming


@pytest.mark.parametrize(
    "failure",
    [
        {"errorCode": 43},
        {"errorCode": 7, "errorLabels": ["ResumableChangeStreamError"]},
        {"closeConnection": True},
    ],
    ids=["CursorNotFound", "label", "network"],
)
def test_resumes_and_loses_nothing(collection, recorder, failure):
    with collection.watch() as stream:
        collection.insert_one({"_id": 1})
        first = next(stream)
        collection.insert_many([{"_id": 2}, {"_id": 3}])
        fail(collection.database.client, "getMore", **failure)
        recorder.forget()
        assert [next(stream)["documentKey"]["_id"] for _ in range(2)] == [2, 3]
        [aggregate] = recorder.sent("aggregate")
        assert "resumeAfter" in aggregate["pipeline"][0]["$changeStream"]
        assert first["_id"] != stream.resume_token


@pytest.mark.parametrize("failure", [{"errorCode": 8}, {"errorCode": 10107, "errorLabels": []}], ids=str)
def test_other_errors_end_the_stream(collection, recorder, failure):
    with collection.watch() as stream:
        fail(collection.database.client, "getMore", **failure)
        recorder.forget()
        with pytest.raises((OperationFailure, AutoReconnect)):
            next(stream)
        assert not stream.alive
        assert "aggregate" not in recorder.commands


# With a server of a script


def event(number):
    return {"_id": {"_data": str(number)}, "number": number}


class Stream(ScriptedServer):
    """A member of a replica set whose change stream has the batches that the test gives it.

    :param batches: the reply to each `aggregate` and `getMore`, in order: a list of events, a whole reply, or an
        exception's reply. After them, batches are empty.
    :param token: whether replies have a ``postBatchResumeToken``.
    """

    def __init__(self, *batches, token=True, wire_version=21):
        super().__init__({"aggregate": self._first, "getMore": self._further}, member=self._member_fields)
        self.batches = list(batches)
        self.token = token
        self.hello_extra = {"maxWireVersion": wire_version}
        self.count = 0

    def _member_fields(self, _server):
        return {"setName": "rs", "hosts": [self.name], "me": self.name}

    def _first(self, command):
        return self._next("firstBatch")

    def _further(self, command):
        gevent.sleep(0.001)
        return self._next("nextBatch")

    def _next(self, field):
        batch = self.batches.pop(0) if self.batches else []
        if isinstance(batch, dict):
            return batch
        self.count += 1
        cursor = {"id": Int64(self.count), "ns": "db.c", field: batch}
        if self.token:
            cursor["postBatchResumeToken"] = {"_data": f"batch {self.count}"}
        return {"ok": 1, "cursor": cursor, "operationTime": Timestamp(self.count, 1)}

    def stages(self):
        """What each `aggregate` said in its first stage."""
        return [command["pipeline"][0]["$changeStream"] for command in self.commands("aggregate")]


def watching(server, **options):
    return MongoClient(f"mongodb://{server.name}/?replicaSet=rs", **options)


@pytest.mark.parametrize("option", ["resume_after", "start_after"])
def test_the_token_of_the_application_until_there_is_another(option):
    with (
        Stream([event(1), event(2)], token=False) as server,
        watching(server) as client,
        client.db.c.watch(**{option: {"_data": "mine"}}) as stream,
    ):
        assert stream.resume_token == {"_data": "mine"}
        next(stream)
        assert stream.resume_token == {"_data": "1"}
        next(stream)
        assert stream.resume_token == {"_data": "2"}
        assert stream.try_next() is None
        assert stream.resume_token == {"_data": "2"}


def test_resumes_from_the_time_of_the_first_reply():
    with Stream([], RESUMABLE, [], RESUMABLE, token=False) as server, watching(server) as client:
        with client.db.c.watch() as stream:
            for _ in range(3):
                stream.try_next()
        assert server.stages() == [{}, *[{"startAtOperationTime": Timestamp(1, 1)}] * 2]


def test_start_after_stays_until_the_first_change():
    token = {"_data": "mine"}
    with Stream([], RESUMABLE, [event(1)], RESUMABLE, token=False) as server, watching(server) as client:
        with client.db.c.watch(start_after=token, full_document="updateLookup") as stream:
            assert stream.try_next() == event(1)
            assert stream.try_next() is None
        sent = server.stages()
    assert [{name: stage[name] for name in stage if name != "fullDocument"} for stage in sent] == [
        {"startAfter": token},
        {"startAfter": token},
        {"resumeAfter": {"_data": "1"}},
    ]
    assert {stage["fullDocument"] for stage in sent} == {"updateLookup"}


@pytest.mark.parametrize(("wire_version", "resumes"), [(8, True), (9, False)])
def test_codes_count_only_where_there_are_no_labels(wire_version, resumes):
    error = {"ok": 0, "code": 234, "errmsg": "again"}
    with (
        Stream([], error, [event(1)], wire_version=wire_version) as server,
        watching(server) as client,
        client.db.c.watch() as stream,
    ):
        if resumes:
            assert stream.try_next() == event(1)
        else:
            with pytest.raises(OperationFailure, match="again"):
                stream.try_next()


def test_resumes_once_for_each_error():
    with Stream([], RESUMABLE, {"ok": 0, "code": 8, "errmsg": "no"}) as server, watching(server) as client:
        with client.db.c.watch() as stream, pytest.raises(OperationFailure, match="no"):
            next(stream)
        assert not stream.alive
        assert len(server.commands("aggregate")) == 2


def test_a_timeout_of_the_application_loses_nothing(virtual_time):
    with Stream([], [event(1)], [event(2)]) as server, watching(server) as client, client.db.c.watch() as stream:
        server.fail("getMore", silent)
        limit = gevent.Timeout(0.2)
        with pytest.raises(gevent.Timeout) as caught, limit:
            next(stream)
        assert caught.value is limit
        assert stream.alive
        assert next(stream) == event(2)
        assert server.stages()[1] == {"resumeAfter": {"_data": "batch 1"}}
        assert server.wait_for("killCursors")["cursors"] == [1]


def _given_up_by_the_application(stream):
    with gevent.Timeout(0.1, False):
        stream.try_next()


def _out_of_time(stream):
    with pytest.raises(PyMongoError) as caught, gmongo.timeout(0.1):
        stream.try_next()
    assert caught.value.timeout


def _killed(stream):
    asking = gevent.spawn(stream.try_next)
    gevent.sleep(0.1)
    asking.kill()


@pytest.mark.parametrize("interrupt", [_given_up_by_the_application, _out_of_time, _killed])
def test_the_iteration_after_an_interruption_asks_for_changes(virtual_time, interrupt):
    with Stream([], [], [], [event(1)]) as server, watching(server) as client, client.db.c.watch() as stream:
        server.fail("getMore", silent)
        interrupt(stream)
        assert stream.try_next() == event(1)
        assert len(server.commands("aggregate")) == 2


def test_an_iteration_that_resumes_at_its_beginning_may_have_to_do_so_again():
    with Stream([], [], [], RESUMABLE, [event(1)]) as server, watching(server) as client:
        with client.db.c.watch() as stream:
            server.fail("getMore", silent)
            _given_up_by_the_application(stream)
            assert stream.try_next() == event(1)
        assert len(server.commands("aggregate")) == 3


def test_a_stream_outlives_an_outage(virtual_time):
    with (
        Stream([], [event(1)]) as server,
        watching(server, serverSelectionTimeoutMS=200) as client,
        client.db.c.watch() as stream,
    ):
        server.stop()
        for _ in range(2):
            with pytest.raises(ServerSelectionTimeoutError):
                next(stream)
            assert stream.alive
        server.start()
        assert next(stream) == event(1)
        assert server.stages()[-1] == {"resumeAfter": {"_data": "batch 1"}}


@pytest.mark.parametrize("fault", [cut(0), cut(10), forged(length=-1), forged(response_to=77)])
def test_a_lost_connection_is_resumed(fault):
    with Stream([], [event(1)], [event(2)]) as server, watching(server) as client, client.db.c.watch() as stream:
        server.fail("getMore", fault)
        assert next(stream) == event(2)
        assert len(server.commands("aggregate")) == 2


# Types


class Upper(TypeDecoder):
    """Reads strings as upper case."""

    bson_type = str

    def transform_python(self, value):
        raise NotImplementedError

    def transform_bson(self, value):
        return value.upper()


@pytest.mark.parametrize(
    ("options", "expected", "text"),
    [
        (CodecOptions(document_class=SON), SON, "abc"),
        (CodecOptions(document_class=RawBSONDocument), RawBSONDocument, "abc"),
        (CodecOptions(type_registry=TypeRegistry([Upper()])), dict, "ABC"),
        (CodecOptions(tz_aware=True), dict, "abc"),
    ],
    ids=["SON", "raw", "custom type", "plain"],
)
def test_changes_are_decoded_by_the_options_of_the_collection(options, expected, text):
    changes = [{"_id": {"_data": f"x{number}"}, "text": "abc"} for number in range(2)]
    with Stream(changes, RESUMABLE, token=False) as server, watching(server) as client:
        with client.db.get_collection("c", codec_options=options).watch() as stream:
            found = next(stream)
            assert type(found) is expected
            assert found["text"] == text
            next(stream)
            stream.try_next()
        assert server.stages()[1] == {"resumeAfter": {"_data": "x1"}}
