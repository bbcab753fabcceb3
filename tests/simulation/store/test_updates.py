"""Tests of update operators in a simulated store."""

from __future__ import annotations

import datetime

import pytest

from gmongo.testing.store.apply_update import Update


@pytest.mark.parametrize(
    "update",
    [
        *({name: {"a": 2}} for name in ("$set", "$unset", "$push", "$addToSet", "$pull")),
        *({"$pop": {"a": 1}}, {"$pullAll": {"a": [1]}}, {"$set": {"a.1.x": 2}}, {"$inc": {"b": 1}}, {"$mul": {"b": 3}}),
        *({"$min": {"b": 0}, "$max": {"c": 1}}, {"$rename": {"b": "c"}}, {}, {"c": 1}),
        *({"$inc": {"d.$[]": 1}}, {"$push": {"d": {"$each": [0], "$sort": 1}}}, [{"$set": {"b": 2}}, {"$unset": "a"}]),
    ],
)
def test_update_does_not_change_original_document(update):
    original = {"_id": 1, "a": [1, {"x": 1}], "b": 1, "d": [2, 1]}
    Update(update, {}).apply(original)
    assert original == {"_id": 1, "a": [1, {"x": 1}], "b": 1, "d": [2, 1]}


def test_current_date_operator_sets_current_time():
    document = Update({"$currentDate": {"a": True, "b": {"$type": "timestamp"}}}, {}).apply({"_id": 1})
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    assert abs(now - document["a"]) < datetime.timedelta(minutes=1)
    assert type(document["b"]).__name__ == "Timestamp"
