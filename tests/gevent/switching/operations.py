"""Scenarios for public operations. Each scenario has a name, an object, a call of the operation, and
the expected result.

A run without interruption must return the expected result. After an interrupted run, each document
must be equal to the document before or after the call. No document may be lost or duplicated.
"""

from __future__ import annotations

import datetime
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import bson
import gevent
from bson import DBRef
from bson.codec_options import CodecOptions, TypeDecoder, TypeEncoder, TypeRegistry

from gmongo import DeleteOne, IndexModel, InsertOne, ReplaceOne, UpdateOne
from gmongo.errors import OperationFailure
from gmongo.gridfs import GridFS, GridFSBucket
from gmongo.operations import SearchIndexModel
from tests.gevent.switching.harness import Scenario, ScenarioRun
from tests.support.wait import becomes_true

CONTENT = b"0123456789"
IDS = [0, 1, 2, 3]
UPDATE = {"$set": {"n": 10}}
ID_ABOVE_1 = {"_id": {"$gt": 1}}
SEARCH_INDEX = SearchIndexModel({"mappings": {"dynamic": True}}, "default")
DOCUMENTS: dict[str, list[dict[str, Any]]] = {
    "work": [{"_id": number, "n": number} for number in IDS],
    "fs.files": [
        {"_id": _id, "filename": "a", "length": 10, "chunkSize": 4, "uploadDate": datetime.datetime(2026, 1, _id)}
        for _id in (1, 2)
    ],
    "fs.chunks": [
        {"_id": 10 * _id + n, "files_id": _id, "n": n, "data": CONTENT[4 * n : 4 * n + 4]}
        for _id in (1, 2)
        for n in (0, 1, 2)
    ],
}


class OperationRow(NamedTuple):
    """A call of a public operation, and the expected result."""

    object_name: str
    call: Callable[[Any], Any]
    expected: Any
    wraps: bool = False


class Operation(Scenario):
    """A scenario that calls one public operation."""

    has_rehearsal = True
    min_switches = 0

    def __init__(self, name: str, row: OperationRow) -> None:
        self.name = name
        self.row = row
        self.wraps = row.wraps
        self._after: Counter[str] = Counter()

    def prepare(self, run_state: ScenarioRun) -> None:
        restore_documents(run_state.client)
        run_state.kept["object"] = OBJECT_FACTORIES[self.row.object_name](run_state)

    def run_operation(self, run_state: ScenarioRun) -> Any:
        run_state.kept["value"] = self.row.call(run_state.kept.pop("object"))

    def check(self, run_state: ScenarioRun) -> None:
        if "value" in run_state.kept:
            assert run_state.kept["value"] == self.row.expected
        if not run_state.errors:
            self._after = document_counts(run_state.client)
        assert becomes_true(lambda: not self._faults(run_state)), self._faults(run_state)

    def _faults(self, run_state: ScenarioRun) -> dict[str, Any]:
        now, before = document_counts(run_state.client), _ORIGINAL_DOCUMENTS
        faults = {
            "duplicated": {each for each in now if now[each] > 1},
            "unexpected": now.keys() - before.keys() - self._after.keys(),
            "lost": (before.keys() & self._after.keys()) - now.keys(),
        }
        return {kind: texts for kind, texts in faults.items() if texts}


def document_counts(client: Any) -> Counter[str]:
    """Return the number of occurrences of each document and collection name in the database
    ``operations``.
    """
    database, counts = client.operations, Counter[str]()
    for name in database.list_collection_names():
        counts[name] += 1
        counts.update(_document_text(name, document) for document in database[name].find())
    return counts


def _document_text(name: str, document: Mapping[str, Any]) -> str:
    """Return the name of a collection and one of its documents as text.

    Omit the ``_id`` of a chunk and the ``uploadDate`` of a file, which differ in each run.
    """
    varying_field = {"fs.chunks": "_id", "fs.files": "uploadDate"}.get(name)
    return f"{name}: { {key: value for key, value in document.items() if key != varying_field} }"


_ORIGINAL_DOCUMENTS = Counter(
    [*DOCUMENTS, *(_document_text(name, each) for name, documents in DOCUMENTS.items() for each in documents)]
)


