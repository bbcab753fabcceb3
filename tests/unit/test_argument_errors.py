"""Each wrong argument raises an exception with an exact class and text, before any network access."""

from __future__ import annotations

from typing import Any

import pytest
from bson import DBRef

import gmongo
from gmongo import collation, read_preferences, write_concern
from gmongo.client_options import ClientOptions
from gmongo.client_session import ClientSession, SessionOptions, TransactionOptions
from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.read_concern import ReadConcern
from gmongo.server_api import ServerApi
from tests.support.cases import rows

NAMES: dict[str, Any] = {
    **vars(collation), **vars(read_preferences), **vars(write_concern), "ClientOptions": ClientOptions,
    "ClientSession": ClientSession, "Collection": Collection, "DBRef": DBRef, "Database": Database,
    "ReadConcern": ReadConcern, "ServerApi": ServerApi, "SessionOptions": SessionOptions,
    "TransactionOptions": TransactionOptions, "gmongo": gmongo,
    "insert": gmongo.InsertOne({}, namespace="db.c"),
}  # fmt: skip


@pytest.mark.parametrize("case", rows(__file__), ids=lambda case: case["calls"][0])
def test_wrong_argument_raises_error_with_exact_class_and_text(case: dict[str, Any]) -> None:
    with gmongo.MongoClient[Any]("/missing.sock", connect=False, serverSelectionTimeoutMS=1) as client:
        names = {**NAMES, "client": client, "db": client.db, "c": client.db.c}
        for call in case["calls"]:
            with pytest.raises(case["error"]) as caught:
                eval(call, names)
            assert type(caught.value) is case["error"] and str(caught.value) == case["text"], call
