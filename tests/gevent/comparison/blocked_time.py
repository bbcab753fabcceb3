"""Measure for how long each activity of a driver blocks the event loop.

Usage: ``python -m tests.gevent.comparison.blocked_time gmongo|pymongo URI TLS_URI``.

``tests/gevent/test_blocked_time.py`` sends the names of activities, one per line. After each
activity, the program prints the measurement of the activity as JSON.
"""

# ruff: noqa: E402 - import_driver must run before the other imports

from __future__ import annotations

import json
import sys

from tests.gevent.comparison.drivers import import_driver, receive_line, send_line

driver = import_driver(sys.argv[1])

from collections.abc import Callable
from typing import Any

import gevent

from tests.support.ticker import measure_longest_gap

DOCUMENT_COUNT = 15_000
# All 15,000 documents fit into one batch, because a document has about 1,000 bytes.
TEXT = "x" * 1000

client = driver.MongoClient(sys.argv[2])
# Each driver has its own database, because the processes of both drivers use one server.
database = client[sys.argv[1]]
large_collection = database.large


def read() -> None:
    """Read all documents of the large collection, and let other greenlets run after every 50
    documents.
    """
    for number, _document in enumerate(large_collection.find(batch_size=DOCUMENT_COUNT + 1)):
        if number % 50 == 0:
            gevent.sleep(1e-6)


def iterate() -> None:
    """Read all documents of the large collection without sleeps."""
    list(large_collection.find(batch_size=DOCUMENT_COUNT + 1))


def prepare_insert() -> Callable[[], Any]:
    """Drop the small collection. Return a function that inserts 10,000 small documents."""
    small_documents = [{"_id": number, "text": TEXT[:100]} for number in range(10_000)]
    database.small.drop()
    return lambda: database.small.insert_many(small_documents)


def prepare_connect() -> Callable[[], Any]:
    """Load the certificates. Return a function that connects with TLS and runs one command."""
    tls_client = driver.MongoClient(sys.argv[3], connect=False)

    def ping_with_tls() -> None:
        with tls_client:
            tls_client.admin.command("ping")

    return ping_with_tls


def main() -> None:
    """Insert the large documents, and measure each activity that the test names."""
    large_collection.insert_many([{"_id": number, "text": TEXT} for number in range(DOCUMENT_COUNT)])
    send_line("ready")
    creators = {"read": lambda: read, "iterate": lambda: iterate, "insert": prepare_insert, "connect": prepare_connect}
    while name := receive_line():
        send_line(json.dumps(measure_longest_gap(creators[name]())))


if __name__ == "__main__":
    main()
