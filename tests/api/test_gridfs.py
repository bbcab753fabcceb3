"""`GridFSBucket` and the older class `GridFS` store and read files, also after errors and
interruptions.
"""

from __future__ import annotations

import io
import os
import uuid
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from unittest.mock import Mock

import gevent
import pytest
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.son import SON

from gmongo import MongoClient, ReadPreference, WriteConcern
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    DuplicateKeyError,
    ExecutionTimeout,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
)
from gmongo.gridfs import DEFAULT_CHUNK_SIZE, GridFS, GridFSBucket, GridIn, GridOut, GridOutCursor, grid_in
from gmongo.gridfs.errors import CorruptGridFile, FileExists, NoFile
from gmongo.testing import Deployment
from tests.support.cases import with_cases
from tests.support.fail_points import fail
from tests.support.faults import send_no_reply
from tests.support.recorder import Recorder
from tests.support.scripted_server import ScriptedServer, cursor_reply
from tests.support.wait import eventually


# The tests use a simulated deployment, because the embedded database treats GridFS collections
# specially.
@pytest.fixture(scope="module")
def mongodb_uri(deployment):
    return deployment.uri


@pytest.fixture
def client(mongodb_uri):
    with MongoClient(mongodb_uri, heartbeatFrequencyMS=500) as client:
        yield client


@pytest.fixture
def files_database(client):
    name = f"gmongo_files_{uuid.uuid4().hex[:12]}"
    yield client[name]
    client.drop_database(name)


@pytest.fixture
def recording(mongodb_uri):
    """Yield a new database and the recorder of the database's client."""
    recorder = Recorder()
    with MongoClient(mongodb_uri, event_listeners=[recorder]) as client:
        name = f"gmongo_files_{uuid.uuid4().hex[:12]}"
        yield client[name], recorder
        client.drop_database(name)


@pytest.fixture
def bucket(files_database):
    return GridFSBucket(files_database, chunk_size_bytes=4)


@pytest.fixture
def files(files_database):
    return GridFS(files_database)


def test_only_first_upload_of_bucket_checks_indexes(recording):
    recorded_database, recorder = recording
    bucket = GridFSBucket(recorded_database, read_preference=ReadPreference.SECONDARY)
    bucket.upload_from_stream("a", b"x")
    assert recorder.commands.count("createIndexes") == 2
    assert "$readPreference" not in recorder.command("find")  # only the primary knows all indexes
    recorder.clear()
    bucket.upload_from_stream("b", b"y")
    assert recorder.commands == ["insert", "insert"]


def test_upload_inserts_several_chunks_in_one_command(recording):
    recorded_database, recorder = recording
    bucket = GridFSBucket(recorded_database)
    content = os.urandom(1_000_000)
    file_id = bucket.upload_from_stream("big", content)
    assert [len(each["documents"]) for each in recorder.sent_commands("insert")] == [4, 1]
    assert bucket.open_download_stream(file_id).read() == content


def test_rejected_data_leaves_the_upload_usable(bucket, files):
    with pytest.raises(ZeroDivisionError), bucket.open_upload_stream("f") as file:
        for data, message in (
            (5, "can only write strings or file-like objects, not int"),
            ("text", "must specify an encoding for file in order to write str"),
        ):
            with pytest.raises(TypeError, match=f"^{message}$"):
                file.write(data)
        file.write(b"x")
        file.close()
        raise ZeroDivisionError  # the block keeps the closed file
    assert bucket.open_download_stream(file._id).read() == b"x"
    assert files.get(files.put("ü", encoding="latin-1")).read() == b"\xfc"