def restore_documents(client: Any) -> None:
    """Restore the documents, collections and indexes that the previous run has changed."""
    database, now = client.operations, document_counts(client)
    if now != _ORIGINAL_DOCUMENTS:
        for name in {*now, *DOCUMENTS} - {each for each in now if ": " in each}:
            if name in DOCUMENTS:
                database[name].delete_many({})
                database[name].insert_many(DOCUMENTS[name])
            else:
                database.drop_collection(name)
    if len(database.work.index_information()) > 1:
        database.work.drop_indexes()


OBJECT_FACTORIES: dict[str, Callable[[ScenarioRun], Any]] = {
    "client": lambda run_state: run_state.client,
    "database": lambda run_state: run_state.client.operations,
    "collection": lambda run_state: run_state.client.operations.work,
    "coded": lambda run_state: run_state.client.operations.work.with_options(codec_options=CODEC_OPTIONS),
    "session": lambda run_state: run_state.client.start_session(),
    "cursor": lambda run_state: run_state.client.operations.work.find(batch_size=2),
    "raw cursor": lambda run_state: run_state.client.operations.work.find_raw_batches(batch_size=2),
    "command cursor": lambda run_state: run_state.client.operations.work.aggregate([], batchSize=2),
    "cursor that reads ahead": lambda run_state: run_state.client.operations.work.find(batch_size=2).read_ahead(),
    "files": lambda run_state: GridFS(run_state.client.operations),
    "bucket": lambda run_state: GridFSBucket(run_state.client.operations, chunk_size_bytes=4),
    "upload": lambda run_state: GridFS(run_state.client.operations).new_file(_id=9, chunkSize=4),
    "download": lambda run_state: GridFSBucket(run_state.client.operations).open_download_stream(1),
    "file cursor": lambda run_state: GridFS(run_state.client.operations).find({}, batch_size=1),
}


def register(function: Callable[[ScenarioRun], Any]) -> Callable[[ScenarioRun], Any]:
    """Register a function that creates an object for scenarios. The name of the object is the name of
    the function, with spaces instead of underscores.
    """
    return OBJECT_FACTORIES.setdefault(function.__name__.replace("_", " "), function)


@register
def indexed(run_state: ScenarioRun) -> Any:
    run_state.client.operations.work.create_index("n")
    return run_state.client.operations.work


@register
def transaction(run_state: ScenarioRun) -> Any:
    session = run_state.client.start_session()
    session.start_transaction()
    run_state.client.operations.work.update_one({"_id": 0}, UPDATE, session=session)
    return session


@register
def stream(run_state: ScenarioRun) -> Any:
    stream = run_state.client.operations.work.watch(max_await_time_ms=5)
    run_state.client.operations.work.update_many({}, UPDATE)
    return stream


@register
def stored_upload(run_state: ScenarioRun) -> Any:
    file = OBJECT_FACTORIES["upload"](run_state)
    file.write(CONTENT)
    file._flush()
    return file


def ids(documents: Iterable[Any]) -> list[Any]:
    return sorted(document["_id"] for document in documents)


def raw_ids(batches: Iterable[bytes]) -> list[Any]:
    return ids(bson.decode_all(b"".join(batches)))


def changed_ids(stream: Any) -> list[Any]:
    return ids(stream.next()["documentKey"] for _ in IDS)


