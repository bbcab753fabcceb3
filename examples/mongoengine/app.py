"""A MongoEngine journal with references, queries, a unique field. The code does not import gmongo."""

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
    """Author of posts."""

    name = StringField(required=True, unique=True, max_length=40)
    post_count = IntField(db_field="posts", default=0)


class Comment(EmbeddedDocument):
    """A comment on a post."""

    text = StringField(required=True)


class Post(Document):
    """Post of an author."""

    author = ReferenceField(Author, required=True)
    title = StringField(required=True)
    tags = ListField(StringField())
    comments = EmbeddedDocumentListField(Comment)
    written = DateTimeField(default=lambda: datetime.datetime.now(datetime.timezone.utc))
    meta = {"indexes": ["tags", ("author", "-written")], "ordering": ["title"]}


@app.put("/authors/<name>")
def add_author(name: str) -> Any:
    """Add an author. Names are unique."""
    try:
        Author(name=name).save()
    except NotUniqueError:
        return jsonify(error=f"the author {name} exists already"), 409
    return jsonify(name=name), 201


@app.post("/authors/<name>/posts")
def add_post(name: str) -> Any:
    """Add a post with a title and optional tags."""
    author = Author.objects.get(name=name)
    post = Post(author=author, **request.get_json()).save()
    Author.objects(id=author.id).update_one(inc__post_count=1)
    return jsonify(id=str(post.id)), 201


@app.post("/posts/<post_id>/comments")
def add_comment(post_id: str) -> Any:
    """Append a comment to a post."""
    Post.objects(id=post_id).update_one(push__comments=Comment(**request.get_json()))
    return jsonify(comments=len(Post.objects.get(id=post_id).comments)), 201


@app.get("/posts")
def list_posts() -> Any:
    """List the posts that have the query parameter ``word`` as a tag or in their title."""
    word = request.args.get("word", "")
    matches = Post.objects(Q(tags=word) | Q(title__icontains=word)).select_related()
    return jsonify([{"title": each.title, "author": each.author.name, "tags": each.tags} for each in matches])


@app.get("/tags")
def count_tags() -> Any:
    """Count the uses of each tag."""
    counts = Post.objects.aggregate([{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "count": {"$sum": 1}}}])
    return jsonify({each["_id"]: each["count"] for each in counts})


@app.get("/authors/<name>")
def show_author(name: str) -> Any:
    """Show the posts of an author."""
    author = Author.objects.get(name=name)
    return jsonify(name=name, posts=author.post_count, titles=[each.title for each in Post.objects(author=author)])


@app.errorhandler(DoesNotExist)
def not_found(_error: DoesNotExist) -> Any:
    """Return status 404."""
    return jsonify(error="not found"), 404


@app.errorhandler(ValidationError)
def bad_request(error: ValidationError) -> Any:
    """Return status 400 with the message of the error."""
    return jsonify(error=error.message), 400
