"""Tests of collections, views, databases and indexes in a simulated store, and of their
statistics.
"""

from __future__ import annotations

import pytest

from gmongo.testing.command import CommandError

from .shell import standalone


def error_code_of(call, *args, **kwargs):
    with pytest.raises(CommandError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def names(shell, **fields):
    return [one["name"] for one in shell("listCollections", 1, **fields)["cursor"]["firstBatch"]]


def test_drop_of_missing_collection_fails_before_7_0():
    assert error_code_of(standalone(version=(6, 0)), "drop", "c") == 26


@pytest.mark.parametrize(("database", "name"), [("local", "oplog.rs"), ("db", "system.profile")])
def test_read_of_unsupported_system_collection_is_refused(database, name):
    assert error_code_of(standalone(), "find", name, database) == 115


def test_created_database_is_listed_until_drop():
    shell = standalone()
    shell.insert({"x": 1})
    shell("insert", "c", "other", documents=[{"x": 1}])
    reply = shell("listDatabases", 1, "admin", nameOnly=True, filter={"name": {"$in": ["db", "other"]}})
    assert reply == {"databases": [{"name": "db"}, {"name": "other"}]}
    assert shell("listDatabases", 1, "admin")["totalSize"] > 0
    assert shell("dropDatabase", 1, "other") == {}
    assert "other" not in [one["name"] for one in shell("listDatabases", 1, "admin")["databases"]]
    assert error_code_of(shell, "listDatabases", 1) == 13


def test_statistics_commands_return_statistics():
    shell = standalone()
    shell.insert({"_id": 1}, {"_id": 2})
    assert shell("collStats", "c")["count"] == 2
    assert shell("dbStats", 1)["objects"] == 2
    assert shell("validate", "c")["valid"] is True
    assert error_code_of(shell, "validate", "none") == 26


@pytest.mark.parametrize(
    "command",
    [
        ("createSearchIndexes", {"indexes": []}),
        ("updateSearchIndex", {"name": "a", "definition": {}}),
        ("dropSearchIndex", {"name": "a"}),
    ],
)
def test_command_for_search_indexes_is_refused(command):
    name, fields = command
    with pytest.raises(CommandError, match="Atlas"):
        standalone()(name, "c", **fields)
    with pytest.raises(CommandError, match="Atlas"):
        standalone().aggregate({"$listSearchIndexes": {}})


def test_explain_command_returns_plan():
    shell = standalone()
    shell.insert({"_id": 1}, {"_id": 2})
    planner = shell("explain", {"find": "c", "filter": {"_id": {"$gt": 1}}})["queryPlanner"]
    assert planner["namespace"] == "db.c"
    assert planner["winningPlan"]["inputStage"]["indexName"] == "_id_"
    scan = shell("explain", {"find": "c", "filter": {"x": 1}})
    assert scan["queryPlanner"]["winningPlan"]["stage"] == "COLLSCAN"
    assert error_code_of(shell, "explain", {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}) == 115
    assert error_code_of(shell, "explain", {"find": "c", "sort": {"x": 1}}) == 115
    assert error_code_of(shell, "explain", {"find": "c", "foo": 1}) == 40415


def test_unknown_command_is_refused():
    shell = standalone()
    assert shell.store.supports("find")
    assert shell.store.supports("findandmodify")
    assert not shell.store.supports("ping")
    assert error_code_of(shell, "ping", 1) == 59


@pytest.mark.parametrize("direction", [-1, 2])
def test_index_of_id_with_direction_other_than_1_is_refused(direction):
    assert error_code_of(standalone(), "createIndexes", "c", indexes=[{"key": {"_id": direction}, "name": "x"}]) == 115


def test_view_that_closes_cycle_is_refused():
    shell = standalone()
    shell("create", "v", viewOn="w", pipeline=[])
    assert error_code_of(shell, "create", "w", viewOn="v", pipeline=[]) == 115
    assert error_code_of(shell, "create", "x", viewOn="x", pipeline=[]) == 115


@pytest.mark.parametrize(
    "validator", [{"$jsonSchema": {"required": ["a"]}}, {"a": 1, "b": 1}, {"a": {"$gt": 1, "$lt": 3}}]
)
def test_validation_error_with_unsupported_details_is_refused(validator):
    shell = standalone()
    shell("create", "checked", validator=validator)
    assert error_code_of(shell.insert, {"_id": 1}, collection="checked") == 115
    assert shell.insert({"_id": 2, "a": 1, "b": 1}, collection="checked", bypassDocumentValidation=True) == {"n": 1}