def wrap_in_with_block(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that receives an object, and runs `call` inside a ``with`` block of the
    object.
    """

    def call_in_block(created: Any) -> Any:
        with created:
            return call(created)

    return call_in_block


def first_change(target: Any) -> Any:
    with target.watch(max_await_time_ms=5) as stream:
        return stream.try_next()


def tolerate_missing_search(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that runs `call`, but ignores the error of a server that does not support
    search indexes.
    """

    def call_without_error(created: Any) -> None:
        with suppress(OperationFailure):
            call(created)

    return call_without_error


def update_in_transaction(session: Any, first_action: Callable[[Any], Any] = lambda session: None) -> Any:
    def update(session: Any) -> Any:
        first_action(session)
        return session.client.operations.work.update_many(ID_ABOVE_1, UPDATE, session=session).modified_count

    return session.with_transaction(update)


def download(bucket: Any, call: Callable[[Any], Any]) -> bytes:
    target = io.BytesIO()
    call(target)
    return target.getvalue()


def call_in_with_block(file: Any, call: Callable[[Any], Any]) -> Any:
    with file:
        call(file)


def rows(object_name: str, **calls: tuple[Callable[[Any], Any], Any]) -> dict[str, OperationRow]:
    return {name: OperationRow(object_name, *call) for name, call in calls.items()}


WRITES = [InsertOne({"_id": 9}), UpdateOne({"_id": 0}, UPDATE), ReplaceOne({"_id": 2}, {"n": 9}), DeleteOne({"_id": 1})]

COLLECTION_ROWS = rows(
    "collection",
    aggregate=(lambda c: ids(c.aggregate([], batchSize=2)), IDS),
    aggregate_raw_batches=(lambda c: raw_ids(c.aggregate_raw_batches([], batchSize=2)), IDS),
    bulk_write=(lambda c: c.bulk_write(WRITES).modified_count, 2),
    count_documents=(lambda c: c.count_documents({}), 4),
    create_index=(lambda c: c.create_index("n"), "n_1"),
    create_indexes=(lambda c: c.create_indexes([IndexModel("n")]), ["n_1"]),
    create_search_index=(tolerate_missing_search(lambda c: c.create_search_index(SEARCH_INDEX)), None),
    create_search_indexes=(tolerate_missing_search(lambda c: c.create_search_indexes([SEARCH_INDEX])), None),
    delete_many=(lambda c: c.delete_many(ID_ABOVE_1).deleted_count, 2),
    delete_one=(lambda c: c.delete_one({"_id": 1}).deleted_count, 1),
    distinct=(lambda c: c.distinct("n"), IDS),
    drop=(lambda c: c.drop(), None),
    drop_search_index=(tolerate_missing_search(lambda c: c.drop_search_index("default")), None),
    estimated_document_count=(lambda c: c.estimated_document_count(), 4),
    find=(lambda c: ids(c.find(batch_size=2)), IDS),
    find_one=(lambda c: c.find_one({"_id": 1}), {"_id": 1, "n": 1}),
    find_one_and_delete=(lambda c: c.find_one_and_delete({"_id": 1}), {"_id": 1, "n": 1}),
    find_one_and_replace=(lambda c: c.find_one_and_replace({"_id": 1}, {"n": 9}), {"_id": 1, "n": 1}),
    find_one_and_update=(lambda c: c.find_one_and_update({"_id": 1}, UPDATE), {"_id": 1, "n": 1}),
    find_raw_batches=(lambda c: raw_ids(c.find_raw_batches(batch_size=2)), IDS),
    index_information=(lambda c: [*c.index_information()], ["_id_"]),
    insert_many=(lambda c: c.insert_many([{"_id": 8}, {"_id": 9}]).inserted_ids, [8, 9]),
    insert_one=(lambda c: c.insert_one({"_id": 9}).inserted_id, 9),
    list_indexes=(lambda c: [each["name"] for each in c.list_indexes()], ["_id_"]),
    list_search_indexes=(tolerate_missing_search(lambda c: list(c.list_search_indexes())), None),
    options=(lambda c: c.options(), {}),
    rename=(lambda c: c.rename("other")["ok"], 1.0),
    replace_one=(lambda c: c.replace_one({"_id": 1}, {"n": 9}).modified_count, 1),
    update_many=(lambda c: c.update_many(ID_ABOVE_1, UPDATE).modified_count, 2),
    update_one=(lambda c: c.update_one({"_id": 1}, UPDATE).modified_count, 1),
    update_search_index=(tolerate_missing_search(lambda c: c.update_search_index("default", {"mappings": {}})), None),
    watch=(first_change, None),
) | rows("indexed", drop_index=(lambda c: c.drop_index("n_1"), None), drop_indexes=(lambda c: c.drop_indexes(), None))
DATABASE_ROWS = rows(
    "database",
    aggregate=(lambda d: [*d.client.admin.aggregate([{"$listLocalSessions": {}}, {"$limit": 1}])] and None, None),
    command=(lambda d: d.command("count", "work")["n"], 4),
    create_collection=(lambda d: d.create_collection("new").name, "new"),
    cursor_command=(lambda d: ids(d.cursor_command("find", "work", batchSize=2)), IDS),
    dereference=(lambda d: d.dereference(DBRef("work", 1)), {"_id": 1, "n": 1}),
    drop_collection=(lambda d: d.drop_collection("work")["ok"], 1.0),
    list_collection_names=(lambda d: sorted(d.list_collection_names()), sorted(DOCUMENTS)),
    list_collections=(lambda d: sorted(each["name"] for each in d.list_collections()), sorted(DOCUMENTS)),
    validate_collection=(lambda d: d.validate_collection("work")["valid"], True),
    watch=(first_change, None),
)
CLIENT_ROWS = rows(
    "client",
    address=(lambda c: len(c.address), 2),
    drop_database=(lambda c: c.drop_database("operations"), None),
    is_mongos=(lambda c: c.is_mongos, False),
    is_primary=(lambda c: c.is_primary, True),
    list_database_names=(lambda c: "operations" in c.list_database_names(), True),
    list_databases=(lambda c: "operations" in [each["name"] for each in c.list_databases()], True),
    server_info=(lambda c: c.server_info()["ok"], 1.0),
    start_session=(lambda c: read_in_session(c.start_session()), IDS),
    wait_until_ready=(lambda c: c.wait_until_ready(), None),
    watch=(first_change, None),
)
SESSION_ROWS = rows(
    "session",
    end_session=(lambda s: s.end_session(), None),
    start_transaction=(
        wrap_in_with_block(lambda s: call_in_with_block(s.start_transaction(), lambda block: write_and_read(s))),
        None,
    ),
    with_transaction=(wrap_in_with_block(update_in_transaction), 2),
) | rows(
    "transaction",
    __exit__=(lambda s: s.__exit__(None, None, None), None),
    abort_transaction=(wrap_in_with_block(lambda s: s.abort_transaction()), None),
    commit_transaction=(wrap_in_with_block(lambda s: s.commit_transaction()), None),
)
CURSOR_ROWS = rows(
    "cursor",
    __exit__=(wrap_in_with_block(lambda c: next(c)["_id"]), 0),
    __getitem__=(lambda c: c[3], {"_id": 3, "n": 3}),
    __next__=(lambda c: [next(c)["_id"] for _ in IDS], IDS),
    close=(lambda c: (next(c)["_id"], c.close()), (0, None)),
    distinct=(lambda c: c.distinct("n"), IDS),
    explain=(lambda c: "queryPlanner" in c.explain(), True),
    next=(lambda c: [c.next()["_id"] for _ in IDS], IDS),
    read_ahead=(lambda c: ids(c.read_ahead()), IDS),
    to_list=(lambda c: ids(c.to_list()), IDS),
)
RAW_CURSOR_ROWS = rows("raw cursor", next=(lambda c: raw_ids([c.next(), c.next()]), IDS))
COMMAND_CURSOR_ROWS = rows(
    "command cursor",
    __exit__=(wrap_in_with_block(lambda c: next(c)["_id"]), 0),
    __next__=(lambda c: [next(c)["_id"] for _ in IDS], IDS),
    close=(lambda c: c.close(), None),
    next=(lambda c: [c.next()["_id"] for _ in IDS], IDS),
    read_ahead=(lambda c: ids(c.read_ahead()), IDS),
    to_list=(lambda c: ids(c.to_list()), IDS),
    try_next=(lambda c: [c.try_next()["_id"] for _ in IDS], IDS),
)
STREAM_ROWS = rows(
    "stream",
    __exit__=(wrap_in_with_block(changed_ids), IDS),
    __next__=(wrap_in_with_block(lambda s: next(s)["documentKey"]), {"_id": 0}),
    close=(lambda s: s.close(), None),
    next=(changed_ids, IDS),
    try_next=(wrap_in_with_block(lambda s: s.try_next()["documentKey"]), {"_id": 0}),
)
GRIDFS_ROWS = rows(
    "files",
    delete=(lambda f: f.delete(1), None),
    exists=(lambda f: f.exists({"filename": "a"}), True),
    find=(lambda f: sorted(file.read() for file in f.find()), [CONTENT] * 2),
    find_one=(lambda f: f.find_one(1).read(), CONTENT),
    get=(lambda f: f.get(1).read(), CONTENT),
    get_last_version=(lambda f: f.get_last_version("a")._id, 2),
    get_version=(lambda f: f.get_version("a", 0)._id, 1),
    list=(lambda f: f.list(), ["a"]),
    new_file=(lambda f: call_in_with_block(f.new_file(_id=9, chunkSize=4), lambda file: file.write(CONTENT)), None),
    put=(lambda f: f.put(CONTENT, _id=9, chunkSize=4), 9),
)
BUCKET_ROWS = rows(
    "bucket",
    delete=(lambda b: b.delete(1), None),
    delete_by_name=(lambda b: b.delete_by_name("a"), None),
    download_to_stream=(lambda b: download(b, lambda sink: b.download_to_stream(1, sink)), CONTENT),
    download_to_stream_by_name=(lambda b: download(b, lambda sink: b.download_to_stream_by_name("a", sink)), CONTENT),
    find=(lambda b: ids({"_id": file._id} for file in b.find({}, batch_size=1)), [1, 2]),
    open_download_stream=(lambda b: b.open_download_stream(1).read(), CONTENT),
    open_download_stream_by_name=(lambda b: b.open_download_stream_by_name("a").read(), CONTENT),
    open_upload_stream=(lambda b: call_in_with_block(b.open_upload_stream("b"), lambda file: file.abort()), None),
    open_upload_stream_with_id=(
        lambda b: call_in_with_block(b.open_upload_stream_with_id(9, "b"), lambda file: file.write(CONTENT)),
        None,
    ),
    rename=(lambda b: b.rename(1, "b"), None),
    rename_by_name=(lambda b: b.rename_by_name("a", "b"), None),
    upload_from_stream_with_id=(lambda b: b.upload_from_stream_with_id(9, "b", CONTENT), None),
)
UPLOAD_ROWS = rows(
    "upload",
    set=(wrap_in_with_block(lambda f: (f.close(), f.set("aliases", ["b"]))[1]), None),
    __exit__=(lambda f: call_in_with_block(f, lambda file: file.write(CONTENT)), None),
    close=(wrap_in_with_block(lambda f: (f.write(CONTENT), f.close())[1]), None),
    write=(wrap_in_with_block(lambda f: f.write(io.BytesIO(CONTENT * 3))), None),
    writelines=(wrap_in_with_block(lambda f: f.writelines([CONTENT, CONTENT])), None),
) | rows("stored upload", abort=(lambda f: f.abort(), None))
DOWNLOAD_ROWS = rows(
    "download",
    __next__=(lambda f: next(f), CONTENT),
    close=(lambda f: (f.read(5), f.close())[0], CONTENT[:5]),
    length=(lambda f: f.length, 10),
    open=(lambda f: f.open(), None),
    read=(lambda f: f.read(7) + f.read(), CONTENT),
    read_ahead=(lambda f: f.read_ahead().read(), CONTENT),
    readchunk=(lambda f: f.readchunk() + f.readchunk(), CONTENT[:8]),
    readline=(lambda f: f.readline(), CONTENT),
    readlines=(lambda f: f.readlines(), [CONTENT]),
    seek=(lambda f: (f.read(2), f.seek(6), f.read())[1:], (6, CONTENT[6:])),
)
FILE_CURSOR_ROWS = rows("file cursor", next=(lambda c: [c.next()._id, c.next()._id], [1, 2]))


def read_in_session(session: Any) -> list[Any]:
    with session:
        return ids(session.client.operations.work.find(session=session, batch_size=2))


def write_and_read(session: Any) -> None:
    work = session.client.operations.work
    work.update_one({"_id": 0}, UPDATE, session=session)
    assert work.find_one({"_id": 0}, session=session)["n"] == 10


# The following callbacks switch to the hub, so that the harness also interrupts greenlets inside
# callbacks.


class Decoder(TypeDecoder):  # type: ignore[misc]
    bson_type = int

    def transform_bson(self, value: int) -> int:
        gevent.sleep(0)
        return value


class Encoder(TypeEncoder):  # type: ignore[misc]
    python_type = frozenset

    def transform_python(self, value: frozenset[int]) -> int:
        gevent.sleep(0)
        return len(value)


class SwitchingMapping(Mapping[str, Any]):
    """A mapping that switches to the hub in `__getitem__` and `__iter__`, as applications may do."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def __getitem__(self, key: str) -> Any:
        gevent.sleep(0)
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        gevent.sleep(0)
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)


class SwitchingFile(io.BytesIO):
    """A file object that switches to the hub in `read` and `write`, as an application may do."""

    def read(self, size: int | None = -1, /) -> bytes:
        gevent.sleep(0)
        return super().read(size)

    def write(self, data: Any, /) -> int:
        gevent.sleep(0)
        return super().write(data)


def iterate_with_switches(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        gevent.sleep(0)
        yield item


CODEC_OPTIONS: CodecOptions[Any] = CodecOptions(type_registry=TypeRegistry([Decoder(), Encoder()]))
TWO_ITEMS = frozenset("ab")
CALLBACK_ROWS = {
    "decoder of find": OperationRow("coded", lambda c: ids(c.find(batch_size=2)), IDS, wraps=True),
    "decoder of find_one": OperationRow("coded", lambda c: c.find_one({"_id": 1}), {"_id": 1, "n": 1}, wraps=True),
    "decoder of aggregate": OperationRow("coded", lambda c: ids(c.aggregate([], batchSize=2)), IDS, wraps=True),
    "encoder of insert_many": OperationRow(
        "coded", lambda c: c.insert_many([{"_id": n, "n": TWO_ITEMS} for n in (8, 9)]).inserted_ids, [8, 9], wraps=True
    ),
    "encoder of update_one": OperationRow(
        "coded", lambda c: c.update_one({"_id": 1}, {"$set": {"n": TWO_ITEMS}}).modified_count, 1, wraps=True
    ),
    "mapping of insert_one": OperationRow(
        "collection", lambda c: c.insert_one(SwitchingMapping({"_id": 9, "n": 1})).inserted_id, 9
    ),
    "mapping of find": OperationRow(
        "collection", lambda c: ids(c.find(SwitchingMapping({"n": SwitchingMapping({"$gt": 1})}))), [2, 3]
    ),
    "mapping of update_many": OperationRow(
        "collection", lambda c: c.update_many(SwitchingMapping(ID_ABOVE_1), SwitchingMapping(UPDATE)).modified_count, 2
    ),
    "mapping of command": OperationRow("database", lambda d: d.command(SwitchingMapping({"count": "work"}))["n"], 4),
    "iterator of insert_many": OperationRow(
        "collection", lambda c: c.insert_many(iterate_with_switches([{"_id": 8}, {"_id": 9}])).inserted_ids, [8, 9]
    ),
    "transaction callback": OperationRow(
        "session", wrap_in_with_block(lambda s: update_in_transaction(s, lambda _session: gevent.sleep(0))), 2
    ),
    "file of write": OperationRow("upload", wrap_in_with_block(lambda f: f.write(SwitchingFile(CONTENT))), None),
    "target of download": OperationRow("bucket", lambda b: b.download_to_stream(1, SwitchingFile()), None),
}

ROW_GROUPS: dict[str, dict[str, OperationRow]] = {
    "Collection": COLLECTION_ROWS,
    "Database": DATABASE_ROWS,
    "MongoClient": CLIENT_ROWS,
    "ClientSession": SESSION_ROWS,
    "Cursor": CURSOR_ROWS,
    "RawBatchCursor": RAW_CURSOR_ROWS,
    "CommandCursor": COMMAND_CURSOR_ROWS,
    "ChangeStream": STREAM_ROWS,
    "GridFS": GRIDFS_ROWS,
    "GridFSBucket": BUCKET_ROWS,
    "GridIn": UPLOAD_ROWS,
    "GridOut": DOWNLOAD_ROWS,
    "GridOutCursor": FILE_CURSOR_ROWS,
    "callback": CALLBACK_ROWS,
}
OPERATIONS = [Operation(f"{group}.{name}", row) for group, rows in ROW_GROUPS.items() for name, row in rows.items()]
