"""On a foreign client, a method that sends a command raises an error unless the library overrides the
method. A foreign client is a client object of another library, like Ming.
"""

from __future__ import annotations

import inspect
import io

import pytest
from bson.codec_options import CodecOptions
from bson.dbref import DBRef

from gmongo.collection import Collection
from gmongo.cursor import CursorType
from gmongo.database import Database
from gmongo.errors import InvalidOperation
from gmongo.gridfs import GridFS, GridFSBucket, GridIn
from gmongo.operations.models import IndexModel, InsertOne, SearchIndexModel
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import Primary
from gmongo.write_concern import WriteConcern


class MongoClient:
    """A foreign client that records the names of the requested databases."""

    codec_options = CodecOptions()
    read_preference = Primary()
    write_concern = WriteConcern(1)
    read_concern = ReadConcern()

    def __init__(self, database_class):
        self.database_class = database_class
        self.requested_names = []

    def __getattr__(self, name):
        self.requested_names.append(name)
        return self.database_class(self, name)


class NarrowDatabase(Database):
    """A database like Ming's database: its methods accept fewer parameters than the methods of
    gmongo's database.
    """

    def __getitem__(self, name):
        return NarrowCollection(self, name)

    def with_options(self, codec_options=None, read_preference=None, write_concern=None, read_concern=None):
        return self

    def list_collection_names(self):
        return []


class NarrowCollection(Collection):
    def with_options(self, codec_options=None, read_preference=None, write_concern=None, read_concern=None):
        return self

    def aggregate(self, pipeline):
        return []


TARGET_FACTORIES = {
    "Database": lambda database: database,
    "Collection": lambda database: database.orders,
    "GridFS": GridFS,
    "GridFSBucket": GridFSBucket,
}
METHODS_WITHOUT_OPERATION = {"get_collection", "next", "with_options"}
ARGUMENTS = {
    "command": "ping", "data": b"x", "dbref": DBRef("orders", 1), "definition": {},
    "destination": io.BytesIO(), "document": {}, "documents": [{}], "file_id": 1, "filename": "a",
    "filter": {}, "index_or_name": "a_1", "indexes": [IndexModel("a")], "key": "a", "keys": "a",
    "model": SearchIndexModel({}, name="a"), "models": [SearchIndexModel({}, name="a")],
    "name": "a", "name_or_collection": "a", "new_filename": "b", "new_name": "b", "pipeline": [],
    "replacement": {}, "requests": [InsertOne({})], "source": b"x", "update": {"$set": {"a": 1}},
}  # fmt: skip
# Parameter values that select an alternative code path of an operation.
ALTERNATIVES = {"check_exists": False, "encrypted_fields": {"fields": []}, "pipeline": [{"$out": "b"}], "timeout_ms": 5}
METHOD_ALTERNATIVES = {
    "create_collection": {"encryptedFields": {"fields": []}},
    "find": {"cursor_type": CursorType.EXHAUST},
    "find_raw_batches": {"cursor_type": CursorType.EXHAUST},
}


def arguments_of_calls(target, method_name):
    signature_parameters = inspect.signature(getattr(target, method_name)).parameters.values()
    required_names = [
        each.name
        for each in signature_parameters
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    required_arguments = {each: ARGUMENTS[each] for each in required_names}
    chosen = {each.name: ALTERNATIVES[each.name] for each in signature_parameters if each.name in ALTERNATIVES}
    if isinstance(target, (Database, Collection)):
        chosen |= METHOD_ALTERNATIVES.get(method_name, {})
    return [required_arguments, *({**required_arguments, each: value} for each, value in chosen.items())]


CALLS = [
    (database_class, kind, name, arguments)
    for database_class in (Database, NarrowDatabase)
    for kind, make in TARGET_FACTORIES.items()
    for target in [make(MongoClient(database_class).shop)]
    for name, _ in inspect.getmembers(type(target), callable)
    if not name.startswith("_") and name not in METHODS_WITHOUT_OPERATION
    if database_class is Database or name not in vars(type(target)) or kind.startswith("GridFS")
    for arguments in arguments_of_calls(target, name)
]


@pytest.mark.parametrize(("database_class", "target_name", "method_name", "arguments"), CALLS)
def test_operation_on_foreign_client_raises_invalid_operation(database_class, target_name, method_name, arguments):
    client = MongoClient(database_class)
    method = getattr(TARGET_FACTORIES[target_name](client.shop), method_name)
    with pytest.raises(InvalidOperation, match=f"on {__name__}.MongoClient, which is another library's class"):
        use_result(method(**arguments))
    assert client.requested_names == ["shop"], "gmongo read a private name as a database"


def use_result(result):
    if isinstance(result, GridIn):
        result.close()
    elif hasattr(result, "read"):
        result.read()
    else:
        next(result)


def test_method_that_sends_no_command_succeeds_on_foreign_client():
    database = MongoClient(Database).shop
    assert database.get_collection("orders", timeout_ms=5) == database.orders
    assert database.with_options(timeout_ms=5) == database
    assert database.orders.with_options(timeout_ms=5) == database.orders
