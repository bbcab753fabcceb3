from __future__ import annotations

import io
import os

import bson
import pymongo
import pytest
from flask import Flask, jsonify
from flask_pymongo import ASCENDING, DESCENDING, PyMongo
from werkzeug.exceptions import NotFound

URI = os.environ["MONGODB_URI"].rstrip("/") + "/flask"


@pytest.fixture
def app():
    return Flask("test")


@pytest.fixture
def mongo(app):
    mongo = PyMongo(app, URI)
    with app.app_context():
        yield mongo
    mongo.cx.drop_database("flask")
    mongo.cx.close()


def test_uri_of_application_selects_default_database(mongo):
    assert mongo.db.name == "flask"
    assert isinstance(mongo.cx, pymongo.MongoClient)


def test_find_one_or_404_raises_not_found(mongo):
    mongo.db.things.insert_one({"_id": 1})
    assert mongo.db.things.find_one_or_404({"_id": 1}) == {"_id": 1}
    with pytest.raises(NotFound):
        mongo.db.things.find_one_or_404({"_id": 2})


def test_dotted_collection_name_selects_collection(mongo):
    mongo.db["a.b"].insert_one({"_id": 1})
    assert mongo.db["a.b"].find_one_or_404()["_id"] == 1
    assert mongo.db.list_collection_names() == ["a.b"]


@pytest.mark.parametrize("base", ["fs", "pictures"])
def test_saved_file_is_sent_unchanged(app, mongo, base):
    content = bytes(range(256)) * 2000
    file_id = mongo.save_file("my-file", io.BytesIO(content), base=base, content_type="image/x")
    assert isinstance(file_id, bson.ObjectId)
    with app.test_request_context():
        sent = mongo.send_file("my-file", base=base)
        sent.direct_passthrough = False
        assert sent.data == content
        with pytest.raises(NotFound):
            mongo.send_file("other", base=base)
        mongo.save_file("my-file", io.BytesIO(b"2"), base=base)
        newest = mongo.send_file("my-file", base=base)
        newest.direct_passthrough = False
        assert newest.data == b"2"


def test_object_id_in_url_selects_document(app, mongo):
    @app.get("/<ObjectId:oid>")
    def show(oid):
        return jsonify(mongo.db.things.find_one_or_404({"_id": oid}))

    oid = mongo.db.things.insert_one({"n": [1, {"x": None}]}).inserted_id
    browser = app.test_client()
    assert browser.get(f"/{oid}").json["n"] == [1, {"x": None}]
    assert str(oid) in browser.get(f"/{oid}").text
    assert browser.get(f"/{bson.ObjectId()}").status_code == 404
    assert browser.get("/nonsense").status_code == 404


def test_sort_constants_order_documents(mongo):
    mongo.db.things.insert_many({"_id": number} for number in range(5))
    assert [each["_id"] for each in mongo.db.things.find().sort("_id", DESCENDING)] == [4, 3, 2, 1, 0]
    assert mongo.db.things.create_index([("n", ASCENDING)]) == "n_1"


def test_second_instance_of_extension_uses_other_database(app, mongo):
    other = PyMongo(app, URI.replace("/flask", "/other"))
    other.db.things.insert_one({})
    assert mongo.db.things.count_documents({}) == 0
    other.cx.drop_database("other")
