"""Clients, databases and collections as objects, and what administers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions
from bson.timestamp import Timestamp

from gmongo import MongoClient, ReadPreference, WriteConcern
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.errors import (
    CollectionInvalid,
    ConfigurationError,
    InvalidName,
    InvalidOperation,
    OperationFailure,
)
from gmongo.read_concern import ReadConcern

from .recording import Recorded, recorded_collection, refused_before

_NO_REPLICATION = 20
"""The code of IllegalOperation: a standalone has no cluster time."""


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        yield recorded


# Objects


def test_databases_and_collections_by_attribute_and_item(client: MongoClient[Any]) -> None:
    assert isinstance(client.shop, Database)
    assert isinstance(client.shop.orders, Collection)
    assert client.shop == client["shop"] == client.get_database("shop")
    assert client.shop.orders == client["shop"]["orders"] == client.shop.get_collection("orders")
    assert client.shop.orders.full_name == "shop.orders"
    assert client.shop.orders.archive["2024"].full_name == "shop.orders.archive.2024"
    assert client.shop.orders.database is not None
    assert client.shop.client is client
    assert client.shop.name == "shop"


def test_equal_objects_hash_alike_and_others_differ(client: MongoClient[Any]) -> None:
    assert {client.shop: 1}[client["shop"]] == 1
    assert {client.shop.orders: 1}[client["shop"]["orders"]] == 1
    assert client.shop != client.store
    assert client.shop.orders != client.shop.clients
    assert client.shop != "shop"


def test_clients_of_the_same_deployment_are_equal(database: str) -> None:
    one: MongoClient[Any] = MongoClient(database, connect=False)
    two: MongoClient[Any] = MongoClient(database, connect=False)
    third: MongoClient[Any] = MongoClient(database, connect=False, maxPoolSize=7)
    other: MongoClient[Any] = MongoClient("other.example.com", connect=False)
    assert one == two == third
    assert hash(one) == hash(two) == hash(third)
    assert one != other
    for client in (one, two, third, other):
        client.close()


def test_a_client_is_true_so_that_an_application_may_ask_whether_it_has_one(client: MongoClient[Any]) -> None:
    assert client


def test_none_of_them_is_callable_or_iterable_and_no_collection_is_true(client: MongoClient[Any]) -> None:
    for thing in (client.shop, client.shop.orders):
        with pytest.raises(NotImplementedError):
            bool(thing)
    for thing in (client, client.shop, client.shop.orders):
        with pytest.raises(TypeError):
            iter(thing)  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            next(thing)
    with pytest.raises(TypeError, match="save"):
        client.shop.orders.save({})
    with pytest.raises(TypeError, match="'Database' object is not callable"):
        client.shutdown()


def test_names_that_begin_with_an_underscore_need_an_item(client: MongoClient[Any]) -> None:
    with pytest.raises(AttributeError, match="_shop"):
        _ = client._shop
    with pytest.raises(AttributeError, match="_orders"):
        _ = client.shop._orders
    assert client["_shop"]["_orders"].full_name == "_shop._orders"


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a$b", "a/b", "a\\b", "a\x00b", 'a"b'])
def test_names_that_no_database_can_have(client: MongoClient[Any], name: str) -> None:
    with pytest.raises(InvalidName, match="database"):
        client[name]


@pytest.mark.parametrize("name", ["", "a..b", "a$b", ".a", "a.", "a\x00b"])
def test_names_that_no_collection_can_have(client: MongoClient[Any], name: str) -> None:
    with pytest.raises(InvalidName, match="collection"):
        client.shop[name]


def test_reprs_tell_what_they_are(client: MongoClient[Any]) -> None:
    assert repr(client).startswith("MongoClient(host=[")
    assert repr(client.shop.orders) == f"Collection(Database({client!r}, 'shop'), 'orders')"


def test_options_go_down_from_client_to_collection_and_can_be_replaced(database: str) -> None:
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


def test_the_default_database(database: str) -> None:
    start, _, options = database.rpartition("/")
    with MongoClient[Any](f"{start}/stock{options}", connect=False) as client:
        assert client.get_default_database().name == "stock"
        assert client.get_database().name == "stock"
        assert client.get_default_database("other", write_concern=WriteConcern(w=0)).write_concern.document == {"w": 0}
    with MongoClient[Any](database, connect=False) as client:
        assert client.get_default_database("other").name == "other"
        with pytest.raises(ConfigurationError, match="default database"):
            client.get_default_database()


# Databases and collections on the server


def test_collections_are_created_listed_and_dropped(recorded: Recorded) -> None:
    collection, recorder = recorded
    database, name = collection.database, collection.name
    created = database.create_collection(name)
    assert created == collection
    assert name in database.list_collection_names()
    assert [each["name"] for each in database.list_collections() if each["name"] == name] == [name]
    with pytest.raises(CollectionInvalid, match=f"collection {name} already exists"):
        database.create_collection(name)
    collection.insert_one({})
    collection.drop()
    assert name not in database.list_collection_names()
    assert recorder.commands.count("create") == 1


def test_create_collection_sends_its_options(recorded: Recorded) -> None:
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


def test_lists_of_collections_are_filtered_by_the_server(recorded: Recorded) -> None:
    collection, recorder = recorded
    database = collection.database
    database.list_collection_names()
    database.list_collection_names(filter={"name": "a"})
    database.list_collection_names(filter={"type": "view"}, comment="why")
    database.list_collections(filter={"name": "a"}, nameOnly=True).close()
    shown = [
        {key: value for key, value in command.items() if key in ("filter", "nameOnly", "comment")}
        for command in recorder.sent("listCollections")
    ]
    assert shown == [
        {"nameOnly": True},
        {"filter": {"name": "a"}, "nameOnly": True},
        {"filter": {"type": "view"}, "comment": "why"},
        {"filter": {"name": "a"}, "nameOnly": True},
    ]


def test_drop_collection_takes_a_name_or_a_collection(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({})
    assert collection.database.drop_collection(collection)["ok"] == 1
    collection.insert_one({})
    assert collection.database.drop_collection(collection.name, comment="why")["ok"] == 1
    collection.with_options(write_concern=WriteConcern(w=1)).drop()
    assert [command["drop"] for command in recorder.sent("drop")] == [collection.name] * 3
    assert recorder.sent("drop")[1]["comment"] == "why"
    assert recorder.sent("drop")[2]["writeConcern"] == {"w": 1}


def test_rename_is_sent_to_the_admin_database(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({"_id": 1})
    collection.rename(f"{collection.name}_new", dropTarget=True, comment="why")
    (event,) = (event for event in recorder.of("CommandStarted") if event.command_name == "renameCollection")
    assert event.database_name == "admin"
    assert event.command["renameCollection"] == collection.full_name
    assert event.command["to"] == f"{collection.full_name}_new"
    assert (event.command["dropTarget"], event.command["comment"]) == (True, "why")
    new = collection.database[f"{collection.name}_new"]
    assert new.find_one() == {"_id": 1}
    new.drop()


def test_collection_options_are_a_mapping(recorded: Recorded) -> None:
    collection, recorder = recorded
    assert collection.options(comment="why") == {}
    command = recorder.command("listCollections")
    assert (command["filter"], command["comment"]) == ({"name": collection.name}, "why")


def test_databases_are_listed_and_dropped(recorded: Recorded) -> None:
    collection, recorder = recorded
    client = collection.database.client
    client[collection.name].things.insert_one({})
    assert collection.name in client.list_database_names()
    assert collection.name in [each["name"] for each in client.list_databases(filter={}, comment="why")]
    names_only, described = recorder.sent("listDatabases")
    assert names_only["nameOnly"] is True
    assert (described["filter"], described["comment"]) == ({}, "why")
    client.drop_database(collection.name, comment="why")
    assert collection.name not in client.list_database_names()
    assert recorder.command("dropDatabase")["comment"] == "why"
    client.drop_database(client[collection.name])


def test_dereference(collection: Collection[Any]) -> None:
    collection.insert_one({"_id": 1, "a": 2})
    database = collection.database
    assert database.dereference(bson.DBRef(collection.name, 1)) == {"_id": 1, "a": 2}
    assert database.dereference(bson.DBRef(collection.name, 1, database.name)) == {"_id": 1, "a": 2}
    assert database.dereference(bson.DBRef(collection.name, 7)) is None
    with pytest.raises(ValueError, match="other"):
        database.dereference(bson.DBRef(collection.name, 1, "other"))


# Commands


def test_command_by_name_and_as_a_document(recorded: Recorded) -> None:
    collection, recorder = recorded
    database = collection.database
    collection.insert_many([{"a": 1}, {"a": 2}])
    recorder.forget()
    assert database.command("ping")["ok"] == 1
    assert database.command("count", collection.name, query={"a": 1}, comment="why")["n"] == 1
    given = {"count": collection.name, "query": {}}
    assert database.command(given)["n"] == 2
    assert given == {"count": collection.name, "query": {}}
    assert recorder.commands == ["ping", "count", "count"]
    assert recorder.sent("count")[0]["comment"] == "why"


def test_a_failing_command_raises_unless_told_otherwise(collection: Collection[Any]) -> None:
    command: dict[str, Any] = {"aggregate": collection.name, "pipeline": [{"$nonsense": 1}], "cursor": {}}
    database = collection.database
    with pytest.raises(OperationFailure, match="nonsense") as caught:
        database.command(command)
    assert caught.value.details is not None
    assert not database.command(command, check=False)["ok"]
    assert not database.command(command, allowable_errors=[caught.value.details["errmsg"]])["ok"]
    with pytest.raises(OperationFailure):
        database.command(command, allowable_errors=["something else", 5])


def test_concerns_of_a_command_are_sent_unless_they_are_the_servers_default(recorded: Recorded) -> None:
    collection, recorder = recorded
    database = collection.database
    for read, write in ((ReadConcern(), WriteConcern()), (ReadConcern("local"), WriteConcern(1))):
        database.command("find", "c", read_concern=read)
        database.command("insert", "c", documents=[{}], write_concern=write)
    assert [command.get("readConcern") for command in recorder.sent("find")] == [None, {"level": "local"}]
    assert [command.get("writeConcern") for command in recorder.sent("insert")] == [None, {"w": 1}]


def test_commands_ignore_the_read_preference_of_the_database(recorded: Recorded) -> None:
    database = recorded.collection.database.with_options(read_preference=ReadPreference.SECONDARY)
    assert database.command("ping")["ok"] == 1
    assert database.command("ping", read_preference=ReadPreference.NEAREST)["ok"] == 1


def test_command_decodes_by_the_given_options(collection: Collection[Any]) -> None:
    reply = collection.database.command("ping", codec_options=CodecOptions(document_class=bson.SON))
    assert isinstance(reply, bson.SON)


def test_cursor_command_iterates_over_all_batches(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_many([{"_id": n} for n in range(5)])
    cursor = collection.database.cursor_command("find", collection.name, batchSize=2, comment="why")
    assert [each["_id"] for each in cursor] == [0, 1, 2, 3, 4]
    assert recorder.sent("getMore")[0]["collection"] == collection.name


def test_validate_collection_sends_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({})
    result = collection.database.validate_collection(collection, True, True, background=False, comment="why")
    assert result["valid"]
    command = recorder.command("validate")
    assert command["validate"] == collection.name
    assert (command["scandata"], command["full"], command["background"]) == (True, True, False)
    assert command["comment"] == "why"


# What the client knows


def test_the_client_knows_its_server(client: MongoClient[Any]) -> None:
    assert client.address is not None
    host, port = client.address
    assert client.nodes == {(host, port)}
    assert client.is_primary
    assert not client.is_mongos
    is_of_a_set = "setName" in client.admin.command("hello")
    assert client.primary == ((host, port) if is_of_a_set else None)
    assert client.secondaries == client.arbiters == set()
    assert client.topology_description.has_known_servers
    assert client.server_info()["ok"] == 1


def test_pool_stats_count_connections(client: MongoClient[Any]) -> None:
    client.admin.command("ping")
    (stats,) = client.pool_stats()
    assert (stats["address"], stats["total"], stats["available"], stats["in_use"]) == (client.address, 1, 1, 0)


def test_a_closed_client_cannot_be_used(database: str) -> None:
    client = MongoClient[Any](database)
    client.admin.command("ping")
    client.close()
    client.close()
    with pytest.raises(InvalidOperation, match="after close"):
        client.admin.command("ping")


# Sessions


def test_operations_of_a_session_carry_its_id(recorded: Recorded) -> None:
    collection, recorder = recorded
    with collection.database.client.start_session() as session:
        assert isinstance(session, ClientSession)
        assert session.client is collection.database.client
        assert session.options.causal_consistency
        assert not session.has_ended
        assert not session.in_transaction
        session_id = dict(session.session_id)
        collection.insert_one({"_id": 1}, session=session)
        collection.insert_many([{"_id": 2}, {"_id": 3}], session=session)
        collection.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
        assert [each["_id"] for each in collection.find(session=session, batch_size=2)] == [1, 2, 3]
        collection.find_one({}, session=session)
        collection.count_documents({}, session=session)
        collection.distinct("a", session=session)
        collection.create_index("a", session=session)
        collection.index_information(session=session)
        collection.find_one_and_delete({"_id": 3}, session=session)
        collection.delete_many({}, session=session)
        collection.database.list_collection_names(session=session)
        collection.database.command("ping", session=session)
        collection.drop(session=session)
    assert len(recorder.of("CommandStarted")) == 15
    assert all(event.command["lsid"] == session_id for event in recorder.of("CommandStarted"))
    assert session.has_ended


def test_an_ended_session_cannot_be_used(recorded: Recorded) -> None:
    collection, recorder = recorded
    session = collection.database.client.start_session()
    session.end_session()
    session.end_session()
    for use in (
        lambda: collection.find_one(session=session),
        lambda: collection.insert_one({}, session=session),
        lambda: session.session_id,
    ):
        with pytest.raises(InvalidOperation, match="ended session"):
            use()
    assert recorder.commands == []


def test_a_session_that_has_ended_is_used_again(recorded: Recorded) -> None:
    collection, recorder = recorded
    with collection.database.client.start_session() as session:
        collection.find_one(session=session)
    collection.find_one()
    first, second = recorder.sent("find")
    assert first["lsid"] == second["lsid"]


def test_a_session_of_another_client_is_refused(collection: Collection[Any], database: str) -> None:
    with (
        MongoClient[Any](database) as other,
        other.start_session() as session,
        pytest.raises(InvalidOperation, match="the MongoClient that started it"),
    ):
        collection.find_one(session=session)


def test_sessions_advance_their_times_only_forward(client: MongoClient[Any]) -> None:
    with client.start_session(causal_consistency=False) as session:
        assert not session.options.causal_consistency
        assert session.operation_time is None
        session.advance_operation_time(Timestamp(5, 1))
        session.advance_operation_time(Timestamp(4, 1))
        assert session.operation_time == Timestamp(5, 1)
        session.advance_cluster_time({"clusterTime": Timestamp(5, 1)})
        session.advance_cluster_time({"clusterTime": Timestamp(4, 1)})
        assert session.cluster_time == {"clusterTime": Timestamp(5, 1)}
        with pytest.raises(TypeError):
            session.advance_operation_time(5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="clusterTime"):
            session.advance_cluster_time({})


def test_reads_of_a_causal_session_come_after_what_it_has_seen(recorded: Recorded) -> None:
    collection, recorder = recorded
    with collection.database.client.start_session() as session:
        session.advance_operation_time(Timestamp(5, 1))
        with refused_before(collection, "99.0", _NO_REPLICATION):
            collection.find_one(session=session)
    assert recorder.command("find")["readConcern"] == {"afterClusterTime": Timestamp(5, 1)}
