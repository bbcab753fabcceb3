"""Indexes, collections, views and time series: made, listed, renamed and refused."""

from __future__ import annotations

from typing import Any

from bson import Int64, Regex

from .calls import Call, after, attempt, command
from .cases import OPERATION_FAILURES, Case, Error, find
from .refusals import (
    BAD_VALUE,
    CATALOG,
    DDL,
    INDEX,
    MISMATCH,
    NO_NAMESPACE,
    NOT_CREATED,
    ONE,
    OPTIONS,
    QUERY,
    batch,
    by_name,
    database_command,
    each,
    indexed,
    listed_collections,
    location,
    make,
    make_index,
    other_documents,
    refusal,
)

WILD = f"{INDEX}/wildcard/compound_wildcard_index_validation.js"
REPLIES = f"{DDL}/create_indexes_response_fields.js"
PREPARED = f"{DDL}/index_prepareUnique.js"
FULL_TEXT = f"{INDEX}/fts/fts_index.js"
PAIR = [{"_id": 1, "a": 100, "b": 1}, {"_id": 2, "a": 100, "b": 2}]


def _not_indexed(key: Any, expected: Any, source: str, **options: Any) -> Case:
    return Case(
        f"an index {key!r} {options!r} is refused"[:110], ONE, refusal(make_index(key, **options)), expected, source
    )


def _violations(collection: Any) -> Any:
    by = {"keyPattern": {"a": 1}}
    make_index({"a": 1})(collection)
    command("collMod", index={**by, "prepareUnique": True})(collection)
    try:
        command("collMod", index={**by, "unique": True})(collection)
    except OPERATION_FAILURES as error:
        details = error.details or {}
        return [error.code, details["codeName"], [sorted(each["ids"]) for each in details["violations"]]]
    return None


def _listed(name: str) -> Call:
    """One index as it is listed."""
    return lambda collection: next(each for each in batch("listIndexes")(collection) if each["name"] == name)


INDEXES = [
    Case(
        "an index creates its collection",
        [],
        command(
            "createIndexes",
            of=lambda reply: [
                reply["createdCollectionAutomatically"],
                reply["numIndexesAfter"] - reply["numIndexesBefore"],
                "note" in reply,
            ],
            indexes=[{"key": {"x": 1}, "name": "x_1"}],
        ),
        [True, 1, False],
        REPLIES,
    ),
    Case(
        "indexes that are there already are noted",
        ONE,
        after(
            make_index({"x": 1}),
            command(
                "createIndexes",
                of=lambda reply: [reply["numIndexesAfter"] - reply["numIndexesBefore"], "note" in reply],
                indexes=[{"key": {"x": 1}, "name": "x_1"}],
            ),
        ),
        [0, True],
        REPLIES,
    ),
    Case(
        "an index is listed with its options",
        [],
        indexed({"a": 1}, _listed("a_1"), unique=True, sparse=True),
        {"v": 2, "key": {"a": 1}, "name": "a_1", "unique": True, "sparse": True},
        "manual: reference/command/listIndexes",
    ),
    Case(
        "a text index is listed with what it takes by default",
        [],
        indexed(
            {"a": "text"},
            lambda collection: [
                _listed("a_text")(collection)[field]
                for field in ("key", "weights", "default_language", "language_override", "textIndexVersion")
            ],
        ),
        [{"_fts": "text", "_ftsx": 1}, {"a": 1}, "english", "language", 3],
        "manual: reference/method/db.collection.getIndexes",
    ),
    Case(
        "an index of the same keys by another name",
        [],
        after(make_index({"x": 1}, name="x_1"), refusal(make_index({"x": 1}, name="x_2"))),
        [85, "IndexOptionsConflict"],
        f"{DDL}/create_index_same_spec_different_name.js",
    ),
    Case(
        "a second text index",
        [],
        indexed({"a": 1, "b": "text", "c": 1}, refusal(make_index({"a": 1, "b": 1, "c": "text"}))),
        NOT_CREATED,
        FULL_TEXT,
    ),
    _not_indexed({"a": 1, "a.$**": 1}, location(7246204), WILD),
    _not_indexed({"a.$**": 1, "b.$**": 1}, location(7246201), WILD),
    _not_indexed({"a": 1, "$**": 1}, NOT_CREATED, WILD),
    _not_indexed({"a": 1, "b": 1}, BAD_VALUE, WILD, wildcardProjection={"c": 1}),
    _not_indexed(
        {f"f{number}": 1 for number in range(33)},
        location(13103),
        f"{INDEX}/compound_index_max_fields.js",
        name="many",
    ),
    _not_indexed({"a": 1}, NOT_CREATED, PREPARED, unique=True, prepareUnique=True),
    Case(
        "an index that is prepared to be unique takes no further duplicates",
        [{"_id": 0, "a": 1}, {"_id": 1, "a": 1}],
        indexed({"a": 1}, lambda collection: collection.insert_one({"_id": 2, "a": 1}), prepareUnique=True),
        Error(11000),
        PREPARED,
    ),
    Case(
        "an index that cannot become unique says what is not",
        PAIR,
        _violations,
        [359, "CannotConvertIndexToUnique", [[1, 2]]],
        f"{DDL}/coll_mod_convert_to_unique_violations.js",
    ),
    Case(
        "an array in a hashed index",
        [],
        indexed({"a": "hashed"}, lambda collection: collection.insert_one({"_id": 1, "a": []})),
        Error(16766),
        f"{QUERY}/null_query_semantics.js",
    ),
    Case(
        "the indexes of a collection that is not there",
        [],
        refusal(batch("listIndexes")),
        NO_NAMESPACE,
        f"{CATALOG}/list_indexes_non_existent_ns.js",
    ),
]


