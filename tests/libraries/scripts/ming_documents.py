from __future__ import annotations

import os

import gevent
import pymongo
import pytest
from bson import ObjectId
from ming import Field, Session, create_datastore, schema
from ming.declarative import Document
from ming.odm import (
    FieldProperty,
    ForeignIdProperty,
    MappedClass,
    Mapper,
    RelationProperty,
    ThreadLocalODMSession,
)
from pymongo.errors import BulkWriteError, DuplicateKeyError, InvalidName, InvalidOperation, OperationFailure

WHERE = {"server": f"{os.environ['MONGODB_URI'].rstrip('/')}/ming_script", "memory": "mim:///ming_script"}
session = Session()
odm = ThreadLocalODMSession(doc_session=session)


class Page(Document):
    class __mongometa__:
        session = session
        name = "pages"
        indexes = ["title"]
        unique_indexes = [("slug",)]

    _id = Field(schema.ObjectId)
    title = Field(str)
    slug = Field(str)
    views = Field(int, if_missing=0)
    tags = Field([str])


class Author(MappedClass):
    class __mongometa__:
        session = odm
        name = "authors"

    _id = FieldProperty(schema.ObjectId)
    name = FieldProperty(str)
    books = RelationProperty("Book")


class Book(MappedClass):
    class __mongometa__:
        session = odm
        name = "books"

    _id = FieldProperty(schema.ObjectId)
    title = FieldProperty(schema.String(required=True))
    author_id = ForeignIdProperty("Author")
    author = RelationProperty("Author")


Mapper.compile_all()


@pytest.fixture(params=sorted(WHERE))
def database(request):
    datastore = create_datastore(WHERE[request.param])
    session.bind = datastore
    yield datastore.db
    odm.clear()
    datastore.conn.drop_database("ming_script")


@pytest.fixture
def things(database):
    things = database.things
    things.insert_many([{"_id": n, "n": n, "even": n % 2 == 0, "tags": ["t"] * n} for n in range(10)])
    return things


def ids(found):
    return [each["_id"] for each in found]


# What is asked of a collection, in memory and on a server, and the outcome.
CALLS = {
    "insert_one": (lambda c: c.insert_one({"_id": 77}).inserted_id, 77),
    "insert_one, twice": (lambda c: c.insert_one({"_id": 1}), DuplicateKeyError),
    "insert_many": (lambda c: c.insert_many([{"_id": 20}, {"_id": 21}]).inserted_ids, [20, 21]),
    "find_one": (lambda c: c.find_one({"_id": 3})["n"], 3),
    "find_one by id": (lambda c: c.find_one(3)["n"], 3),
    "find_one, nothing": (lambda c: c.find_one({"_id": 99}), None),
    "find": (lambda c: sorted(ids(c.find({"even": True}))), [0, 2, 4, 6, 8]),
    "find, sorted": (lambda c: ids(c.find().sort("n", -1))[:3], [9, 8, 7]),
    "find, limited": (lambda c: ids(c.find().sort("n", 1).skip(2).limit(3)), [2, 3, 4]),
    "find, operators": (lambda c: sorted(ids(c.find({"n": {"$gt": 3, "$lte": 5}}))), [4, 5]),
    "find, or": (lambda c: sorted(ids(c.find({"$or": [{"n": 1}, {"n": 8}]}))), [1, 8]),
    "find, projection": (lambda c: c.find_one({"_id": 2}, {"n": 1}), {"_id": 2, "n": 2}),
    "find, wrong option": (lambda c: c.find(nothing=1), TypeError),
    "count_documents": (lambda c: c.count_documents({"even": True}), 5),
    "estimated_document_count": (lambda c: c.estimated_document_count(), 10),
    "distinct": (lambda c: sorted(c.distinct("even")), [False, True]),
    "update_one": (lambda c: c.update_one({"_id": 1}, {"$set": {"n": 5}}).modified_count, 1),
    "update_one, nothing": (lambda c: c.update_one({"_id": 99}, {"$set": {"n": 5}}).matched_count, 0),
    "update_one, upsert": (lambda c: c.update_one({"_id": 50}, {"$set": {"n": 5}}, upsert=True).upserted_id, 50),
    "update_many": (lambda c: c.update_many({"even": True}, {"$inc": {"n": 1}}).matched_count, 5),
    "find_one_and_update": (lambda c: c.find_one_and_update({"_id": 1}, {"$set": {"n": 8}})["n"], 1),
    "find_one_and_delete": (lambda c: c.find_one_and_delete({"_id": 1})["_id"], 1),
    "delete_one": (lambda c: (c.delete_one({"even": True}).deleted_count, c.count_documents({})), (1, 9)),
    "delete_many": (lambda c: (c.delete_many({"even": True}).deleted_count, c.count_documents({})), (5, 5)),
    "bulk_write": (lambda c: c.bulk_write([pymongo.UpdateOne({"_id": 1}, {"$set": {"n": 0}})]).modified_count, 1),
    "create_index": (lambda c: (c.create_index("n"), "n_1" in c.index_information()), ("n_1", True)),
    "create_index, unique": (lambda c: c.create_index([("n", 1), ("even", -1)], unique=True), "n_1_even_-1"),
    "index that is not unique": (
        lambda c: (c.create_index("slug", unique=True), c.insert_one({"slug": "a"}), c.insert_one({"slug": "a"})),
        DuplicateKeyError,
    ),
    "drop": (lambda c: (c.drop(), c.count_documents({}))[1], 0),
    "names": (lambda c: (c.name, c.full_name, c.database.name), ("things", "ming_script.things", "ming_script")),
    "a collection below": (lambda c: c.files.full_name, "ming_script.things.files"),
    "list_collection_names": (lambda c: "things" in c.database.list_collection_names(), True),
    "a wrong name": (lambda c: pymongo.collection.Collection(c.database, ".wrong"), InvalidName),
    "codec_options": (lambda c: c.codec_options.tz_aware, False),
}


