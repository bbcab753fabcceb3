"""Operations that have the parameter `session`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson import DBRef

from gmongo import IndexModel, InsertOne
from gmongo._server_facts.wire_versions import CLIENT_BULK_WRITE

# For each operation: the name of the first command, and a function that runs the operation.
SESSION_OPERATIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "insert_one": ("insert", lambda client, s: client.db.c.insert_one({}, session=s)),
    "insert_many": ("insert", lambda client, s: client.db.c.insert_many([{}, {}], session=s)),
    "replace_one": ("update", lambda client, s: client.db.c.replace_one({"_id": 1}, {}, session=s)),
    "update_one": (
        "update",
        lambda client, s: client.db.c.update_one({}, {"$set": {"x": 1}}, session=s),
    ),
    "update_many": (
        "update",
        lambda client, s: client.db.c.update_many({}, {"$set": {"x": 1}}, session=s),
    ),
    "delete_one": ("delete", lambda client, s: client.db.c.delete_one({}, session=s)),
    "delete_many": ("delete", lambda client, s: client.db.c.delete_many({"x": 9}, session=s)),
    "bulk_write": ("insert", lambda client, s: client.db.c.bulk_write([InsertOne({})], session=s)),
    "client bulk_write": (
        "bulkWrite",
        lambda client, s: client.bulk_write([InsertOne({}, namespace="db.c")], session=s),
    ),
    "find_one": ("find", lambda client, s: client.db.c.find_one({}, session=s)),
    "find": ("find", lambda client, s: list(client.db.c.find({}, session=s))),
    "find_raw_batches": ("find", lambda client, s: list(client.db.c.find_raw_batches({}, session=s))),
    "aggregate": (
        "aggregate",
        lambda client, s: list(client.db.c.aggregate([{"$match": {}}], session=s)),
    ),
    "aggregate of a database": (
        "aggregate",
        lambda client, s: list(client.db.aggregate([{"$documents": [{"x": 1}]}], session=s)),
    ),
    "count_documents": ("aggregate", lambda client, s: client.db.c.count_documents({}, session=s)),
    "distinct": ("distinct", lambda client, s: client.db.c.distinct("x", session=s)),
    "find_one_and_delete": (
        "findAndModify",
        lambda client, s: client.db.c.find_one_and_delete({}, session=s),
    ),
    "find_one_and_replace": (
        "findAndModify",
        lambda client, s: client.db.c.find_one_and_replace({}, {}, session=s),
    ),
    "find_one_and_update": (
        "findAndModify",
        lambda client, s: client.db.c.find_one_and_update({}, {"$set": {"x": 1}}, session=s),
    ),
    "create_index": ("createIndexes", lambda client, s: client.db.c.create_index("x", session=s)),
    "create_indexes": (
        "createIndexes",
        lambda client, s: client.db.c.create_indexes([IndexModel("y")], session=s),
    ),
    "list_indexes": ("listIndexes", lambda client, s: list(client.db.c.list_indexes(session=s))),
    "index_information": ("listIndexes", lambda client, s: client.db.c.index_information(session=s)),
    "drop_indexes": ("dropIndexes", lambda client, s: client.db.c.drop_indexes(session=s)),
    "options": ("listCollections", lambda client, s: client.db.c.options(session=s)),
    "rename": ("renameCollection", lambda client, s: client.db.c.rename("d", session=s)),
    "drop": ("drop", lambda client, s: client.db.c.drop(session=s)),
    "watch": ("aggregate", lambda client, s: client.db.c.watch(session=s).close()),
    "command": ("ping", lambda client, s: client.db.command("ping", session=s)),
    "cursor_command": (
        "find",
        lambda client, s: list(client.db.cursor_command("find", "c", session=s)),
    ),
    "create_collection": ("create", lambda client, s: client.db.create_collection("new", session=s)),
    "list_collections": (
        "listCollections",
        lambda client, s: list(client.db.list_collections(session=s)),
    ),
    "list_collection_names": (
        "listCollections",
        lambda client, s: client.db.list_collection_names(session=s),
    ),
    "drop_collection": ("drop", lambda client, s: client.db.drop_collection("c", session=s)),
    "dereference": ("find", lambda client, s: client.db.dereference(DBRef("c", 1), session=s)),
    "list_databases": ("listDatabases", lambda client, s: list(client.list_databases(session=s))),
    "list_database_names": ("listDatabases", lambda client, s: client.list_database_names(session=s)),
    "drop_database": ("dropDatabase", lambda client, s: client.drop_database("other", session=s)),
    "server_info": ("buildinfo", lambda client, s: client.server_info(session=s)),
}

_DOCUMENTS_STAGE = 14  # MongoDB 5.1
_OLDEST_WIRE_VERSIONS = {
    "client bulk_write": CLIENT_BULK_WRITE,
    "aggregate of a database": _DOCUMENTS_STAGE,
}


def skip_if_too_old(client: Any, operation: str) -> None:
    """Skip the test if the server does not support the operation."""
    actual, required = (
        client.admin.command("hello")["maxWireVersion"],
        _OLDEST_WIRE_VERSIONS.get(operation, 0),
    )
    if actual < required:
        pytest.skip(f"version: {operation} needs a server with wire version {required}, this server has {actual}")