def test_attributes_of_upload_are_fields_of_the_description(recording):
    files, recorder = GridFS(recording[0]), recording[1]
    file = files.new_file(_id=None, content_type="a/b", contentType="c/d", chunk_size=None, md5="d41d")
    assert (file._id, file.content_type, file.contentType, file.chunk_size) == (None, "a/b", "a/b", 255 * 1024)
    for name in ("_id", "chunk_size", "closed", "length", "md5", "upload_date"):
        with pytest.raises(AttributeError, match=f"^'{name}' of a GridIn cannot be set$"):
            setattr(file, name, 1)
    for name in ("length", "md5", "upload_date", "none"):
        with pytest.raises(AttributeError, match=f"^can only get '{name}' on a closed file$|has no attribute 'none'$"):
            getattr(files.new_file(), name)
    file.name, file.extra = "old", 1
    assert recorder.commands == []
    file.close()
    recorder.clear()
    file.close()
    file.abort()
    file.name, file.content_type = "new", "e/f"
    updates = [each["updates"][0] for each in recorder.sent_commands("update")]
    assert recorder.commands == ["update"] * 2 and [each["q"] for each in updates] == [{"_id": None}] * 2
    assert [each["u"] for each in updates] == [{"$set": {"filename": "new"}}, {"$set": {"contentType": "e/f"}}]
    assert (file.filename, file.name, file.content_type, file.length, file.md5) == ("new", "new", "e/f", 0, "d41d")
    stored = files.find_one({"filename": "new", "contentType": "e/f", "md5": "d41d", "extra": 1})
    assert abs(file.upload_date - stored.upload_date.replace(tzinfo=timezone.utc)) < timedelta(milliseconds=1)


def test_query_document_as_file_id_finds_no_file(bucket):
    bucket.upload_from_stream_with_id("x", "f", b"x")
    for query in ({"$gt": ""}, {"$ne": 5}):
        with pytest.raises(NoFile):
            bucket.open_download_stream(query)
        with pytest.raises(NoFile):
            bucket.delete(query)
    assert bucket.open_download_stream("x").read() == b"x"


def test_close_raises_file_exists_if_another_upload_used_the_id(recording):
    recorded_database, recorder = recording
    bucket = GridFSBucket(recorded_database, chunk_size_bytes=4)
    for data in (b"", b"12345"):
        upload = bucket.open_upload_stream_with_id("same", "f")
        bucket.upload_from_stream_with_id("same", "f", b"")
        if data:
            upload.write(data)
        with pytest.raises(FileExists, match="file with _id 'same' already exists") as caught:
            upload.close()
        assert not upload.closed and isinstance(caught.value.__cause__, DuplicateKeyError)
        recorder.clear()
        upload.abort()
        bucket.delete("same")
        stored_names = ["fs.chunks"] if data else []  # the abort removes only the stored chunks
        assert [each["delete"] for each in recorder.sent_commands("delete")] == [*stored_names, "fs.files", "fs.chunks"]


class FailingSource:
    """Upload source. The first read succeeds, and later reads raise an error."""

    def __init__(self):
        self.read_count, self.sizes = 0, []

    def read(self, size):
        self.read_count += 1
        self.sizes.append(size)
        if self.read_count > 1:
            raise OSError("disk")
        return b"x" * 5_000_000


def test_failed_read_of_source_removes_stored_chunks(bucket, files_database):
    source = FailingSource()
    with pytest.raises(OSError, match="disk"):
        bucket.open_upload_stream("f", 1_000_000).write(source)
    assert source.sizes == [1_000_000] * 2 and files_database.fs.chunks.count_documents({}) == 0


def test_abort_keeps_chunks_of_another_file_with_the_same_id(files, bucket):
    files.put(b"first", _id=1)
    with pytest.raises(OSError, match="disk"):
        bucket.upload_from_stream_with_id(1, "f", FailingSource(), chunk_size_bytes=10_000_000)
    bucket.open_upload_stream_with_id(1, "f").abort()
    assert files.get(1).read() == b"first"


def test_kill_of_greenlet_that_reads_source_aborts_the_upload(bucket, files_database):
    file = bucket.open_upload_stream("f", chunk_size_bytes=1_000_000)

    class BlockingSource(FailingSource):
        def read(self, size):
            if self.read_count:
                gevent.sleep(60)
            return super().read(size)

    source = BlockingSource()
    writer = gevent.spawn(file.write, source)
    eventually(lambda: source.read_count and files_database.fs.chunks.count_documents({}) == 5)
    writer.kill()
    with pytest.raises(InvalidOperation, match=r"^the upload was interrupted by GreenletExit: abort it, and upload"):
        file.close()
    eventually(lambda: files_database.fs.chunks.count_documents({}) == 0)


