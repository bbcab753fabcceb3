from __future__ import annotations

import gridfs
import mongomock
import pymongo
import pytest
from mongomock.gridfs import enable_gridfs_integration
from pymongo import DeleteMany, DeleteOne, InsertOne, UpdateMany

enable_gridfs_integration()


@pytest.fixture
def database():
    return mongomock.MongoClient().shop


def test_files(database):
    files = gridfs.GridFS(database)
    name = files.put(b"x" * 600_000, filename="a", kind=5)
    assert files.get(name).read() == b"x" * 600_000
    assert [each.filename for each in files.find({"kind": 5})] == ["a"]
    assert files.find_one({"filename": "a"}).kind == 5
    assert files.find({"kind": 5}).next().read(3) == b"xxx"
    assert (files.exists(filename="a"), files.exists(filename="b"), files.list()) == (True, False, ["a"])
    assert files.get_last_version("a").length == files.get_version("a", 0).length == 600_000
    files.delete(name)
    assert (files.exists(name), files.list(), database.fs.chunks.count_documents({})) == (False, [], 0)
    with pytest.raises(gridfs.NoFile):
        files.get(name)
    with files.new_file(filename="lines") as file:
        file.write(b"one\ntwo\n")
    assert list(files.get_last_version("lines")) == [b"one\n", b"two\n"]


def test_anything_else_is_no_database():
    with pytest.raises(TypeError):
        gridfs.GridFS({})
    with pytest.raises(TypeError):
        gridfs.GridFSBucket(mongomock.MongoClient())


def test_bulk_writes_are_told_what_to_do(database):
    writes = [InsertOne({"_id": 1}), InsertOne({"_id": 2}), InsertOne({"_id": 3}), UpdateMany({}, {"$set": {"x": 1}})]
    result = database.notes.bulk_write([*writes, DeleteOne({"_id": 1}), DeleteMany({"_id": 2})])
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (3, 3, 2)
    assert list(database.notes.find()) == [{"_id": 3, "x": 1}]
    with pytest.raises(pymongo.errors.BulkWriteError):
        database.notes.bulk_write([InsertOne({"_id": 3})])


@mongomock.patch(servers=(("server.example", 27017),))
def test_a_patched_client_is_mongomocks():
    client = pymongo.MongoClient("server.example")
    client.shop.notes.insert_one({"_id": 1})
    assert client.shop.notes.find_one() == {"_id": 1}
    assert client.shop.notes.find_one_and_update(
        {"_id": 1}, {"$set": {"x": 2}}, return_document=pymongo.ReturnDocument.AFTER
    ) == {"_id": 1, "x": 2}
    with pytest.raises(pymongo.errors.DuplicateKeyError):
        client.shop.notes.insert_one({"_id": 1})