OTHERWISE_IN_MEMORY = {"create_index", "create_index, unique", "drop", "insert_one"}


@pytest.mark.parametrize(
    ("database", "call"),
    [
        (where, call)
        for call in sorted(CALLS)
        for where in WHERE
        if where == "server" or call not in OTHERWISE_IN_MEMORY
    ],
    indirect=["database"],
)
def test_a_call(call, things, request):
    ask, expected = CALLS[call]
    if call == "index that is not unique":
        things.delete_many({})
    if isinstance(expected, type):
        with pytest.raises(expected):
            ask(things)
    else:
        assert ask(things) == expected


def test_documents(database):
    Page.m.ensure_indexes()
    page = Page({"title": "One", "slug": "one", "tags": ["a"]})
    page.m.save()
    assert Page.m.get(slug="one")._id == page._id
    page.views = 3
    page.m.save()
    assert Page.m.find({"views": 3}).count() == 1
    assert Page.m.find().sort("title").first().title == "One"
    with pytest.raises(DuplicateKeyError):
        Page({"title": "Two", "slug": "one"}).m.save()
    with pytest.raises(schema.Invalid):
        Page({"title": 5}).m.save()
    page.m.delete()
    assert Page.m.find().all() == []
    Page({"slug": "x"}).m.insert()
    Page.m.remove({})
    assert database.pages.count_documents({}) == 0


def test_mapped_objects(database):
    ada = Author(name="Ada")
    books = [Book(title=f"Book {n}", author_id=ada._id) for n in range(3)]
    odm.flush()
    odm.clear()
    found = Author.query.get(name="Ada")
    assert sorted(book.title for book in found.books) == ["Book 0", "Book 1", "Book 2"]
    assert Book.query.find({"title": "Book 1"}).first().author is found
    Book.query.get(_id=books[0]._id).title = "New"
    odm.flush()
    assert database.books.find_one({"_id": books[0]._id})["title"] == "New"
    Book.query.get(_id=books[1]._id).delete()
    odm.flush()
    assert Book.query.find().count() == 2
    Book.query.remove({})
    assert Book.query.find().all() == []
    assert Author.query.get(_id=ObjectId()) is None
    with pytest.raises(schema.Invalid):
        Book()
        odm.flush()
    odm.clear()


def test_greenlets_share_a_datastore(things):
    def write(number):
        things.insert_one({"_id": f"g{number}"})
        return things.find_one({"_id": f"g{number}"})["_id"]

    greenlets = [gevent.spawn(write, number) for number in range(20)]
    gevent.joinall(greenlets, raise_error=True)
    assert [each.value for each in greenlets] == [f"g{number}" for number in range(20)]


@pytest.mark.parametrize("wrong", ["command", "aggregate", "watch", "session"])
def test_a_server_refuses(wrong):
    datastore = create_datastore(WHERE["server"])  # which closes its client when it goes away
    client = datastore.conn
    collection = client.ming_script.things
    calls = {
        "command": (lambda: collection.database.command("nothing"), OperationFailure),
        "aggregate": (lambda: collection.aggregate([{"$nothing": 1}]), OperationFailure),
        "watch": (lambda: collection.watch([]), OperationFailure),
        "session": (lambda: client.start_session().commit_transaction(), InvalidOperation),
    }
    call, error = calls[wrong]
    with pytest.raises(error):
        call()
    collection.drop()
    collection.insert_many([{"_id": 1}, {"_id": 2}])
    with pytest.raises(BulkWriteError):
        collection.insert_many([{"_id": 2}, {"_id": 3}])
    client.drop_database("ming_script")
