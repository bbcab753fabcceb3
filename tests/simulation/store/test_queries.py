"""Tests of queries in a simulated store: matching, sorting and projection."""

from __future__ import annotations

import datetime

import pytest
from bson import MaxKey, MinKey, ObjectId, Regex, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from gmongo.testing.command import CommandError
from gmongo.testing.store.collation import BINARY
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.values import are_equal, compare, make_key

from .shell import standalone

DATE = datetime.datetime(2024, 1, 2)


@pytest.mark.parametrize("query", [{"$where": "true"}, {"x": {"$near": [0, 0]}}])
def test_unsupported_query_is_refused(query):
    shell = standalone()
    shell.insert({"_id": 1})
    with pytest.raises(CommandError) as caught:
        shell.find(filter=query)
    assert caught.value.code == 115


def test_values_of_different_types_have_sort_order_of_server():
    values = [
        MaxKey(),
        Regex("a"),
        Timestamp(1, 1),
        DATE,
        True,
        ObjectId(),
        b"x",
        [1],
        {"a": 1},
        "s",
        1,
        None,
        MinKey(),
    ]
    # The sort key of an array is its lowest element. Therefore wrap each array in a second array, so
    # that the sort key is the array itself.
    documents = [{"v": [value] if isinstance(value, list) else value} for value in values]
    sorted_documents = compile_sort({"v": 1}, BINARY)(documents, lambda document: document)
    type_names = [type(one["v"]).__name__ for one in sorted_documents]
    order = "MinKey NoneType int str dict list bytes ObjectId bool datetime Timestamp Regex MaxKey"
    assert type_names == order.split()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=2) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


@given(VALUES, VALUES, VALUES)
def test_comparison_of_values_is_total_order(a, b, c):
    assert (compare(a, b) > 0) == (compare(b, a) < 0)
    if compare(a, b) <= 0 and compare(b, c) <= 0:
        assert compare(a, c) <= 0
    assert are_equal(a, b) == (make_key(a) == make_key(b))


def test_unknown_field_is_refused_and_generic_fields_are_accepted():
    shell = standalone()
    with pytest.raises(CommandError) as caught:
        shell("find", "c", foo=1)
    assert (caught.value.code, caught.value.message) == (40415, "BSON field 'find.foo' is an unknown field.")
    assert shell.find(maxTimeMS=5, comment={"a": 1}, apiVersion="1", readConcern={"level": "majority"}) == []
    with pytest.raises(CommandError) as caught:
        shell.find(readConcern={"level": "none"})
    assert caught.value.code == 2


def test_server_before_5_0_refuses_let():
    with pytest.raises(CommandError) as caught:
        standalone(version=(4, 4))("update", "c", updates=[{"q": {}, "u": {}}], let={})
    assert caught.value.message == "BSON field 'update.let' is an unknown field."


def test_text_search_with_uncertain_results_is_refused():
    shell = standalone()
    shell("createIndexes", "c", indexes=[{"key": {"$**": "text"}, "name": "x"}])
    shell("createIndexes", "d", indexes=[{"key": {"a": "text"}, "name": "x"}])
    for collection, word, order in (("c", "spam", {"_id": 1}), ("d", "running", {"_id": 1}), ("d", "spam", {})):
        with pytest.raises(CommandError, match="a text search beyond plain English words"):
            shell.find(collection, {"$text": {"$search": word}}, sort=order)