@pytest.mark.parametrize("failing_insert", ["chunks", "file document"])
def test_failed_upload_raises_first_error_until_abort(client, files_database, failing_insert):
    file = GridFS(files_database).new_file(_id=5)
    file.write(b"x" * 17 * DEFAULT_CHUNK_SIZE)  # exactly the data of one insert command
    fail(client, "insert", errorCode=8000)
    first_call = file.close if failing_insert == "file document" else lambda: file.write(b"x" * 5_000_000)
    for attempt in (first_call, file.close, lambda: file.write(b"x")):
        with pytest.raises(OperationFailure, match="fail point") as caught:
            attempt()
        assert caught.value.code == 8000 and not file.closed
    assert files_database.fs.chunks.count_documents({})
    file.abort()
    file.close()
    assert files_database.fs.chunks.count_documents({}) == 0
    with pytest.raises(ValueError, match="closed"):
        file.write(b"x")


def test_failed_upload_in_with_block_removes_its_chunks(client, files_database):
    bucket = GridFSBucket(files_database)
    bucket.upload_from_stream("first", b"")
    for code in (8000, None):
        with pytest.raises(PyMongoError), bucket.open_upload_stream_with_id(5, "f") as file:
            file.write(b"x" * 5_000_000)
            if code is None:
                fail(client, "insert", times=2, closeConnection=True)
            else:
                fail(client, "insert", errorCode=code)
            file.write(b"x" * 5_000_000)
        eventually(lambda: files_database.fs.chunks.count_documents({}) == 0)


def test_failed_abort_of_upload_can_be_repeated(client, files_database):
    file = GridFS(files_database).new_file()
    file.write(b"x" * 5_000_000)
    fail(client, "delete", errorCode=8000)
    with pytest.raises(OperationFailure, match="fail point"):
        file.abort()
    with pytest.raises(InvalidOperation, match=r"^the upload was aborted$"):
        file.close()
    file.abort()
    assert files_database.fs.chunks.count_documents({}) == 0


def test_chunks_stored_after_interruption_are_removed(monkeypatch):
    monkeypatch.setattr(grid_in, "_PAUSES", (0.0, 0.01))
    with ScriptedServer({"listIndexes": cursor_reply([]), "find": cursor_reply([])}) as server:
        server.fail("insert", send_no_reply)
        with MongoClient(*server.address) as client:
            file = GridFSBucket(client.test).open_upload_stream("f", 1_000_000)
            uploader = gevent.spawn(file.write, b"x" * 5_000_000)
            chunk_ids = [chunk["_id"] for chunk in server.wait_for("insert")["documents"]]
            uploader.kill()
            server.wait_for("delete", 2)
            query = {"files_id": file._id, "_id": {"$in": chunk_ids}}
            assert [each["deletes"][0]["q"] for each in server.commands("delete")] == [query] * 2


def test_version_is_selected_by_name_and_fields(files, files_database):
    for number, (name, kind) in enumerate([("a", 1), ("a", 2), ("b", 1), ("a", 1)], 1):
        files.put(b"", _id=number, filename=name, kind=kind)
        files_database.fs.files.update_one({"_id": number}, {"$set": {"uploadDate": datetime(2026, 1, number)}})
    assert [files.get_version("a", version)._id for version in (0, 1, -1, -2, -3, None)] == [1, 2, 4, 2, 1, 4]
    assert (files.get_version("a", kind=2)._id, files.get_version(version=0, kind=2)._id) == (2, 2)
    assert [files.get_last_version(**query)._id for query in ({"filename": "b"}, {"kind": 2}, {})] == [3, 2, 4]
    assert files.exists(7, kind=2) and not files.exists(1, kind=3)


@pytest.mark.parametrize("is_in_block", [False, True])
def test_abort_after_lost_reply_removes_description_and_chunks_repeatedly(recording, monkeypatch, is_in_block):
    monkeypatch.setattr(grid_in, "_PAUSES", (0.0, 0.0))
    recorded_database, recorder = recording
    file = GridFSBucket(recorded_database, chunk_size_bytes=1).open_upload_stream("f")
    file.write(b"x" * 1000)
    fail(recorded_database.client, "insert", times=2, closeConnection=True)
    with pytest.raises(AutoReconnect), file if is_in_block else nullcontext():
        file.close()
    assert file.closed is is_in_block and "delete" not in recorder.commands
    file.abort()
    sent_file = recorder.sent_commands("insert")[-1]["documents"][0]
    delete_file = "fs.files", {"_id": file._id, "uploadDate": sent_file["uploadDate"]}
    expected = [delete_file, ("fs.chunks", {"files_id": file._id}), *[delete_file] * (1 if is_in_block else 2)]
    deletes = eventually(lambda: len(sent := recorder.sent_commands("delete")) == len(expected) and sent)
    assert [(each["delete"], each["deletes"][0]["q"]) for each in deletes] == expected


