"""Update operators."""

from __future__ import annotations

import datetime

import pytest
from bson import Decimal128, Int64, ObjectId

from gmongo.testing.command import CommandError
from gmongo.testing.store.apply_update import Update

from .shell import standalone


@pytest.mark.parametrize(
    ("before", "update", "after"),
    [
        ({"a": 1}, {"$set": {"b.c": 2}}, {"a": 1, "b": {"c": 2}}),
        ({"a": [1, 2]}, {"$set": {"a.3": 9}}, {"a": [1, 2, None, 9]}),
        ({"a": 1, "b": 1}, {"$unset": {"a": ""}}, {"b": 1}),
        ({"a": [1, 2]}, {"$unset": {"a.0": ""}}, {"a": [None, 2]}),
        ({"a": 1}, {"$inc": {"a": 2, "b": 3}}, {"a": 3, "b": 3}),
        ({"a": 3}, {"$mul": {"a": 2, "b": 3}}, {"a": 6, "b": 0}),
        ({"a": 3}, {"$min": {"a": 2}, "$max": {"b": 1}}, {"a": 2, "b": 1}),
        ({"a": 1}, {"$rename": {"a": "b.c"}}, {"b": {"c": 1}}),
        ({"a": [1]}, {"$push": {"a": 2, "b": 1}}, {"a": [1, 2], "b": [1]}),
        ({"a": [1, 4]}, {"$push": {"a": {"$each": [3, 2], "$sort": 1, "$slice": -3}}}, {"a": [2, 3, 4]}),
        ({"a": [1, 4]}, {"$push": {"a": {"$each": [9], "$position": 0}}}, {"a": [9, 1, 4]}),
        ({"a": [1]}, {"$addToSet": {"a": {"$each": [1, 2, 2]}}}, {"a": [1, 2]}),
        ({"a": [1, 2, 3]}, {"$pop": {"a": -1}}, {"a": [2, 3]}),
        ({"a": [1, 5, 9]}, {"$pull": {"a": {"$gt": 4}}}, {"a": [1]}),
        ({"a": [{"x": 1}, {"x": 2}]}, {"$pull": {"a": {"x": 1}}}, {"a": [{"x": 2}]}),
        ({"a": [1, 2, 1]}, {"$pullAll": {"a": [1]}}, {"a": [2]}),
        ({"a": 12}, {"$bit": {"a": {"or": 3, "and": 13}}}, {"a": 13}),
        ({"a": [1, 2]}, {"$inc": {"a.$[]": 1}}, {"a": [2, 3]}),
        ({"a": 1}, {}, {}),
        ({"a": 1}, {"b": 2}, {"b": 2}),
        ({"a": 1}, [{"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}], {"b": 2}),
        ({"a": {"x": 1}}, [{"$replaceWith": "$a"}], {"x": 1}),
        ({"a": {"x": 1}}, [{"$set": {"a": {"y": 2}}}], {"a": {"x": 1, "y": 2}}),
    ],
)
def test_operator_changes_document(before, update, after):
    given = {"_id": 1, **before}
    found = Update(update, {}).apply(given)
    assert found == {"_id": 1, **after}
    assert given == {"_id": 1, **before}


def test_arithmetic_keeps_number_types():
    found = Update({"$inc": {"a": 1, "b": 1, "c": Decimal128("0.5"), "d": 1.5}}, {}).apply(
        {"_id": 1, "a": Int64(1), "b": 1, "c": 1, "d": 1}
    )
    assert [type(found[name]).__name__ for name in "abcd"] == ["Int64", "int", "Decimal128", "float"]
    assert found["c"] == Decimal128("1.5")


def test_new_fields_are_in_order_of_names():
    assert list(Update({"$set": {"z": 1, "a": 1}}, {}).apply({"_id": 1})) == ["_id", "a", "z"]


def test_positional_operator_updates_matched_element():
    update = Update({"$set": {"a.$.x": 9}}, {"a.x": 2})
    assert update.apply({"_id": 1, "a": [{"x": 1}, {"x": 2}]}) == {"_id": 1, "a": [{"x": 1}, {"x": 9}]}
    with pytest.raises(CommandError) as caught:
        Update({"$set": {"a.$": 1}}, {"_id": 1}).apply({"_id": 1, "a": [1]})
    assert caught.value.code == 2


def test_array_filter_selects_elements():
    update = Update({"$set": {"a.$[big].y": 1}}, {}, array_filters=[{"big.x": {"$gt": 1}}])
    assert update.apply({"_id": 1, "a": [{"x": 1}, {"x": 2}]}) == {"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 1}]}


@pytest.mark.parametrize(
    ("update", "options", "code"),
    [
        ({"$foo": {"a": 1}}, {}, 9),
        ({"$set": {"a": 1, "a.b": 2}}, {}, 40),
        ({"$set": {"a": 1}, "$inc": {"a": 1}}, {}, 40),
        ({"$set": {"": 1}}, {}, 56),
        ({"$set": {"_id": 2}}, {}, 66),
        ({"_id": 2}, {}, 66),
        ({"a": 1, "$b": 1}, {}, 52),
        ({"$inc": {"a": "x"}}, {}, 14),
        ({"$inc": {"s": 1}}, {}, 14),
        ({"$push": {"s": 1}}, {}, 2),
        ({"$set": {"s.x": 1}}, {}, 28),
        ({"$set": {"l.$[i]": 1}}, {}, 2),
        ({"$set": {"a": 1}}, {"array_filters": [{"i": 1}]}, 9),
        ([{"$match": {}}], {}, 72),
    ],
)
def test_invalid_update_is_refused(update, options, code):
    with pytest.raises(CommandError) as caught:
        Update(update, {}, **options).apply({"_id": 1, "s": "text", "l": [1]})
    assert caught.value.code == code


def test_upsert_inserts_equalities_of_query():
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


def test_update_counts_changed_documents_only():
    shell = standalone()
    shell.insert({"_id": 1, "x": 1}, {"_id": 2, "x": 2})
    assert shell.update({}, {"$set": {"x": 1}}, multi=True) == {"n": 2, "nModified": 1}
    assert shell.update({}, {"$set": {"x": 5}}, sort={"_id": -1}) == {"n": 1, "nModified": 1}
    assert shell.find() == [{"_id": 1, "x": 1}, {"_id": 2, "x": 5}]
    assert shell.update({"_id": 1}, {"$set": {"x": 1.0}}) == {"n": 1, "nModified": 1}
    with pytest.raises(CommandError, match="unknown field"):
        shell.update({}, {}, foo=1)
    assert shell.update({}, {"x": 1}, multi=True)["writeErrors"][0]["code"] == 9


def test_current_date_sets_current_time():
    document = Update({"$currentDate": {"a": True, "b": {"$type": "timestamp"}}}, {}).apply({"_id": 1})
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    assert abs(now - document["a"]) < datetime.timedelta(minutes=1)
    assert type(document["b"]).__name__ == "Timestamp"


def test_find_and_modify_returns_document():
    shell = standalone()
    shell.insert({"_id": 1, "x": 1}, {"_id": 2, "x": 2})
    reply = shell("findAndModify", "c", query={"x": {"$gt": 0}}, sort={"x": -1}, update={"$inc": {"x": 1}}, new=True)
    assert reply == {"lastErrorObject": {"n": 1, "updatedExisting": True}, "value": {"_id": 2, "x": 3}}
    reply = shell("findandmodify", "c", query={"_id": 1}, remove=True, fields={"x": 1, "_id": 0})
    assert reply == {"lastErrorObject": {"n": 1}, "value": {"x": 1}}
    reply = shell("findAndModify", "c", query={"_id": 9}, update={"x": 9}, upsert=True)
    assert reply == {"lastErrorObject": {"n": 1, "updatedExisting": False, "upserted": 9}, "value": None}
    assert shell("findAndModify", "c", query={"_id": 10}, update={"x": 9})["value"] is None
    with pytest.raises(CommandError) as caught:
        shell("findAndModify", "c", query={"_id": 9}, update={"$set": {"_id": 3}})
    assert caught.value.code == 66
