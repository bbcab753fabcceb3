"""Databases and collections on clients of other libraries that keep documents in memory, like Ming."""

from __future__ import annotations

from typing import ClassVar

import pytest
from bson.codec_options import CodecOptions

import gmongo
from gmongo.collection import Collection
from gmongo.cursor import Cursor
from gmongo.database import Database
from gmongo.encryption import ClientEncryption
from gmongo.errors import InvalidOperation
from gmongo.gridfs import GridFS
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import Nearest
from gmongo.write_concern import WriteConcern

NAMES = ("codec_options", "read_preference", "write_concern", "read_concern")


class MongoClient:
    """A client with public attributes only. Any other name is a database."""

    codec_options = CodecOptions(tz_aware=True)
    read_preference = Nearest()
    write_concern = WriteConcern(2)
    read_concern = ReadConcern("majority")

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, name):
        return MemoryDatabase(self, name)


class DerivedClient(MongoClient):
    """A client that is recognized by the name of its base class."""


class MemoryDatabase(Database):
    def __getitem__(self, name):
        return MemoryCollection(self, name)


class MemoryCollection(Collection):
    def find_one(self, *arguments, **options):
        return {"_id": self.full_name}


@pytest.mark.parametrize("kind", [MongoClient, DerivedClient])
def test_options_are_inherited_from_public_attributes(kind):
    client = kind()
    for each in (client.shop, client.shop.orders, client.shop.orders.archive):
        assert [getattr(each, name) for name in NAMES] == [getattr(client, name) for name in NAMES]
    assert client.shop.client is client
    assert client.shop.orders.with_options(write_concern=WriteConcern(1)).write_concern == WriteConcern(1)


def test_overridden_method_of_library_is_called():
    assert MongoClient().shop.orders.find_one() == {"_id": "shop.orders"}


@pytest.mark.parametrize(
    "operation",
    [
        lambda database: database.command("ping"),
        lambda database: database.orders.insert_one({}),
        lambda database: database.orders.find().next(),
        lambda database: database.orders.aggregate([]),
        lambda database: database.orders.watch(),
        lambda database: database.get_collection("orders", timeout_ms=5).count_documents({}),
        lambda database: GridFS(database.with_options(write_concern=WriteConcern(1))).put(b"x"),
    ],
)
def test_operation_without_override_raises_invalid_operation(operation):
    with pytest.raises(InvalidOperation) as refused:
        operation(MongoClient().shop)
    assert str(refused.value) == (
        f"gmongo cannot run this operation on {__name__}.MongoClient, which is another library's class: "
        "only a gmongo MongoClient sends operations"
    )


def test_cursor_on_foreign_collection_can_be_created():
    collection = MongoClient().shop.orders
    assert Cursor(collection, {}, limit=3).collection is collection


class PlainCollection(MemoryCollection):
    """A collection that accepts PyMongo's options only, and returns itself."""

    def __getitem__(self, name):
        return self.database[f"{self.name}.{name}"]

    def with_options(self, codec_options=None, read_preference=None, write_concern=None, read_concern=None):
        return self


class KeyVault(PlainCollection):
    kept: ClassVar[list] = []

    def insert_one(self, document):
        self.kept.append(document)


def test_key_vault_of_library_stores_data_keys(monkeypatch):
    pytest.importorskip("pymongocrypt")
    monkeypatch.setattr(MemoryDatabase, "__getitem__", lambda database, name: KeyVault(database, name))
    providers = {"local": {"key": bytes(96)}}
    with ClientEncryption(providers, "keys.vault", DerivedClient(), CodecOptions()) as encryption:
        made = encryption.create_data_key("local")
    assert [key["_id"] for key in KeyVault.kept] == [made]
    with pytest.raises(TypeError, match="key_vault_client must be a MongoClient"):
        ClientEncryption(providers, "keys.vault", MongoClient().keys, CodecOptions())


class WithoutIndexes(PlainCollection):
    """A collection that describes an index as pairs."""

    made: ClassVar[list] = []

    def find_one(self, *arguments, **options):
        return None

    def list_indexes(self, session=None):
        return [{"key": [["filename", 1]]}, {}]

    def create_index(self, keys, session=None, unique=False):
        self.made.append((self.name, keys))


def test_gridfs_creates_missing_indexes_on_foreign_client(monkeypatch):
    monkeypatch.setattr(MemoryDatabase, "__getitem__", lambda database, name: WithoutIndexes(database, name))
    monkeypatch.setattr(MongoClient, "write_concern", WriteConcern(1))
    with pytest.raises(InvalidOperation):
        GridFS(MongoClient().shop).put(b"x")
    expected = [("fs.files", [("filename", 1), ("uploadDate", 1)]), ("fs.chunks", [("files_id", 1), ("n", 1)])]
    assert WithoutIndexes.made == expected


@pytest.mark.parametrize("wrong", [None, 5, "client", gmongo, object()])
def test_wrong_type_of_client_or_database_raises(wrong):
    with pytest.raises(TypeError, match="is not a MongoClient"):
        Database(wrong, "name")
    with pytest.raises(TypeError, match="is not a Database"):
        Collection(wrong, "name")


def test_database_as_client_raises():
    with pytest.raises(TypeError, match="is not a MongoClient"):
        Database(MongoClient().shop, "name")