def test_killed_abort_continues_in_background():
    replies = {"listIndexes": cursor_reply([]), "find": cursor_reply([])}
    with ScriptedServer(replies) as server, MongoClient(*server.address) as client:
        server.fail("delete", send_no_reply)
        file = GridFSBucket(client.test).open_upload_stream("f", 1_000_000)
        file.write(b"x" * 5_000_000)
        aborter = gevent.spawn(file.abort)
        server.wait_for("delete")
        aborter.kill()
        server.wait_for("delete", 2)
        assert isinstance(aborter.value, gevent.GreenletExit)
        assert [each["deletes"][0]["q"] for each in server.commands("delete")] == [{"files_id": file._id}] * 2


def test_abort_after_error_reply_starts_no_further_removal(client, monkeypatch):
    removals = []
    monkeypatch.setattr(grid_in.GridIn, "_start_removal", removals.append)
    file = GridFSBucket(client.files).open_upload_stream("f", 1_000_000)
    fail(client, "insert", errorCode=8000)
    with pytest.raises(OperationFailure):
        file.write(b"x" * 5_000_000)
    file.abort()
    assert removals == []


def test_failed_removal_of_chunks_is_logged(client, caplog):
    fail(client, "delete", errorCode=8000)
    with pytest.raises(ZeroDivisionError), GridFS(client.files).new_file(_id="one") as file:
        file.write(b"x" * 5_000_000)
        raise ZeroDivisionError
    assert "chunks of the failed upload with _id 'one' could not be removed from files.fs.chunks" in caplog.text


def assert_rejected_during(blocking_call, *rejected_calls):
    """Run `blocking_call` in a greenlet, and return the greenlet.

    Assert that each of the `rejected_calls` raises InvalidOperation while `blocking_call` runs.
    """
    user = gevent.spawn(blocking_call)
    gevent.sleep(0)
    for other in rejected_calls:
        rejected = gevent.spawn(other)
        with pytest.raises(InvalidOperation, match=f"in use by greenlet {user.name} .*, and greenlet {rejected.name} "):
            rejected.get()
    return user


def test_gridfs_call_raises_while_another_greenlet_writes_the_file(bucket):
    class SlowSource(io.BytesIO):
        def read(self, size):
            gevent.sleep(0.01)
            return super().read(size)

    file = bucket.open_upload_stream("f")
    others = (file.close, file.abort, lambda: file.write(b"x"), lambda: file.set("a", 1))
    assert_rejected_during(lambda: file.write(SlowSource(b"0123456789")), *others).get()
    file.close()
    assert bucket.open_download_stream(file._id).read() == b"0123456789"


def test_gridfs_call_raises_while_another_greenlet_reads_the_file(bucket):
    file = bucket.open_download_stream(bucket.upload_from_stream("f", b"0123456789"))
    others = (file.read, file.readchunk, file.readline, file.readlines, file.close, lambda: file.seek(5))
    assert assert_rejected_during(file.read, *others).get() == b"0123456789"
    assert file.tell() == 10


@pytest.mark.parametrize(
    "fault", [{"errorCode": 43}, {"errorCode": 237}, {"errorCode": 11600}, {"closeConnection": True}], ids=str
)
@pytest.mark.parametrize("method", ["read", "readchunk", "readline"])
def test_read_continues_after_cursor_error(client, files, method, fault):
    content = b"line\n" * 50
    file = files.get(files.put(content, chunk_size=1))
    read = file.read(10)
    fail(client, "getMore", **fault)
    while piece := getattr(file, method)():
        read += piece
    assert read == content


