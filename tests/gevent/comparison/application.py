"""Web application that gunicorn runs with one of the drivers.

The module creates and uses a client at import time, before gunicorn forks its workers.

The environment variable ``BESIDE_DRIVER`` is ``gmongo`` or ``pymongo``. If the driver is PyMongo,
the module first calls ``monkey.patch_all``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from tests.gevent.comparison.drivers import import_driver

client = import_driver(os.environ["BESIDE_DRIVER"]).MongoClient(os.environ["HOSTED_DATABASE"])
notes = client.hosted.notes
notes.insert_one({"_id": "at import time"})


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Store a document, read the document back, and reply with the process ID and the document."""
    name = environ["PATH_INFO"][1:]
    notes.insert_one({"_id": name})
    document = notes.find_one({"_id": name})
    start_response("200 OK", [("Content-Type", "text/plain"), ("Connection", "close")])
    return [f"{os.getpid()} {document and document['_id']}".encode()]
