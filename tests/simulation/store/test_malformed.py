"""Malformed commands get an error, whatever is wrong with them."""

from __future__ import annotations

import datetime

import bson
import pytest
from bson import Binary, Code, Decimal128, Int64, MinKey, ObjectId, Regex, Timestamp

from gmongo.testing.command import CommandError
from gmongo.testing.store.commands import COMMANDS as STORED
from gmongo.testing.store.expressions.compiling import OPERATORS as EXPRESSIONS
from gmongo.testing.store.fields import TABLE
from gmongo.testing.store.operators import NEGATIVE, OF_ELEMENTS, OF_WHOLES
from gmongo.testing.store.stages import STAGES
from gmongo.testing.store.update_operators import UPDATE_OPERATORS

from .shell import replica_set

VALUES = [
    None, True, 0, -1, 1.5, float("nan"), "a", "$a", "", {}, [], {"a": 1}, {"$a": 1}, [1, "a"], Int64(5),
    Decimal128("1"), Regex("a"), ObjectId("0123456789abcdef01234567"), Timestamp(1, 1),
    datetime.datetime(2020, 1, 1), MinKey(), Code("x"), Binary(b"a", 3), {"x": {"y": [1, {"z": 1}]}}, {"$literal": 1},
]  # fmt: skip
# What a command needs besides the field under test.
NEEDED = {
    "aggregate": {"pipeline": [], "cursor": {}},
    "bulkWrite": {"ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "db.c"}]},
    "createIndexes": {"indexes": [{"key": {"a": 1}, "name": "x"}]},
    "delete": {"deletes": [{"q": {}, "limit": 1}]},
    "distinct": {"key": "a"},
    "findAndModify": {"remove": True},
    "insert": {"documents": [{}]},
    "update": {"updates": [{"q": {}, "u": {}}]},
}
OF_ADMIN = {"bulkWrite", "listDatabases", "renameCollection"}
COMMANDS = sorted(set(TABLE) & set(STORED) - {"drop", "dropDatabase"})


@pytest.fixture
def shell():
    shell = replica_set()
    shell.insert({"_id": 1, "a": 1, "b": [1, 2, {"c": 1}], "s": "x", "d": {"e": 1}}, {"_id": 2, "a": [3, 4]})
    return shell


def attempt(call, *args, **kwargs):
    """Whether it went well; any other exception than a command's error is a failure of the test."""
    try:
        reply = call(*args, **kwargs)
    except CommandError:
        return False
    bson.encode({"reply": reply})
    return True


@pytest.mark.parametrize("name", COMMANDS)
def test_fields_of_commands(shell, name):
    database = "admin" if name in OF_ADMIN else "db"
    for field in sorted(TABLE[name].fields):
        for value in VALUES:
            fields = {**NEEDED.get(name, {}), **({} if field == name else {field: value})}
            attempt(shell, name, value if field == name else "c", database, **fields)
    if TABLE[name].unknown:
        assert not attempt(shell, name, "c", database, **NEEDED.get(name, {}), noSuchField=1)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_operands(shell, value):
    done = []
    for operator in [*OF_ELEMENTS, *NEGATIVE, *OF_WHOLES, "$elemMatch", "$not", "$all"]:
        done.append(attempt(shell.find, filter={"b": {operator: value}}))
    for operator in UPDATE_OPERATORS:
        for path in ("b", "s", "b.$[]"):
            done.append(attempt(shell.update, {"_id": 1}, {operator: {path: value}}))
    for stage in STAGES:
        done.append(attempt(shell.aggregate, {stage: value}))
    for operator in EXPRESSIONS:
        done.append(attempt(shell.aggregate, {"$project": {"r": {operator: value}}}))
        done.append(attempt(shell.aggregate, {"$project": {"r": {operator: [value, value]}}}))
    assert any(done)
    assert not all(done)


@pytest.mark.parametrize("operator", ["$let", "$map", "$filter", "$reduce"])
def test_parts_that_are_missing(shell, operator):
    with pytest.raises(CommandError):
        shell.aggregate({"$project": {"r": {operator: {"input": "$b"}}}})


@pytest.mark.parametrize("field", ["lsid", "readConcern"])
def test_fields_of_every_command(shell, field):
    for value in VALUES[1:]:
        done = attempt(shell.find, **{field: value})
        assert isinstance(value, dict) or not done
