"""Update operators, filters of arrays, upserts, and what replies of writes say."""

from __future__ import annotations

from bson import Int64, Regex, Timestamp

from gmongo import DeleteOne, InsertOne, ReturnDocument, UpdateOne

from .calls import after, command, made, stored
from .cases import BULK_WRITE_ERRORS, Case, Error, update

FILTERS = "server: jstests/core/query/update/update_arrayFilters.js"
MODS = "server: jstests/core/query/update/verify_update_mods.js"
PIPELINE = "server: jstests/core/query/update/update_with_pipeline.js"
UPSERT = "server: jstests/core/query/update/upsert_fields.js"
MODIFY = "server: jstests/core/write/find_and_modify/find_and_modify_invalid_query_params.js"
MODIFIED = "server: jstests/core/write/find_and_modify/find_and_modify.js"
INSERTS = "server: jstests/core/write/insert/batch_write_command_insert.js"
UPDATES = "server: jstests/core/query/batch_write/batch_write_command_update.js"
DELETES = "server: jstests/core/query/batch_write/batch_write_command_delete.js"
BULK = "server: jstests/core/query/bulk/bulk_write.js"
BITS = [{"_id": 0, "a": [0, 1, 0, 1]}]
ONE = [{"_id": 1, "a": 1}]


def _page(name):
    return f"manual: reference/operator/update/{name}"


def _filtered(document, change, filters, expected, source=FILTERS):
    return Case(
        f"{change!r} of {document!r} with {filters!r}"[:120],
        [document],
        update({}, change, array_filters=filters),
        expected,
        source,
    )


def _changed(document, change, expected, source):
    return Case(f"{change!r} of {document!r}"[:120], [document], update({}, change), expected, source)


def _upserted(filter, change, expected, source=UPSERT):
    return Case(f"{change!r} upserts {filter!r}", [], update(filter, change, upsert=True), expected, source)


def _modify(**fields):
    return command("findAndModify", **fields)


def _refused(source, code, *all_fields):
    return [
        Case(f"findAndModify with {fields!r}"[:120], ONE, _modify(**fields), Error(code), source)
        for fields in all_fields
    ]


def _last_error(reply):
    outcome = reply["lastErrorObject"]
    return [outcome["n"], outcome.get("updatedExisting"), outcome.get("upserted"), reply["value"]]


def _written(reply):
    return [
        reply["n"],
        reply.get("nModified"),
        [each["index"] for each in reply.get("upserted", [])],
        [each["index"] for each in reply.get("writeErrors", [])],
    ]


def _bulk(*operations, ordered=True):
    """The index, code, key pattern and key of each error, and what was inserted."""

    def run(collection):
        try:
            collection.bulk_write(list(operations), ordered=ordered)
        except BULK_WRITE_ERRORS as error:
            return [
                [
                    [each["index"], each["code"], each.get("keyPattern"), each.get("keyValue")]
                    for each in error.details["writeErrors"]
                ],
                error.details["nInserted"],
            ]
        return None

    return run


def _unique(collection):
    collection.create_index("a", unique=True)


def _bulk_write(*operations, of):
    """A part of the reply of bulkWrite, whose one namespace is the collection's."""

    def run(collection):
        reply = collection.database.client.admin.command(
            {"bulkWrite": 1, "ops": list(operations), "nsInfo": [{"ns": collection.full_name}]}
        )
        return of(reply)

    return run


