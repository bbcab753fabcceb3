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
ORDERED: list[OrderedDict[str, Any]] = [OrderedDict({"$set": {"a": 1}})]
MAPPINGS: list[Mapping[str, Any]] = [MappingProxyType({"$set": {"a": 1}})]
TUPLE: tuple[dict[str, Any], ...] = ({"$set": {"a": 1}},)
FILTERS: list[dict[str, Any]] = [{"i": 1}]
PROXY: Mapping[str, Any] = MappingProxyType({"a": 1})
HINT: list[tuple[str, int]] = [("a", 1)]


def updates(things: Collection[dict[str, Any]]) -> None:
    things.update_one({}, DICTIONARIES)
    things.update_one({}, SONS)
    things.update_one({}, ORDERED)
    things.update_one({}, MAPPINGS)
    things.update_one({}, TUPLE)
    things.update_many(PROXY, DICTIONARIES, array_filters=FILTERS)
    things.update_many(PROXY, TUPLE, array_filters=TUPLE)
    things.find_one_and_update({}, DICTIONARIES, array_filters=FILTERS, hint=HINT, sort=HINT)
    things.find_one_and_update({}, TUPLE, array_filters=TUPLE)
    things.bulk_write([UpdateOne({}, DICTIONARIES), UpdateMany({}, SONS), UpdateMany(PROXY, MAPPINGS)])
    UpdateOne(PROXY, TUPLE, array_filters=FILTERS)  # better: PyMongo accepts only list[Mapping[str, Any]]
    UpdateMany(PROXY, TUPLE, array_filters=TUPLE)  # better: PyMongo accepts only list[Mapping[str, Any]]


def reads(client: MongoClient[dict[str, Any]], things: Collection[dict[str, Any]]) -> None:
    things.find(PROXY, PROXY, sort=HINT, hint=HINT)
    things.find_one(SON([("a", 1)]))
    things.aggregate(DICTIONARIES)
    things.aggregate(TUPLE)
    things.aggregate(SONS, let=PROXY, collation=PROXY)
    things.database.aggregate(ORDERED)
    things.watch(DICTIONARIES)
    client.watch(TUPLE)
    client["a"].watch(MAPPINGS)
    things.count_documents(PROXY)
    things.distinct("a", PROXY)


def schema(things: Collection[dict[str, Any]], models: list[SearchIndexModel], indexes: list[IndexModel]) -> None:
    things.create_search_indexes(models)
    things.create_indexes(indexes)
    things.create_index(HINT)
    things.delete_many(PROXY, hint=HINT, let=PROXY)
    things.insert_many(DICTIONARIES)
    things.insert_many(TUPLE)
