"""Each parameter of `find` and each cursor method sets the filter or a command field, without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson.code import Code

from gmongo import MongoClient
from gmongo.collation import Collation
from gmongo.cursor import Cursor, CursorType
from gmongo.errors import InvalidOperation

COLLECTION = MongoClient[Any](connect=False).db.c
HINT = {"hint": {"_id": 1}}

# Parameters of `find` with values, and the command fields that result.
PARAMETERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"projection": ["a"]}, {"projection": {"a": 1}}),
    ({"projection": {"a": 0}}, {"projection": {"a": 0}}),
    ({"projection": {}}, {}),
    ({"skip": 3}, {"skip": 3}),
    ({"limit": 3}, {"limit": 3}),
    ({"limit": -3}, {"limit": 3, "singleBatch": True}),
    ({"no_cursor_timeout": True}, {"noCursorTimeout": True}),
    ({"cursor_type": CursorType.TAILABLE}, {"tailable": True}),
    ({"cursor_type": CursorType.TAILABLE_AWAIT}, {"tailable": True, "awaitData": True}),
    ({"cursor_type": CursorType.EXHAUST}, {}),
    ({"sort": [("a", -1)]}, {"sort": {"a": -1}}),
    ({"sort": []}, {}),
    ({"allow_partial_results": True}, {"allowPartialResults": True}),
    ({"oplog_replay": True}, {"oplogReplay": True}),
    ({"batch_size": 3}, {"batchSize": 3}),
    ({"batch_size": 3, "limit": 3}, {"batchSize": 4, "limit": 3}),
    ({"batch_size": 3, "limit": 4}, {"batchSize": 3, "limit": 4}),
    ({"collation": Collation("fr")}, {"collation": {"locale": "fr"}}),
    ({"collation": {"locale": "fr"}}, {"collation": {"locale": "fr"}}),
    ({"hint": [("_id", 1)]}, HINT),
    ({"hint": "_id_"}, {"hint": "_id_"}),
    ({"max_scan": 3}, {"maxScan": 3}),
    ({"max_time_ms": 3}, {"maxTimeMS": 3}),
    ({"max": [("_id", 9)], **HINT}, {"max": {"_id": 9}, **HINT}),
    ({"min": {"_id": 1}, **HINT}, {"min": {"_id": 1}, **HINT}),
    ({"return_key": True}, {"returnKey": True}),
    ({"return_key": False}, {"returnKey": False}),
    ({"show_record_id": True}, {"showRecordId": True}),
    ({"snapshot": True}, {"snapshot": True}),
    ({"comment": "why"}, {"comment": "why"}),
    ({"allow_disk_use": False}, {"allowDiskUse": False}),
    ({"let": {"x": 1}}, {"let": {"x": 1}}),
]
# Cursor methods, and the command fields that result.
METHODS: list[tuple[Callable[[Cursor[Any]], Cursor[Any]], dict[str, Any]]] = [
    (lambda cursor: cursor.skip(3), {"skip": 3}),
    (lambda cursor: cursor.limit(-3), {"limit": 3, "singleBatch": True}),
    (lambda cursor: cursor.sort("a"), {"sort": {"a": 1}}),
    (lambda cursor: cursor.sort("a", -1), {"sort": {"a": -1}}),
    (lambda cursor: cursor.batch_size(3), {"batchSize": 3}),
    (lambda cursor: cursor.collation(Collation("fr")), {"collation": {"locale": "fr"}}),
    (lambda cursor: cursor.hint([("_id", 1)]), HINT),
    (lambda cursor: cursor.hint("_id_").hint(None), {}),
    (lambda cursor: cursor.max_scan(3), {"maxScan": 3}),
    (lambda cursor: cursor.max_time_ms(3), {"maxTimeMS": 3}),
    (lambda cursor: cursor.max_time_ms(3).max_time_ms(None), {}),
    (lambda cursor: cursor.hint({"_id": 1}).max([("_id", 9)]), {"max": {"_id": 9}, **HINT}),
    (lambda cursor: cursor.hint({"_id": 1}).min([("_id", 9)]), {"min": {"_id": 9}, **HINT}),
    (lambda cursor: cursor.comment("why"), {"comment": "why"}),
    (lambda cursor: cursor.comment("why").comment(None), {}),
    (lambda cursor: cursor.allow_disk_use(True), {"allowDiskUse": True}),
    (lambda cursor: cursor.add_option(2 | 16 | 32 | 128 | 8), {
        "tailable": True, "noCursorTimeout": True, "awaitData": True, "allowPartialResults": True, "oplogReplay": True,
    }),
    (lambda cursor: cursor.add_option(16 | 128).remove_option(128), {"noCursorTimeout": True}),
]  # fmt: skip


@pytest.mark.parametrize(("options", "command_fields"), PARAMETERS, ids=str)
def test_find_parameter_becomes_command_field(options: dict[str, Any], command_fields: dict[str, Any]) -> None:
    for cursor in (COLLECTION.find({"a": 1}, **options), COLLECTION.find_raw_batches({"a": 1}, **options)):
        assert cursor._query() == ({"a": 1}, command_fields)
        assert cursor.clone()._query() == ({"a": 1}, command_fields)


@pytest.mark.parametrize(("call_method", "command_fields"), METHODS)
def test_cursor_method_becomes_command_field(
    call_method: Callable[[Cursor[Any]], Cursor[Any]], command_fields: dict[str, Any]
) -> None:
    cursor = COLLECTION.find({"a": 1})
    assert call_method(cursor) is cursor
    assert cursor._query() == ({"a": 1}, command_fields)


def test_where_adds_condition_to_filter() -> None:
    assert COLLECTION.find({"a": 1}).where("x")._query() == ({"a": 1, "$where": Code("x")}, {})


def test_legacy_query_operators_become_command_fields() -> None:
    old = {"$query": {"a": 1}, "$orderby": {"b": 1}, "$hint": "_id_", "$comment": "why", "$maxTimeMS": 3}
    filter, fields = COLLECTION.find(old, skip=2)._query()
    assert filter == {"a": 1}
    assert fields == {"sort": {"b": 1}, "hint": "_id_", "comment": "why", "maxTimeMS": 3, "skip": 2}


@pytest.mark.parametrize("parameter", ["min", "max"])
def test_min_or_max_without_hint_raises_invalid_operation(parameter: str) -> None:
    with pytest.raises(InvalidOperation, match="min and max are the bounds of an index: hint must name the index"):
        COLLECTION.find(**{parameter: [("_id", 1)]})._query()


@pytest.mark.parametrize(
    ("options", "error_class", "message"),
    [
        ({"filter": 5}, TypeError, "filter must be a mapping such as a dict, not 5"),
        ({"let": 5}, TypeError, "let must be a mapping, not 5"),
        ({"cursor_type": 5}, ValueError, "not a valid value for cursor_type: 5"),
        ({"no_cursor_timeout": 1}, TypeError, "no_cursor_timeout must be True or False, not 1"),
        ({"allow_partial_results": 1}, TypeError, "allow_partial_results must be True or False, not 1"),
        ({"oplog_replay": 1}, TypeError, "oplog_replay must be True or False, not 1"),
        ({"skip": -1}, ValueError, "skip must be >= 0, not -1"),
        ({"skip": "1"}, TypeError, "skip must be an integer, not '1'"),
        ({"limit": "1"}, TypeError, "limit must be an integer, not '1'"),
        ({"batch_size": -1}, ValueError, "batch_size must be >= 0, not -1"),
        ({"max": 5}, TypeError, "max must be a mapping or a list of (field, value) pairs, not 5"),
        ({"min": 5}, TypeError, "min must be a mapping or a list of (field, value) pairs, not 5"),
        ({"cursor_type": 64, "limit": 1}, InvalidOperation, "an exhaust cursor cannot have a limit"),
    ],
    ids=str,
)
def test_invalid_find_parameter_raises(options: dict[str, Any], error_class: type[Exception], message: str) -> None:
    with pytest.raises(error_class) as caught:
        COLLECTION.find(**options)
    assert str(caught.value) == message
