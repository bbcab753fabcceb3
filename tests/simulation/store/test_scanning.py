"""Tests that a scan skips a record only if the record cannot match the query."""

from __future__ import annotations

import datetime

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.son import SON

from gmongo.testing.command import CommandError
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.data import Record
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.scanning import scan_keys

ID = ObjectId(b"twelve bytes")
VALUES = [
    *(
        1, 1.0, Int64(1), Decimal128("1"), Decimal128("1.0"), True, 2, 0, -0.0, False, 2**53 + 1,
        float(2**53), float("nan"),
    ),
    *("a", "A", "1", "", Code("a"), Regex("a"), b"a", Binary(b"a", 5), ID, str(ID), None, MinKey(), MaxKey()),
    *(Timestamp(1, 1), datetime.datetime(2024, 1, 1), {}, {"a": 1}, SON(a=1), {"x": "a"}),
    *([], [1], ["a"], [ID], [[1]], [{"a": 1}], [None], [Decimal128("1")], ["b", "A"]),
]  # fmt: skip
RECORDS = {(number,): Record(number, {"_id": number, "a": value}) for number, value in enumerate(VALUES)}
RECORDS[len(VALUES),] = Record(len(VALUES), {"_id": "without"})


@pytest.mark.parametrize("collation", [BINARY, Collation.of({"locale": "en", "strength": 2})], ids=["binary", "folded"])
@pytest.mark.parametrize("other", [{}, {"b": 1}, {"$or": [{"b": 1}]}], ids=str)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__} {value!r:.20}")
def test_scan_contains_records_that_match_equality(value, other, collation):
    query = {**other, "a": value}
    match = compile_filter({"a": value}, collation=collation)
    keys = list(scan_keys(RECORDS, query, collation, Pace()))
    assert keys == sorted(keys)
    if "b" not in other:
        assert {key for key, record in RECORDS.items() if match(record.document)} <= set(keys)


@pytest.mark.parametrize("collation", [BINARY, Collation.of({"locale": "en", "strength": 2})], ids=["binary", "folded"])
@pytest.mark.parametrize("name", ["$eq", "$gt", "$gte", "$lt", "$lte"])
def test_scan_contains_records_that_match_bounds(name, collation):
    for bound in VALUES:
        for condition in ({name: bound}, {"$exists": True, name: bound}, {name: bound, "$ne": 7}):
            try:
                match = compile_filter({"a": condition}, collation=collation)
            except CommandError:
                continue
            keys = set(scan_keys(RECORDS, {"a": condition}, collation, Pace()))
            assert {key for key, record in RECORDS.items() if match(record.document)} <= keys, condition


def test_scan_skips_records_with_other_values():
    records = {(number,): Record(number, {"a": number}) for number in range(2000)}
    assert list(scan_keys(records, {"a": 1500}, BINARY, Pace())) == [(1500,)]
    assert list(scan_keys(records, {"$comment": "x", "a.b": 1, "a": 1500}, BINARY, Pace())) == [(1500,)]
    assert list(scan_keys(records, {"a": {"$eq": 1500}}, BINARY, Pace())) == [(1500,)]
    assert len(list(scan_keys(records, {"a": {"$gte": 1500}}, BINARY, Pace()))) == 500
    assert len(list(scan_keys(records, {"a": {"$exists": True, "$lt": 1500.5}}, BINARY, Pace()))) == 1501
    assert len(list(scan_keys(records, {"a": {"$ne": 1500}}, BINARY, Pace()))) == 2000


def test_scan_omits_record_removed_during_scan():
    records = {(number,): Record(number, {"a": number % 2}) for number in range(2000)}
    keys = iter(scan_keys(records, {"a": 1}, BINARY, Pace()))
    assert next(keys) == (1,)
    del records[1999,]
    records[1998,] = Record(1998, {"a": 1})
    assert list(keys)[-2:] == [(1997,), (1998,)]
