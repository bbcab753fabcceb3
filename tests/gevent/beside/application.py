"""The application that gunicorn runs: the client is made and used when this module is imported, before any fork.

``BESIDE_DRIVER`` is ``gmongo`` or ``pymongo``; the latter is monkey-patched first, as its users have to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from tests.gevent.beside.drivers import load

client = load(os.environ["BESIDE_DRIVER"]).MongoClient(os.environ["HOSTED_DATABASE"])
notes = client.hosted.notes
notes.insert_one({"_id": "at import time"})


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A WSGI application: stores a document, reads it back, and answers with its process and what it read."""
    name = environ["PATH_INFO"][1:]
    notes.insert_one({"_id": name})
    found = notes.find_one({"_id": name})
    start_response("200 OK", [("Content-Type", "text/plain"), ("Connection", "close")])
    return [f"{os.getpid()} {found and found['_id']}".encode()]
