"""Queries, sorts and projections."""

from __future__ import annotations

from datetime import datetime

from bson import Binary, DatetimeMS, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from .cases import Case, Error, aggregate, find, project

NAN = float("nan")
LEAF = "server: src/mongo/db/matcher/expression_leaf.cpp"
PARSER = "server: src/mongo/db/matcher/expression_parser.cpp"
PATHS = "server: src/mongo/db/matcher/path.cpp"
TYPES = "manual: reference/bson-type-comparison-order"


def _op(name):
    return f"manual: reference/operator/query/{name}"


def _values(*values, field="a"):
    return [{"_id": number, field: value} for number, value in enumerate(values, 1)]


EMPTY_AND_SCALARS = [
    {"_id": 1, "a": []},
    {"_id": 2, "a": [1]},
    {"_id": 3},
    {"_id": 4, "a": 5},
    {"_id": 5, "a": [{"c": 1}]},
]
ORDER = [
    MinKey(),
    [],
    None,
    1,
    "a",
    {"x": 1},
    Binary(b"a"),
    ObjectId(),
    False,
    datetime(2020, 1, 1),
    Timestamp(1, 1),
    Regex("a"),
    MaxKey(),
]


def _index(keys, **options):
    def run(collection):
        collection.create_index(keys, **options)
        return collection.insert_one({"_id": 9, "a": [1, 2], "b": [1, 2]}).inserted_id

    return run


