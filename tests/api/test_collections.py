"""Attributes, administration methods and commands of clients, databases and collections."""

from __future__ import annotations

from typing import Any

import pytest
from bson.codec_options import CodecOptions

from gmongo import MongoClient, ReadPreference, WriteConcern
from gmongo.collection import Collection
from gmongo.errors import InvalidOperation, OperationFailure
from gmongo.read_concern import ReadConcern

from .recording import Recorded


def test_repr_names_class_and_arguments(client: MongoClient[Any]) -> None:
    assert repr(client).startswith("MongoClient(host=[")
    assert repr(client.shop.orders) == f"Collection(Database({client!r}, 'shop'), 'orders')"


def test_collection_inherits_options_and_with_options_replaces_them(database: str) -> None:
    with MongoClient[Any](database, w=1, readConcernLevel="local", tz_aware=True, connect=False) as client:
        collection = client.shop.orders
        assert collection.write_concern == WriteConcern(w=1)
        assert collection.read_concern == ReadConcern("local")
        assert collection.codec_options.tz_aware
        assert collection.read_preference == ReadPreference.PRIMARY
        other = collection.with_options(
            CodecOptions(), ReadPreference.NEAREST, WriteConcern(w=2), ReadConcern("majority")
        )
        assert other == collection
        assert not other.codec_options.tz_aware
        assert other.read_preference == ReadPreference.NEAREST
        assert other.write_concern == WriteConcern(w=2)
        assert other.read_concern == ReadConcern("majority")
        assert other.with_options().write_concern == WriteConcern(w=2)
        assert other.archive.write_concern == WriteConcern(w=2)
        assert client.shop.with_options(write_concern=WriteConcern(w=0)).orders.write_concern == WriteConcern(w=0)


def test_create_collection_sends_options_of_collection(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.database.create_collection(
        collection.name,
        check_exists=False,
        write_concern=WriteConcern(w=1),
        capped=True,
        size=1 << 20,
        validator={"a": 1},
        collation={"locale": "fr"},
    )
    command = recorder.command("create")
    assert command["create"] == collection.name
    assert (command["capped"], command["size"], command["validator"]) == (True, 1 << 20, {"a": 1})
    assert (command["collation"], command["writeConcern"]) == ({"locale": "fr"}, {"w": 1})
    assert "listCollections" not in recorder.commands


def test_list_collections_sends_filter_and_name_only(recorded: Recorded) -> None:
    collection, recorder = recorded
    database = collection.database
    database.list_collection_names()
    database.list_collection_names(filter={"name": "a"})
    database.list_collection_names(filter={"type": "view"}, comment="why")
    database.list_collections(filter={"name": "a"}, nameOnly=True).close()
    sent_options = [
        {key: value for key, value in command.items() if key in ("filter", "nameOnly", "comment")}
        for command in recorder.sent_commands("listCollections")
    ]
    assert sent_options == [
        {"nameOnly": True},
        {"filter": {"name": "a"}, "nameOnly": True},
        {"filter": {"type": "view"}, "comment": "why"},
        {"filter": {"name": "a"}, "nameOnly": True},
    ]


def test_drop_collection_accepts_name_and_collection(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({})
    assert collection.database.drop_collection(collection)["ok"] == 1
    collection.insert_one({})
    assert collection.database.drop_collection(collection.name, comment="why")["ok"] == 1
    collection.with_options(write_concern=WriteConcern(w=1)).drop()
    assert [command["drop"] for command in recorder.sent_commands("drop")] == [collection.name] * 3
    assert recorder.sent_commands("drop")[1]["comment"] == "why"
    assert recorder.sent_commands("drop")[2]["writeConcern"] == {"w": 1}


def test_rename_is_sent_to_the_admin_database(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({"_id": 1})
    collection.rename(f"{collection.name}_new", dropTarget=True, comment="why")
    (event,) = (event for event in recorder.events_named("CommandStarted") if event.command_name == "renameCollection")
    assert event.database_name == "admin"
    assert event.command["renameCollection"] == collection.full_name
    assert event.command["to"] == f"{collection.full_name}_new"
    assert (event.command["dropTarget"], event.command["comment"]) == (True, "why")
    new = collection.database[f"{collection.name}_new"]
    assert new.find_one() == {"_id": 1}
    new.drop()


def test_command_accepts_name_and_document(recorded: Recorded) -> None:
    collection, recorder = recorded
    database = collection.database
    collection.insert_many([{"a": 1}, {"a": 2}])
    recorder.clear()
    assert database.command("ping")["ok"] == 1
    assert database.command("count", collection.name, query={"a": 1}, comment="why")["n"] == 1
    document = {"count": collection.name, "query": {}}
    assert database.command(document)["n"] == 2
    assert document == {"count": collection.name, "query": {}}
    assert recorder.commands == ["ping", "count", "count"]
    assert recorder.sent_commands("count")[0]["comment"] == "why"


def test_failed_command_raises_unless_check_is_false_or_error_is_allowable(collection: Collection[Any]) -> None:
    command: dict[str, Any] = {"aggregate": collection.name, "pipeline": [{"$nonsense": 1}], "cursor": {}}
    database = collection.database
    with pytest.raises(OperationFailure, match="nonsense") as caught:
        database.command(command)
    assert caught.value.details is not None
    assert not database.command(command, check=False)["ok"]
    assert not database.command(command, allowable_errors=[caught.value.details["errmsg"]])["ok"]
    with pytest.raises(OperationFailure):
        database.command(command, allowable_errors=["something else", 5])


def test_command_sends_read_and_write_concern_unless_default(recorded: Recorded) -> None:
    collection, recorder = recorded
    database = collection.database
    for read, write in ((ReadConcern(), WriteConcern()), (ReadConcern("local"), WriteConcern(1))):
        database.command("find", "c", read_concern=read)
        database.command("insert", "c", documents=[{}], write_concern=write)
    assert [command.get("readConcern") for command in recorder.sent_commands("find")] == [None, {"level": "local"}]
    assert [command.get("writeConcern") for command in recorder.sent_commands("insert")] == [None, {"w": 1}]


def test_commands_ignore_the_read_preference_of_the_database(recorded: Recorded) -> None:
    database = recorded.collection.database.with_options(read_preference=ReadPreference.SECONDARY)
    assert database.command("ping")["ok"] == 1
    assert database.command("ping", read_preference=ReadPreference.NEAREST)["ok"] == 1


def test_validate_collection_sends_options_of_call(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({})
    result = collection.database.validate_collection(collection, True, True, background=False, comment="why")
    assert result["valid"]
    command = recorder.command("validate")
    assert command["validate"] == collection.name
    assert (command["scandata"], command["full"], command["background"]) == (True, True, False)
    assert command["comment"] == "why"


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


def test_closed_client_raises_invalid_operation(database: str) -> None:
    client = MongoClient[Any](database)
    client.admin.command("ping")
    client.close()
    client.close()
    with pytest.raises(InvalidOperation, match="after close"):
        client.admin.command("ping")
