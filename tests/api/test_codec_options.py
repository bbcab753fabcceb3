"""Codec options: the classes, time zones and types in which documents come out and go in."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import bson
import pytest
from bson.binary import JAVA_LEGACY, STANDARD, Binary
from bson.codec_options import CodecOptions, DatetimeConversion, TypeCodec, TypeRegistry
from bson.datetime_ms import DatetimeMS
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient
from gmongo.collection import Collection
from tests.support.server import ScriptedServer


class DecimalCodec(TypeCodec):
    """Decimals in the application, floating-point numbers in the database."""

    python_type = Decimal
    bson_type = float

    def transform_python(self, value: Any) -> Any:
        return float(value)

    def transform_bson(self, value: Any) -> Any:
        return Decimal(str(value))


REGISTRY = TypeRegistry([DecimalCodec()])


def with_codec(collection: Collection[Any], **options: Any) -> Collection[Any]:
    return collection.with_options(codec_options=CodecOptions(**options))


@pytest.mark.parametrize("kind", [dict, OrderedDict, bson.SON, RawBSONDocument])
def test_documents_come_out_as_the_chosen_class(collection: Collection[Any], kind: Any) -> None:
    collection.insert_many([{"_id": n, "sub": {"n": n}} for n in range(5)])
    typed = with_codec(collection, document_class=kind)
    found = [
        *typed.find(batch_size=2),
        typed.find_one(3),
        *typed.aggregate([{"$match": {"_id": 4}}]),
        typed.find_one_and_update({"_id": 3}, {"$set": {"a": 1}}),
        typed.find_one_and_delete({"_id": 3}),
    ]
    assert [document["_id"] for document in found] == [0, 1, 2, 3, 4, 3, 4, 3, 3]
    assert {type(document) for document in found} == {kind}
    assert type(found[0]["sub"]) is kind


def test_the_class_of_the_server_is_not_the_class_of_documents(collection: Collection[Any]) -> None:
    typed = with_codec(collection, document_class=RawBSONDocument)
    typed.insert_one({"_id": 1})
    assert typed.update_one({"_id": 1}, {"$set": {"a": 1}}).matched_count == 1
    assert typed.delete_one({"_id": 1}).deleted_count == 1
    assert typed.count_documents({}) == 0
    assert typed.estimated_document_count() == 0
    assert "_id_" in typed.index_information()


def test_raw_documents_can_be_written_back(collection: Collection[Any]) -> None:
    collection.insert_one({"_id": 1, "a": {"b": [1, 2]}})
    raw = with_codec(collection, document_class=RawBSONDocument).find_one()
    assert isinstance(raw, RawBSONDocument)
    assert bson.decode(raw.raw) == {"_id": 1, "a": {"b": [1, 2]}}
    collection.delete_many({})
    collection.insert_one(raw)
    assert collection.find_one() == {"_id": 1, "a": {"b": [1, 2]}}


def test_a_raw_document_replaces_another(collection: Collection[Any]) -> None:
    collection.insert_one({"_id": 1, "a": 1})
    collection.replace_one({"_id": 1}, RawBSONDocument(bson.encode({"_id": 1, "b": 2})))
    assert collection.find_one() == {"_id": 1, "b": 2}


def test_datetimes_are_naive_or_aware_as_chosen(collection: Collection[Any], database: str) -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 123000)
    collection.insert_one({"_id": 1, "at": at})
    aware = at.replace(tzinfo=timezone.utc)
    zone = timezone(timedelta(hours=2))
    there = with_codec(collection, tz_aware=True, tzinfo=zone).find_one()
    assert collection.find_one() == {"_id": 1, "at": at}
    assert with_codec(collection, tz_aware=True).find_one() == {"_id": 1, "at": aware}
    assert there == {"_id": 1, "at": aware}
    assert there["at"].utcoffset() == timedelta(hours=2)
    with MongoClient[Any](database, tz_aware=True, tzinfo=zone) as client:
        assert client[collection.database.name][collection.name].find_one() == {"_id": 1, "at": aware}


def test_aware_datetimes_are_stored_in_utc(collection: Collection[Any]) -> None:
    zone = timezone(timedelta(hours=2))
    collection.insert_one({"_id": 1, "at": datetime(2024, 5, 6, 12, tzinfo=zone)})
    assert collection.find_one() == {"_id": 1, "at": datetime(2024, 5, 6, 10)}


def test_datetimes_can_stay_numbers(collection: Collection[Any]) -> None:
    collection.insert_one({"_id": 1, "at": datetime(1970, 1, 1, 0, 0, 1)})
    found = with_codec(collection, datetime_conversion=DatetimeConversion.DATETIME_MS).find_one()
    assert found == {"_id": 1, "at": DatetimeMS(1000)}


def test_types_of_the_application_go_in_and_come_out(collection: Collection[Any]) -> None:
    typed = with_codec(collection, type_registry=REGISTRY)
    typed.insert_one({"_id": 1, "price": Decimal("1.50")})
    expected = {"_id": 1, "price": Decimal("1.50")}
    assert typed.find_one() == expected
    assert typed.find().to_list() == [expected]
    assert typed.aggregate([{"$match": {}}]).to_list() == [expected]
    assert typed.find_one_and_update({"_id": 1}, {"$set": {"price": Decimal("2")}}) == expected
    assert collection.find_one() == {"_id": 1, "price": 2.0}


def test_types_of_the_application_are_encoded_in_filters_and_updates(collection: Collection[Any]) -> None:
    typed = with_codec(collection, type_registry=REGISTRY)
    typed.insert_many([{"_id": 1, "price": Decimal("1.50")}, {"_id": 2, "price": Decimal("2")}])
    assert typed.update_one({"_id": 1}, {"$set": {"price": Decimal("3")}}).modified_count == 1
    assert typed.replace_one({"_id": 2}, {"price": Decimal("4")}).modified_count == 1
    assert [each["price"] for each in typed.find()] == [Decimal("3"), Decimal("4")]
    with pytest.raises(bson.InvalidDocument):
        collection.insert_one({"price": Decimal("1")})


def test_the_client_takes_a_registry_and_a_class(collection: Collection[Any], database: str) -> None:
    client: MongoClient[Any]
    with MongoClient(database, type_registry=REGISTRY, document_class=bson.SON) as client:
        there = client[collection.database.name][collection.name]
        there.insert_one({"_id": 1, "price": Decimal("1.50")})
        found = there.find_one()
        assert type(found) is bson.SON
        assert found == {"_id": 1, "price": Decimal("1.50")}
        assert type(client.admin.command("ping")) is dict


@pytest.mark.parametrize("representation", [STANDARD, JAVA_LEGACY])
def test_uuids_in_the_chosen_representation(representation: Any) -> None:
    number = uuid.uuid4()
    binary = Binary.from_uuid(number, representation)
    replies = {"find": {"ok": 1, "cursor": {"id": 0, "ns": "db.c", "firstBatch": [{"_id": 1, "number": binary}]}}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        typed = with_codec(client.db.c, uuid_representation=representation)
        typed.insert_one({"_id": 1, "number": number})
        assert server.commands("insert")[0]["documents"] == [{"_id": 1, "number": binary}]
        assert typed.find_one({"number": number}) == {"_id": 1, "number": number}
        assert server.commands("find")[0]["filter"] == {"number": binary}
        assert typed.find().to_list() == [{"_id": 1, "number": number}]
        assert client.db.c.find_one() == {"_id": 1, "number": binary}


def test_uuids_need_a_representation(collection: Collection[Any]) -> None:
    with pytest.raises(ValueError, match="cannot encode native uuid"):
        collection.insert_one({"number": uuid.uuid4()})


def test_the_representation_of_uuids_may_stand_in_the_uri() -> None:
    number = uuid.uuid4()
    uri = "mongodb://{}/?uuidRepresentation=standard"
    with ScriptedServer() as server, MongoClient[Any](uri.format(server.name)) as client:
        client.db.c.insert_one({"_id": number})
        assert server.commands("insert")[0]["documents"] == [{"_id": Binary.from_uuid(number)}]
