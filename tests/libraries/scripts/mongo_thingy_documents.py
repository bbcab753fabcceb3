from __future__ import annotations

import os

import gevent
import pymongo
import pytest
from mongo_thingy import Thingy, connect, disconnect


class Foo(Thingy):
    pass


@pytest.fixture(autouse=True)
def open_connection():
    connect(os.environ["MONGODB_URI"].rstrip("/") + "/thingy")
    yield
    Foo.client.drop_database("thingy")
    disconnect()


def test_document_is_saved_updated_and_deleted():
    foo = Foo({"bar": "baz"}).save()
    assert Foo.find_one(foo.id).bar == "baz"
    foo.bar = "qux"
    foo.save()
    assert Foo.count_documents({"bar": "qux"}) == 1
    assert [each.bar for each in Foo.find()] == ["qux"]
    foo.delete()
    assert Foo.find_one() is None


def test_cursor_supports_sort_skip_and_index():
    Foo.collection.insert_many([{"n": number} for number in range(10)])
    assert [each.n for each in Foo.find({"n": {"$gt": 3}}).sort("n", -1).skip(1)] == [8, 7, 6, 5, 4]
    assert Foo.find().sort("n")[4].n == 4
    assert Foo.distinct("n") == list(range(10))


def test_duplicate_of_unique_index_raises_duplicate_key_error():
    Foo.add_index("bar", unique=True)
    Foo.create_indexes()
    Foo({"bar": 1}).save()
    with pytest.raises(pymongo.errors.DuplicateKeyError):
        Foo({"bar": 1}).save()
    Foo._indexes.clear()


def test_thirty_concurrent_greenlets_save_documents():
    greenlets = [gevent.spawn(lambda number=number: Foo({"n": number}).save()) for number in range(30)]
    gevent.joinall(greenlets, raise_error=True)
    assert Foo.count_documents({}) == 30
