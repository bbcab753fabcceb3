"""Databases and collections over clients of other libraries, which keep documents in memory, as Ming does."""

from __future__ import annotations

import pytest
from bson.codec_options import CodecOptions

import gmongo
from gmongo.collection import Collection
from gmongo.cursor import Cursor
from gmongo.database import Database
from gmongo.errors import InvalidOperation
from gmongo.gridfs import GridFS
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import Nearest
from gmongo.write_concern import WriteConcern

NAMES = ("codec_options", "read_preference", "write_concern", "read_concern")


class MongoClient:
    """Has the public attributes only; any other name is a database."""

    codec_options = CodecOptions(tz_aware=True)
    read_preference = Nearest()
    write_concern = WriteConcern(2)
    read_concern = ReadConcern("majority")

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, name):
        return Memory(self, name)


class Derived(MongoClient):
    """Is known by the name of the class that it derives from."""


class Memory(Database):
    def __getitem__(self, name):
        return Documents(self, name)


class Documents(Collection):
    def find_one(self, *arguments, **options):
        return {"_id": self.full_name}


@pytest.mark.parametrize("kind", [MongoClient, Derived])
def test_options_are_inherited_by_public_attributes(kind):
    client = kind()
    for each in (client.shop, client.shop.orders, client.shop.orders.archive):
        assert [getattr(each, name) for name in NAMES] == [getattr(client, name) for name in NAMES]
    assert client.shop.client is client
    assert client.shop.orders.with_options(write_concern=WriteConcern(1)).write_concern == WriteConcern(1)


def test_what_a_library_answers_itself_it_answers():
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
def test_what_a_library_leaves_to_gmongo_is_refused(operation):
    with pytest.raises(InvalidOperation) as refused:
        operation(MongoClient().shop)
    assert str(refused.value) == (
        f"gmongo cannot run this operation on {__name__}.MongoClient, which is another library's class, and the "
        "library does not run it either: only a MongoClient of gmongo's sends operations"
    )


def test_a_cursor_can_be_made():
    collection = MongoClient().shop.orders
    assert Cursor(collection, {}, limit=3).collection is collection


@pytest.mark.parametrize("wrong", [None, 5, "client", gmongo, object()])
def test_anything_else_is_no_client_and_no_database(wrong):
    with pytest.raises(TypeError, match="is not a MongoClient"):
        Database(wrong, "name")
    with pytest.raises(TypeError, match="is not a Database"):
        Collection(wrong, "name")


def test_a_database_is_no_client():
    with pytest.raises(TypeError, match="is not a MongoClient"):
        Database(MongoClient().shop, "name")
