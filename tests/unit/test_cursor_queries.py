"""Parameters of `find` and methods of a cursor set the filter or fields of the command.
The tests need no server.
"""

from __future__ import annotations

from typing import Any

import pytest
from bson.code import Code

from gmongo import MongoClient
from gmongo.errors import InvalidOperation
from tests.support.cases import with_cases

COLLECTION = MongoClient[Any](connect=False).db.c


@with_cases
def test_find_parameter_becomes_command_field(options: dict[str, Any], command_fields: dict[str, Any]) -> None:
    for cursor in (COLLECTION.find({"a": 1}, **options), COLLECTION.find_raw_batches({"a": 1}, **options)):
        assert cursor._build_query() == ({"a": 1}, command_fields)
        assert cursor.clone()._build_query() == ({"a": 1}, command_fields)


@with_cases
def test_cursor_method_becomes_command_field(calls: list[list[Any]], command_fields: dict[str, Any]) -> None:
    cursor = COLLECTION.find({"a": 1})
    for method, *arguments in calls:
        assert getattr(cursor, method)(*arguments) is cursor
    assert cursor._build_query() == ({"a": 1}, command_fields)


def test_where_adds_condition_to_filter() -> None:
    assert COLLECTION.find({"a": 1}).where("x")._build_query() == ({"a": 1, "$where": Code("x")}, {})


def test_legacy_query_operators_become_command_fields() -> None:
    legacy_filter = {"$query": {"a": 1}, "$orderby": {"b": 1}, "$hint": "_id_", "$comment": "why", "$maxTimeMS": 3}
    filter, fields = COLLECTION.find(legacy_filter, skip=2)._build_query()
    assert filter == {"a": 1}
    assert fields == {"sort": {"b": 1}, "hint": "_id_", "comment": "why", "maxTimeMS": 3, "skip": 2}


@pytest.mark.parametrize("parameter", ["min", "max"])
def test_min_or_max_without_hint_raises_invalid_operation(parameter: str) -> None:
    with pytest.raises(InvalidOperation, match="min and max are the bounds of an index: hint must name the index"):
        COLLECTION.find(**{parameter: [("_id", 1)]})._build_query()


@with_cases
def test_invalid_find_parameter_raises(options: dict[str, Any], error_class: type[Exception], message: str) -> None:
    with pytest.raises(error_class) as caught:
        COLLECTION.find(**options)
    assert str(caught.value) == message
