"""How long a driver holds the loop: ``python -m tests.gevent.beside.stalls gmongo|pymongo URI TLS_URI``.

The test names activities, a line each; for each one this program prints what came of it once, as JSON.
"""

# ruff: noqa: E402 - PyMongo is patched before anything else is imported

from __future__ import annotations

import json
import sys

from tests.gevent.beside.drivers import listen, load, say

driver = load(sys.argv[1])

from collections.abc import Callable
from typing import Any

import gevent

from tests.support.ticker import measured

DOCUMENTS = 15_000
TEXT = "x" * 1000  # with its frame, 15 MB in one batch

client = driver.MongoClient(sys.argv[2])
database = client[sys.argv[1]]  # of its own, as both drivers' programs use the server
large = database.large


def read() -> None:
    """As an application does that has something else to do between its documents, too."""
    for number, _document in enumerate(large.find(batch_size=DOCUMENTS + 1)):
        if number % 50 == 0:
            gevent.sleep(1e-6)


def iterate() -> None:
    """As an application does that only wants all documents."""
    list(large.find(batch_size=DOCUMENTS + 1))


def insert() -> Callable[[], Any]:
    """Many small documents; their collection is dropped before."""
    small = [{"_id": number, "text": TEXT[:100]} for number in range(10_000)]
    database.small.drop()
    return lambda: database.small.insert_many(small)


def connect() -> Callable[[], Any]:
    """With TLS; the certificates have been read before."""
    encrypted = driver.MongoClient(sys.argv[3], connect=False)

    def use() -> None:
        with encrypted:
            encrypted.admin.command("ping")

    return use


def main() -> None:
    """Play what the test names."""
    large.insert_many([{"_id": number, "text": TEXT} for number in range(DOCUMENTS)])
    say("ready")
    prepared = {"read": lambda: read, "iterate": lambda: iterate, "insert": insert, "connect": connect}
    while name := listen():
        say(json.dumps(measured(prepared[name]())))


if __name__ == "__main__":
    main()
