"""Options of collections and indexes: what is taken of them, and the codes with which others are refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Int64

from .calls import Call, after, attempt, command
from .cases import Case
from .refusals import batch, listed_collections, make, make_index, write_code

CREATED = "server: jstests/core/timeseries/ddl/timeseries_create.js"
BUCKETED = "server: jstests/core/timeseries/ddl/bucket_span_and_rounding_seconds.js"
MODIFIED = "server: jstests/core/timeseries/ddl/timeseries_collmod.js"
WILD = "server: jstests/core/index/wildcard/compound_wildcard_index_validation.js"
EXPIRY = "server: jstests/core/ddl/ttl_index_options.js"
TO_EXPIRY = "server: jstests/core/ddl/coll_mod_convert_to_ttl.js"
PREPARED = "server: jstests/core/ddl/index_prepareUnique.js"
RESIZED = "server: jstests/core/capped/capped_resize.js"
CLUSTERED = "server: src/mongo/db/local_catalog/clustered_collection_util.cpp"
TEXTS = "server: jstests/core/index/fts/fts_index.js"
COLLATIONS = "server: jstests/core/query/collation/collation.js"
DAY, MONTH, YEAR = 86400, 30 * 86400, 365 * 86400
META = {"timeField": "time", "metaField": "meta"}


def _series(expected: Any, options: Any, source: str = CREATED, **more: Any) -> Case:
    name = f"create of a time series of {options!r} with {more!r}"[:120]
    return Case(name, [], attempt(make(timeseries=options, **more)), expected, source)


def _spans(maximum: int, rounding: int | None = None) -> Any:
    return {"bucketMaxSpanSeconds": maximum, **({"bucketRoundingSeconds": rounding} if rounding else {})}


SERIES = [
    _series(None, {"timeField": "time"}),
    _series(None, META),
    *(_series(None, {**META, "granularity": one}) for one in ("seconds", "minutes", "hours")),
    _series(None, {**META, "granularity": "minutes", **_spans(DAY)}),
    _series(None, {**META, "granularity": "hours", **_spans(MONTH)}),
    _series(72, {**META, "granularity": "seconds", **_spans(3600, 60)}),
    _series(72, {**META, "granularity": "minutes", **_spans(3600)}),
    _series(14, ""),
    _series(14, {"timeField": "time", "metaField": 100}),
    _series(72, {"timeField": "time", "metaField": "sub.meta"}),
    _series(2, {"timeField": "\0time"}),
    _series(2, {"timeField": "time", "metaField": "t\0ag"}),
    _series(None, {"timeField": "time"}, expireAfterSeconds=Int64(100)),
    _series(72, {"timeField": "time"}, expireAfterSeconds=Int64(2**62)),
    _series(14, {"timeField": "time"}, expireAfterSeconds=""),
    _series(None, {"timeField": "time"}, storageEngine={}),
    _series(None, {"timeField": "time"}, indexOptionDefaults={}),
    _series(None, {"timeField": "time"}, collation={"locale": "ja"}),
    _series(72, {"timeField": "time"}, capped=True, size=100),
    _series(72, {"timeField": "time"}, idIndex={"key": {"_id": 1}, "name": "_id_"}),
    *(
        _series(72, {"timeField": "time"}, **{name: value})
        for name, value in (
            ("validator", {}),
            ("validationLevel", "off"),
            ("validationAction", "warn"),
            ("viewOn", "coll"),
            ("clusteredIndex", True),
            ("clusteredIndex", False),
        )
    ),
    _series(None, {"timeField": "time", **_spans(4000, 4000)}, BUCKETED),
    _series(72, {"timeField": "time", **_spans(3600)}, BUCKETED),
    _series(72, {"timeField": "time", "bucketRoundingSeconds": 4000}, BUCKETED),
    _series(72, {"timeField": "time", **_spans(50, 100)}, BUCKETED),
    _series(2, {"timeField": "time", **_spans(-1, -1)}, BUCKETED),
    _series(72, {"timeField": "time", "granularity": "hours", **_spans(4000, 4000)}, BUCKETED),
]


def _modified(expected: Any, *changes: Any, options: Any = None, source: str = MODIFIED) -> Case:
    """The code of the last of several changes of a time series."""
    calls: list[Call] = [make(timeseries=options or {"timeField": "time", "granularity": "seconds"})]
    calls += [command("collMod", **change) for change in changes[:-1]]
    call = after(*calls, attempt(command("collMod", **changes[-1])))
    return Case(f"collMod of a time series {options!r} by {changes!r}"[:130], [], call, expected, source)


def _to(granularity: str) -> Any:
    return {"timeseries": {"granularity": granularity}}


MODIFICATIONS = [
    _modified(72, {"validator": {"required": ["time"]}}),
    _modified(72, {"validationLevel": "moderate"}),
    _modified(72, {"validationAction": "warn"}),
    _modified(72, {"viewOn": "foo", "pipeline": []}),
    _modified(None, {"expireAfterSeconds": 60}),
    _modified(None, _to("minutes")),
    _modified(72, _to("minutes"), _to("seconds")),
    _modified(None, _to("minutes"), _to("hours")),
    _modified(72, _to("hours"), {"timeseries": _spans(MONTH)}),
    _modified(72, _to("hours"), {"timeseries": _spans(DAY, DAY)}),
    _modified(None, _to("hours"), {"timeseries": {"granularity": "hours", **_spans(MONTH)}}),
    _modified(72, _to("hours"), {"timeseries": {"granularity": "hours", **_spans(MONTH, DAY)}}),
    _modified(None, _to("hours"), {"timeseries": _spans(MONTH + 1, MONTH + 1)}),
    _modified(None, _to("minutes"), options={"timeField": "time", **_spans(200, 200)}),
    _modified(2, {"timeseries": _spans(YEAR + 1, YEAR + 1)}),
    _modified(None, {"timeseries": _spans(YEAR, YEAR)}),
    _modified(None, {"timeseries": {}}),
    Case(
        "a time series by seconds is listed without a granularity",
        [],
        after(
            make(timeseries={"timeField": "time"}),
            command("collMod", timeseries=_spans(4000, 4000)),
            lambda collection: listed_collections({"name": collection.name})(collection)[0]["options"],
        ),
        {"timeseries": {"timeField": "time", "bucketRoundingSeconds": 4000, "bucketMaxSpanSeconds": 4000}},
        MODIFIED,
    ),
]


def _wild(expected: Any, key: Any, projection: Any = None, **options: Any) -> Case:
    given = {**({} if projection is None else {"wildcardProjection": projection}), **options}
    name = f"createIndexes of {key!r} with {given!r}"[:130]
    return Case(name, [], attempt(make_index(key, name="wild", **given)), expected, WILD)


WILDCARDS = [
    _wild(None, {"a": 1, "b.$**": -1, "c": 1}),
    _wild(None, {"a": 1, "$**": 1}, {"a": 0}),
    _wild(None, {"a": 1, "$**": -1, "b": 1}, {"a": 0, "b": 0}),
    _wild(None, {"$**": 1, "other": 1}, {"_id": 0, "a": 1}),
    _wild(None, {"$**": 1, "another": 1}, {"_id": 1, "a": 0, "another": 0}),
    _wild(None, {"$**": 1, "yetAnother": 1}, {"_id": 1}),
    _wild(None, {"$**": 1, "d": 1}, {"a": {"b": 1, "c": 1}}),
    _wild(7246204, {"a.b.c": 1, "a.b.$**": 1}),
    _wild(7246200, {"$**": 1, "c": 1}, {"a.b": 1, "a.b.c": 1}),
    *(_wild(67, {"a.$**": 1, "b": kind}) for kind in ("text", "hashed", "2dsphere")),
    _wild(67, {"a.$**": 1, "b": 1}, unique=True),
    _wild(67, {"a.$**": 1, "b": 1}, sparse=True),
    _wild(67, {"a.$**": 1, "b": 1}, expireAfterSeconds=60),
    _wild(9, {"a": 1, "$**": 1}, {}),
    _wild(7246208, {"a": 1, "$**": 1}, {"a": 1}),
    _wild(7246208, {"a": 1, "$**": 1, "b": 1}, {"a": 1, "b": 1}),
    _wild(7246208, {"_id": 1, "$**": 1}, {"_id": 1}),
    _wild(7246211, {"$**": 1, "c": 1}, {"_id": 0, "a": 0, "b": 1}),
    _wild(7246211, {"$**": 1, "c": 1}, {"_id": 1, "a": 0, "b": 1}),
    _wild(7246209, {"$**": 1, "_id": 1, "e": 1}, {"_id": 1, "e": 0}),
    _wild(51271, {"st": 1, "$**": 1}, {"a": "something"}),
    _wild(7246210, {"a": 1, "$**": 1}, {"_id": 0}),
    _wild(7246210, {"b": 1, "$**": 1, "a": 1}, {"_id": 0}),
    _wild(None, {"_id": 1, "$**": 1}, {"_id": 0}),
    _wild(7246210, {"_id": 1, "$**": 1, "a": 1}, {"_id": 0}),
    _wild(7246209, {"a": 1, "b": 1, "$**": 1}, {"b": 0}),
    _wild(7246210, {"b": 1, "$**": 1}, {"_id": 0, "a": 0}),
    _wild(7246209, {"_id": 1, "a": 1, "$**": 1}, {"_id": 0, "a.b": 0}),
    _wild(None, {"_id": 1, "a.b": 1, "$**": 1}, {"_id": 0, "a": 0}),
    _wild(7246210, {"$**": 1, "e.c": 1}, {"_id": 1, "e.b": 0}),
]


def _created(expected: Any, source: str, key: Any = None, **options: Any) -> Case:
    key = {"a": 1} if key is None else key
    name = f"createIndexes of {key!r} and {options!r}"[:130]
    return Case(name, [], attempt(make_index(key, **{"name": "x", **options})), expected, source)


def _indexes(collection: Any) -> Any:
    return [{name: one[name] for name in one if name != "v"} for one in batch("listIndexes")(collection)][1:]


INDEXES = [
    _created(67, EXPIRY, expireAfterSeconds=float(2**63)),
    _created(67, EXPIRY, expireAfterSeconds=999999999999999),
    _created(None, EXPIRY, expireAfterSeconds=2_000_000_000),
    _created(67, EXPIRY, expireAfterSeconds=-1),
    _created(None, EXPIRY, expireAfterSeconds=0),
    _created(67, EXPIRY, {"x": 1, "y": 1}, expireAfterSeconds=100),
    _created(67, EXPIRY, expireAfterSeconds="invalidOption"),
    _created(161, COLLATIONS, collation={"locale": "en", "version": "unknownVersion"}),
    _created(67, TEXTS, {"a": "text"}, default_language="spanglish"),
    _created(67, TEXTS, {"a.$**": "text"}),
    _created(67, TEXTS, {"_fts": 1}),
    _created(67, TEXTS, {"_fts": "text"}),
    _created(67, TEXTS, {"a": 1, "c": 1}, weights={"d": 1}),
    _created(67, TEXTS, {"a": "text"}, weights={"b": 1e300}),
    _created(67, TEXTS, {"a": "text"}, weights={"b": -1e300}),
    _created(67, TEXTS, {"a": "text", "b": 1e300}),
    Case(
        "an index that is unique is not prepared to be, and keeps nothing that is false",
        [],
        after(
            make_index({"a": 1}, unique=True, prepareUnique=False),
            command("collMod", index={"keyPattern": {"a": 1}, "prepareUnique": True}),
            _indexes,
        ),
        [{"key": {"a": 1}, "name": "a_1", "unique": True}],
        PREPARED,
    ),
    *(
        Case(
            f"collMod of an index {key!r} by {seconds!r}",
            [],
            after(
                make_index(key) if key != {"_id": 1} else make(),
                attempt(command("collMod", index={"keyPattern": key, "expireAfterSeconds": seconds})),
            ),
            expected,
            TO_EXPIRY,
        )
        for key, seconds, expected in (
            ({"a": 1}, "100", 14),
            ({"a": 1}, -1, 72),
            ({"a": 1}, 100, None),
            ({"a": 1, "b": 1}, 100, 72),
            ({"_id": 1}, 100, 72),
        )
    ),
]


def _resized(expected: Any, **change: Any) -> Case:
    call = after(make(capped=True, size=4096, max=5), attempt(command("collMod", **change)))
    return Case(f"collMod of a capped collection by {change!r}", [], call, expected, RESIZED)


def _shrunk(collection: Any) -> Any:
    collection.insert_many([{"_id": number} for number in range(4)])
    command("collMod", cappedMax=2)(collection)
    return [each["_id"] for each in collection.find()]


KEY = {"key": {"_id": 1}, "unique": True}
COLLECTIONS = [
    _resized(None, cappedSize=256),
    _resized(51024, cappedSize=2**50 + 1),
    _resized(51024, cappedSize=0),
    _resized(51024, cappedSize=-25600),
    _resized(None, cappedMax=0),
    Case("a capped collection is made smaller", [], after(make(capped=True, size=4096), _shrunk), [2, 3], RESIZED),
    *(
        Case(f"create with {options!r}", [], attempt(make(**options)), expected, CLUSTERED)
        for options, expected in (
            ({"clusteredIndex": KEY, "size": 10}, 6049200),
            ({"clusteredIndex": KEY, "max": 10}, 6049204),
            ({"clusteredIndex": KEY, "expireAfterSeconds": 10}, None),
            ({"clusteredIndex": {**KEY, "foo": 1}}, 40415),
            ({"clusteredIndex": {"key": {"_id": 1}}}, 40414),
            ({"clusteredIndex": {**KEY, "unique": False}}, 5979700),
            ({"clusteredIndex": True}, 5979703),
        )
    ),
]

LIMITS = "manual: core/timeseries/timeseries-limitations"


def _written(name: str, call: Call, expected: Any) -> Case:
    prepared = after(make(timeseries=META), command("insert", documents=[{"_id": 1, "time": NOW, "meta": 1}]))
    return Case(f"a time series: {name}", [], after(prepared, call), expected, LIMITS)


def _update(change: Any, query: Any = None, **fields: Any) -> Call:
    statement = {"q": {"meta": 1} if query is None else query, "u": change, "multi": True, **fields}
    return write_code("update", updates=[statement])


NOW = datetime(2024, 1, 1)
WRITES = [
    _written("a document without a time", write_code("insert", documents=[{"meta": 1}]), 2),
    _written("a time that is no date", write_code("insert", documents=[{"time": "now"}]), 2),
    _written("an update of the metaField", _update({"$set": {"meta": 2}}), None),
    _written("an update of one document", _update({"$set": {"meta": 2}}, multi=False), 72),
    _written("an update of another field", _update({"$set": {"x": 2}}), 72),
    _written("an update by another field", _update({"$set": {"meta": 2}}, {"x": 1}), 72),
    _written("an upsert", _update({"$set": {"meta": 2}}, upsert=True), 72),
    _written("an update by a pipeline", _update([{"$set": {"meta": 2}}]), 72),
    _written("a removal by the metaField", write_code("delete", deletes=[{"q": {"meta": 1}, "limit": 0}]), None),
]

CASES = [*WRITES, *SERIES, *MODIFICATIONS, *WILDCARDS, *INDEXES, *COLLECTIONS]
