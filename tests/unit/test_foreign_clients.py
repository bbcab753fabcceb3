"""gmongo's databases and collections accept a foreign client.

A foreign client is a client object of a library that stores documents in memory, like Ming.
"""

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

OPTION_NAMES = ("codec_options", "read_preference", "write_concern", "read_concern")


class MongoClient:
    """A foreign client. An attribute name that is no option selects a database."""

    codec_options = CodecOptions(tz_aware=True)
    read_preference = Nearest()
    write_concern = WriteConcern(2)
    read_concern = ReadConcern("majority")

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, name):
        return MemoryDatabase(self, name)


class DerivedClient(MongoClient):
    """A class of another name, whose base class has the required name ``MongoClient``."""


class MemoryDatabase(Database):
    def __getitem__(self, name):
        return MemoryCollection(self, name)


class MemoryCollection(Collection):
    def find_one(self, *arguments, **options):
        return {"_id": self.full_name}


@pytest.mark.parametrize("client_class", [MongoClient, DerivedClient])
def test_database_and_collection_inherit_options_of_foreign_client(client_class):
    client = client_class()
    for each in (client.shop, client.shop.orders, client.shop.orders.archive):
        assert [getattr(each, name) for name in OPTION_NAMES] == [getattr(client, name) for name in OPTION_NAMES]
    assert client.shop.client is client
    assert client.shop.orders.with_options(write_concern=WriteConcern(1)).write_concern == WriteConcern(1)


def test_overridden_method_of_library_is_called():
    assert MongoClient().shop.orders.find_one() == {"_id": "shop.orders"}


def test_cursor_on_foreign_collection_can_be_created():
    collection = MongoClient().shop.orders
    assert Cursor(collection, {}, limit=3).collection is collection


class PlainCollection(MemoryCollection):
    """A collection whose ``with_options`` accepts only PyMongo's parameters, and returns the
    collection unchanged.
    """

    def __getitem__(self, name):
        return self.database[f"{self.name}.{name}"]

    def with_options(self, codec_options=None, read_preference=None, write_concern=None, read_concern=None):
        return self


class KeyVault(PlainCollection):
    stored_keys: ClassVar[list] = []

    def insert_one(self, document):
        self.stored_keys.append(document)


def test_key_vault_of_library_stores_data_keys(monkeypatch):
    pytest.importorskip("pymongocrypt")
    monkeypatch.setattr(MemoryDatabase, "__getitem__", lambda database, name: KeyVault(database, name))
    providers = {"local": {"key": bytes(96)}}
    with ClientEncryption(providers, "keys.vault", DerivedClient(), CodecOptions()) as encryption:
        key_id = encryption.create_data_key("local")
    assert [key["_id"] for key in KeyVault.stored_keys] == [key_id]
    with pytest.raises(TypeError, match="key_vault_client must be a MongoClient"):
        ClientEncryption(providers, "keys.vault", MongoClient().keys, CodecOptions())


class CollectionWithoutIndexes(PlainCollection):
    """A collection without GridFS indexes. `list_indexes` returns an index key as a list of pairs."""

    created_indexes: ClassVar[list] = []

    def find_one(self, *arguments, **options):
        return None

    def list_indexes(self, session=None):
        return [{"key": [["filename", 1]]}, {}]

    def create_index(self, keys, session=None, unique=False):
        self.created_indexes.append((self.name, keys))


def test_gridfs_creates_missing_indexes_on_foreign_client(monkeypatch):
    monkeypatch.setattr(MemoryDatabase, "__getitem__", lambda database, name: CollectionWithoutIndexes(database, name))
    monkeypatch.setattr(MongoClient, "write_concern", WriteConcern(1))
    with pytest.raises(InvalidOperation, match="only a gmongo MongoClient sends"):
        GridFS(MongoClient().shop).put(b"x")
    expected = [
        ("fs.files", [("filename", 1), ("uploadDate", 1)]),
        ("fs.chunks", [("files_id", 1), ("n", 1)]),
    ]
    assert CollectionWithoutIndexes.created_indexes == expected


@pytest.mark.parametrize("not_a_client", [None, 5, "client", gmongo, object()])
def test_wrong_type_of_client_or_database_raises_type_error(not_a_client):
    with pytest.raises(TypeError, match="is not a MongoClient"):
        Database(not_a_client, "name")
    with pytest.raises(TypeError, match="is not a Database"):
        Collection(not_a_client, "name")


def test_database_as_client_argument_raises_type_error():
    with pytest.raises(TypeError, match="is not a MongoClient"):
        Database(MongoClient().shop, "name")
