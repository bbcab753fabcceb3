"""Tests of aggregation pipelines in a simulated store."""

from __future__ import annotations

import datetime

import pytest

from gmongo.testing.command import CommandError

from .shell import replica_set, standalone


@pytest.fixture
def shell():
    shell = standalone()
    shell.insert(
        {"_id": 1, "g": "a", "v": 1, "l": [1, 2]},
        {"_id": 2, "g": "b", "v": 5, "l": []},
        {"_id": 3, "g": "a", "v": 7},
    )
    shell.insert({"_id": 10, "key": "a"}, {"_id": 11, "key": "c"}, collection="d")
    return shell


def test_aggregation_expression_uses_variables(shell):
    [document] = shell.aggregate(
        {"$limit": 1}, {"$replaceWith": {"now": "$$NOW", "x": "$$x"}}, let={"x": {"$add": [1, 2]}}
    )
    assert document["x"] == 3
    assert isinstance(document["now"], datetime.datetime)


def test_unsupported_accumulator_is_refused(shell):
    with pytest.raises(CommandError) as caught:
        shell.aggregate({"$group": {"_id": 1, "x": {"$accumulator": {}}}})
    assert caught.value.code == 115


def test_out_stage_replaces_collection(shell):
    assert shell.aggregate({"$match": {"g": "a"}}, {"$project": {"v": 1}}, {"$out": "d"}) == []
    assert shell.find("d") == [{"_id": 1, "v": 1}, {"_id": 3, "v": 7}]
    shell.aggregate({"$out": {"db": "other", "coll": "e"}})
    assert shell("count", "e", "other") == {"n": 3}
    with pytest.raises(CommandError) as caught:
        shell.aggregate({"$out": "d"}, {"$limit": 1})
    assert caught.value.code == 40601


def test_stages_without_collection_return_documents():
    shell = replica_set().with_session()
    reply = shell("aggregate", 1, "admin", pipeline=[{"$listLocalSessions": {}}, {"$count": "n"}], cursor={})
    assert reply["cursor"]["firstBatch"] == [{"n": 1}]
    assert shell.aggregate({"$documents": [{"x": 1}]}, {"$set": {"y": 2}}, collection=1) == [{"x": 1, "y": 2}]
    with pytest.raises(CommandError) as caught:
        shell.aggregate({"$match": {}}, collection=1)
    assert caught.value.code == 73
