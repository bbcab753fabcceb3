"""The WSGI application that the tested hosts, such as gunicorn, run.

The import of the module creates the client that all requests use. A request for ``/NAME`` stores and
reads a document with the ID ``NAME``. The answer contains the process ID and the document ID. A
request for ``/block`` blocks the event loop forever.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from gevent import monkey

from gmongo import MongoClient

client: MongoClient[dict[str, Any]] = MongoClient(os.environ["HOSTED_DATABASE"])
notes = client.hosted.notes
if os.environ.get("HOSTED_USE") == "import":
    notes.find_one({"_id": "at import time"})

_sleep = monkey.get_original("time", "sleep")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    name = environ["PATH_INFO"][1:]
    while name == "block":
        _sleep(0.1)
    notes.insert_one({"_id": name})
    document = notes.find_one({"_id": name})
    start_response("200 OK", [("Content-Type", "text/plain"), ("Connection", "close")])
    return [f"{os.getpid()} {document and document['_id']}".encode()]


def serve() -> None:
    """Serve the application with :mod:`gevent.pywsgi` until SIGTERM."""
    import signal

    import gevent
    from gevent.pywsgi import WSGIServer

    server = WSGIServer(("127.0.0.1", 0), application, log=None)
    server.start()
    print(f"Listening at: http://127.0.0.1:{server.server_port} ({os.getpid()})", flush=True)
    gevent.signal_handler(signal.SIGTERM, server.stop, 5)
    server.serve_forever()
    client.close()
    gevent.get_hub().join()  # `join` returns only if the closed client does not keep the event loop alive


if __name__ == "__main__":
    serve()
