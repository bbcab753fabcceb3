"""A small web application that stores notes: ``gunicorn -k gevent examples.wsgi_app:app``.

The application uses the database of MONGODB_URI. Without this variable, the import of the module
starts an embedded database. With several workers, set ``MONGODB_URI`` or use ``--preload``.
Otherwise, each worker starts a separate database.

gmongo does not require monkey-patching. Gunicorn's gevent worker always patches the process. ``python
-m examples.wsgi_app`` serves the application with :mod:`gevent.pywsgi` without monkey-patching.
"""

from __future__ import annotations

import argparse
import atexit
import os
from contextlib import ExitStack
from datetime import datetime, timezone
from typing import Any

from bson import ObjectId
from bson.errors import InvalidId
from flask import Flask, Response, abort, jsonify, request, url_for
from gevent import monkey
from gevent import socket as gevent_socket
from gevent.pywsgi import WSGIServer
from werkzeug.exceptions import HTTPException

from gmongo import DESCENDING, MongoClient
from gmongo.errors import PyMongoError
from gmongo.testing import database_uri

MAX_TEXT_LENGTH = 10_000
MAX_LISTED_NOTES = 100

app = Flask(__name__)
_lifetime = ExitStack()
atexit.register(_lifetime.close)
_uri = _lifetime.enter_context(database_uri())
# All greenlets share one client. After a fork, the client opens new connections in the child.
client: MongoClient[dict[str, Any]] = MongoClient(_uri, serverSelectionTimeoutMS=5000)
notes = client.get_default_database("gmongo_examples").notes


@app.post("/notes")
def add_note() -> tuple[Response, int, dict[str, str]]:
    """Store a note from JSON with ``text`` and an optional ``topic``."""
    note = {**_checked_note(request.get_json()), "created": datetime.now(timezone.utc)}
    note_id = notes.insert_one(note).inserted_id
    return jsonify(id=str(note_id)), 201, {"Location": url_for("show_note", note_id=note_id)}


@app.get("/notes")
def list_notes() -> Response:
    """List the newest notes. ``?topic=`` selects a topic, and ``?limit=`` sets the maximum number."""
    topic = request.args.get("topic")
    limit = request.args.get("limit", 20, int)
    if not 1 <= limit <= MAX_LISTED_NOTES:
        abort(400, f"limit must be from 1 to {MAX_LISTED_NOTES}, not {limit}")
    matches = notes.find({} if topic is None else {"topic": topic}).sort("_id", DESCENDING).limit(limit)
    return jsonify(notes=[_as_json(note) for note in matches])


@app.get("/notes/<note_id>")
def show_note(note_id: str) -> Response:
    """Show one note."""
    try:
        note = notes.find_one({"_id": ObjectId(note_id)})
    except InvalidId:
        note = None
    if note is None:
        abort(404, f"the note {note_id} does not exist")
    return jsonify(_as_json(note))


@app.get("/health")
def health() -> Response:
    """Ping the database, and return the servers and connection pools of this process."""
    client.admin.command("ping")
    topology = client.topology_description
    servers = [
        {
            "address": _address(address),
            "type": server.server_type_name,
            "round_trip_seconds": server.round_trip_time,
        }
        for address, server in topology.server_descriptions().items()
    ]
    pools = [{**pool, "address": _address(pool["address"])} for pool in client.pool_stats()]
    return jsonify(
        status="ok",
        process=os.getpid(),
        patched=monkey.is_module_patched("socket"),
        topology=topology.topology_type_name,
        servers=servers,
        pools=pools,
    )


@app.errorhandler(PyMongoError)
def database_failed(error: PyMongoError) -> tuple[Response, int]:
    """Report that the database is unavailable, so that the caller can retry later."""
    app.logger.error("the database failed: %s", error)
    return jsonify(error="the database is not available"), 503


@app.errorhandler(HTTPException)
def http_error(error: HTTPException) -> tuple[Response, int]:
    """Return an HTTP error as JSON."""
    return jsonify(error=error.description), error.code or 500


def _checked_note(content: Any) -> dict[str, str]:
    if not isinstance(content, dict):
        abort(400, "a note must be a JSON object")
    note = {"text": content.get("text"), "topic": content.get("topic", "")}
    for field, value in note.items():
        if not isinstance(value, str):
            abort(400, f"{field} must be a string")
    if not 1 <= len(note["text"]) <= MAX_TEXT_LENGTH:
        abort(400, f"text must have from 1 to {MAX_TEXT_LENGTH} characters, not {len(note['text'])}")
    return note


def _as_json(note: dict[str, Any]) -> dict[str, Any]:
    return {**note, "_id": str(note["_id"]), "created": note["created"].isoformat()}


def _address(address: tuple[str, int | None]) -> str:
    host, port = address
    return host if port is None else f"{host}:{port}"


def main() -> None:
    """Serve the application with gevent.pywsgi, without monkey-patching."""
    parser = argparse.ArgumentParser(description="Serve the notes with gevent.pywsgi, without monkey-patching.")
    parser.add_argument("--port", type=int, default=8000, help="port on 127.0.0.1 (default: 8000)")
    parser.add_argument("--fd", type=int, help="file descriptor of a listening socket, which replaces the port")
    arguments = parser.parse_args()
    listener: Any = ("127.0.0.1", arguments.port)
    if arguments.fd is not None:
        listener = gevent_socket.socket(fileno=arguments.fd)
        listener.setblocking(False)
    WSGIServer(listener, app, log=None).serve_forever()


if __name__ == "__main__":
    main()
