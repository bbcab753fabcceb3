"""Tests that the troubleshooting page quotes the messages of the driver exactly."""

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

_PAGE_TEXT = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text("utf-8")
Client = MongoClient[Any]


def connect_to_closed_port(_client: Client) -> None:
    MongoClient("mongodb://127.0.0.1:1/", serverSelectionTimeoutMS=50).t.c.find_one()


def connect_with_wrong_set_name(client: Client) -> None:
    host, port = client.address or ("", 0)
    with MongoClient(host, port, replicaSet="other", serverSelectionTimeoutMS=1000) as client_with_wrong_name:
        client_with_wrong_name.t.c.find_one()


def misspell_option(_client: Client) -> None:
    MongoClient(maxPolSize=1, connect=False)


def use_in_other_thread(client: Client) -> None:
    errors: list[Exception] = []

    def use() -> None:
        try:
            client.t.c.find_one()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    raise errors[0]


def use_after_close(client: Client) -> None:
    client.close()
    client.t.c.find_one()


def write_in_transaction(client: Client) -> None:
    with client.start_session() as session, session.start_transaction():
        client.t.c.insert_one({}, session=session)


@pytest.mark.parametrize(
    ("fail", "quoted_message"),
    [
        (connect_to_closed_port, "Connection refused"),
        (connect_with_wrong_set_name, "No replica set members available for replica set name"),
        (misspell_option, "Unknown option"),
        (use_in_other_thread, "a MongoClient belongs to the native thread that first used it"),
        (use_after_close, "Cannot use MongoClient after close"),
        (lambda client: bool(client.t.c), "compare with None instead"),
        (write_in_transaction, "Transaction numbers are only allowed on a replica set member or mongos"),
        (lambda client: client.t.c.watch(), "The $changeStream stage is only supported on replica sets"),
        (lambda client: client.t.c.insert_one({"a": datetime.date(2026, 1, 1)}), "cannot encode object"),
        (lambda client: client.t.c.insert_one({"a": uuid.UUID(int=1)}), "cannot encode native uuid.UUID"),
    ],
)
def test_quoted_message_equals_message_of_driver(fail: Callable[[Client], object], quoted_message: str) -> None:
    assert f"`{quoted_message}`" in _PAGE_TEXT
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client:
        client.t.c.find_one()
        with pytest.raises(Exception) as raised:
            fail(client)
        assert quoted_message in str(raised.value)
