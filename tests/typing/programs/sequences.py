"""A type checker accepts lists, tuples and mappings of several kinds as arguments.

The arguments are typed variables, because a type checker infers a literal's type from the parameter.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bson.son import SON

from gmongo import IndexModel, MongoClient, UpdateMany, UpdateOne
from gmongo.collection import Collection
from gmongo.operations import SearchIndexModel

DICTIONARIES: list[dict[str, Any]] = [{"$set": {"a": 1}}]
SONS: list[SON[str, Any]] = [SON([("$set", {"a": 1})])]
ORDERED_DICTS: list[OrderedDict[str, Any]] = [OrderedDict({"$set": {"a": 1}})]
MAPPINGS: list[Mapping[str, Any]] = [MappingProxyType({"$set": {"a": 1}})]
TUPLE: tuple[dict[str, Any], ...] = ({"$set": {"a": 1}},)
FILTERS: list[dict[str, Any]] = [{"i": 1}]
PROXY: Mapping[str, Any] = MappingProxyType({"a": 1})
KEY_PAIRS: list[tuple[str, int]] = [("a", 1)]


def call_update_operations(collection: Collection[dict[str, Any]]) -> None:
    collection.update_one({}, DICTIONARIES)
    collection.update_one({}, SONS)
    collection.update_one({}, ORDERED_DICTS)
    collection.update_one({}, MAPPINGS)
    collection.update_one({}, TUPLE)
    collection.update_many(PROXY, DICTIONARIES, array_filters=FILTERS)
    collection.update_many(PROXY, TUPLE, array_filters=TUPLE)
    collection.find_one_and_update({}, DICTIONARIES, array_filters=FILTERS, hint=KEY_PAIRS, sort=KEY_PAIRS)
    collection.find_one_and_update({}, TUPLE, array_filters=TUPLE)
    collection.bulk_write([UpdateOne({}, DICTIONARIES), UpdateMany({}, SONS), UpdateMany(PROXY, MAPPINGS)])
    UpdateOne(PROXY, TUPLE, array_filters=FILTERS)  # better: PyMongo accepts only list[Mapping[str, Any]]
    UpdateMany(PROXY, TUPLE, array_filters=TUPLE)  # better: PyMongo accepts only list[Mapping[str, Any]]


def call_read_operations(client: MongoClient[dict[str, Any]], collection: Collection[dict[str, Any]]) -> None:
    collection.find(PROXY, PROXY, sort=KEY_PAIRS, hint=KEY_PAIRS)
    collection.find_one(SON([("a", 1)]))
    collection.aggregate(DICTIONARIES)
    collection.aggregate(TUPLE)
    collection.aggregate(SONS, let=PROXY, collation=PROXY)
    collection.database.aggregate(ORDERED_DICTS)
    collection.watch(DICTIONARIES)
    client.watch(TUPLE)
    client["a"].watch(MAPPINGS)
    collection.count_documents(PROXY)
    collection.distinct("a", PROXY)


def call_schema_operations(
    collection: Collection[dict[str, Any]], models: list[SearchIndexModel], indexes: list[IndexModel]
) -> None:
    collection.create_search_indexes(models)
    collection.create_indexes(indexes)
    collection.create_index(KEY_PAIRS)
    collection.delete_many(PROXY, hint=KEY_PAIRS, let=PROXY)
    collection.insert_many(DICTIONARIES)
    collection.insert_many(TUPLE)
