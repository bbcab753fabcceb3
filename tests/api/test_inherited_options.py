"""Databases and collections inherit codec options, read preference, read concern, write concern and
timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bson import CodecOptions
from bson.son import SON

from gmongo import MongoClient
from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import ReadPreference
from gmongo.write_concern import WriteConcern

OWN_OPTIONS: dict[str, Any] = {
    "codec_options": CodecOptions(document_class=SON, tz_aware=True),
    "read_preference": ReadPreference.SECONDARY_PREFERRED,
    "write_concern": WriteConcern(w=2, wtimeout=5),
    "read_concern": ReadConcern("majority"),
    "timeout_ms": 700,
}
OTHER_OPTIONS: dict[str, Any] = {
    "codec_options": CodecOptions(document_class=SON),
    "read_preference": ReadPreference.NEAREST,
    "write_concern": WriteConcern(w=3),
    "read_concern": ReadConcern("local"),
    "timeout_ms": 900,
}


def options_of(owner: Any) -> dict[str, Any]:
    options = {name: getattr(owner, name) for name in OWN_OPTIONS if name != "timeout_ms"}
    return {**options, "timeout_ms": owner._executor._timeout and owner._executor._timeout * 1000}


@pytest.fixture(scope="module")
def client() -> Iterator[MongoClient[Any]]:
    with MongoClient[Any]("mongodb://localhost/given", connect=False) as client:
        yield client


DERIVATIONS_FROM_DATABASE: dict[str, Callable[[Database[Any]], Any]] = {
    "attribute": lambda database: database.c,
    "item": lambda database: database["c"],
    "get_collection": lambda database: database.get_collection("c"),
    "with_options": lambda database: database.with_options(),
    "database attribute": lambda database: database.c.database,
    "collection": lambda database: Collection(database, "c"),
    "watched namespace": lambda database: database._stream_target()[0],
}
DERIVATIONS_FROM_COLLECTION: dict[str, Callable[[Collection[Any]], Any]] = {
    "attribute": lambda collection: collection.sub,
    "item": lambda collection: collection["sub"],
    "with_options": lambda collection: collection.with_options(),
    "watched namespace": lambda collection: collection._stream_target()[0],
}
FACTORIES_WITH_OPTIONS: dict[str, Callable[..., Any]] = {
    "get_database": lambda client, **options: client.get_database("d", **options),
    "get_default_database": lambda client, **options: client.get_default_database(**options),
    "Database": lambda client, **options: Database(client, "d", **options),
    "Database.with_options": lambda client, **options: client.d.with_options(**options),
    "get_collection": lambda client, **options: client.d.get_collection("c", **options),
    "Collection": lambda client, **options: Collection(client.d, "c", **options),
    "Collection.with_options": lambda client, **options: client.d.c.with_options(**options),
}


@pytest.mark.parametrize("derive", DERIVATIONS_FROM_DATABASE.values(), ids=DERIVATIONS_FROM_DATABASE)
def test_collection_inherits_database_options(client: MongoClient[Any], derive: Callable[[Database[Any]], Any]) -> None:
    derived = derive(client.get_database("d", **OWN_OPTIONS))
    assert options_of(derived) == OWN_OPTIONS
    assert options_of(derived.with_options()) == OWN_OPTIONS


@pytest.mark.parametrize("derive", DERIVATIONS_FROM_COLLECTION.values(), ids=DERIVATIONS_FROM_COLLECTION)
def test_objects_derived_from_collection_inherit_collection_options(
    client: MongoClient[Any], derive: Callable[[Collection[Any]], Any]
) -> None:
    collection = client.get_database("d", **OTHER_OPTIONS).get_collection("c", **OWN_OPTIONS)
    derived = derive(collection)
    assert options_of(derived) == OWN_OPTIONS
    assert derived.name.removeprefix("c.") in ("c", "sub") and derived.database == collection.database


@pytest.mark.parametrize("make_object", FACTORIES_WITH_OPTIONS.values(), ids=FACTORIES_WITH_OPTIONS)
@pytest.mark.parametrize("name", OWN_OPTIONS)
def test_argument_replaces_one_option_and_keeps_other_options(
    client: MongoClient[Any], make_object: Callable[..., Any], name: str
) -> None:
    plain, changed = make_object(client), make_object(client, **{name: OWN_OPTIONS[name]})
    assert options_of(changed) == {**options_of(plain), name: OWN_OPTIONS[name]}
    assert options_of(plain) == {**options_of(client.d), "timeout_ms": None}
    assert changed == plain  # equal despite different options, because client and names are equal


def test_databases_and_collections_inherit_options_of_client() -> None:
    uri = "mongodb://h/given?readPreference=nearest&w=2&journal=true&readConcernLevel=local&timeoutMS=50&tz_aware=true"
    with MongoClient[Any](uri, connect=False, document_class=SON) as client:
        expected = {
            "codec_options": CodecOptions(SON, tz_aware=True),
            "read_preference": ReadPreference.NEAREST,
            "write_concern": WriteConcern(w=2, j=True),
            "read_concern": ReadConcern("local"),
            "timeout_ms": 50,
        }
        owners = [client, client.d, client["d"], client.get_database(), client.get_default_database(), client.d.c]
        assert [options_of(owner) for owner in owners] == [expected] * 6
        assert [owner.name for owner in owners[3:5]] == ["given"] * 2


def test_internal_database_of_collection_has_options_of_the_collection(client: MongoClient[Any]) -> None:
    database = client.get_database("d", **OWN_OPTIONS)
    collection = database.get_collection("c", write_concern=WriteConcern(w=4), timeout_ms=800)
    assert options_of(collection._database_with_options) == {
        **OWN_OPTIONS,
        "write_concern": WriteConcern(w=4),
        "timeout_ms": 800,
    }
    assert options_of(database.c._database_with_options) == OWN_OPTIONS