SERIES = "server: jstests/core/timeseries/ddl/timeseries_create.js"
FILTERED = f"{CATALOG}/list_collections_filter.js"
RENAMED = f"{DDL}/rename_collection.js"


def _no_series(expected: Any, options: Any = None, **more: Any) -> Case:
    series = {"timeField": "time"} if options is None else options
    name = f"a time series of {options!r} with {more!r} is refused"[:110]
    return Case(name, [], refusal(make(timeseries=series, **more)), expected, SERIES)


def _view(collection: Any) -> Any:
    collection.database.drop_collection("others")
    collection.database.command({"create": "others", "viewOn": collection.name, "pipeline": [{"$match": {"a": 1}}]})


def _rename(source: str, target: str, **options: Any) -> Call:
    """Renames one of the two collections; the names are of this database."""

    def run(collection: Any) -> Any:
        database = collection.database
        names = {"renameCollection": f"{database.name}.{source}", "to": f"{database.name}.{target}"}
        return database.client.admin.command({**names, **options})["ok"]

    return run


COLLECTIONS = [
    _no_series(OPTIONS, {"timeField": "sub.time"}),
    _no_series(OPTIONS, {"timeField": "time", "metaField": "time"}),
    _no_series(OPTIONS, {"timeField": "time", "metaField": "meta", "bucketMaxSpanSeconds": 10}),
    _no_series(MISMATCH, {"timeField": 100}),
    _no_series(OPTIONS, expireAfterSeconds=Int64(-10)),
    Case(
        "a time series with an unknown option",
        [],
        attempt(make(timeseries={"timeField": "time", "invalidOption": {}})),
        40415,
        SERIES,
    ),
    Case(
        "a time series is listed with its granularity",
        [],
        after(
            make(timeseries={"timeField": "time"}),
            lambda collection: [
                [each["type"], each["info"], by_name(each["options"]["timeseries"])]
                for each in listed_collections({"name": collection.name})(collection)
            ],
        ),
        [
            [
                "timeseries",
                {"readOnly": False},
                {"bucketMaxSpanSeconds": 3600, "granularity": "seconds", "timeField": "time"},
            ]
        ],
        "server: jstests/core/timeseries/ddl/timeseries_list_collections.js",
    ),
    Case(
        "collections are listed by an expression",
        ONE,
        each("name", listed_collections({"$expr": {"$eq": ["$name", "cases"]}})),
        ["cases"],
        FILTERED,
        ONE,
    ),
    Case(
        "collections are listed by names and patterns",
        ONE,
        each("name", listed_collections({"name": {"$in": ["cases", Regex("^oth"), "", 1234]}}), sorted),
        ["cases", "others"],
        FILTERED,
        ONE,
    ),
    Case(
        "collections are listed by their names alone",
        ONE,
        listed_collections({"name": "cases"}, nameOnly=True),
        [{"name": "cases", "type": "collection"}],
        "manual: reference/command/listCollections",
    ),
    Case(
        "a collection is listed with its index of _id",
        ONE,
        lambda collection: [
            [each["type"], each["options"], each["info"]["readOnly"], each["idIndex"]]
            for each in listed_collections({"name": "cases"})(collection)
        ],
        [["collection", {}, False, {"v": 2, "key": {"_id": 1}, "name": "_id_"}]],
        "manual: reference/command/listCollections",
    ),
    Case(
        "a view is listed with its pipeline",
        ONE,
        after(_view, listed_collections({"name": "others"})),
        [
            {
                "name": "others",
                "type": "view",
                "options": {"viewOn": "cases", "pipeline": [{"$match": {"a": 1}}]},
                "info": {"readOnly": True},
            }
        ],
        "manual: reference/command/listCollections",
    ),
    Case(
        "a view is not renamed",
        ONE,
        after(_view, refusal(_rename("others", "more"))),
        [166, "CommandNotSupportedOnView"],
        f"{DDL}/rename_collection_view.js",
    ),
    Case(
        "a collection takes the place of another, with its indexes",
        [{"_id": 1}, {"_id": 2}],
        after(
            make_index({"a": 1}),
            _rename("cases", "others", dropTarget=True),
            lambda collection: [other_documents(collection), sorted(collection.database.others.index_information())],
        ),
        [[{"_id": 1}, {"_id": 2}], ["_id_", "a_1"]],
        RENAMED,
        [{"_id": 9}],
    ),
    Case(
        "drop of a collection that is not there",
        [],
        command("drop"),
        1.0,
        f"{DDL}/drop_collection.js",
    ),
    Case(
        "a collection that is not there is not made capped",
        ONE,
        refusal(database_command(convertToCapped="foo", size=1024)),
        NO_NAMESPACE,
        f"{DDL}/convert_to_capped_non_existent.js",
    ),
    Case(
        "a capped collection keeps the newest",
        [],
        after(
            make(capped=True, size=100000, max=2),
            lambda collection: collection.insert_many([{"_id": 1}, {"_id": 2}, {"_id": 3}]),
            find({}),
        ),
        [2, 3],
        "manual: core/capped-collections",
    ),
]


CASES = [*INDEXES, *COLLECTIONS]