def test_read_raises_timeout_and_then_continues(client, files):
    file = files.get(files.put(b"x" * 200, chunk_size=1))
    file.read(10)
    fail(client, "getMore", errorCode=50)
    with pytest.raises(ExecutionTimeout):
        file.read()
    assert file.read() == b"x" * 190
    file.seek(0)
    fail(client, "find", errorCode=8000)
    with pytest.raises(OperationFailure, match="fail point"):
        file.read()


def test_seek_skips_chunks_before_the_new_position(recording):
    recorded_database, recorder = recording
    files = GridFS(recorded_database)
    file = files.get(files.put(b"0123456789", chunk_size=2))
    recorder.clear()
    file.seek(7)
    assert file.read() == b"789"
    assert recorder.command("find")["filter"]["n"] == {"$gte": 3}
    for arguments, message in (((-1,), "position must not be negative, was -1"), ((0, 7), "0, 1 or 2, not 7")):
        with pytest.raises(OSError, match=rf"^\[Errno 22\] .*{message}$"):
            file.seek(*arguments)


def test_seek_and_close_kill_the_cursor_of_chunks():
    recorder = Recorder()
    with Deployment.standalone() as deployment, MongoClient(deployment.uri, event_listeners=[recorder]) as client:
        files = GridFS(client.db)
        file = files.get(files.put(b"0123456789" * 100_000, chunk_size=1000))
        recorder.clear()
        file.read(5)
        file.seek(500_000)
        file.read(5)
        file.close()
        assert recorder.commands == ["find", "killCursors", "find", "killCursors"]
        for divisor in (1, 0):
            recorder.clear()
            with nullcontext() if divisor else pytest.raises(ZeroDivisionError), files.get(file._id) as file:
                assert len(file.read(5)) / divisor == 5
            assert file.closed and recorder.commands[2:] == ["killCursors"] * divisor
            eventually(lambda: recorder.commands == ["find", "find", "killCursors"])


@with_cases
def test_damaged_chunks_raise_corrupt_grid_file(bucket, files_database, deleted, changed, added, message):
    bucket.upload_from_stream_with_id(1, "f", b"0123456789")
    chunks = files_database.fs.chunks
    chunks.delete_one({"n": deleted})
    chunks.update_one({"n": changed}, {"$set": {"data": b"xxx"}})
    if added is not None:
        chunks.insert_one({"files_id": 1, "n": added, "data": b"x"})
    with pytest.raises(CorruptGridFile, match=f"^{message}$"):
        bucket.download_to_stream(1, io.BytesIO())


def test_chunks_in_other_storage_order_are_read_in_sequence(bucket, files_database):
    bucket.upload_from_stream_with_id(1, "f", b"0123456789")
    chunks = files_database.fs.chunks.find().to_list()
    files_database.fs.chunks.delete_many({})
    files_database.fs.chunks.insert_many(chunks[::-1])
    assert bucket.open_download_stream(1).read() == b"0123456789"


@pytest.mark.parametrize(("field", "value"), [("length", -1), ("length", True), ("chunkSize", 0), ("chunkSize", "1")])
def test_invalid_length_or_chunk_size_raises_corrupt_grid_file(files_database, bucket, field, value):
    bucket.upload_from_stream_with_id(1, "f", b"0123456789")
    files_database.fs.files.update_one({"_id": 1}, {"$set": {field: value}})
    with pytest.raises(CorruptGridFile, match=f"^{field} of a file must be an integer from "):
        bucket.open_download_stream(1).read()


def test_doubles_in_description_are_valid_and_text_in_chunk_is_not(files_database, bucket):
    bucket.upload_from_stream_with_id(1, "f", b"0123456789")
    files_database.fs.files.update_one({"_id": 1}, {"$set": {"length": 10.0, "chunkSize": 4.0}})
    assert bucket.open_download_stream(1).read() == b"0123456789"
    files_database.fs.chunks.update_one({"n": 1}, {"$set": {"data": "4567"}})
    with pytest.raises(CorruptGridFile, match=r"^data of a chunk must be binary, not '4567'$"):
        bucket.open_download_stream(1).read()


def test_unsupported_file_methods_raise_error_with_their_name(bucket):
    bucket.upload_from_stream_with_id(1, "f", b"")
    file = bucket.open_download_stream(1)
    for name, arguments in {"truncate": (), "write": (b"",), "writelines": ([],), "fileno": ()}.items():
        with pytest.raises(io.UnsupportedOperation, match=rf"{name}(?!\w)"):
            getattr(file, name)(*arguments)


