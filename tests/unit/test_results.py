from __future__ import annotations

import copy

import pytest

from gmongo.errors import InvalidOperation
from gmongo.results import (
    BulkWriteResult,
    ClientBulkWriteResult,
    DeleteResult,
    InsertManyResult,
    InsertOneResult,
    UpdateResult,
)

COUNTS = {"nInserted": 1, "nMatched": 2, "nModified": 3, "nRemoved": 4, "nDeleted": 4, "nUpserted": 5}


def test_insert_results_give_ids_even_if_unacknowledged():
    one = InsertOneResult("a", acknowledged=False)
    many = InsertManyResult([1, 2], acknowledged=False)
    assert (one.inserted_id, one.acknowledged) == ("a", False)
    assert (many.inserted_ids, many.acknowledged) == ([1, 2], False)


@pytest.mark.parametrize(
    ("raw", "in_client_bulk", "matched", "modified", "upserted_id", "did_upsert"),
    [
        ({"n": 2, "nModified": 1}, False, 2, 1, None, False),
        ({"n": 1, "nModified": 0, "upserted": 5}, False, 0, 0, 5, True),
        ({"n": 1, "nModified": 0, "upserted": None}, False, 1, 0, None, True),
        ({"n": 1, "nModified": 0, "upserted": {"_id": 5}}, True, 1, 0, 5, True),
        ({"n": 1, "nModified": 0, "upserted": {"_id": None}}, True, 1, 0, None, True),
        ({"n": 1, "nModified": 1}, True, 1, 1, None, False),
        ({}, False, 0, 0, None, False),
    ],
)
def test_update_result(raw, in_client_bulk, matched, modified, upserted_id, did_upsert):
    result = UpdateResult(raw, True, in_client_bulk)
    assert result.raw_result is raw
    assert result.matched_count == matched
    assert result.modified_count == modified
    assert result.upserted_id == upserted_id
    assert result.did_upsert is did_upsert


def test_update_result_keeps_a_compound_id_whole():
    assert UpdateResult({"n": 1, "upserted": {"_id": 5}}, True).upserted_id == {"_id": 5}


def test_delete_result():
    assert DeleteResult({"n": 3}, True).deleted_count == 3
    assert DeleteResult({}, True).deleted_count == 0
    assert DeleteResult({"n": 3}, True).raw_result == {"n": 3}


@pytest.mark.parametrize(
    "result", [BulkWriteResult(COUNTS, True), ClientBulkWriteResult(COUNTS, True, False)], ids=repr
)
def test_bulk_counts(result):
    assert result.bulk_api_result == COUNTS
    assert result.inserted_count == 1
    assert result.matched_count == 2
    assert result.modified_count == 3
    assert result.deleted_count == 4
    assert result.upserted_count == 5


def test_bulk_upserted_ids_are_by_index():
    upserted = [{"index": 0, "_id": "a"}, {"index": 7, "_id": None}]
    assert BulkWriteResult({"upserted": upserted}, True).upserted_ids == {0: "a", 7: None}
    assert BulkWriteResult({}, True).upserted_ids == {}


def test_client_bulk_verbose_results():
    inserted = {0: InsertOneResult(1, True)}
    result = ClientBulkWriteResult({"insertResults": inserted}, True, True)
    assert result.has_verbose_results is True
    assert result.insert_results == inserted
    assert result.update_results == {}
    assert result.delete_results == {}


@pytest.mark.parametrize("name", ["insert_results", "update_results", "delete_results"])
def test_client_bulk_results_need_verbose(name):
    with pytest.raises(InvalidOperation, match=rf"{name}.*verbose_results"):
        getattr(ClientBulkWriteResult({}, True, False), name)


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (UpdateResult(None, False), "matched_count modified_count upserted_id did_upsert"),
        (DeleteResult({}, False), "deleted_count"),
        (
            BulkWriteResult({}, False),
            "inserted_count matched_count modified_count deleted_count upserted_count upserted_ids",
        ),
        (
            ClientBulkWriteResult({}, False, False),
            "inserted_count matched_count modified_count deleted_count upserted_count "
            "insert_results update_results delete_results",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_is_known_of_unacknowledged_writes(result, names):
    assert result.acknowledged is False
    for name in names.split():
        with pytest.raises(InvalidOperation, match=rf"\b{name}\b.*not acknowledged"):
            getattr(result, name)


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (InsertOneResult("a", True), "InsertOneResult('a', acknowledged=True)"),
        (InsertManyResult([1], False), "InsertManyResult([1], acknowledged=False)"),
        (UpdateResult({"n": 1}, True), "UpdateResult({'n': 1}, acknowledged=True)"),
        (DeleteResult({"n": 1}, True), "DeleteResult({'n': 1}, acknowledged=True)"),
        (BulkWriteResult({}, True), "BulkWriteResult({}, acknowledged=True)"),
        (
            ClientBulkWriteResult({}, True, True),
            "ClientBulkWriteResult({}, acknowledged=True, verbose=True)",
        ),
    ],
)
def test_repr(result, shown):
    assert repr(result) == shown
    assert repr(copy.deepcopy(result)) == shown


def test_results_cannot_be_changed():
    with pytest.raises(AttributeError):
        InsertOneResult(1, True).inserted_id = 2
