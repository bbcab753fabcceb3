"""A small gallery: pictures in GridFS, and how often each was looked at. It is written for PyMongo, and stays so."""

from __future__ import annotations

import os
from typing import Any

import pymongo
from flask import Flask, abort, jsonify, request
from flask_pymongo import PyMongo
from pymongo.errors import DuplicateKeyError

app = Flask(__name__)
app.config["MONGO_URI"] = os.environ.get("MONGO_URI", "mongodb://localhost:27017/gallery")
mongo = PyMongo(app)


@app.put("/artists/<name>")
def add_artist(name: str) -> Any:
    """There is one artist of a name."""
    try:
        mongo.db.artists.insert_one({"_id": name, **request.get_json()})
    except DuplicateKeyError:
        return jsonify(error=f"there is an artist {name}"), 409
    return jsonify(name=name), 201


@app.get("/artists/<name>")
def show_artist(name: str) -> Any:
    """Status 404 if there is none."""
    return jsonify(mongo.db.artists.find_one_or_404({"_id": name}))


@app.put("/artists/<name>/pictures/<title>")
def add_picture(name: str, title: str) -> Any:
    """The picture is the body of the request."""
    mongo.db.artists.find_one_or_404({"_id": name})
    mongo.save_file(f"{name}/{title}", request.stream, base="pictures", content_type=request.content_type)
    return jsonify(title=title), 201


@app.get("/artists/<name>/pictures/<title>")
def show_picture(name: str, title: str) -> Any:
    """And count that it was looked at, in a collection with a dot in its name."""
    views = {"$set": {"artist": name, "title": title}, "$inc": {"views": 1}}
    mongo.db["statistics.pictures"].update_one({"_id": f"{name}/{title}"}, views, upsert=True)
    return mongo.send_file(f"{name}/{title}", base="pictures")


@app.get("/artists/<name>/popular")
def popular(name: str) -> Any:
    """The pictures that were looked at most."""
    order = [("views", pymongo.DESCENDING), ("title", pymongo.ASCENDING)]
    found = mongo.db["statistics.pictures"].find({"artist": name}).sort(order).limit(10)
    return jsonify([[each["title"], each["views"]] for each in found])


@app.delete("/artists/<name>")
def remove_artist(name: str) -> Any:
    """With nothing else."""
    if not mongo.db.artists.delete_one({"_id": name}).deleted_count:
        abort(404)
    return "", 204
