"""A small journal on MongoEngine: documents, references, queries, a unique field. Written for PyMongo."""

from __future__ import annotations

import datetime
import os
from typing import Any

from flask import Flask, jsonify, request
from mongoengine import (
    DateTimeField,
    Document,
    DoesNotExist,
    EmbeddedDocument,
    EmbeddedDocumentListField,
    IntField,
    ListField,
    NotUniqueError,
    Q,
    ReferenceField,
    StringField,
    ValidationError,
    connect,
)

connect(host=os.environ.get("MONGO_URI", "mongodb://localhost:27017/journal"), uuidRepresentation="standard")
app = Flask(__name__)


class Author(Document):
    """Someone who writes."""

    name = StringField(required=True, unique=True, max_length=40)
    posts = IntField(default=0)


class Comment(EmbeddedDocument):
    """A comment on a post."""

    text = StringField(required=True)


class Post(Document):
    """What an author writes."""

    author = ReferenceField(Author, required=True)
    title = StringField(required=True)
    tags = ListField(StringField())
    comments = EmbeddedDocumentListField(Comment)
    written = DateTimeField(default=lambda: datetime.datetime.now(datetime.timezone.utc))
    meta = {"indexes": ["tags", ("author", "-written")], "ordering": ["title"]}


@app.put("/authors/<name>")
def add_author(name: str) -> Any:
    """There is one author of a name."""
    try:
        Author(name=name).save()
    except NotUniqueError:
        return jsonify(error=f"there is an author {name}"), 409
    return jsonify(name=name), 201


@app.post("/authors/<name>/posts")
def add_post(name: str) -> Any:
    """A post has a title, and may have tags."""
    author = Author.objects.get(name=name)
    post = Post(author=author, **request.get_json()).save()
    Author.objects(id=author.id).update_one(inc__posts=1)
    return jsonify(id=str(post.id)), 201


@app.post("/posts/<post_id>/comments")
def comment(post_id: str) -> Any:
    """Put a comment at the end."""
    Post.objects(id=post_id).update_one(push__comments=Comment(**request.get_json()))
    return jsonify(comments=len(Post.objects.get(id=post_id).comments)), 201


@app.get("/posts")
def posts() -> Any:
    """Those with a tag, or with a word in their title."""
    word = request.args.get("word", "")
    found = Post.objects(Q(tags=word) | Q(title__icontains=word)).select_related()
    return jsonify([{"title": each.title, "author": each.author.name, "tags": each.tags} for each in found])


@app.get("/tags")
def tags() -> Any:
    """How often each tag is used."""
    counted = Post.objects.aggregate([{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "count": {"$sum": 1}}}])
    return jsonify({each["_id"]: each["count"] for each in counted})


@app.get("/authors/<name>")
def author(name: str) -> Any:
    """How much an author has written."""
    found = Author.objects.get(name=name)
    return jsonify(name=found.name, posts=found.posts, titles=[each.title for each in Post.objects(author=found)])


@app.errorhandler(DoesNotExist)
def missing(_error: DoesNotExist) -> Any:
    return jsonify(error="not found"), 404


@app.errorhandler(ValidationError)
def invalid(error: ValidationError) -> Any:
    return jsonify(error=error.message), 400
