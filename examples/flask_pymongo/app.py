"""A small gallery: pictures in GridFS, and their view counts. The code does not import gmongo."""

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
    """Add an artist. Names are unique."""
    try:
        mongo.db.artists.insert_one({"_id": name, **request.get_json()})
    except DuplicateKeyError:
        return jsonify(error=f"the artist {name} exists already"), 409
    return jsonify(name=name), 201


@app.get("/artists/<name>")
def show_artist(name: str) -> Any:
    """Show an artist, or return status 404."""
    return jsonify(mongo.db.artists.find_one_or_404({"_id": name}))


@app.put("/artists/<name>/pictures/<title>")
def add_picture(name: str, title: str) -> Any:
    """Store the request body as a picture."""
    mongo.db.artists.find_one_or_404({"_id": name})
    mongo.save_file(f"{name}/{title}", request.stream, base="pictures", content_type=request.content_type)
    return jsonify(title=title), 201


@app.get("/artists/<name>/pictures/<title>")
def show_picture(name: str, title: str) -> Any:
    """Send a picture, and count the view in the collection ``statistics.pictures``, whose name contains a dot."""
    views = {"$set": {"artist": name, "title": title}, "$inc": {"views": 1}}
    mongo.db["statistics.pictures"].update_one({"_id": f"{name}/{title}"}, views, upsert=True)
    return mongo.send_file(f"{name}/{title}", base="pictures")


@app.get("/artists/<name>/popular")
def list_popular_pictures(name: str) -> Any:
    """List the titles and view counts of the ten most viewed pictures of an artist."""
    order = [("views", pymongo.DESCENDING), ("title", pymongo.ASCENDING)]
    pictures = mongo.db["statistics.pictures"].find({"artist": name}).sort(order).limit(10)
    return jsonify([[each["title"], each["views"]] for each in pictures])


@app.delete("/artists/<name>")
def remove_artist(name: str) -> Any:
    """Remove an artist, and keep the pictures of the artist."""
    if not mongo.db.artists.delete_one({"_id": name}).deleted_count:
        abort(404)
    return "", 204