CASES = [
    # Arrays on the path
    Case("$all over subdocuments", _values([{"b": 1}, {"b": 2}]), find({"a.b": {"$all": [1, 2]}}), [1], _op("all")),
    Case("$all of a single value", _values(1, [1], [2]), find({"a": {"$all": [1]}}), [1, 2], _op("all")),
    Case("$all of nothing", _values([], [1], 1), find({"a": {"$all": []}}), [], _op("all")),
    Case(
        "$all with $elemMatch",
        _values([{"x": 1, "y": 2}, {"x": 3, "y": 4}], [{"x": 1, "y": 4}]),
        find({"a": {"$all": [{"$elemMatch": {"x": 1, "y": 2}}, {"$elemMatch": {"x": 3}}]}}),
        [1],
        _op("all"),
    ),
    Case("$all with an operator", _values(1), find({"a": {"$all": [{"$gt": 1}]}}), Error(2), _op("all")),
    Case("null on a path through arrays", EMPTY_AND_SCALARS, find({"a.b": None}), [3, 4, 5], PATHS),
    Case("not null on a path through arrays", EMPTY_AND_SCALARS, find({"a.b": {"$ne": None}}), [1, 2], PATHS),
    Case("$in null on a path through arrays", EMPTY_AND_SCALARS, find({"a.b": {"$in": [None]}}), [3, 4, 5], PATHS),
    Case("$nin null on a path through arrays", EMPTY_AND_SCALARS, find({"a.b": {"$nin": [None]}}), [1, 2], PATHS),
    Case("$lte null on a path through arrays", EMPTY_AND_SCALARS, find({"a.b": {"$lte": None}}), [3, 4, 5], PATHS),
    Case(
        "$exists on a path through arrays",
        EMPTY_AND_SCALARS,
        find({"a.b": {"$exists": False}}),
        [1, 2, 3, 4, 5],
        _op("exists"),
    ),
    Case("an element by its number", _values([5, 6], [6, 5]), find({"a.0": 5}), [1], PATHS),
    Case(
        "$elemMatch looks at elements only",
        _values([[5]], [5]),
        find({"a": {"$elemMatch": {"$gt": 3}}}),
        [2],
        _op("elemMatch"),
    ),
    Case(
        "$elemMatch of arrays in arrays",
        _values([[5]], [5]),
        find({"a": {"$elemMatch": {"$elemMatch": {"$gt": 3}}}}),
        [1],
        _op("elemMatch"),
    ),
    Case(
        "$elemMatch with several conditions",
        _values([82, 85, 88], [75, 88, 89]),
        find({"a": {"$elemMatch": {"$gte": 80, "$lt": 85}}}),
        [1],
        _op("elemMatch"),
    ),
    Case(
        "two conditions on an array without $elemMatch",
        _values([1, 10], [5]),
        find({"a": {"$gt": 4, "$lt": 6}}),
        [1, 2],
        "manual: tutorial/query-arrays",
    ),
    Case(
        "equality of whole arrays",
        _values([1, 2], [2, 1], [[1, 2]]),
        find({"a": [1, 2]}),
        [1, 3],
        "manual: tutorial/query-arrays",
    ),
    Case("$size", _values([1, 2], [1], "ab"), find({"a": {"$size": 2}}), [1], _op("size")),
    Case("$size below zero", _values(1), find({"a": {"$size": -1}}), Error(2), _op("size")),
    # Types
    Case(
        "DBRef by its ID",
        [{"_id": 1, "r": DBRef("c", 5)}],
        find({"r.$id": 5}),
        [1],
        "manual: reference/database-references",
    ),
    Case(
        "DBRef by its collection",
        [{"_id": 1, "r": DBRef("c", 5)}],
        find({"r.$ref": "c"}),
        [1],
        "manual: reference/database-references",
    ),
    Case(
        "DBRef as a value",
        [{"_id": 1, "r": DBRef("c", 5)}],
        find({"r": DBRef("c", 5)}),
        [1],
        "manual: reference/database-references",
    ),
    Case(
        "DBRef projected",
        [{"_id": 1, "r": DBRef("c", 5)}],
        aggregate({"$project": {"_id": 0, "id": "$r.$id", "of": "$r.$ref"}}),
        [{"id": 5, "of": "c"}],
        "server: src/mongo/db/pipeline/field_path.cpp",
    ),
    Case(
        "numbers of all types are equal",
        _values(1, Int64(1), 1.0, Decimal128("1"), True, "1"),
        find({"a": 1}),
        [1, 2, 3, 4],
        TYPES,
    ),
    Case(
        "comparisons stay in their type",
        _values(5, "5", None, datetime(2020, 1, 1)),
        find({"a": {"$gt": 1}}),
        [1],
        TYPES,
    ),
    Case("NaN is below no number", _values(Decimal128("NaN"), NAN, 0), find({"a": {"$lt": 1}}), [3], LEAF),
    Case("NaN is not above numbers either", _values(Decimal128("NaN"), NAN, 2), find({"a": {"$gte": 1}}), [3], LEAF),
    Case("NaN equals NaN", _values(Decimal128("NaN"), NAN, 0), find({"a": NAN}), [1, 2], LEAF),
    Case("$gte NaN", _values(NAN, 1), find({"a": {"$gte": NAN}}), [1], LEAF),
    Case("$gt MinKey", _values(MinKey(), 1, None), find({"a": {"$gt": MinKey()}}), [2, 3], LEAF),
    Case(
        "$type of a number",
        _values(1, Int64(1), 1.5, Decimal128("1"), "1"),
        find({"a": {"$type": "number"}}),
        [1, 2, 3, 4],
        _op("type"),
    ),
    Case("$type looks into arrays", _values([1], ["a"], []), find({"a": {"$type": "string"}}), [2], _op("type")),
    Case("$type array", _values([1], 1, [[1]]), find({"a": {"$type": "array"}}), [1, 3], _op("type")),
    Case("$in with an operator", _values(5), find({"a": {"$in": [{"$gt": 1}]}}), Error(2), _op("in")),
    Case(
        "$mod of NaN and infinity", _values(NAN, 4, float("inf"), "4"), find({"a": {"$mod": [2, 0]}}), [2], _op("mod")
    ),
    Case(
        "$mod of decimals and doubles",
        _values(Decimal128("4"), 4.5, 5.0, -4),
        find({"a": {"$mod": [2, 0]}}),
        [1, 2, 4],
        _op("mod"),
    ),
    Case("$mod with fractions", _values(4, 5), find({"a": {"$mod": [4.5, 0]}}), [1], _op("mod")),
    Case("$mod with too few", _values(4), find({"a": {"$mod": [4]}}), Error(2), _op("mod")),
    Case("$mod by zero", _values(4), find({"a": {"$mod": [0, 0]}}), Error(2), _op("mod")),
    # Bits
    Case(
        "$bitsAllSet of all types",
        _values(5.0, Binary(b"\5"), Decimal128("5"), 5, Int64(5), 5.5, "5", 4),
        find({"a": {"$bitsAllSet": 5}}),
        [1, 2, 3, 4, 5],
        _op("bitsAllSet"),
    ),
    Case(
        "$bitsAllSet by positions",
        _values(54, 20, 20.0, Binary(b"f")),
        find({"a": {"$bitsAllSet": [1, 5]}}),
        [1, 4],
        _op("bitsAllSet"),
    ),
    Case(
        "$bitsAnySet of binary data",
        _values(54, 20, 20.0, Binary(b"f")),
        find({"a": {"$bitsAnySet": Binary(b"\x30")}}),
        [1, 2, 3, 4],
        _op("bitsAnySet"),
    ),
    Case(
        "$bitsAllClear",
        _values(54, 20, 20.0, Binary(b"f")),
        find({"a": {"$bitsAllClear": 35}}),
        [2, 3],
        _op("bitsAllClear"),
    ),
    Case(
        "$bitsAnyClear",
        _values(54, 20, 20.0, Binary(b"f")),
        find({"a": {"$bitsAnyClear": [1, 5]}}),
        [2, 3],
        _op("bitsAnyClear"),
    ),
    Case("$bitsAllSet of a negative number", _values(-1), find({"a": {"$bitsAllSet": [70]}}), [1], _op("bitsAllSet")),
    # Regular expressions
    Case("$eq of a regular expression", _values("abc", Regex("^a")), find({"a": {"$eq": Regex("^a")}}), [2], _op("eq")),
    Case(
        "equality of a regular expression",
        _values("abc", Regex("^a"), "b"),
        find({"a": Regex("^a")}),
        [1, 2],
        _op("regex"),
    ),
    Case(
        "$in with a regular expression",
        _values("abc", "b", 5),
        find({"a": {"$in": [Regex("^a"), 5]}}),
        [1, 3],
        _op("regex"),
    ),
    *(
        Case(
            f"$regex {condition!r} of a regular expression",
            _values("abc", Regex("^a"), Regex("^a", "i"), Regex("a")),
            find({"a": condition}),
            expected,
            LEAF,
        )
        for condition, expected in [
            ({"$regex": "^a"}, [1, 2]),
            ({"$regex": "^a", "$options": "i"}, [1, 3]),
            ({"$regex": Regex("^a"), "$options": "i"}, [1, 3]),
            ({"$regex": Regex("^a", "i")}, [1, 3]),
            ({"$not": {"$regex": "^a"}}, [3, 4]),
        ]
    ),
    *(
        Case(
            f"$elemMatch {condition!r} of arrays in an array",
            _values([[1]], [[]], [{"b": 1}], [1], [[{"b": 2}]]),
            find({"a": {"$elemMatch": condition}}),
            expected,
            "server: src/mongo/db/matcher/expression_array.cpp",
        )
        for condition, expected in [
            ({"b": None}, [1, 2, 5]),
            ({"b": 1}, [3]),
            ({"0": 1}, [1]),
            ({"0.b": 2}, [5]),
            ({"b": {"$exists": False}}, [1, 2, 5]),
        ]
    ),
    Case("$alwaysTrue", _values(1), find({"$alwaysTrue": 1}), [1], PARSER),
    Case("$alwaysFalse", _values(1), find({"$alwaysFalse": 1}), [], PARSER),
    Case(
        "$alwaysFalse of 0",
        _values(1),
        find({"$alwaysFalse": 0}),
        Error(9),
        PARSER,
    ),
    Case("$ne of a regular expression", _values("abc"), find({"a": {"$ne": Regex("^a")}}), Error(2), _op("ne")),
    Case("$gt of a regular expression", _values("abc"), find({"a": {"$gt": Regex("^a")}}), Error(2), LEAF),
    Case(
        "$not of a regular expression", _values("abc", "b", 5), find({"a": {"$not": Regex("^a")}}), [2, 3], _op("not")
    ),
    Case(
        "word characters are ASCII's",
        _values("é", "b"),
        find({"a": {"$regex": r"^\w$"}}),
        [2],
        "pcre2pattern, without UCP",
    ),
    Case("digits are ASCII's", _values("٣", "3"), find({"a": {"$regex": r"^\d$"}}), [2], "pcre2pattern, without UCP"),
    Case("classes of POSIX", _values("b", "[", ":"), find({"a": {"$regex": "^[[:alpha:]]$"}}), [1], "pcre2pattern"),
    Case("properties of Unicode", _values("é", "1"), find({"a": {"$regex": r"^\p{L}$"}}), [1], "pcre2pattern"),
    Case("quoted parts", _values("a.b", "axb"), find({"a": {"$regex": r"\Qa.b\E"}}), [1], "pcre2pattern"),
    Case("the very end", _values("a", "a\n"), find({"a": {"$regex": r"a\z"}}), [1], "pcre2pattern"),
    Case("horizontal space", _values("a b", "a\nb"), find({"a": {"$regex": r"a\hb"}}), [1], "pcre2pattern"),
    Case("options within a pattern", _values("aB", "AB"), find({"a": {"$regex": "a(?i)b"}}), [1], _op("regex")),
    Case("options", _values("ABC", "abc"), find({"a": {"$regex": "^b", "$options": "i"}}), [], _op("regex")),
    Case("many lines", _values("a\nb"), find({"a": {"$regex": "^b", "$options": "m"}}), [1], _op("regex")),
    Case(
        "comments in a pattern",
        _values("abc123"),
        find({"a": {"$regex": "abc #c\n123", "$options": "x"}}),
        [1],
        _op("regex"),
    ),
    Case(
        "an unknown option",
        _values("a"),
        find({"a": {"$regex": "a", "$options": "z"}}),
        Error(51108),
        "server: src/mongo/util/pcre_util.cpp",
    ),
    Case("a broken pattern", _values("a"), find({"a": {"$regex": "(a"}}), Error(51091), LEAF),
    # Sorts
    Case(
        "an empty array is before null",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": []}, {"_id": 3}],
        find({}, sort=[("a", 1)]),
        [2, 3, 1],
        TYPES,
    ),
    Case("the order of types", _values(*ORDER), find({}, sort=[("a", -1)]), list(range(len(ORDER), 0, -1)), TYPES),
    Case("an array by its lowest element", _values([3, 9], [5], 4), find({}, sort=[("a", 1)]), [1, 3, 2], TYPES),
    Case("an array by its highest element", _values([3, 9], [5], 4), find({}, sort=[("a", -1)]), [1, 2, 3], TYPES),
    Case(
        "parallel arrays",
        [{"_id": 1, "a": [1], "b": [1]}],
        find({}, sort=[("a", 1), ("b", 1)]),
        Error(2),
        "server: src/mongo/db/index/sort_key_generator.cpp",
    ),
    Case(
        "dates beyond Python's",
        [{"_id": 1, "a": datetime(2020, 1, 1)}, {"_id": 2, "a": 1}],
        find({"a": {"$gt": datetime(1, 1, 1)}}),
        [1],
        TYPES,
    ),
    Case(
        "dates that Python has no type for",
        [
            {"_id": 1, "a": DatetimeMS(2**60)},
            {"_id": 2, "a": datetime(2020, 1, 1)},
            {"_id": 3, "a": DatetimeMS(-(2**60))},
        ],
        find({"a": {"$gt": DatetimeMS(-(2**61))}}, projection={"_id": 1}, sort=[("a", 1)]),
        [3, 2, 1],
        TYPES,
    ),
    # Collations
    Case(
        "a range under a collation",
        _values("B", "a"),
        find({"a": {"$gt": "a"}}, collation={"locale": "en"}),
        [1],
        "manual: reference/collation",
    ),
    Case(
        "an order under a collation",
        _values("z", "é", "a", "Z"),
        find({}, sort=[("a", 1)], collation={"locale": "fr"}),
        [3, 2, 1, 4],
        "manual: reference/collation",
    ),
    Case(
        "strength 1",
        _values("cafe", "Café", "cafes"),
        find({"a": "CAFE"}, collation={"locale": "en", "strength": 1}),
        [1, 2],
        "manual: reference/collation",
    ),
    Case(
        "strength 2",
        _values("cafe", "Café", "CAFE"),
        find({"a": "cafe"}, collation={"locale": "en", "strength": 2}),
        [1, 3],
        "manual: reference/collation",
    ),
    Case(
        "strength 3",
        _values("cafe", "CAFE"),
        find({"a": "cafe"}, collation={"locale": "en"}),
        [1],
        "manual: reference/collation",
    ),
    Case(
        "a collation leaves patterns alone",
        _values("Cafe"),
        find({"a": {"$regex": "^c"}}, collation={"locale": "en", "strength": 1}),
        [],
        _op("regex"),
    ),
    Case(
        "groups under a collation",
        _values("a", "A", "b"),
        aggregate({"$group": {"_id": "$a", "n": {"$sum": 1}}}, collation={"locale": "en", "strength": 2}),
        [{"_id": "a", "n": 2}, {"_id": "b", "n": 1}],
        "manual: reference/collation",
    ),
    # Projections
    Case(
        "$slice beside _id",
        [{"_id": 1, "n": [1, 2, 3]}],
        project({"_id": 1, "n": {"$slice": -2}}),
        {"_id": 1, "n": [2, 3]},
        "manual: reference/operator/projection/slice",
    ),
    Case(
        "$slice alone",
        [{"_id": 1, "n": [1, 2, 3], "x": 1}],
        project({"n": {"$slice": [1, 1]}}),
        {"_id": 1, "n": [2], "x": 1},
        "manual: reference/operator/projection/slice",
    ),
    Case(
        "$slice of a dotted path",
        [{"_id": 1, "n": {"m": [1, 2, 3]}}],
        project({"n.m": {"$slice": 1}}),
        {"_id": 1, "n": {"m": [1]}},
        "manual: reference/operator/projection/slice",
    ),
    *(
        Case(
            f"a projection of {path}",
            [{"_id": 1, "a": [{"b": 1}]}],
            project({path: 1}, {"a.b": 1}),
            Error(31394),
            "server: src/mongo/db/query/projection_parser.cpp",
        )
        for path in ("a.$.b", "a.$.b.$")
    ),
    Case(
        "$elemMatch in a projection",
        [{"_id": 1, "n": [1, 5, 6]}],
        project({"n": {"$elemMatch": {"$gt": 3}}}),
        {"_id": 1, "n": [5]},
        "manual: reference/operator/projection/elemMatch",
    ),
    Case(
        "including and excluding",
        [{"_id": 1, "a": 1}],
        project({"a": 1, "b": 0}),
        Error(31254),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "excluding and including",
        [{"_id": 1, "a": 1}],
        project({"a": 0, "b": 1}),
        Error(31253),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "a position in $project",
        [{"_id": 1, "l": [1]}],
        aggregate({"$project": {"l.$": 1}}),
        Error(31324),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    # Indexes
    Case(
        "parallel arrays in an index",
        [{"_id": 1}],
        _index([("a", 1), ("b", 1)]),
        Error(171),
        "manual: core/indexes/index-types/index-multikey",
    ),
    Case(
        "one array in an index",
        [{"_id": 1}],
        _index([("a", 1), ("c", 1)]),
        9,
        "manual: core/indexes/index-types/index-multikey",
    ),
]
