"""What the page on troubleshooting quotes is what the driver says."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.testing import Deployment

_PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text("utf-8")
Client = MongoClient[Any]


def refused(_client: Client) -> None:
    MongoClient("mongodb://127.0.0.1:1/", serverSelectionTimeoutMS=50).t.c.find_one()


def other_set(client: Client) -> None:
    host, port = client.address or ("", 0)
    with MongoClient(host, port, replicaSet="other", serverSelectionTimeoutMS=50) as wrong:
        wrong.t.c.find_one()


def misspelt(_client: Client) -> None:
    MongoClient(maxPolSize=1, connect=False)


def from_a_thread(client: Client) -> None:
    errors: list[Exception] = []

    def there() -> None:
        try:
            client.t.c.find_one()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    raise errors[0]


def closed(client: Client) -> None:
    client.close()
    client.t.c.find_one()


def transaction(client: Client) -> None:
    with client.start_session() as session, session.start_transaction():
        client.t.c.insert_one({}, session=session)


@pytest.mark.parametrize(
    ("fail", "quoted"),
    [
        (refused, "Connection refused"),
        (other_set, "No replica set members available for replica set name"),
        (misspelt, "Unknown option"),
        (from_a_thread, "a MongoClient belongs to the native thread that first used it"),
        (closed, "Cannot use MongoClient after close"),
        (lambda client: bool(client.t.c), "compare with None instead"),
        (transaction, "Transaction numbers are only allowed on a replica set member or mongos"),
        (lambda client: client.t.c.watch(), "The $changeStream stage is only supported on replica sets"),
        (lambda client: client.t.c.insert_one({"a": datetime.date(2026, 1, 1)}), "cannot encode object"),
        (lambda client: client.t.c.insert_one({"a": uuid.UUID(int=1)}), "cannot encode native uuid.UUID"),
    ],
)
def test_what_is_quoted_is_said(fail: Callable[[Client], object], quoted: str) -> None:
    assert f"`{quoted}`" in _PAGE
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client:
        client.t.c.find_one()
        with pytest.raises(Exception) as raised:
            fail(client)
        assert quoted in str(raised.value)
