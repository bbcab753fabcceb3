from __future__ import annotations

from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.errors import OperationFailure
from tests.support.server import ScriptedServer


@pytest.mark.parametrize(
    ("code", "text"), [(26, "ns not found"), (0, "ns not found"), (27, "index not found"), (13, "no")]
)
def test_drop_index_ignores_only_error_about_missing_collection(code: int, text: str) -> None:
    replies = {"dropIndexes": {"ok": 0, "code": code, "errmsg": text}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        for drop in (client.db.c.drop_indexes, lambda: client.db.c.drop_index("a_1")):
            if text == "ns not found":
                drop()
            else:
                with pytest.raises(OperationFailure, match=text):
                    drop()
        assert [each["index"] for each in server.commands("dropIndexes")] == ["*", "a_1"]