CASES: list[Case] = [
    *[
        Case(
            f"array filters {filters!r} of {change!r}"[:120],
            BITS,
            update({"_id": 0}, {"$set": change}, array_filters=filters),
            Error(code),
            FILTERS,
        )
        for change, filters, code in (
            ({"a.$[i]": 5, "a.$[j]": 6}, [{"i": 0}, {"j": 0}, {"i": 1}], 9),
            ({"a.$[i]": 5}, [{"i": 0}, {"j": 0}], 9),
            ({"a.$[i]": 5}, [{"$alwaysTrue": 1}], 9),
            ({"a.$[i]": 5}, [{"$where": "this.a == 2"}], 2),
            ({"a.$[i]": 5}, [{"$expr": {"$eq": ["$foo", "$bar"]}}], 224),
            ({"a.$[i]": 0}, None, 2),
            ({"a.$[i]": 0, "a.0": 0}, [{"i": 0}], 40),
            ({"a.$[I]": 1}, [{"I": 0}], 2),
        )
    ],
    _filtered(
        {"_id": 0, "a": [0, 1, 0, 1]}, {"$unset": {"a.$[i]": True}}, [{"i": 0}], {"_id": 0, "a": [None, 1, None, 1]}
    ),
    _filtered({"_id": 0, "a": [1, 2]}, {"$rename": {"a.$[i]": "b"}}, [{"i": 0}], Error(2)),
    _filtered(
        {"_id": 0, "a": [0, 1, 3]}, {"$set": {"a.$[i]": 2}}, [{"$or": [{"i": 0}, {"i": 3}]}], {"_id": 0, "a": [2, 1, 2]}
    ),
    _filtered({"_id": 0, "a": [[0], [1]]}, {"$addToSet": {"a.$[i]": 2}}, [{"i": 0}], {"_id": 0, "a": [[0, 2], [1]]}),
    _filtered(
        {"_id": 0, "a": [[0, 1], [0, 1]]}, {"$set": {"a.$[].$[j]": 2}}, [{"j": 0}], {"_id": 0, "a": [[2, 1], [2, 1]]}
    ),
    _filtered(
        {"_id": 0, "a": [{"b": 0, "c": [{"d": 0}, {"d": 1}]}, {"b": 1, "c": [{"d": 0}]}]},
        {"$set": {"a.$[i].c.$[j].d": 2}},
        [{"i.b": 0}, {"j.d": 0}],
        {"_id": 0, "a": [{"b": 0, "c": [{"d": 2}, {"d": 1}]}, {"b": 1, "c": [{"d": 0}]}]},
    ),
    _filtered(
        {"_id": 0, "a": [{"x": 0, "b": [{"y": 0, "c": 0}]}, {"x": 1, "b": [{"y": 0, "c": 0}]}]},
        {"$set": {"a.$[i].b.$[k].c": 1, "a.$[j].b.$[k].c": 2}},
        [{"i.x": 0}, {"j.x": 0}, {"k.y": 0}],
        Error(40),
    ),
    _changed(
        {"_id": 0, "a": [[0, 1, 2, 3], [1, 2, 3, 4]]},
        {"$pullAll": {"a.$[]": [0, 2]}},
        {"_id": 0, "a": [[1, 3], [1, 3, 4]]},
        FILTERS,
    ),
    _changed({"_id": 0, "a": [[0, 1], [1, 2]]}, {"$pull": {"a.$[]": 1}}, {"_id": 0, "a": [[0], [2]]}, FILTERS),
    _changed(
        {"_id": 0, "a": [{"b": 0, "c": 1}, {"b": 1, "c": -1}]},
        {"$min": {"a.$[].c": 0}},
        {"_id": 0, "a": [{"b": 0, "c": 0}, {"b": 1, "c": -1}]},
        FILTERS,
    ),
    _changed({"_id": 0, "a": [{"b": 0}]}, {"$set": {"a.b": 1}}, Error(28), FILTERS),
    _changed({"_id": 0, "a": 5}, {"$set": {"a.$[]": 1}}, Error(2), _page("positional-all")),
    _changed({"_id": 0}, {"$set": {"a.$[]": 1}}, Error(2), _page("positional-all")),
    _upserted({"_id": 0, "a": [0]}, {"$setOnInsert": {"a.$[]": 1}}, {"_id": 0, "a": [1]}, FILTERS),
    _changed({"_id": 1, "a": 1}, {"$set": {}}, {"_id": 1, "a": 1}, MODS),
    _upserted({"_id": 2}, {"$set": {}}, {"_id": 2}, MODS),
    _upserted({"_id": 1}, {"$bit": {"a": {"and": Int64(3)}}}, {"_id": 1, "a": Int64(0)}, MODS),
    _upserted({"_id": 1}, {"$bit": {"c.d": {"or": 3}}}, {"_id": 1, "c": {"d": 3}}, MODS),
    _upserted({"_id": 1}, {"$pop": {"a": 1}}, {"_id": 1}, MODS),
    _upserted({"_id": {"$all": [1]}}, {"$set": {"a": 1}}, {"_id": 1, "a": 1}),
    _upserted({"$or": [{"_id": {"$eq": 1}}]}, {"$set": {"a": 1}}, {"_id": 1, "a": 1}),
    _upserted({"_id.x": 1, "_id.y": 2}, {"$set": {"a": 1}}, {"_id": {"x": 1, "y": 2}, "a": 1}),
    _upserted({"_id": 1, "x": {"$eq": Regex("abc")}}, {"$set": {"a": 1}}, {"_id": 1, "x": Regex("abc"), "a": 1}),
    _upserted({"_id": 1, "x.x": {"$all": [1]}}, {"$setOnInsert": {"a": 1}}, {"_id": 1, "x": {"x": 1}, "a": 1}),
    _upserted({"_id": 1, "x": 1}, [{"$project": {"x": "foo"}}], {"_id": 1, "x": "foo"}, PIPELINE),
    *[
        Case(f"an update by a pipeline with {stage!r}", ONE, update({"a": 1}, [stage]), Error(72), PIPELINE)
        for stage in ({"$match": {"x": 1}}, {"$facet": {"a": [{"$match": {"x": 1}}]}}, {"$unionWith": "others"})
    ],
    Case("$addFields outside of a pipeline", ONE, update({}, {"$addFields": {"x": 1}}), Error(9), PIPELINE),
    Case(
        "array filters with a pipeline",
        ONE,
        update({}, [{"$set": {"x": 1}}], array_filters=[{"x": 1}]),
        Error(9),
        PIPELINE,
    ),
    Case(
        "$replaceWith keeps the ID",
        [{"_id": 1, "x": 1, "t": {"u": {"v": 1}}}],
        update({}, [{"$replaceWith": "$t"}]),
        {"_id": 1, "u": {"v": 1}},
        PIPELINE,
    ),
    Case(
        "constants of a pipeline are no expressions",
        ONE,
        after(
            command("update", updates=[{"q": {"_id": 1}, "u": [{"$set": {"x": "$$foo"}}], "c": {"foo": "$a"}}]),
            stored,
        ),
        [{"_id": 1, "a": 1, "x": "$a"}],
        PIPELINE,
    ),
    _changed(
        {"_id": 1, "a": [50, 60, 70, 100]},
        {"$push": {"a": {"$each": [20, 30], "$position": -2}}},
        {"_id": 1, "a": [50, 60, 20, 30, 70, 100]},
        _page("position"),
    ),
    _changed(
        {"_id": 1, "a": [89, 90]},
        {"$push": {"a": {"$each": [100, 20], "$slice": 3}}},
        {"_id": 1, "a": [89, 90, 100]},
        _page("slice"),
    ),
    _changed(
        {"_id": 1, "a": [89, 70, 100, 20]},
        {"$push": {"a": {"$each": [], "$slice": -3}}},
        {"_id": 1, "a": [70, 100, 20]},
        _page("slice"),
    ),
    _changed(
        {"_id": 1, "a": 1},
        {"$set": {"a": 2}, "$inc": {"a": 1}},
        Error(40),
        "server: src/mongo/db/update/update_object_node.cpp",
    ),
    _changed({"_id": 1, "a": 1}, {"$set": {"_id": 2}}, Error(66), _page("set")),
    _changed({"_id": 1, "a": 5}, {"$set": {"a.b": 1}}, Error(28), "server: src/mongo/db/update/path_support.cpp"),
    _changed({"_id": 1, "a": 5}, {"$push": {"a": 1}}, Error(2), _page("push")),
    _changed({"_id": 1, "a": None}, {"$inc": {"a": 1}}, Error(14), _page("inc")),
    Case(
        "$currentDate as a timestamp",
        ONE,
        lambda collection: isinstance(
            update({}, {"$currentDate": {"b": {"$type": "timestamp"}}})(collection)["b"], Timestamp
        ),
        True,
        _page("currentDate"),
    ),
    *_refused(
        MODIFY,
        14,
        {"query": 1, "update": {"a": 2}},
        {"sort": "{_id: 1}", "update": {"a": 2}},
        {"fields": 1, "update": {"a": 2}},
    ),
    *_refused(
        MODIFY,
        9,
        {"update": {"a": 2}, "remove": True},
        {"new": True, "remove": True},
        {"upsert": True, "remove": True},
        {"update": [], "arrayFilters": [{"x.a": 1}]},
        {"update": {"a": 2}, "hint": 1},
    ),
    *_refused(MODIFIED, 31325, {"update": {"$inc": {"y": 1}}, "fields": {"foo": {"$pop": ["bar"]}}}),
    Case(
        "findAndModify projects what it returns",
        ONE,
        lambda collection: [
            collection.find_one_and_update(
                {}, {"$inc": {"a": 1}}, {"_id": 0, "r": {"$add": ["$a", 2]}}, return_document=when
            )
            for when in (ReturnDocument.BEFORE, ReturnDocument.AFTER)
        ],
        [{"r": 3}, {"r": 5}],
        MODIFIED,
    ),
    Case(
        "findAndModify tells of an update",
        ONE,
        _modify(query={"a": 1}, update={"$set": {"a": 2}}, of=_last_error),
        [1, True, None, {"_id": 1, "a": 1}],
        "manual: reference/command/findAndModify",
    ),
    Case(
        "findAndModify tells of an upsert",
        ONE,
        _modify(query={"_id": 2}, update={"$set": {"a": 2}}, upsert=True, of=_last_error),
        [1, False, 2, None],
        "manual: reference/command/findAndModify",
    ),
    Case(
        "findAndModify tells of nothing removed",
        ONE,
        _modify(query={"a": 5}, remove=True, of=_last_error),
        [0, None, None, None],
        "manual: reference/command/findAndModify",
    ),
    Case("an insert of no documents", ONE, command("insert", documents=[]), Error(16), INSERTS),
    Case(
        "_id comes first",
        [],
        after(command("insert", documents=[{"a": 2, "_id": 2}]), lambda collection: list(collection.find_one())),
        ["_id", "a"],
        INSERTS,
    ),
    Case(
        "inserts with an error, in order or not",
        [],
        lambda collection: [
            after(
                made(),
                _unique,
                command("insert", documents=[{"a": 1}, {"a": 1}, {"a": 1}], ordered=ordered, of=_written),
            )(collection)
            for ordered in (False, True)
        ],
        [[1, None, [], [1, 2]], [1, None, [], [1]]],
        INSERTS,
    ),
    Case(
        "an update and an upsert in one command",
        [{"b": 1}],
        command(
            "update",
            updates=[
                {"q": {"b": 1}, "u": {"$set": {"b": 1, "a": 1}}, "upsert": True},
                {"q": {"b": 2}, "u": {"$set": {"b": 2, "a": 1}}, "upsert": True},
            ],
            ordered=False,
            of=_written,
        ),
        [2, 1, [1], []],
        UPDATES,
    ),
    Case(
        "an update that changes one of two",
        [{"a": 1, "c": 2}, {"a": 1}],
        command("update", updates=[{"q": {"a": 1}, "u": {"$set": {"c": 2}}, "multi": True}], of=_written),
        [2, 1, [], []],
        UPDATES,
    ),
    Case(
        "upserts with duplicates, not in order",
        [],
        after(
            made(),
            _unique,
            command(
                "update",
                updates=[
                    {"q": {"b": b}, "u": {"$set": {"b": b, "a": a}}, "upsert": True}
                    for b, a in ((1, 1), (2, 1), (2, 1), (3, 3))
                ],
                ordered=False,
                of=_written,
            ),
        ),
        [2, 0, [0, 3], [1, 2]],
        UPDATES,
    ),
    Case(
        "deletes with errors, not in order",
        ONE,
        command(
            "delete",
            deletes=[
                {"q": {"$set": {"a": 1}}, "limit": 0},
                {"q": {"$set": {"a": 1}}, "limit": 0},
                {"q": {"a": 1}, "limit": 0},
            ],
            ordered=False,
            of=_written,
        ),
        [1, None, [], [0, 1]],
        DELETES,
    ),
    Case(
        "a bulk write tells the key of a duplicate",
        ONE,
        after(_unique, _bulk(InsertOne({"_id": 2, "a": 2}), InsertOne({"_id": 3, "a": 1}), DeleteOne({}))),
        [[[1, 11000, {"a": 1}, {"a": 1}]], 1],
        "server: src/mongo/db/storage/duplicate_key_error_info.cpp",
    ),
    Case(
        "a bulk write that is not in order goes on",
        ONE,
        _bulk(InsertOne({"_id": 1}), UpdateOne({}, {"$inc": {"a": "x"}}), InsertOne({"_id": 2}), ordered=False),
        [[[0, 11000, {"_id": 1}, {"_id": 1}], [1, 14, None, None]], 1],
        "manual: reference/method/db.collection.bulkWrite",
    ),
    Case(
        "bulkWrite counts",
        ONE,
        _bulk_write(
            {"insert": 0, "document": {"_id": 2}},
            {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"a": 2}}},
            {"update": 0, "filter": {"_id": 3}, "updateMods": {"$set": {"a": 2}}, "upsert": True},
            {"delete": 0, "filter": {"_id": 2}},
            of=lambda reply: [
                reply[name] for name in ("nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted")
            ],
        ),
        [0, 1, 1, 1, 1, 1],
        "manual: reference/command/bulkWrite",
    ),
    Case(
        "bulkWrite tells of each operation",
        ONE,
        _bulk_write(
            {"update": 0, "filter": {"_id": 3}, "updateMods": {"$set": {"a": 2}}, "upsert": True},
            {"insert": 0, "document": {"_id": 1}},
            of=lambda reply: [
                [each["ok"], each["idx"], each["n"], each.get("code"), each.get("upserted")]
                for each in reply["cursor"]["firstBatch"]
            ],
        ),
        [[1.0, 0, 1, None, {"_id": 3}], [0.0, 1, 0, 11000, None]],
        "manual: reference/command/bulkWrite",
    ),
]