def test_codec_options_apply_without_registered_types(files_database):
    decoder = type("Decoder", (TypeDecoder,), {"bson_type": bytes, "transform_bson": lambda self, value: "decoded"})()
    options = CodecOptions(SON, tz_aware=True, type_registry=TypeRegistry([decoder]))
    files = GridFS(files_database.with_options(codec_options=options))
    file = files.get(files.put(b"x", metadata={"raw": b"x"}))
    assert (file.read(), type(file.metadata), file.metadata) == (b"x", SON, {"raw": b"x"})
    assert file.upload_date.tzinfo is not None


def test_invalid_argument_of_bucket_raises_error_with_its_name(bucket):
    bucket.upload_from_stream_with_id(1, "f", b"x")
    by_name, renames = "open_download_stream_by_name", "rename_by_name"
    for (error, message), calls in {
        (TypeError, "filename"): [("open_upload_stream", 5), (by_name, 5), ("delete_by_name", 5), (renames, 5, "g")],
        (TypeError, "new_filename"): [("rename", 1, 5), (renames, "f", 5)],
        (TypeError, "revision"): [(by_name, "f", True), (by_name, "f", None)],
        (TypeError, "chunk_size_bytes"): [("open_upload_stream", "f", True)],
        (TypeError, "destination"): [("download_to_stream", 1, b"")],
        (NoFile, "no file with the name 'g'"): [(by_name, "g")],
        (NoFile, "no version 1 for filename 'f'"): [(by_name, "f", 1)],
    }.items():
        for method, *arguments in calls:
            with pytest.raises(error, match=f"^{message}( must be |$)"):
                getattr(bucket, method)(*arguments)


def test_invalid_collection_or_cursor_option_is_rejected(files_database):
    root, database = "^root_collection must be a Collection, not 5$", "must be a Database, not of type int$"
    for kind, message in ((GridIn, root), (GridOutCursor, root), (GridFS, database), (GridFSBucket, database)):
        with pytest.raises(TypeError, match=message):
            kind(5)
    for kind in (GridFS, GridFSBucket):
        with pytest.raises(ConfigurationError, match=r"^(database|write concern) must use acknowledged write_concern$"):
            kind(files_database.with_options(write_concern=WriteConcern(w=0)))
    for method in ("add_option", "remove_option"):
        with pytest.raises(NotImplementedError, match=r"^Method does not exist for GridOutCursor$"):
            getattr(GridOutCursor(files_database.fs), method)(2)
    assert not hasattr(GridOut(files_database.fs, 1), "__len__")  # the file does not exist
    with files_database.client.start_session() as session, pytest.raises(InvalidOperation, match="multi-document"):
        session.start_transaction()
        GridOut(files_database.fs, 1, session=session)


def test_failed_removal_in_background_is_logged_and_not_raised(client, caplog):
    fail(client, "delete", times=10, errorCode=8000)
    file = GridFSBucket(client.files).open_upload_stream_with_id("two", "f")
    file._owns_chunks = True
    file._remove_in_background()
    assert "chunks of the failed upload with _id 'two' could not be removed" in caplog.text


def test_md5_of_file_is_field_of_its_description(files_database, bucket):
    bucket.upload_from_stream_with_id(1, "f", b"")
    files_database.fs.files.update_one({"_id": 1}, {"$set": {"md5": "d41d"}})
    assert bucket.open_download_stream(1).md5 == "d41d"


def test_file_without_length_is_empty(files_database, bucket):
    bucket.upload_from_stream_with_id(1, "f", b"")
    files_database.fs.files.update_one({"_id": 1}, {"$unset": {"length": 1}})
    assert bucket.open_download_stream(1).length == 0


def test_interrupted_source_ends_upload_and_removes_chunks(files_database):
    file = GridFSBucket(files_database, chunk_size_bytes=1).open_upload_stream("f")
    source = SimpleNamespace(read=Mock(side_effect=[b"xy", gevent.GreenletExit]))
    with pytest.raises(gevent.GreenletExit):
        file.write(source)
    with pytest.raises(InvalidOperation):
        file.write(b"z")
    assert eventually(lambda: files_database.fs.chunks.find_one() is None)
