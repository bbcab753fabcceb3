"""Attributes of clients, and commands of databases."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo import MongoClient, WriteConcern
from gmongo.errors import InvalidOperation, OperationFailure
from gmongo.read_concern import ReadConcern
from tests.support.server import ScriptedServer

from .recording import Recorded


def test_repr_names_class_and_arguments(client: MongoClient[Any]) -> None:
    assert repr(client).startswith("MongoClient(host=[")
    assert repr(client.shop.orders) == f"Collection(Database({client!r}, 'shop'), 'orders')"


def test_command_sends_read_and_write_concern_unless_default(recorded: Recorded) -> None:
    collection, recorder = recorded
    database = collection.database
    for read, write in ((ReadConcern(), WriteConcern()), (ReadConcern("local"), WriteConcern(1))):
        database.command("find", "c", read_concern=read)
        database.command("insert", "c", documents=[{}], write_concern=write)
    assert [command.get("readConcern") for command in recorder.sent_commands("find")] == [None, {"level": "local"}]
    assert [command.get("writeConcern") for command in recorder.sent_commands("insert")] == [None, {"w": 1}]


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
                with pytest.raises(OperationFailure, match=text):
                    drop()
        assert [each["index"] for each in server.commands("dropIndexes")] == ["*", "a_1"]
