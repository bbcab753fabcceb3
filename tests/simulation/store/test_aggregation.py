"""Aggregation pipelines."""

from __future__ import annotations

import datetime

import pytest

from gmongo.testing.command import CommandError

from .shell import replica_set, standalone


@pytest.fixture
def shell():
    shell = standalone()
    shell.insert(
        {"_id": 1, "g": "a", "v": 1, "l": [1, 2]}, {"_id": 2, "g": "b", "v": 5, "l": []}, {"_id": 3, "g": "a", "v": 7}
    )
    shell.insert({"_id": 10, "key": "a"}, {"_id": 11, "key": "c"}, collection="d")
    return shell


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        ([{"$match": {"v": {"$gt": 1}}}, {"$count": "n"}], [{"n": 2}]),
        (
            [{"$group": {"_id": "$g", "sum": {"$sum": "$v"}, "all": {"$push": "$_id"}}}, {"$sort": {"_id": 1}}],
            [{"_id": "a", "sum": 8, "all": [1, 3]}, {"_id": "b", "sum": 5, "all": [2]}],
        ),
        ([{"$group": {"_id": None, "m": {"$max": "$v"}, "a": {"$avg": "$l"}}}], [{"_id": None, "m": 7, "a": None}]),
        ([{"$sort": {"v": -1}}, {"$skip": 1}, {"$limit": 1}, {"$project": {"v": 1}}], [{"_id": 2, "v": 5}]),
        ([{"$match": {"_id": 1}}, {"$unwind": "$l"}, {"$project": {"_id": 0, "l": 1}}], [{"l": 1}, {"l": 2}]),
        (
            [
                {"$unwind": {"path": "$l", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "i"}},
                {"$unset": ["g", "v"]},
            ],
            [{"_id": 1, "l": 1, "i": 0}, {"_id": 1, "l": 2, "i": 1}, {"_id": 2, "i": None}, {"_id": 3, "i": None}],
        ),
        (
            [
                {"$match": {"_id": 1}},
                {"$lookup": {"from": "d", "localField": "g", "foreignField": "key", "as": "d"}},
                {"$project": {"d": 1}},
            ],
            [{"_id": 1, "d": [{"_id": 10, "key": "a"}]}],
        ),
        (
            [
                {"$match": {"_id": 1}},
                {
                    "$lookup": {
                        "from": "d",
                        "let": {"g": "$g"},
                        "pipeline": [{"$match": {"$expr": {"$ne": ["$key", "$$g"]}}}],
                        "as": "d",
                    }
                },
                {"$replaceWith": {"$first": "$d"}},
            ],
            [{"_id": 11, "key": "c"}],
        ),
        ([{"$limit": 1}, {"$unionWith": "d"}, {"$project": {"_id": 1}}], [{"_id": 1}, {"_id": 10}, {"_id": 11}]),
        ([{"$facet": {"n": [{"$count": "n"}], "one": [{"$limit": 1}, {"$project": {"_id": 1}}]}}],
         [{"n": [{"n": 3}], "one": [{"_id": 1}]}]),
        ([{"$sortByCount": "$g"}], [{"_id": "a", "count": 2}, {"_id": "b", "count": 1}]),
        ([{"$bucket": {"groupBy": "$v", "boundaries": [0, 6, 10]}}], [{"_id": 0, "count": 2}, {"_id": 6, "count": 1}]),
    ],
)  # fmt: skip
def test_pipeline_returns_documents(shell, pipeline, expected):
    assert shell.aggregate(*pipeline) == expected
    assert [one["_id"] for one in shell.find()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"$add": ["$v", 1]}, 2),
        ({"$subtract": ["$v", 3]}, -2),
        ({"$cond": [{"$gt": ["$v", 0]}, "yes", "no"]}, "yes"),
        ({"$ifNull": ["$none", "$v"]}, 1),
        ({"$concat": ["$g", "!"]}, "a!"),
        ({"$eq": [1, True]}, False),
        ({"$eq": ["$v", 1.0]}, True),
        ({"$lt": ["$none", None]}, True),
        ({"$not": ["$v"]}, False),
        ({"$in": [2, "$l"]}, True),
        ({"$map": {"input": "$l", "in": {"$multiply": ["$$this", 2]}}}, [2, 4]),
        ({"$filter": {"input": "$l", "as": "e", "cond": {"$gt": ["$$e", 1]}}}, [2]),
        ({"$reduce": {"input": "$l", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}, 3),
        ({"$let": {"vars": {"n": 4}, "in": {"$add": ["$$n", "$v"]}}}, 5),
        ({"$mergeObjects": [{"a": 1}, None, {"b": "$v"}]}, {"a": 1, "b": 1}),
        ({"$arrayElemAt": ["$l", -1]}, 2),
        ({"$size": "$l"}, 2),
        ({"$type": "$none"}, "missing"),
        (["$v", "$none"], [1, None]),
        ({"$literal": "$v"}, "$v"),
        ({"$toString": "$v"}, "1"),
        ("$$ROOT.g", "a"),
        ({"$mod": [-7, 4]}, -3),
        ({"$arrayToObject": [[["a", 1], ["b", 2]]]}, {"a": 1, "b": 2}),
        ({"$arrayToObject": {"$literal": [{"k": "a", "v": 1}]}}, {"a": 1}),
        ({"$objectToArray": {"a": 1}}, [{"k": "a", "v": 1}]),
        ({"$pow": [2, 10]}, 1024),
        ({"$ceil": 1.2}, 2.0),
        ({"$round": [2.567, 1]}, 2.6),
        ({"$abs": -3}, 3),
        ({"$toInt": "12"}, 12),
        ({"$toBool": 0}, False),
        ({"$toString": 2.0}, "2"),
        ({"$toString": datetime.datetime(2024, 1, 2)}, "2024-01-02T00:00:00.000Z"),
        ({"$isNumber": True}, False),
        ({"$dateToString": {"date": datetime.datetime(2024, 1, 2), "format": "%Y-%m"}}, "2024-01"),
    ],
)
def test_expression_returns_value(shell, expression, expected):
    assert shell.aggregate({"$match": {"_id": 1}}, {"$project": {"_id": 0, "r": expression}}) == [{"r": expected}]


