"""Change streams resume after errors and interruptions, and release their cursors and sessions."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext
from operator import attrgetter

import gevent
import pytest
from bson import SON, CodecOptions, DatetimeMS, Int64, Timestamp
from bson.errors import InvalidBSON
from gevent.event import Event

import gmongo
from gmongo import MongoClient
from gmongo.engines.change_stream import Position, is_resumable
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    InvalidOperation,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    ProtocolError,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from tests.support.faults import cut_reply, send_no_reply, with_false_header
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cursor_reply, hold_reply
from tests.support.wait import eventually

LABEL = {"errorLabels": ["ResumableChangeStreamError"]}
STEPDOWN_ERROR = {"ok": 0, "code": 10107, "errmsg": "stepped down", **LABEL}


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
    with StreamMember([], STEPDOWN_ERROR, [], STEPDOWN_ERROR, has_token=False) as server, connect_to(server) as client:
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
    with StreamMember(*replies) as server, connect_to(server) as client, client.db.c.watch() as stream:
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
    with StreamMember([]) as server, connect_to(server, timeoutMS=200) as client, client.db.c.watch() as stream:
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
        client.db.c.find_one()
        assert server.commands("find")[0]["lsid"] != server.commands("aggregate")[1]["lsid"]
        names = [each.name for each in server.received if each.name in ("aggregate", "getMore", "killCursors")]
        assert names == ["aggregate", "getMore", "getMore", "killCursors", "aggregate"]


@pytest.mark.parametrize("wire_version", [8, 9])
def test_error_without_label_ends_change_stream_unless_server_is_old(wire_version):
    replies = [[], {"ok": 0, "code": 6, "errmsg": "no"}, [change_document(1)]]
    with StreamMember(*replies, wire_version=wire_version) as server, connect_to(server) as client:
        with client.db.c.watch() as stream, pytest.raises(OperationFailure) if wire_version == 9 else nullcontext():
            assert next(stream) == change_document(1)
        assert len(server.commands("aggregate")) == (2 if wire_version == 8 else 1)


def test_second_error_during_resume_ends_the_change_stream():
    with StreamMember([], STEPDOWN_ERROR, {"ok": 0, "code": 8, "errmsg": "no"}) as server, connect_to(server) as client:
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
    with StreamMember([], [], [], STEPDOWN_ERROR, [change_document(1)]) as server, connect_to(server) as client:
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
    "fault", [cut_reply(0), cut_reply(10), with_false_header(length=-1), with_false_header(response_to=77)]
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


@pytest.mark.parametrize(
    ("batches", "tokens"),
    [(([], [1, 2], []), ["batch 1", "1", "batch 2", "batch 3"]), (([1, 2], []), [None, "1", "batch 1", "batch 2"])],
)
@pytest.mark.parametrize("document_class", [dict, SON])
def test_resume_token_advances_with_each_change_and_empty_batch(document_class, batches, tokens):
    replies = [[change_document(number) for number in batch] for batch in batches]
    with StreamMember(*replies) as server, connect_to(server) as client:
        stream = client.db.c.with_options(codec_options=CodecOptions(document_class)).watch()
        for token in tokens:
            assert stream.resume_token == (token and {"_data": token})
            assert token is None or type(stream.resume_token) is document_class
            stream.try_next()
        assert not {"batchSize", "maxTimeMS", "comment"} & server.commands("getMore")[0].keys()


# The field of the stage, a value and the type of each option.
STAGE_OPTIONS = {
    "full_document": ("fullDocument", "updateLookup", "str"),
    "full_document_before_change": ("fullDocumentBeforeChange", "required", "str"),
    "show_expanded_events": ("showExpandedEvents", False, "bool"),
    "resume_after": ("resumeAfter", {"_data": "a"}, "Mapping"),
    "start_after": ("startAfter", {"_data": "b"}, "Mapping"),
    "start_at_operation_time": ("startAtOperationTime", Timestamp(5, 1), "Timestamp"),
}


@pytest.mark.parametrize(("path", "target"), [("db.c", "c"), ("db", 1)])
def test_watch_option_becomes_field_of_stage_or_command(path, target):
    with StreamMember() as server, connect_to(server) as client:
        watched = attrgetter(path)(client)
        for option, (field, value, _) in STAGE_OPTIONS.items():
            watched.watch(**{option: value}).close()
            client.watch(**{option: value}).close()
            assert server.stage_options()[-2:] == [{field: value}, {field: value, "allChangesForCluster": True}]
        options = {"collation": {"locale": "fr"}, "comment": "x"}
        with watched.watch([{"$match": {}}], batch_size=3, max_await_time_ms=4, **options) as stream:
            assert stream.try_next() is None
        pipeline = [{"$changeStream": {}}, {"$match": {}}]
        aggregate, get_more = server.commands("aggregate")[-1], server.commands("getMore")[-1]
        sent = {"aggregate": target, "pipeline": pipeline, "cursor": {"batchSize": 3}, **options}
        assert {field: aggregate[field] for field in sent} == sent
        assert (get_more["batchSize"], get_more["maxTimeMS"], get_more["comment"]) == (3, 4, "x")
        assert server.commands("killCursors")[-1]["cursors"] == [server.batch_number]
        assert not stream.alive and stream.try_next() is None and next(stream, None) is None


def test_invalid_watch_option_raises():
    client = MongoClient(connect=False)
    kinds = {option: kind for option, (_, _, kind) in STAGE_OPTIONS.items()}
    for option, kind in {**kinds, "pipeline": "list or tuple"}.items():
        with pytest.raises(TypeError, match=rf"^{option} must be a {kind}, not 1$"):
            client.watch(**{option: 1})
    for option in ("max_await_time_ms", "batch_size"):
        with pytest.raises(ValueError, match=rf"^{option} must be >= 0, not -1$"):
            client.watch(**{option: -1})


def test_timeout_of_stream_names_watched_object_and_own_limit(virtual_time):
    with StreamMember() as server, connect_to(server, timeoutMS=200) as client:
        for subject, watched in (("collection db.c", client.db.c), ("database db", client.db), ("deployment", client)):
            with watched.watch(timeout_ms=300) as stream:
                with pytest.raises(NetworkTimeout) as caught:
                    next(stream)
                text = "no change within timeout_ms (300 ms); next() may be called again"
                assert str(caught.value) == f"change stream on the {subject}: {text}"
                with gmongo.timeout(0.1), pytest.raises(PyMongoError) as caught:
                    next(stream)
                assert caught.value.timeout and "may be called again" not in str(caught.value)


def test_stream_ends_after_change_without_token_and_after_end_of_cursor():
    with StreamMember([], [{"number": 1}]) as server, connect_to(server) as client:
        stream = client.db.c.watch()
        with pytest.raises(InvalidOperation, match="resume functionality when the resume token is missing"):
            next(stream)
        assert not stream.alive and len(server.commands("killCursors")) == 1
        server.scripted_replies = [cursor_reply([change_document(1)])]
        stream = client.db.c.watch()
        assert list(stream) == [change_document(1)] and not stream.alive


WAIT_CASES = {
    "final error": ({"ok": 0, "code": 8, "errmsg": "no luck"}, [OperationFailure, OperationFailure]),
    "decoding error": ([UNREADABLE_CHANGE], [InvalidBSON, change_document(3)]),
    "changes": ([change_document(1), change_document(2)], [change_document(1), change_document(2)]),
}


@pytest.mark.parametrize(("reply", "outcomes"), WAIT_CASES.values(), ids=WAIT_CASES)
def test_greenlet_that_waits_for_other_greenlet_gets_next_change_or_final_error(reply, outcomes):
    gate = Event()
    with StreamMember([], reply, [change_document(3)]) as server, connect_to(server) as client:
        stream = client.db.c.watch()
        server.fail("getMore", hold_reply(gate))
        readers = [gevent.spawn(stream.try_next) for _ in range(2)]
        server.wait_for("getMore")
        gate.set()
        gevent.joinall(readers, timeout=5)
        assert [type(each.exception) if each.exception else each.value for each in readers] == outcomes


def test_close_during_resume_kills_new_cursor():
    gate = Event()
    with StreamMember([], STEPDOWN_ERROR, []) as server, connect_to(server) as client:
        stream = client.db.c.watch()
        server.fail("aggregate", hold_reply(gate))
        reader = gevent.spawn(stream.try_next)
        server.wait_for("aggregate", 2)
        stream.close()
        gate.set()
        assert reader.get(timeout=5) is None
        assert server.commands("killCursors")[-1]["cursors"] == [server.batch_number]


@pytest.mark.parametrize(
    ("error", "resumable_wire_versions"),
    [
        (OperationFailure("x", 43), [8, 9]),
        (OperationFailure("x", 1, LABEL), [8, 9]),
        (NotPrimaryError("x", {"code": 10107, **LABEL}), [8, 9]),
        *((OperationFailure("x", code), [8]) for code in (6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001)),
        *((NotPrimaryError("x", {"code": code}), [8]) for code in (10107, 11600, 11602, 13435, 13436, 13388)),
        *((OperationFailure("x", code), []) for code in (None, 1, 50, 136, 280, 11601)),
        *((kind("x"), [8, 9]) for kind in (AutoReconnect, NetworkTimeout, ProtocolError)),
        *((kind("x"), []) for kind in (ConfigurationError, InvalidOperation)),
    ],
    ids=repr,
)
def test_error_is_resumable_with_label_or_with_code_of_old_server(error, resumable_wire_versions):
    assert [version for version in (8, 9) if is_resumable(error, version)] == resumable_wire_versions


EARLY, LATE, T, U, V = Timestamp(1, 1), Timestamp(2, 1), {"t": 1}, {"u": 1}, {"v": 1}
NO_START = (None, None, None)


@pytest.mark.parametrize(
    ("start", "replies", "fields"),
    [
        ((T, U, EARLY), [], {"resumeAfter": T, "startAfter": U, "startAtOperationTime": EARLY}),
        (NO_START, [("open", True, U, EARLY)], {}),
        (NO_START, [("open", False, U, EARLY)], {"resumeAfter": U}),
        (NO_START, [("open", False, None, EARLY)], {"startAtOperationTime": EARLY}),
        (NO_START, [("open", False, None, EARLY), ("open", False, None, LATE)], {"startAtOperationTime": EARLY}),
        ((None, None, EARLY), [("open", False, None, LATE)], {"startAtOperationTime": EARLY}),
        ((T, None, None), [("open", False, None, EARLY), ("empty", None)], {"resumeAfter": T}),
        ((T, None, None), [("open", False, U, EARLY), ("empty", V)], {"resumeAfter": V}),
        ((None, T, None), [("open", False, U, EARLY), ("empty", V)], {"startAfter": V}),
        ((None, T, None), [("open", True, U, EARLY), ("change", V)], {"resumeAfter": V}),
        ((T, U, None), [("open", True, V, EARLY)], {"startAfter": U}),
    ],
)  # fmt: skip
def test_stream_resumes_after_newest_position_of_replies(start, replies, fields):
    position = Position(*start)
    update = {"open": position.after_open, "empty": position.after_empty_batch, "change": position.after_change}
    for name, *arguments in replies:
        update[name](*arguments)
    assert position.fields() == fields
