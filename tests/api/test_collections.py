"""Client attributes, database commands, and the constructor, indexes and cursors of collections."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient, WriteConcern
from gmongo._background import LongWork
from gmongo.collection import Collection
from gmongo.errors import CollectionInvalid, NotPrimaryError, OperationFailure, PyMongoError
from gmongo.read_concern import ReadConcern
from tests.support.cases import with_cases
from tests.support.server import ScriptedServer

from .recording import Recording


def test_repr_names_class_and_arguments(client: MongoClient[Any]) -> None:
    assert repr(client).startswith("MongoClient(host=[")
    assert repr(client.shop.orders) == f"Collection(Database({client!r}, 'shop'), 'orders')"


def test_command_sends_read_and_write_concern_unless_default(recording: Recording) -> None:
    collection, recorder = recording
    database = collection.database
    for read, write in ((ReadConcern(), WriteConcern()), (ReadConcern("local"), WriteConcern(1))):
        database.command("find", "c", read_concern=read)
        database.command("count", "c", readConcern=read)
        database.command("insert", "c", documents=[{}], write_concern=write)
    for name in ("find", "count"):
        assert [command.get("readConcern") for command in recorder.sent_commands(name)] == [None, {"level": "local"}]
    assert [command.get("writeConcern") for command in recorder.sent_commands("insert")] == [
        None,
        {"w": 1},
    ]


@pytest.mark.parametrize("code", [59, 10107])
@with_cases
def test_command_returns_error_reply_only_if_options_allow_error(
    code: int, options: dict[str, Any], returns_reply: bool
) -> None:
    reply = {"ok": 0, "code": code, "errmsg": "no luck"}
    with ScriptedServer({"ping": reply}) as server, MongoClient[Any](server.name) as client:
        if returns_reply:
            assert client.db.command("ping", **options) == reply
        else:
            with pytest.raises(PyMongoError, match="no luck") as caught:
                client.db.command("ping", **options)
            assert isinstance(caught.value, NotPrimaryError if code == 10107 else OperationFailure)


def test_client_attributes_describe_connected_server(client: MongoClient[Any]) -> None:
    assert client.address is not None
    host, port = client.address
    assert client.nodes == {(host, port)}
    assert client.is_primary
    assert not client.is_mongos
    is_replica_set = "setName" in client.admin.command("hello")
    assert client.primary == ((host, port) if is_replica_set else None)
    assert client.secondaries == client.arbiters == set()
    assert client.topology_description.has_known_servers
    assert client.server_info()["ok"] == 1


@pytest.mark.parametrize("name", ["address", "is_primary", "is_mongos"])
def test_log_of_server_selection_names_client_attribute(
    client: MongoClient[Any], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "gmongo.serverSelection"):
        getattr(client, name)
    assert caplog.messages[0].startswith(f"Server selection started for operation {name}. ")


@pytest.mark.parametrize(
    ("code", "text"), [(26, "ns not found"), (0, "ns not found"), (27, "index not found"), (13, "no")]
)
def test_drop_index_ignores_only_error_about_missing_collection(code: int, text: str) -> None:
    replies = {"dropIndexes": {"ok": 0, "code": code, "errmsg": text}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        for drop in (client.db.c.drop_indexes, lambda: client.db.c.drop_index("a_1")):
            if text == "ns not found":
                drop()
            else:
                with pytest.raises(OperationFailure, match=rf"{text}(?!\w)"):
                    drop()
        assert [each["index"] for each in server.commands("dropIndexes")] == ["*", "a_1"]


def test_collection_constructor_creates_collection_with_options(recording: Recording) -> None:
    collection, recorder = recording
    child_name = f"{collection.name}_x"
    Collection(collection.database, child_name)
    assert not recorder.events_named("CommandStarted")
    Collection(collection.database, child_name, capped=True, size=4096)
    (created,) = recorder.events_named("CommandStarted")
    assert created.command["create"] == child_name and created.command["capped"] is True
    Collection(collection.database, f"{child_name}_y", create=True)
    assert recorder.events_named("CommandStarted")[-1].command["create"] == f"{child_name}_y"
    with pytest.raises(CollectionInvalid, match=f"^collection {child_name} already exists$"):
        collection.database.create_collection(child_name)
    for name in (child_name, f"{child_name}_y"):
        collection.database.drop_collection(name)


@pytest.mark.parametrize("method", ["next", "try_next"])
def test_decoding_of_single_documents_in_batch_passes_checkpoints(
    recording: Recording, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints: list[Any] = []
    monkeypatch.setattr(LongWork, "checkpoint", lambda work: checkpoints.append(work))
    collection, _ = recording
    collection.insert_many([{"_id": number, "x": "x" * 1000} for number in range(300)])
    with collection.aggregate([], batchSize=300) as cursor:
        step = getattr(cursor, method)
        step()
        before = len(checkpoints)
        assert [step()["_id"] for _ in range(299)] == list(range(1, 300))
    assert len(checkpoints) - before > 5


class TextDecoder(TypeDecoder):
    bson_type = int

    def transform_bson(self, value: Any) -> str:
        return f"number {value}"


def test_count_of_documents_ignores_type_decoder_of_collection(client: MongoClient[Any]) -> None:
    options: CodecOptions[Any] = CodecOptions(type_registry=TypeRegistry([TextDecoder()]))
    collection = client.db.get_collection("counted", codec_options=options)
    collection.insert_one({})
    assert collection.count_documents({}) == 1
    assert collection.find_one(MappingProxyType({})) is not None


def test_result_of_insert_many_omits_ids_of_raw_documents(collection: Collection[Any]) -> None:
    documents: list[Any] = [{"_id": 2}, RawBSONDocument(bson.encode({"_id": 1})), {"_id": None}]
    assert collection.insert_many(documents).inserted_ids == [2, None]


def test_command_with_registered_type_returns_raw_document(client: MongoClient[Any]) -> None:
    options: CodecOptions[Any] = CodecOptions(RawBSONDocument, type_registry=TypeRegistry([TextDecoder()]))
    assert type(client.db.command("ping", codec_options=options)) is RawBSONDocument