def test_expression_uses_variables(shell):
    [document] = shell.aggregate(
        {"$limit": 1}, {"$replaceWith": {"now": "$$NOW", "x": "$$x"}}, let={"x": {"$add": [1, 2]}}
    )
    assert document["x"] == 3
    assert isinstance(document["now"], datetime.datetime)


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ({"$foo": 1}, 40324),
        ({"$match": {"$foo": 1}}, 2),
        ({"$limit": -1}, 5107201),
        ({"$project": {}}, 51272),
        ({"$project": {"x": {"$foo": 1}}}, 31325),
        ({"$set": {"x": {"$foo": 1}}}, 168),
        ({"$project": {"x": "$$none"}}, 17276),
        ({"$group": {"x": {"$sum": 1}}}, 15955),
        ({"$group": {"_id": 1, "x": {"$accumulator": {}}}}, 115),
        ({"$match": {}, "$limit": 1}, 40323),
    ],
)
def test_invalid_stage_is_refused(shell, stage, code):
    with pytest.raises(CommandError) as caught:
        shell.aggregate(stage)
    assert caught.value.code == code


def test_invalid_stage_is_refused_on_empty_collection():
    with pytest.raises(CommandError) as caught:
        standalone().aggregate({"$match": {}}, {"$foo": 1})
    assert caught.value.code == 40324


def test_out_replaces_collection(shell):
    assert shell.aggregate({"$match": {"g": "a"}}, {"$project": {"v": 1}}, {"$out": "d"}) == []
    assert shell.find("d") == [{"_id": 1, "v": 1}, {"_id": 3, "v": 7}]
    shell.aggregate({"$out": {"db": "other", "coll": "e"}})
    assert shell("count", "e", "other") == {"n": 3}
    with pytest.raises(CommandError) as caught:
        shell.aggregate({"$out": "d"}, {"$limit": 1})
    assert caught.value.code == 40601


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("merge", {"_id": 1, "old": 1, "new": 2}),
        ("replace", {"_id": 1, "new": 2}),
        ("keepExisting", {"_id": 1, "old": 1}),
        ([{"$set": {"both": {"$add": ["$old", "$$new.new"]}}}], {"_id": 1, "old": 1, "both": 3}),
    ],
)
def test_merge_writes_documents(mode, expected):
    shell = standalone()
    shell.insert({"_id": 1, "new": 2}, {"_id": 2, "new": 3})
    shell.insert({"_id": 1, "old": 1}, collection="d")
    shell.aggregate({"$merge": {"into": "d", "whenMatched": mode, "whenNotMatched": "insert"}})
    assert shell.find("d") == [expected, {"_id": 2, "new": 3}]


def test_failed_merge_returns_error(shell):
    shell.insert({"_id": 1}, collection="e")
    with pytest.raises(CommandError) as caught:
        shell.aggregate({"$merge": {"into": "e", "whenMatched": "fail"}})
    assert caught.value.code == 11000


def test_stage_without_collection_returns_documents():
    shell = replica_set().with_session()
    reply = shell("aggregate", 1, "admin", pipeline=[{"$listLocalSessions": {}}, {"$count": "n"}], cursor={})
    assert reply["cursor"]["firstBatch"] == [{"n": 1}]
    reply = shell("aggregate", 1, "admin", pipeline=[{"$currentOp": {}}], cursor={})
    assert reply["cursor"]["ns"] == "admin.$cmd.aggregate"
    assert shell.aggregate({"$documents": [{"x": 1}]}, {"$set": {"y": 2}}, collection=1) == [{"x": 1, "y": 2}]
    with pytest.raises(CommandError) as caught:
        shell.aggregate({"$match": {}}, collection=1)
    assert caught.value.code == 73


def test_statistics_stages_return_statistics(shell):
    assert shell.aggregate({"$collStats": {"count": {}}}, {"$project": {"count": 1}}) == [{"count": 3}]
    assert [one["name"] for one in shell.aggregate({"$indexStats": {}})] == ["_id_"]


def test_explain_option_returns_plan(shell):
    reply = shell("aggregate", "c", pipeline=[{"$match": {"g": "a"}}], explain=True)
    assert "queryPlanner" in reply
