from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest

from gmongo import InsertOne, MongoClient
from gmongo._server_facts.wire_versions import CLIENT_BULK_WRITE
from gmongo.collection import Collection
from gmongo.errors import (
    DuplicateKeyError,
)
from tests.support.server import ScriptedServer


class CustomError(BaseException):
    pass


class FailingMapping(MutableMapping[str, Any]):
    """Mapping whose lookups first succeed `left` times, and whose next lookup raises `CustomError`.

    All mappings share the counter `left`.
    """

    left = 0  # the number of lookups that still succeed

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        FailingMapping.left -= 1
        if FailingMapping.left == -1:
            raise CustomError
        return self._fields[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._fields[name] = value

    def __delitem__(self, name: str) -> None:
        del self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


@pytest.mark.parametrize(
    "use_mapping",
    {
        "insert_one": lambda collection, document: collection.insert_one(document),
        "insert_many": lambda collection, document: collection.insert_many([document]),
        "bulk_write": lambda collection, document: collection.bulk_write([InsertOne(document)]),
        "client bulk_write": lambda collection, document: collection.database.client.bulk_write(
            [InsertOne(document, namespace=collection.full_name)]
        ),
        "replace_one": lambda collection, document: collection.replace_one({}, document, upsert=True),
        "update_one": lambda collection, document: collection.update_one(
            document, FailingMapping(**{"$set": FailingMapping(c=1)}), upsert=True
        ),
        "find": lambda collection, document: collection.find(document).to_list(),
        "find_one": lambda collection, document: collection.find_one(document),
        "delete_one": lambda collection, document: collection.delete_one(document),
        "aggregate": lambda collection, document: collection.aggregate(
            [FailingMapping(**{"$match": document})]
        ).to_list(),
        "command": lambda collection, document: collection.database.command(
            FailingMapping(count=collection.name, query=document)
        ),
    }.items(),
    ids=lambda item: item[0],
)
def test_error_in_custom_mapping_is_raised_and_nothing_is_stored(collection: Collection[Any], use_mapping: Any) -> None:
    wire_version = collection.database.client.admin.command("hello")["maxWireVersion"]
    if use_mapping[0] == "client bulk_write" and wire_version < CLIENT_BULK_WRITE:
        pytest.skip(f"version: the server has no bulkWrite command (wire version {wire_version})")
    failures = 0
    while True:
        FailingMapping.left = failures
        try:
            use_mapping[1](collection, FailingMapping(_id=5, a=FailingMapping(b=1)))
        except CustomError:
            failures += 1
            assert collection.find_one({}) is None
        else:
            break
    assert failures >= 3
    assert collection.find_one({}, {"_id": 1}) in (None, {"_id": 5})


def test_write_error_takes_precedence_over_write_concern_error() -> None:
    reply = {
        "ok": 1,
        "n": 0,
        "writeErrors": [{"index": 0, "code": 11000, "errmsg": "duplicate", "errInfo": {"more": 1}}],
        "writeConcernError": {"code": 64, "errmsg": "waiting timed out"},
    }
    with ScriptedServer({"insert": reply}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(DuplicateKeyError, match="duplicate") as caught:
            client.db.c.insert_one({})
        assert caught.value.details == {"index": 0, "code": 11000, "errmsg": "duplicate", "errInfo": {"more": 1}}
