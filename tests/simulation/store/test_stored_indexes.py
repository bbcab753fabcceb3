"""Tests of indexes in a simulated store: queries, transactions and snapshots use the indexes."""

from __future__ import annotations

import sys

import pytest

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.planning import select_plan
from tests.support.cases import with_cases

from .shell import replica_set, standalone

DOCUMENT_COUNT = 20_000


def create_index(shell, keys, **options):
    shell("createIndexes", "c", indexes=[{"key": keys, "name": "i", **options}])
    return shell


@pytest.fixture(scope="module")
def large_collection():
    shell = create_index(standalone(), {"i": 1})
    for start in range(0, DOCUMENT_COUNT, 10_000):
        shell.insert(*({"_id": number, "i": number, "u": number} for number in range(start, start + 10_000)))
    return shell


def count_calls(function):
    """Return the number of Python and C function calls in a call of `function`."""
    count = 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    # The first call of `function` also fills caches. Therefore count only the second call.
    function()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_find_by_index_costs_at_most_2_5_times_find_by_id(large_collection):
    calls_by_id = count_calls(lambda: large_collection.find(filter={"_id": 14_000}, limit=1))
    calls_by_index = count_calls(lambda: large_collection.find(filter={"i": 14_000}, limit=1))
    assert calls_by_index <= 2.5 * calls_by_id
    assert count_calls(lambda: large_collection.find(filter={"u": 14_000}, limit=1)) > 10 * calls_by_id


@pytest.mark.parametrize("change", [{"$set": {"x": 1}}, {"$inc": {"n": 1}}])
def test_update_by_index_costs_at_most_2_5_times_update_by_id(large_collection, change):
    calls_by_id = count_calls(lambda: large_collection.update({"_id": 10_000}, change))
    assert count_calls(lambda: large_collection.update({"i": 10_001}, change)) <= 2.5 * calls_by_id


def test_unique_index_finds_duplicate_without_scan(large_collection):
    unique_index = {"key": {"u": 1}, "name": "u", "unique": True}
    large_collection("createIndexes", "c", indexes=[unique_index])
    assert count_calls(lambda: large_collection.insert({"u": 5})) < 1000
    assert large_collection.insert({"u": 5})["writeErrors"][0]["code"] == 11000
    large_collection("dropIndexes", "c", index="u")


def count_examined_records(shell, query, collation=None):
    collection = shell.store._state.catalog["db", "c"]
    plan = select_plan(collection.indexes.values(), query, Collation.from_spec(collation))
    return len(collection.records) if plan is None else len(set(plan.keys()))


@with_cases
def test_query_examines_all_records_unless_query_can_use_index(keys, options, query, record_count):
    shell = create_index(standalone(), keys, **options)
    shell.insert(*({"_id": n, "a": n, "b": n % 2, "s": str(n)} for n in range(20)))
    assert count_examined_records(shell, query) == record_count


def test_query_uses_index_only_with_collation_of_index():
    shell = create_index(standalone(), {"s": 1}, collation={"locale": "en", "strength": 2})
    shell.insert({"_id": 1, "s": "A"}, {"_id": 2, "s": "a"}, {"_id": 3, "s": "b"})
    collation = {"locale": "en", "strength": 2}
    assert count_examined_records(shell, {"s": "a"}, collation=collation) == 2
    assert [one["_id"] for one in shell.find(filter={"s": "a"}, collation=collation)] == [1, 2]
    assert [one["_id"] for one in shell.find(filter={"s": "a"})] == [2]


def test_read_by_index_in_transaction_returns_snapshot_of_transaction():
    shell = create_index(replica_set(), {"a": 1})
    shell.insert({"_id": 1, "a": 1}, {"_id": 2, "a": 1})
    transaction = shell.with_session().transaction(1)
    assert len(transaction.find(filter={"a": 1}, startTransaction=True)) == 2
    shell.update({"_id": 1}, {"$set": {"a": 2}})
    transaction.insert({"_id": 3, "a": 1})
    transaction.update({"_id": 2}, {"$set": {"a": 5}})
    assert [one["_id"] for one in transaction.find(filter={"a": 1})] == [1, 3]
    assert [one["_id"] for one in transaction.find(filter={"a": {"$gt": 1}})] == [2]
    assert [one["_id"] for one in shell.find(filter={"a": 1})] == [2]


def test_read_by_index_at_cluster_time_returns_snapshot_of_that_time():
    shell = create_index(replica_set(), {"a": 1})
    shell.insert({"_id": 1, "a": 1})
    time = shell("find", "c", readConcern={"level": "snapshot"})["cursor"]["atClusterTime"]
    shell.update({"_id": 1}, {"$set": {"a": 2}})
    at_time = {"readConcern": {"level": "snapshot", "atClusterTime": time}}
    assert shell.find(filter={"a": 1}, **at_time) == [{"_id": 1, "a": 1}]
    assert shell.find(filter={"a": 2}, **at_time) == []
