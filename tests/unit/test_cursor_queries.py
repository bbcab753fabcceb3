"""Parameters of `find` and methods of a cursor set the filter or fields of the command.
The tests need no server.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from bson.code import Code
from bson.son import SON

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
    code = Code("x", {"y": 1})
    assert COLLECTION.find({"a": 1}).where("x")._build_query() == ({"a": 1, "$where": Code("x")}, {})
    assert COLLECTION.find({"$where": "x"}).where(code)._build_query() == ({"$where": code}, {})


def test_legacy_query_operators_become_command_fields() -> None:
    legacy_filter = {"$query": {"a": 1}, "$orderby": {"b": 1}, "$hint": "_id_", "$comment": "why", "$maxTimeMS": 3}
    names = ("explain", "max", "maxScan", "min", "returnKey", "showRecordId", "snapshot")
    legacy_filter |= {f"${name}": name for name in names} | {"$readPreference": {}, "$other": 1}
    filter, fields = COLLECTION.find(legacy_filter, skip=2)._build_query()
    assert filter == {"a": 1}
    explained = COLLECTION.find({"$query": {"a": 1}, "$explain": True}, skip=2)._build_explain_command()
    assert explained == {"explain": {"find": "c", "filter": {"a": 1}, "skip": 2}}
    expected = {"sort": {"b": 1}, "hint": "_id_", "comment": "why", "maxTimeMS": 3, "skip": 2, "$other": 1}
    assert fields == expected | {name: name for name in names}
    assert COLLECTION.find({"$query": {}, "$showDiskLoc": True})._build_query()[1] == {"showRecordId": True}


@pytest.mark.parametrize("parameter", ["min", "max"])
def test_min_or_max_without_hint_raises_invalid_operation(parameter: str) -> None:
    with pytest.raises(InvalidOperation, match="min and max are the bounds of an index: hint must name the index"):
        COLLECTION.find(**{parameter: [("_id", 1)]})._build_query()


@with_cases
def test_invalid_find_parameter_raises(options: dict[str, Any], error_class: type[Exception], message: str) -> None:
    with pytest.raises(error_class) as caught:
        COLLECTION.find(**options)
    assert str(caught.value) == message


@with_cases
def test_invalid_cursor_method_call_raises(
    options: dict[str, Any], error_class: type[Exception], calls: list[list[Any]]
) -> None:
    for message, method, *arguments in calls:
        with pytest.raises(error_class) as caught:
            getattr(COLLECTION.find(**options), method)(*arguments)
        assert str(caught.value) == message


def test_cursor_before_query_has_no_server_cursor() -> None:
    cursor = COLLECTION.find(session=None)
    for each in (cursor, cursor.clone()):
        assert (each.alive, each.cursor_id, each.address, each.retrieved, each.session) == (True, None, None, 0, None)
    with cursor:
        pass
    assert (cursor.alive, list(cursor), next(cursor, None)) == (False, [], None)
    assert cursor.clone().alive and cursor.rewind().alive


def test_clone_shares_values_and_deep_copy_copies_values() -> None:
    loop: dict[str, Any] = {"list": [1]}
    loop["loop"] = loop
    filter = {"loop": loop, "son": SON(b=1), "pattern": re.compile("x"), "bytes": bytearray(b"x")}
    cursor = COLLECTION.find(filter, {"a": 1}, batch_size=2)
    clone, (copied, fields) = cursor.clone().sort("a"), copy.deepcopy(cursor)._build_query()
    assert cursor._build_query() == (filter, fields) == (filter, {"projection": {"a": 1}, "batchSize": 2})
    assert clone._build_query()[0]["loop"] is loop and fields["projection"] is not cursor._fields["projection"]
    assert copied["loop"]["loop"] is copied["loop"] is not loop
    assert copied["loop"]["list"] == [1] and copied["loop"]["list"] is not loop["list"]
    assert type(copied["son"]) is SON and copied["pattern"] is filter["pattern"]
    for name in ("son", "bytes"):
        assert copied[name] == filter[name] and copied[name] is not filter[name]
