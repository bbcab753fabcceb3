"""Codec options select document classes, time zones and UUID representations."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from datetime import datetime, timedelta, timezone
from typing import Any

import bson
import pytest
from bson.binary import JAVA_LEGACY, STANDARD, Binary
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient
from gmongo.collection import Collection
from tests.support.server import ScriptedServer


def with_codec_options(collection: Collection[Any], **options: Any) -> Collection[Any]:
    return collection.with_options(codec_options=CodecOptions(**options))


@pytest.mark.parametrize("document_class", [dict, OrderedDict, bson.SON, RawBSONDocument])
def test_result_documents_have_document_class_of_codec_options(
    collection: Collection[Any], document_class: Any
) -> None:
    collection.insert_many([{"_id": n, "sub": {"n": n}} for n in range(5)])
    typed = with_codec_options(collection, document_class=document_class)
    documents = [
        *typed.find(batch_size=2),
        typed.find_one(3),
        *typed.aggregate([{"$match": {"_id": 4}}]),
        typed.find_one_and_update({"_id": 3}, {"$set": {"a": 1}}),
        typed.find_one_and_delete({"_id": 3}),
    ]
    assert [document["_id"] for document in documents] == [0, 1, 2, 3, 4, 3, 4, 3, 3]
    assert {type(document) for document in documents} == {document_class}
    assert type(documents[0]["sub"]) is document_class


def test_codec_options_choose_naive_or_aware_datetimes(collection: Collection[Any], database: str) -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 123000)
    collection.insert_one({"_id": 1, "at": at})
    aware = at.replace(tzinfo=timezone.utc)
    zone = timezone(timedelta(hours=2))
    there = with_codec_options(collection, tz_aware=True, tzinfo=zone).find_one()
    assert collection.find_one() == {"_id": 1, "at": at}
    assert with_codec_options(collection, tz_aware=True).find_one() == {"_id": 1, "at": aware}
    assert there == {"_id": 1, "at": aware}
    assert there["at"].utcoffset() == timedelta(hours=2)
    with MongoClient[Any](database, tz_aware=True, tzinfo=zone) as client:
        assert client[collection.database.name][collection.name].find_one() == {"_id": 1, "at": aware}


@pytest.mark.parametrize("representation", [STANDARD, JAVA_LEGACY])
def test_uuid_is_stored_and_read_in_representation_of_codec_options(representation: Any) -> None:
    number = uuid.uuid4()
    binary = Binary.from_uuid(number, representation)
    replies = {"find": {"ok": 1, "cursor": {"id": 0, "ns": "db.c", "firstBatch": [{"_id": 1, "number": binary}]}}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        typed = with_codec_options(client.db.c, uuid_representation=representation)
        typed.insert_one({"_id": 1, "number": number})
        assert server.commands("insert")[0]["documents"] == [{"_id": 1, "number": binary}]
        assert typed.find_one({"number": number}) == {"_id": 1, "number": number}
        assert server.commands("find")[0]["filter"] == {"number": binary}
        assert typed.find().to_list() == [{"_id": 1, "number": number}]
        assert client.db.c.find_one() == {"_id": 1, "number": binary}


def test_uri_option_sets_uuid_representation() -> None:
    number = uuid.uuid4()
    uri = "mongodb://{}/?uuidRepresentation=standard"
    with ScriptedServer() as server, MongoClient[Any](uri.format(server.name)) as client:
        client.db.c.insert_one({"_id": number})
        assert server.commands("insert")[0]["documents"] == [{"_id": Binary.from_uuid(number)}]
