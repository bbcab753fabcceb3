"""Tests of update operators in a simulated store."""

from __future__ import annotations

import datetime

import pytest
from bson import Decimal128, Int64, ObjectId

from gmongo.testing.command import CommandError
from gmongo.testing.store.apply_update import Update

from .shell import standalone


@pytest.mark.parametrize(
    "update",
    [
        *({name: {"a": 2}} for name in ("$set", "$unset", "$push", "$addToSet", "$pull")),
        *({"$pop": {"a": 1}}, {"$pullAll": {"a": [1]}}, {"$set": {"a.1.x": 2}}, {"$inc": {"b": 1}}, {"$mul": {"b": 3}}),
        *({"$min": {"b": 0}, "$max": {"c": 1}}, {"$rename": {"b": "c"}}, {"$bit": {"b": {"or": 2}}}, {}, {"c": 1}),
        *({"$inc": {"d.$[]": 1}}, {"$push": {"d": {"$each": [0], "$sort": 1}}}, [{"$set": {"b": 2}}, {"$unset": "a"}]),
    ],
)
def test_update_does_not_change_original_document(update):
    before = {"_id": 1, "a": [1, {"x": 1}], "b": 1, "d": [2, 1]}
    Update(update, {}).apply(before)
    assert before == {"_id": 1, "a": [1, {"x": 1}], "b": 1, "d": [2, 1]}


def test_arithmetic_operators_keep_number_types():
    found = Update({"$inc": {"a": 1, "b": 1, "c": Decimal128("0.5"), "d": 1.5}}, {}).apply(
        {"_id": 1, "a": Int64(1), "b": 1, "c": 1, "d": 1}
    )
    assert [type(found[name]).__name__ for name in "abcd"] == ["Int64", "int", "Decimal128", "float"]
    assert found["c"] == Decimal128("1.5")


def test_set_adds_new_fields_in_alphabetical_order():
    assert list(Update({"$set": {"z": 1, "a": 1}}, {}).apply({"_id": 1})) == ["_id", "a", "z"]


def test_positional_operator_updates_matched_element():
    update = Update({"$set": {"a.$.x": 9}}, {"a.x": 2})
    assert update.apply({"_id": 1, "a": [{"x": 1}, {"x": 2}]}) == {"_id": 1, "a": [{"x": 1}, {"x": 9}]}
    with pytest.raises(CommandError) as caught:
        Update({"$set": {"a.$": 1}}, {"_id": 1}).apply({"_id": 1, "a": [1]})
    assert caught.value.code == 2


def test_array_filter_selects_elements_to_update():
    update = Update({"$set": {"a.$[big].y": 1}}, {}, array_filters=[{"big.x": {"$gt": 1}}])
    assert update.apply({"_id": 1, "a": [{"x": 1}, {"x": 2}]}) == {"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 1}]}


def test_upsert_inserts_document_with_equalities_of_query():
    shell = standalone()
    reply = shell.update(
        {"a": 1, "b": {"$gt": 5}, "c.d": {"$eq": 2}}, {"$set": {"x": 1}, "$setOnInsert": {"y": 2}}, upsert=True
    )
    identity = reply["upserted"][0]["_id"]
    assert isinstance(identity, ObjectId)
    assert reply == {"n": 1, "nModified": 0, "upserted": [{"index": 0, "_id": identity}]}
    assert shell.find() == [{"_id": identity, "a": 1, "c": {"d": 2}, "x": 1, "y": 2}]
    assert shell.update({"_id": 7}, {"r": 1}, upsert=True)["upserted"] == [{"index": 0, "_id": 7}]
    assert shell.find(filter={"_id": 7}) == [{"_id": 7, "r": 1}]
    assert shell.update({"_id": 7}, {"$setOnInsert": {"y": 1}}, upsert=True) == {"n": 1, "nModified": 0}


def test_update_reply_counts_only_changed_documents_as_modified():
    shell = standalone()
    shell.insert({"_id": 1, "x": 1}, {"_id": 2, "x": 2})
    assert shell.update({}, {"$set": {"x": 1}}, multi=True) == {"n": 2, "nModified": 1}
    assert shell.update({}, {"$set": {"x": 5}}, sort={"_id": -1}) == {"n": 1, "nModified": 1}
    assert shell.find() == [{"_id": 1, "x": 1}, {"_id": 2, "x": 5}]
    assert shell.update({"_id": 1}, {"$set": {"x": 1.0}}) == {"n": 1, "nModified": 1}
    with pytest.raises(CommandError, match="unknown field"):
        shell.update({}, {}, foo=1)
    assert shell.update({}, {"x": 1}, multi=True)["writeErrors"][0]["code"] == 9


def test_current_date_operator_sets_current_time():
    document = Update({"$currentDate": {"a": True, "b": {"$type": "timestamp"}}}, {}).apply({"_id": 1})
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    assert abs(now - document["a"]) < datetime.timedelta(minutes=1)
    assert type(document["b"]).__name__ == "Timestamp"
