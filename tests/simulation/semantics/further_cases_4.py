"""Two hundred answers of the manual's examples, and of errors that applications meet.

They need a replica set, and follow MongoDB 8.0. The expected value of a refused command is its code and the code's
name. Numbers whose type is not documented are compared as plain ones.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from bson import Decimal128, Int64, ObjectId, Regex

from gmongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne
from gmongo.errors import OperationFailure

from .calls import Call, after, command, made, stored
from .cases import Case, evaluate, find, project, update

QUERY = "manual: reference/operator/query"
UPDATE = "manual: reference/operator/update"
AGGREGATION = "manual: reference/operator/aggregation"
PARSER = "server: src/mongo/db/matcher/expression_parser.cpp"
KEYS = "server: src/mongo/db/catalog/index_key_validate.cpp"
ONE = [{"_id": 1, "a": 1}]
BAD_VALUE = [2, "BadValue"]
UNPARSED = [9, "FailedToParse"]
UNAUTHORIZED = [13, "Unauthorized"]
MISMATCH = [14, "TypeMismatch"]
NO_INDEX = [27, "IndexNotFound"]
NOT_CREATED = [67, "CannotCreateIndex"]
OPTIONS = [72, "InvalidOptions"]
NO_NAME = [73, "InvalidNamespace"]
NO_OPERATOR = [168, "InvalidPipelineOperator"]
NOT_ALLOWED = [224, "QueryFeatureNotAllowed"]
NO_TRANSACTION = [251, "NoSuchTransaction"]
MISSING_FIELD = [40414, "IDLFailedToParse"]
UNKNOWN_FIELD = [40415, "IDLUnknownField"]


# What the calls are made of


def _refusal(call: Call) -> Call:
    """The code of a refusal, and its name; None if there is none."""

    def run(collection: Any) -> Any:
        try:
            call(collection)
        except OperationFailure as error:
            return [error.code, (error.details or {}).get("codeName")]
        return None

    return run


def _location(code: int) -> list[Any]:
    """A code without a name of its own."""
    return [code, f"Location{code}"]


def _write_code(name: str, **fields: Any) -> Call:
    """The code with which a write, or the whole command, is refused."""

    def run(collection: Any) -> Any:
        try:
            reply = collection.database.command({name: collection.name, **fields})
        except OperationFailure as error:
            return error.code
        return reply["writeErrors"][0]["code"] if reply.get("writeErrors") else None

    return run


def _update_code(filter: Any, change: Any, **fields: Any) -> Call:
    return _write_code("update", updates=[{"q": filter, "u": change, **fields}])


def _changed(filter: Any, change: Any, **fields: Any) -> Call:
    """The documents after an update by the command."""
    return after(command("update", updates=[{"q": filter, "u": change, **fields}]), stored)


def _batch(name: str, **fields: Any) -> Call:
    """The first batch of a command's cursor."""
    return command(name, of=lambda reply: reply["cursor"]["firstBatch"], **fields)


def _found(**fields: Any) -> Call:
    """The values of _id that the command find returns."""
    return lambda collection: [each["_id"] for each in _batch("find", **fields)(collection)]


def _piped(*stages: Any, **fields: Any) -> Call:
    """The documents that a pipeline makes."""
    return _batch("aggregate", pipeline=list(stages), cursor={}, **fields)


def _made_of(*stages: Any) -> Call:
    """The documents that a pipeline makes, with plain numbers."""
    return _of(_piped(*stages), _plain)


def _each(expression: Any) -> Call:
    """The values of an expression for all documents by their IDs, with plain numbers; None if there is none."""
    return _of(
        _piped({"$sort": {"_id": 1}}, {"$project": {"_id": 0, "r": expression}}),
        lambda found: [_plain(each.get("r")) for each in found],
    )


def _computed(expression: Any) -> Call:
    """The refusal of an expression."""
    return _refusal(_piped({"$project": {"r": expression}}))


def _index(key: Any, **options: Any) -> Call:
    """Creates an index; its name is as drivers make it."""
    name = options.pop("name", "_".join(f"{field}_{kind}" for field, kind in key.items()))
    return command("createIndexes", indexes=[{"key": key, "name": name, **options}])


def _not_indexed(key: Any, **options: Any) -> Call:
    return _refusal(_index(key, **options))


def _create(**options: Any) -> Call:
    """Makes the collection by the command, where there is none."""
    return after(lambda collection: collection.drop(), command("create", **options))


def _view(*stages: Any) -> Call:
    """Makes ``others`` a view of the collection."""
    return lambda collection: collection.database.command(
        {"create": "others", "viewOn": collection.name, "pipeline": list(stages)}
    )


def _other(call: Call) -> Call:
    """A call on ``others``."""
    return lambda collection: call(collection.database.others)


def _admin(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command of the database ``admin``."""
    return lambda collection: of(collection.database.client.admin.command(fields))


def _database(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command that names no collection."""
    return lambda collection: of(collection.database.command(fields))


def _of(call: Call, part: Callable[[Any], Any]) -> Call:
    return lambda collection: part(call(collection))


def _both(*calls: Call) -> Call:
    """The answers of several calls."""
    return lambda collection: [call(collection) for call in calls]


def _plain(value: Any) -> Any:
    """A value with numbers of Python's own types, whole ones as int, others as float of six places."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal128):
        value = float(value.to_decimal())
    if isinstance(value, float):
        value = round(value, 6)
        return int(value) if value == int(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def _ids(values: Any) -> Any:
    return [each["_id"] for each in values]


def _insert(document: Any) -> Call:
    return lambda collection: collection.insert_one(dict(document))


def _events(*writes: Call, count: int, pipeline: Any = (), **options: Any) -> Call:
    """The first events after some writes to the collection."""

    def run(collection: Any) -> Any:
        with collection.watch(list(pipeline), max_await_time_ms=50, **options) as stream:
            for write in writes:
                write(collection)
            found: list[Any] = []
            for _ in range(40):
                event = stream.try_next()
                if event is not None:
                    found.append(event)
                if len(found) == count:
                    break
            return found

    return run


def _within(call: Callable[[Any, Any], Any]) -> Call:
    """The answer, or the refusal, of a call in a transaction that is not committed."""

    def run(collection: Any) -> Any:
        with collection.database.client.start_session() as session:
            session.start_transaction()
            try:
                return call(collection, session)
            except OperationFailure as error:
                return [error.code, (error.details or {}).get("codeName")]
            finally:
                if session.in_transaction:
                    session.abort_transaction()

    return run


# Filters

INVENTORY = [
    {"_id": 1, "item": "journal", "qty": 25, "size": {"h": 14, "w": 21, "uom": "cm"}, "status": "A"},
    {"_id": 2, "item": "notebook", "qty": 50, "size": {"h": 8.5, "w": 11, "uom": "in"}, "status": "A"},
    {"_id": 3, "item": "paper", "qty": 100, "size": {"h": 8.5, "w": 11, "uom": "in"}, "status": "D"},
    {"_id": 4, "item": "planner", "qty": 75, "size": {"h": 22.85, "w": 30, "uom": "cm"}, "status": "D"},
    {"_id": 5, "item": "postcard", "qty": 45, "size": {"h": 10, "w": 15.25, "uom": "cm"}, "status": "A"},
]
STOCK = [
    {"_id": 1, "item": "journal", "instock": [{"warehouse": "A", "qty": 5}, {"warehouse": "C", "qty": 15}]},
    {"_id": 2, "item": "notebook", "instock": [{"warehouse": "C", "qty": 5}]},
    {"_id": 3, "item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 15}]},
    {"_id": 4, "item": "planner", "instock": [{"warehouse": "A", "qty": 40}, {"warehouse": "B", "qty": 5}]},
    {"_id": 5, "item": "postcard", "instock": [{"warehouse": "B", "qty": 15}, {"warehouse": "C", "qty": 35}]},
]
SURVEY = [
    {"_id": 1, "results": [{"product": "abc", "score": 10}, {"product": "xyz", "score": 5}]},
    {"_id": 2, "results": [{"product": "abc", "score": 8}, {"product": "xyz", "score": 7}]},
    {"_id": 3, "results": [{"product": "abc", "score": 7}, {"product": "xyz", "score": 8}]},
    {"_id": 4, "results": [{"product": "abc", "score": 7}, {"product": "def", "score": 8}]},
]
ADDRESSES = [
    {"_id": 1, "address": "2030 Martian Way", "zipCode": "90698345"},
    {"_id": 2, "address": "156 Lunar Place", "zipCode": 43339374},
    {"_id": 3, "address": "2324 Pluto Place", "zipCode": Int64(3921412)},
    {"_id": 4, "address": "55 Saturn Ring", "zipCode": 88602117.0},
    {"_id": 5, "address": "104 Venus Drive", "zipCode": ["834847278", "1893289032"]},
]
PRODUCTS = [
    {"_id": 100, "sku": "abc123", "description": "Single line description."},
    {"_id": 101, "sku": "abc789", "description": "First line\nSecond line"},
    {"_id": 102, "sku": "xyz456", "description": "Many spaces before     line"},
    {"_id": 103, "sku": "xyz789", "description": "Multiple\nline description"},
]
SUPPLIES = [
    {"_id": 1, "item": "binder", "qty": 100, "price": 12},
    {"_id": 2, "item": "notebook", "qty": 200, "price": 8},
    {"_id": 3, "item": "pencil", "qty": 50, "price": 6},
    {"_id": 4, "item": "eraser", "qty": 150, "price": 3},
    {"_id": 5, "item": "legal pad", "qty": 42, "price": 10},
]
TAGGED = [
    {"_id": 1, "item": "Pens", "quantity": 350, "tags": ["school", "office"]},
    {"_id": 2, "item": "Erasers", "quantity": 15, "tags": ["school", "home"]},
    {"_id": 3, "item": "Maps", "tags": ["office", "storage"]},
    {"_id": 4, "item": "Books", "quantity": 5, "tags": ["school", "storage", "home"]},
]
PATHS = [
    {"_id": "Books", "path": None},
    {"_id": "Databases", "path": ",Books,Programming,"},
    {"_id": "Languages", "path": ",Books,Programming,"},
    {"_id": "MongoDB", "path": ",Books,Programming,Databases,"},
    {"_id": "Programming", "path": ",Books,"},
    {"_id": "dbm", "path": ",Books,Programming,Databases,"},
]
NESTED_SETS = [
    {"_id": "Books", "parent": 0, "left": 1, "right": 12},
    {"_id": "Programming", "parent": "Books", "left": 2, "right": 11},
    {"_id": "Languages", "parent": "Programming", "left": 3, "right": 4},
    {"_id": "Databases", "parent": "Programming", "left": 5, "right": 10},
    {"_id": "MongoDB", "parent": "Databases", "left": 6, "right": 7},
    {"_id": "dbm", "parent": "Databases", "left": 8, "right": 9},
]
DISCOUNTED = {
    "$cond": {
        "if": {"$gte": ["$qty", 100]},
        "then": {"$multiply": ["$price", 0.50]},
        "else": {"$multiply": ["$price", 0.75]},
    }
}


def _no_filter(name: str, filter: Any, expected: Any = tuple(BAD_VALUE), source: str = PARSER) -> Case:
    return Case(name, ONE, _refusal(_found(filter=filter)), list(expected), source)


QUERIES = [
    Case(
        "a status, and a quantity or a pattern",
        INVENTORY,
        find({"status": "A", "$or": [{"qty": {"$lt": 30}}, {"item": {"$regex": "^p"}}]}),
        [1, 5],
        "manual: tutorial/query-documents",
    ),
    Case(
        "a document in an array matches as a whole, in the order of its fields",
        STOCK,
        _both(find({"instock": {"warehouse": "A", "qty": 5}}), find({"instock": {"qty": 5, "warehouse": "A"}})),
        [[1], []],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "one document within bounds, or one above and another below",
        STOCK,
        _both(
            find({"instock": {"$elemMatch": {"qty": {"$gt": 10, "$lte": 20}}}}),
            find({"instock.qty": {"$gt": 10, "$lte": 20}}),
        ),
        [[1, 3, 5], [1, 3, 4, 5]],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "$elemMatch with $ne takes any other element, $ne alone refuses all",
        SURVEY,
        _both(
            find({"results": {"$elemMatch": {"product": {"$ne": "xyz"}}}}),
            find({"results.product": {"$ne": "xyz"}}),
        ),
        [[1, 2, 3, 4], [4]],
        f"{QUERY}/elemMatch",
    ),
    Case(
        "$type of a text, and of any number",
        ADDRESSES,
        _both(find({"zipCode": {"$type": "string"}}), find({"zipCode": {"$type": "number"}})),
        [[1, 5], [2, 3, 4]],
        f"{QUERY}/type",
    ),
    Case(
        "$type of one of two",
        ADDRESSES,
        find({"zipCode": {"$type": ["long", "double"]}}),
        [3, 4],
        f"{QUERY}/type",
    ),
    Case(
        "a dot that matches new lines, whatever the case",
        PRODUCTS,
        find({"description": {"$regex": "m.*line", "$options": "si"}}),
        [102, 103],
        f"{QUERY}/regex",
    ),
    Case(
        "$in with patterns of their own options",
        PRODUCTS,
        find({"sku": {"$in": [Regex("^ABC", "i"), Regex("789$")]}}),
        [100, 101, 103],
        f"{QUERY}/regex",
    ),
    Case(
        "$expr with a discount by the quantity",
        SUPPLIES,
        find({"$expr": {"$lt": [DISCOUNTED, 5]}}),
        [2, 3, 4],
        f"{QUERY}/expr",
    ),
    Case(
        "$nin takes what has no field, unless it must have one",
        TAGGED,
        _both(
            find({"quantity": {"$nin": [5, 15]}}),
            find({"quantity": {"$exists": True, "$nin": [5, 15]}}),
        ),
        [[1, 3], [1]],
        f"{QUERY}/nin",
    ),
    Case(
        "descendants by materialized paths",
        PATHS,
        _both(
            find({"path": Regex(",Programming,")}, sort=[("_id", 1)]),
            find({"path": Regex("^,Books,")}, sort=[("_id", 1)]),
        ),
        [
            ["Databases", "Languages", "MongoDB", "dbm"],
            ["Databases", "Languages", "MongoDB", "Programming", "dbm"],
        ],
        "manual: tutorial/model-tree-structures-with-materialized-paths",
    ),
    Case(
        "descendants by nested sets",
        NESTED_SETS,
        find({"left": {"$gt": 5}, "right": {"$lt": 10}}, sort=[("left", 1)]),
        ["MongoDB", "dbm"],
        "manual: tutorial/model-tree-structures-with-nested-sets",
    ),
    Case(
        "a comment changes no answer",
        TAGGED,
        find({"tags": "home", "$comment": "what is at home"}),
        [2, 4],
        f"{QUERY}/comment",
    ),
    Case(
        "points that a polygon intersects",
        [
            {"_id": 1, "at": {"type": "Point", "coordinates": [2, 2]}},
            {"_id": 2, "at": {"type": "Point", "coordinates": [9, 9]}},
            {"_id": 3, "at": {"type": "LineString", "coordinates": [[-1, 2], [4, 2]]}},
        ],
        find(
            {
                "at": {
                    "$geoIntersects": {
                        "$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [3, 6], [6, 1], [0, 0]]]}
                    }
                }
            }
        ),
        [1, 3],
        f"{QUERY}/geoIntersects",
    ),
    _no_filter("$and of a document", {"$and": {"a": 1}}),
    _no_filter("$in of a number", {"a": {"$in": 1}}),
    _no_filter("$options without $regex", {"a": {"$options": "i"}}),
    _no_filter("$type of no type", {"a": {"$type": "text"}}),
    _no_filter(
        "$expr of an operator that there is not",
        {"$expr": {"$larger": ["$a", 1]}},
        NO_OPERATOR,
        "server: src/mongo/db/pipeline/expression.cpp, parseExpression",
    ),
]


# Projections, sorts and text

STUDENTS = [
    {"_id": 1, "semester": 1, "grades": [70, 87, 90]},
    {"_id": 2, "semester": 1, "grades": [90, 88, 92]},
    {"_id": 3, "semester": 1, "grades": [85, 100, 90]},
    {"_id": 4, "semester": 2, "grades": [79, 85, 80]},
    {"_id": 5, "semester": 2, "grades": [88, 88, 92]},
    {"_id": 6, "semester": 2, "grades": [95, 90, 96]},
]
SCHOOLS = [
    {
        "_id": 1,
        "zipcode": "63109",
        "students": [
            {"name": "john", "school": 102, "age": 10},
            {"name": "jess", "school": 102, "age": 11},
            {"name": "jeff", "school": 108, "age": 15},
        ],
    },
    {
        "_id": 2,
        "zipcode": "63110",
        "students": [{"name": "ajax", "school": 100, "age": 7}, {"name": "achilles", "school": 100, "age": 8}],
    },
    {
        "_id": 3,
        "zipcode": "63109",
        "students": [{"name": "ajax", "school": 100, "age": 7}, {"name": "achilles", "school": 100, "age": 8}],
    },
    {
        "_id": 4,
        "zipcode": "63109",
        "students": [{"name": "barney", "school": 102, "age": 7}, {"name": "ruth", "school": 102, "age": 16}],
    },
]
FRUIT = [
    {"_id": 1, "item": "apple", "type": "honey crisp", "price": 1.99},
    {"_id": 2, "item": "apple", "type": "fuji", "price": 1.99},
    {"_id": 3, "item": "apple", "type": "jonagold", "price": 1.29},
    {"_id": 4, "item": "apple", "type": "jonathan", "price": 1.29},
    {"_id": 5, "item": "apple", "type": "mcintosh", "price": 1.29},
    {"_id": 6, "item": "apple", "type": "cortland", "price": 1.29},
    {"_id": 7, "item": "orange", "type": "cara cara", "price": 2.99},
    {"_id": 8, "item": "orange", "type": "valencia", "price": 0.99},
    {"_id": 9, "item": "orange", "type": "satsuma", "price": 1.99},
    {"_id": 10, "item": "orange", "type": "navel", "price": 1.39},
]
ARTICLES = [
    {"_id": 1, "subject": "coffee", "author": "xyz", "views": 50},
    {"_id": 2, "subject": "Coffee Shopping", "author": "efg", "views": 5},
    {"_id": 3, "subject": "Baking a cake", "author": "abc", "views": 90},
    {"_id": 4, "subject": "baking", "author": "xyz", "views": 100},
    {"_id": 5, "subject": "Café Con Leche", "author": "abc", "views": 200},
    {"_id": 6, "subject": "Сырники", "author": "jkl", "views": 80},
    {"_id": 7, "subject": "coffee and cream", "author": "efg", "views": 10},
    {"_id": 8, "subject": "Cafe con Leche", "author": "xyz", "views": 10},
]
BLOG = [
    {
        "_id": 1,
        "content": "This morning I had a cup of coffee.",
        "about": "beverage",
        "keywords": ["coffee"],
    },
    {
        "_id": 2,
        "content": "Who likes chocolate ice cream for dessert?",
        "about": "food",
        "keywords": ["poll"],
    },
    {
        "_id": 3,
        "content": "My favorite flavors are strawberry and coffee",
        "about": "ice cream",
        "keywords": ["food", "dessert"],
    },
]
DEPARTMENTS = [
    {"_id": 1, "dept": "tech", "description": "lime green computer"},
    {"_id": 2, "dept": "tech", "description": "wireless red mouse"},
    {"_id": 3, "dept": "kitchen", "description": "green placemat"},
    {"_id": 4, "dept": "kitchen", "description": "red peeler"},
    {"_id": 5, "dept": "food", "description": "green apple"},
    {"_id": 6, "dept": "food", "description": "red potato"},
]
TEXT_INDEX = "server: src/mongo/db/fts/fts_spec.cpp"


def _searched(name: str, expected: Any, **search: Any) -> Case:
    """The articles that a search finds."""
    terms = {f"${field}": value for field, value in search.items()}
    call = after(_index({"subject": "text"}), find({"$text": terms}, sort=[("_id", 1)]))
    return Case(name, ARTICLES, call, expected, f"{QUERY}/text")


def _scored(search: str) -> Call:
    """The blogs that a search finds, and their scores."""
    return after(
        _index(
            {"content": "text", "keywords": "text", "about": "text"},
            name="TextIndex",
            weights={"content": 10, "keywords": 5},
        ),
        _made_of(
            {"$match": {"$text": {"$search": search}}},
            {"$project": {"score": {"$meta": "textScore"}}},
            {"$sort": {"score": -1}},
        ),
    )


PROJECTIONS = [
    Case(
        "the first element that the filter found",
        STUDENTS,
        lambda collection: list(collection.find({"semester": 1, "grades": {"$gte": 85}}, {"grades.$": 1})),
        [{"_id": 1, "grades": [87]}, {"_id": 2, "grades": [90]}, {"_id": 3, "grades": [85]}],
        "manual: reference/operator/projection/positional",
    ),
    Case(
        "the first element by a condition of its own, or no field",
        SCHOOLS,
        lambda collection: list(
            collection.find({"zipcode": "63109"}, {"students": {"$elemMatch": {"school": 102, "age": {"$gt": 10}}}})
        ),
        [
            {"_id": 1, "students": [{"name": "jess", "school": 102, "age": 11}]},
            {"_id": 3},
            {"_id": 4, "students": [{"name": "ruth", "school": 102, "age": 16}]},
        ],
        "manual: reference/operator/projection/elemMatch",
    ),
    Case(
        "a field of each document in an array, and the last of them",
        STOCK,
        _both(
            project({"item": 1, "instock.qty": 1}),
            project({"_id": 0, "instock": {"$slice": -1}}),
        ),
        [
            {"_id": 1, "item": "journal", "instock": [{"qty": 5}, {"qty": 15}]},
            {"item": "journal", "instock": [{"warehouse": "C", "qty": 15}]},
        ],
        "manual: tutorial/project-fields-from-query-results",
    ),
    Case(
        "a path above one that is projected",
        INVENTORY,
        _refusal(_found(projection={"size.uom": 1, "size": 1})),
        _location(31250),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "from a lower bound of an index on",
        FRUIT,
        after(
            _index({"item": 1, "type": 1}),
            _found(min={"item": "apple", "type": "jonagold"}, hint={"item": 1, "type": 1}),
        ),
        [3, 4, 5, 7, 10, 9, 8],
        "manual: reference/method/cursor.min",
    ),
    Case(
        "up to an upper bound of an index, that is exclusive",
        FRUIT,
        after(_index({"price": 1}), _found(min={"price": 1.39}, max={"price": 1.99}, hint={"price": 1})),
        [10],
        "manual: reference/method/cursor.max",
    ),
    Case(
        "a lower bound without a hint",
        FRUIT,
        after(
            _index({"price": 1}),
            _of(_refusal(_found(min={"price": 1.39})), lambda refusal: refusal[0] in (291, 51173)),
        ),
        True,
        "manual: reference/method/cursor.min",
    ),
    _searched("any of several words, by their stems", [1, 2, 3, 4, 7], search="bake coffee cake"),
    _searched("a phrase", [2], search='"coffee shop"'),
    _searched("a text in Spanish", [5, 8], search="leche", language="es"),
    _searched("a text in its case", [2], search="Coffee", caseSensitive=True),
    _searched("a text with its accents", [5], search="CAFÉ", diacriticSensitive=True),
    _searched("a text without its accents, and in another alphabet", [5, 6, 8], search="сы́рники CAFÉS"),
    Case(
        "scores by weights of fields",
        BLOG,
        _both(_scored("ice cream"), _scored("food")),
        [[{"_id": 2, "score": 12}, {"_id": 3, "score": 1.5}], [{"_id": 3, "score": 5.5}, {"_id": 2, "score": 1.1}]],
        "manual: tutorial/control-results-of-text-search",
    ),
    Case(
        "a text within a department",
        DEPARTMENTS,
        after(
            _index({"dept": 1, "description": "text"}),
            find({"dept": "kitchen", "$text": {"$search": "green"}}),
        ),
        [3],
        "manual: tutorial/limit-number-of-items-scanned-for-text-search",
    ),
    Case(
        "a text without the department that its index begins with",
        DEPARTMENTS,
        after(_index({"dept": 1, "description": "text"}), _refusal(_found(filter={"$text": {"$search": "green"}}))),
        [291, "NoQueryExecutionPlans"],
        "server: src/mongo/db/query/query_planner.cpp",
    ),
    Case(
        "a text after another stage",
        ARTICLES,
        after(
            _index({"subject": "text"}),
            _refusal(_piped({"$limit": 5}, {"$match": {"$text": {"$search": "coffee"}}})),
        ),
        _location(17313),
        "manual: tutorial/text-search-in-aggregation",
    ),
]


# Updates

RATED = {
    "_id": 100,
    "quantity": 250,
    "instock": True,
    "reorder": False,
    "details": {"model": "14QQ", "make": "Clothes Corp"},
    "tags": ["apparel", "clothing"],
    "ratings": [{"by": "Customer007", "rating": 4}],
}
GRADED = [
    {
        "_id": 1,
        "grades": [
            {"type": "quiz", "questions": [10, 8, 5]},
            {"type": "quiz", "questions": [8, 9, 6]},
            {"type": "hw", "questions": [5, 4, 3]},
            {"type": "exam", "questions": [25, 10, 23, 0]},
        ],
    }
]
ANSWERED = [
    {
        "_id": 1,
        "results": [
            {"item": "A", "score": 5, "answers": [{"q": 1, "a": 4}, {"q": 2, "a": 6}]},
            {"item": "B", "score": 8, "answers": [{"q": 1, "a": 8}, {"q": 2, "a": 9}]},
        ],
    },
    {
        "_id": 2,
        "results": [
            {"item": "C", "score": 8, "answers": [{"q": 1, "a": 8}, {"q": 2, "a": 7}]},
            {"item": "B", "score": 4, "answers": [{"q": 1, "a": 0}, {"q": 2, "a": 8}]},
        ],
    },
]
LETTER = {
    "$switch": {
        "branches": [
            {"case": {"$gte": ["$average", 90]}, "then": "A"},
            {"case": {"$gte": ["$average", 80]}, "then": "B"},
            {"case": {"$gte": ["$average", 70]}, "then": "C"},
            {"case": {"$gte": ["$average", 60]}, "then": "D"},
        ],
        "default": "F",
    }
}


def _no_update(name: str, change: Any, expected: int, source: str, **fields: Any) -> Case:
    return Case(name, ONE, _update_code({}, change, **fields), expected, f"server: {source}")


UPDATES = [
    Case(
        "$set of a path, of an element and of an element's field",
        [RATED],
        update({"_id": 100}, {"$set": {"details.make": "Kustom Kidz", "tags.1": "rain gear", "ratings.0.rating": 2}}),
        {
            "_id": 100,
            "quantity": 250,
            "instock": True,
            "reorder": False,
            "details": {"model": "14QQ", "make": "Kustom Kidz"},
            "tags": ["apparel", "rain gear"],
            "ratings": [{"by": "Customer007", "rating": 2}],
        },
        f"{UPDATE}/set",
    ),
    Case(
        "$inc below and above zero",
        [{"_id": 1, "sku": "abc123", "quantity": 10, "metrics": {"orders": 2, "ratings": 3.5}}],
        update({"sku": "abc123"}, {"$inc": {"quantity": -2, "metrics.orders": 1}}),
        {"_id": 1, "sku": "abc123", "quantity": 8, "metrics": {"orders": 3, "ratings": 3.5}},
        f"{UPDATE}/inc",
    ),
    Case(
        "$rename within a document",
        [{"_id": 1, "nickname": ["The Man"], "name": {"first": "george", "last": "washington"}}],
        _of(
            update({"_id": 1}, {"$rename": {"nickname": "alias", "name.first": "name.fname"}}),
            lambda found: [sorted(found), sorted(found["name"].items()), found["alias"]],
        ),
        [["_id", "alias", "name"], [("fname", "george"), ("last", "washington")], ["The Man"]],
        f"{UPDATE}/rename",
    ),
    Case(
        "$addToSet of an array is one element",
        [{"_id": 1, "letters": ["a", "b"]}],
        update({"_id": 1}, {"$addToSet": {"letters": ["c", "d"]}}),
        {"_id": 1, "letters": ["a", "b", ["c", "d"]]},
        f"{UPDATE}/addToSet",
    ),
    Case(
        "$pull by a condition on an array within",
        ANSWERED,
        _changed(
            {},
            {"$pull": {"results": {"answers": {"$elemMatch": {"q": 2, "a": {"$gte": 8}}}}}},
            multi=True,
        ),
        [
            {"_id": 1, "results": [{"item": "A", "score": 5, "answers": [{"q": 1, "a": 4}, {"q": 2, "a": 6}]}]},
            {"_id": 2, "results": [{"item": "C", "score": 8, "answers": [{"q": 1, "a": 8}, {"q": 2, "a": 7}]}]},
        ],
        f"{UPDATE}/pull",
    ),
    Case(
        "$push of nothing sorts what is there",
        [{"_id": 3, "tests": [89, 70, 100, 20]}],
        update({"_id": 3}, {"$push": {"tests": {"$each": [], "$sort": -1}}}),
        {"_id": 3, "tests": [100, 89, 70, 20]},
        f"{UPDATE}/sort",
    ),
    Case(
        "all elements are raised by $[]",
        [{"_id": 1, "grades": [85, 82, 80]}, {"_id": 2, "grades": [88, 90, 92]}],
        _changed({}, {"$inc": {"grades.$[]": 10}}, multi=True),
        [{"_id": 1, "grades": [95, 92, 90]}, {"_id": 2, "grades": [98, 100, 102]}],
        f"{UPDATE}/positional-all",
    ),
    Case(
        "elements of elements by two filters",
        GRADED,
        _changed(
            {},
            {"$inc": {"grades.$[t].questions.$[score]": 2}},
            arrayFilters=[{"t.type": "quiz"}, {"score": {"$gte": 8}}],
            multi=True,
        ),
        [
            {
                "_id": 1,
                "grades": [
                    {"type": "quiz", "questions": [12, 10, 5]},
                    {"type": "quiz", "questions": [10, 11, 6]},
                    {"type": "hw", "questions": [5, 4, 3]},
                    {"type": "exam", "questions": [25, 10, 23, 0]},
                ],
            }
        ],
        f"{UPDATE}/positional-filtered",
    ),
    Case(
        "an upsert of an exact array, with a filter of its elements",
        [],
        after(
            _changed(
                {"myArray": [0, 1]},
                {"$set": {"myArray.$[element]": 2}},
                arrayFilters=[{"element": 0}],
                upsert=True,
            ),
            lambda collection: collection.find_one({}, {"_id": 0}),
        ),
        {"myArray": [2, 1]},
        f"{UPDATE}/positional-filtered",
    ),
    Case(
        "an upsert without the array whose elements are filtered",
        [],
        _update_code({}, {"$set": {"myArray.$[element]": 10}}, arrayFilters=[{"element": 9}], upsert=True),
        2,
        f"{UPDATE}/positional-filtered",
    ),
    Case(
        "$set of nothing is no error, and no change",
        ONE,
        command("update", of=lambda reply: [reply["n"], reply["nModified"]], updates=[{"q": {}, "u": {"$set": {}}}]),
        [1, 0],
        f"{UPDATE}/set",
    ),
    Case(
        "averages and grades by a pipeline",
        [
            {"_id": 1, "tests": [95, 92, 90]},
            {"_id": 2, "tests": [94, 88, 90]},
            {"_id": 3, "tests": [70, 75, 82]},
        ],
        _of(
            _changed(
                {},
                [{"$set": {"average": {"$trunc": [{"$avg": "$tests"}, 0]}}}, {"$set": {"grade": LETTER}}],
                multi=True,
            ),
            _plain,
        ),
        [
            {"_id": 1, "tests": [95, 92, 90], "average": 92, "grade": "A"},
            {"_id": 2, "tests": [94, 88, 90], "average": 90, "grade": "A"},
            {"_id": 3, "tests": [70, 75, 82], "average": 75, "grade": "C"},
        ],
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    Case(
        "defaults of missing fields by a pipeline come first",
        [{"_id": 1, "quiz1": 8, "test2": 100, "quiz2": 9}],
        update(
            {},
            [
                {
                    "$replaceRoot": {
                        "newRoot": {"$mergeObjects": [{"quiz1": 0, "quiz2": 0, "test1": 0, "test2": 0}, "$$ROOT"]}
                    }
                }
            ],
        ),
        {"_id": 1, "quiz1": 8, "quiz2": 9, "test1": 0, "test2": 100},
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    Case(
        "the position of an element that the filter did not ask for",
        [{"_id": 1, "grades": [85, 80]}],
        _update_code({"_id": 1}, {"$set": {"grades.$": 82}}),
        2,
        "server: src/mongo/db/update/update_object_node.cpp",
    ),
    _no_update(
        "an element without its filter", {"$set": {"a.$[i]": 0}}, 2, "src/mongo/db/update/update_object_node.cpp"
    ),
    _no_update("$inc by a text", {"$inc": {"a": "1"}}, 14, "src/mongo/db/update/arithmetic_node.cpp"),
    _no_update(
        "$set of a path and of a path within it",
        {"$set": {"b": 1, "b.c": 2}},
        40,
        "src/mongo/db/update/update_object_node.cpp",
    ),
    _no_update(
        "$set of a path with an empty name", {"$set": {"b..c": 1}}, 56, "src/mongo/db/update/update_object_node.cpp"
    ),
    _no_update("operators beside a field", {"$set": {"b": 1}, "c": 2}, 9, "src/mongo/db/update/update_driver.cpp"),
    _no_update("$pop of two", {"$pop": {"b": 2}}, 9, "src/mongo/db/update/pop_node.cpp"),
    _no_update("a pipeline with $match", [{"$match": {"a": 1}}], 72, "src/mongo/db/update/pipeline_executor.cpp"),
]


# Inserts, bulks, deletes, find and modify

GRADES = [
    {"_id": 6305, "name": "A. MacDyver", "assignment": 5, "points": 24},
    {"_id": 6308, "name": "B. Batlock", "assignment": 3, "points": 22},
    {"_id": 6312, "name": "M. Tagnum", "assignment": 5, "points": 30},
    {"_id": 6319, "name": "R. Stiles", "assignment": 2, "points": 12},
    {"_id": 6322, "name": "A. MacDyver", "assignment": 2, "points": 14},
    {"_id": 6334, "name": "R. Stiles", "assignment": 1, "points": 10},
]
TEAMS = [
    {"_id": 1521, "team": "Fearful Mallards", "score": 25000},
    {"_id": 2231, "team": "Tactful Mooses", "score": 23500},
    {"_id": 4511, "team": "Aquatic Ponies", "score": 19250},
    {"_id": 5331, "team": "Cuddly Zebras", "score": 15235},
    {"_id": 3412, "team": "Garrulous Bears", "score": 22300},
]
PIZZAS = [
    {"_id": 0, "type": "pepperoni", "size": "small", "price": 4},
    {"_id": 1, "type": "cheese", "size": "medium", "price": 7},
    {"_id": 2, "type": "vegan", "size": "large", "price": 8},
]
CAFES = [
    {"_id": 1, "category": "café", "status": "A"},
    {"_id": 2, "category": "cafe", "status": "a"},
    {"_id": 3, "category": "cafE", "status": "a"},
]
CAKE_FLAVORS = [
    {"_id": 1, "flavor": "chocolate"},
    {"_id": 2, "flavor": "strawberry"},
    {"_id": 3, "flavor": "cherry"},
]


def _pizzas(collection: Any) -> Any:
    made_of = collection.bulk_write(
        [
            InsertOne({"_id": 3, "type": "beef", "size": "medium", "price": 6}),
            InsertOne({"_id": 4, "type": "sausage", "size": "large", "price": 10}),
            UpdateOne({"type": "cheese"}, {"$set": {"price": 8}}),
            DeleteOne({"type": "pepperoni"}),
            ReplaceOne({"type": "vegan"}, {"type": "tofu", "size": "small", "price": 4}),
        ]
    )
    counts = [made_of.inserted_count, made_of.matched_count, made_of.modified_count, made_of.deleted_count]
    return [counts, _ids(stored(collection)), collection.find_one({"_id": 2})]


def _grown(collection: Any) -> Any:
    """Whether a document may not grow beyond sixteen megabytes; the code differs by version."""
    large = "x" * (9 << 20)
    collection.update_one({}, {"$set": {"b": large}})
    return _update_code({}, {"$set": {"c": large}})(collection) in (10334, 17419)


def _concern(concern: Any) -> Call:
    """The code of the error of a write concern."""

    def run(collection: Any) -> Any:
        fields = {"insert": collection.name, "documents": [{"_id": 2}], "writeConcern": concern}
        try:
            return collection.database.command(fields)["writeConcernError"]["code"]
        except OperationFailure as error:
            return error.code

    return run


def _nested(depth: int) -> Any:
    document: Any = {}
    for _ in range(depth):
        document = {"a": document}
    return document


WRITES = [
    Case(
        "all of a status are deleted, and the first of another",
        INVENTORY,
        _both(
            lambda collection: collection.delete_many({"status": "A"}).deleted_count,
            lambda collection: collection.delete_one({"status": "D"}).deleted_count,
            find({}),
        ),
        [3, 1, [4]],
        "manual: tutorial/remove-documents",
    ),
    Case(
        "a replaced document has its new fields alone",
        INVENTORY,
        after(
            lambda collection: collection.replace_one(
                {"item": "paper"},
                {"item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 40}]},
            ),
            lambda collection: collection.find_one({"item": "paper"}),
        ),
        {"_id": 3, "item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 40}]},
        "manual: tutorial/update-documents",
    ),
    Case(
        "many are updated by what their documents have",
        INVENTORY,
        after(
            lambda collection: collection.update_many(
                {"qty": {"$lt": 50}}, {"$set": {"size.uom": "in", "status": "P"}, "$currentDate": {"at": True}}
            ),
            find({"size.uom": "in", "status": "P", "at": {"$type": "date"}}),
        ),
        [1, 5],
        "manual: tutorial/update-documents",
    ),
    Case(
        "the one with the fewest points is updated, and shown as it was",
        GRADES,
        command(
            "findAndModify",
            of=lambda reply: reply["value"],
            query={"name": "A. MacDyver"},
            update={"$inc": {"points": 5}},
            sort={"points": 1},
            fields={"assignment": 1, "points": 1},
        ),
        {"_id": 6322, "assignment": 2, "points": 14},
        "manual: reference/method/db.collection.findOneAndUpdate",
    ),
    Case(
        "the one with the lowest score is replaced, and its name shown",
        TEAMS,
        _both(
            command(
                "findAndModify",
                of=lambda reply: reply["value"],
                query={"score": {"$lt": 22250}},
                update={"team": "Therapeutic Hamsters", "score": 22250},
                sort={"score": 1},
                fields={"_id": 0, "team": 1},
            ),
            lambda collection: collection.find_one({"_id": 5331}),
        ),
        [{"team": "Cuddly Zebras"}, {"_id": 5331, "team": "Therapeutic Hamsters", "score": 22250}],
        "manual: reference/method/db.collection.findOneAndReplace",
    ),
    Case(
        "a bulk of pizzas",
        PIZZAS,
        _pizzas,
        [[2, 2, 2, 1], [1, 2, 3, 4], {"_id": 2, "type": "tofu", "size": "small", "price": 4}],
        "manual: reference/method/db.collection.bulkWrite",
    ),
    Case(
        "an upsert takes its _id from $set",
        [],
        _both(
            command(
                "update",
                of=lambda reply: [reply["n"], reply["nModified"], reply["upserted"]],
                updates=[
                    {
                        "q": {"name": "Pizza Rat's Pizzaria"},
                        "u": {"$set": {"_id": 4, "violations": 7, "borough": "Manhattan"}},
                        "upsert": True,
                    }
                ],
            ),
            find({"name": "Pizza Rat's Pizzaria", "violations": 7}),
        ),
        [[1, 0, [{"index": 0, "_id": 4}]], [4]],
        "manual: reference/method/db.collection.updateOne",
    ),
    Case(
        "an update of what differs by case and accents",
        CAFES,
        command(
            "update",
            of=lambda reply: [reply["n"], reply["nModified"]],
            updates=[
                {
                    "q": {"category": "cafe", "status": "a"},
                    "u": {"$set": {"status": "Updated"}},
                    "multi": True,
                    "collation": {"locale": "fr", "strength": 1},
                }
            ],
        ),
        [3, 3],
        "manual: reference/method/db.collection.updateMany",
    ),
    Case(
        "a delete of what differs by case and accents",
        CAFES,
        command(
            "delete",
            of=lambda reply: reply["n"],
            deletes=[
                {
                    "q": {"category": "cafe", "status": "a"},
                    "limit": 0,
                    "collation": {"locale": "fr", "strength": 1},
                }
            ],
        ),
        3,
        "manual: reference/command/delete",
    ),
    Case(
        "an update with variables of the command",
        CAKE_FLAVORS,
        after(
            command(
                "update",
                updates=[
                    {
                        "q": {"$expr": {"$eq": ["$flavor", "$$targetFlavor"]}},
                        "u": [{"$set": {"flavor": "$$newFlavor"}}],
                    }
                ],
                let={"targetFlavor": "cherry", "newFlavor": "orange"},
            ),
            stored,
        ),
        [
            {"_id": 1, "flavor": "chocolate"},
            {"_id": 2, "flavor": "strawberry"},
            {"_id": 3, "flavor": "orange"},
        ],
        "manual: reference/command/update",
    ),
    Case(
        "a delete with a variable of the command",
        CAKE_FLAVORS,
        after(
            command(
                "delete",
                deletes=[{"q": {"$expr": {"$eq": ["$flavor", "$$targetFlavor"]}}, "limit": 1}],
                let={"targetFlavor": "strawberry"},
            ),
            find({}),
        ),
        [1, 3],
        "manual: reference/command/delete",
    ),
    Case(
        "an _id that is a pattern",
        [],
        _write_code("insert", documents=[{"_id": Regex("a")}]),
        2,
        "server: src/mongo/db/ops/insert.cpp",
    ),
    Case(
        "a document that is too deep",
        [],
        _write_code("insert", documents=[{"_id": 1, **_nested(189)}]),
        15,
        "server: src/mongo/db/ops/insert.cpp",
    ),
    Case("a document that grows too large", ONE, _grown, True, "server: src/mongo/db/exec/update_stage.cpp"),
    Case(
        "a delete of two",
        ONE,
        _refusal(command("delete", deletes=[{"q": {}, "limit": 2}])),
        UNPARSED,
        "server: src/mongo/db/ops/write_ops.cpp, readMultiDeleteProperty",
    ),
    Case(
        "a delete without a limit",
        ONE,
        _refusal(command("delete", deletes=[{"q": {}}])),
        MISSING_FIELD,
        "manual: reference/command/delete",
    ),
    Case(
        "findAndModify of nothing to do",
        ONE,
        _refusal(command("findAndModify", query={})),
        UNPARSED,
        "manual: reference/command/findAndModify",
    ),
    Case(
        "bulkWrite with a namespace that is not given",
        ONE,
        _refusal(
            _admin(
                bulkWrite=1,
                ops=[{"insert": 1, "document": {"_id": 2}}],
                nsInfo=[{"ns": "cases.cases"}],
            )
        ),
        BAD_VALUE,
        "server: src/mongo/db/commands/bulk_write_common.cpp",
    ),
    Case(
        "a write concern of more members than there may be",
        ONE,
        _refusal(command("insert", documents=[{"_id": 2}], writeConcern={"w": 51})),
        UNPARSED,
        "server: src/mongo/db/write_concern_options.cpp",
    ),
    Case(
        "a write concern of more members than there are, and the document that is written",
        ONE,
        _both(
            _concern({"w": 50, "wtimeout": 1000}),
            find({}),
        ),
        [100, [1, 2]],
        "manual: reference/write-concern",
    ),
    Case(
        "a write concern that the replica set does not know",
        ONE,
        _concern({"w": "noSuchMode", "wtimeout": 1000}),
        79,
        "server: src/mongo/base/error_codes.yml, UnknownReplWriteConcern",
    ),
]


# Indexes

LOCATED = [{"_id": 1, "a": [{"loc": "A", "qty": 5}, {"qty": 10}]}]
SCORED = [
    {"_id": 1, "userid": "newbie"},
    {"_id": 2, "userid": "abby", "score": 82},
    {"_id": 3, "userid": "nina", "score": 90},
]


def _steps(**fields: Any) -> Call:
    """The stages of the plan by which a find is answered."""

    def names(plan: Any) -> list[Any]:
        if isinstance(plan, list):
            return [name for each in plan for name in names(each)]
        if not isinstance(plan, dict):
            return []
        own = [plan["stage"]] if isinstance(plan.get("stage"), str) else []
        return own + [name for each in plan.values() for name in names(each)]

    def run(collection: Any) -> Any:
        found = {"find": collection.name, **fields}
        reply = collection.database.command({"explain": found, "verbosity": "queryPlanner"})
        return names(reply["queryPlanner"]["winningPlan"])

    return run


def _scans(**fields: Any) -> Call:
    return _of(_steps(**fields), lambda names: "IXSCAN" in names)


def _sorts(**fields: Any) -> Call:
    return _of(_steps(**fields), lambda names: "SORT" in names)


def _no_index(name: str, key: Any, expected: Any = tuple(NOT_CREATED), source: str = KEYS, **options: Any) -> Case:
    return Case(name, ONE, _not_indexed(key, **options), list(expected), source)


INDEXES = [
    Case(
        "a sort by a sparse index leaves out documents only if it is hinted",
        SCORED,
        after(
            _index({"score": 1}, sparse=True),
            _both(_found(sort={"score": -1}), _found(sort={"score": -1}, hint={"score": 1})),
        ),
        [[3, 2, 1], [3, 2]],
        "manual: core/index-sparse",
    ),
    Case(
        "a hidden index is not used until it is shown",
        SCORED,
        after(
            _index({"score": 1}, hidden=True),
            _both(
                _scans(filter={"score": 82}),
                after(
                    command("collMod", index={"keyPattern": {"score": 1}, "hidden": False}),
                    _scans(filter={"score": 82}),
                ),
            ),
        ),
        [False, True],
        "manual: core/index-hidden",
    ),
    Case(
        "a sort by the rest of an index is not done in memory",
        FRUIT,
        after(
            _index({"item": 1, "price": 1}),
            _both(
                _sorts(filter={"item": "apple"}, sort={"price": 1}),
                _sorts(filter={"item": "apple"}, sort={"type": 1}),
            ),
        ),
        [False, True],
        "manual: tutorial/sort-results-with-indexes",
    ),
    Case(
        "an index gives its order and the reverse, and no other",
        FRUIT,
        after(
            _index({"item": 1, "price": -1}),
            _both(
                _sorts(sort={"item": 1, "price": -1}),
                _sorts(sort={"item": -1, "price": 1}),
                _sorts(sort={"item": 1, "price": 1}),
            ),
        ),
        [False, False, True],
        "manual: core/indexes/index-types/index-compound/sort-order",
    ),
    Case(
        "a unique index of two fields in an array",
        LOCATED,
        after(
            _index({"a.loc": 1, "a.qty": 1}, unique=True),
            _insert({"_id": 2, "a": [{"loc": "A"}, {"qty": 5}]}),
            _insert({"_id": 3, "a": [{"loc": "A", "qty": 10}]}),
            _both(_write_code("insert", documents=[{"_id": 4, "a": [{"loc": "A", "qty": 5}]}]), find({})),
        ),
        [11000, [1, 2, 3]],
        "manual: core/index-unique",
    ),
    Case(
        "an index is dropped by its key",
        ONE,
        after(_index({"a": 1}), command("dropIndexes", of=lambda reply: reply["nIndexesWas"], index={"a": 1})),
        2,
        "manual: reference/command/dropIndexes",
    ),
    Case(
        "of two indexes to drop one is not there, and the other stays",
        ONE,
        after(
            _index({"a": 1}),
            _both(
                _refusal(command("dropIndexes", index=["a_1", "b_1"])),
                _of(_batch("listIndexes"), lambda found: [each["name"] for each in found]),
            ),
        ),
        [NO_INDEX, ["_id_", "a_1"]],
        "manual: reference/command/dropIndexes",
    ),
    _no_index("an index in direction zero", {"a": 0}),
    _no_index("weights without a text", {"a": 1}, weights={"a": 2}),
    _no_index("a language that there is not", {"a": "text"}, default_language="klingon", source=TEXT_INDEX),
    _no_index("a unique hashed index", {"a": "hashed"}, _location(16764), unique=True),
    _no_index("an index of _id that is sparse", {"_id": 1}, [197, "InvalidIndexSpecificationOption"], sparse=True),
    _no_index(
        "a partial index by an expression",
        {"a": 1},
        NOT_ALLOWED,
        partialFilterExpression={"$expr": {"$gt": ["$a", 1]}},
    ),
    Case(
        "an index without a name",
        ONE,
        _refusal(command("createIndexes", indexes=[{"key": {"a": 1}}])),
        UNPARSED,
        KEYS,
    ),
    Case(
        "a document in a language that a text index does not know",
        [],
        after(
            _index({"title": "text"}),
            _write_code("insert", documents=[{"_id": 1, "title": "nuqneH", "language": "klingon"}]),
        ),
        17262,
        TEXT_INDEX,
    ),
    Case(
        "a place beyond the bounds of a flat index",
        [],
        after(_index({"at": "2d"}), _write_code("insert", documents=[{"_id": 1, "at": [200, 0]}])),
        13027,
        "manual: core/indexes/index-types/geospatial/2d",
    ),
]


# Collections, views, time series

FRESHMEN = [
    {"_id": 1, "sID": 22001, "name": "Alex", "year": 1, "score": 4.0},
    {"_id": 2, "sID": 21001, "name": "bernie", "year": 2, "score": 3.7},
    {"_id": 3, "sID": 20010, "name": "Chris", "year": 3, "score": 2.5},
    {"_id": 4, "sID": 22021, "name": "Drew", "year": 1, "score": 3.2},
    {"_id": 5, "sID": 17301, "name": "harley", "year": 6, "score": 3.1},
    {"_id": 6, "sID": 21022, "name": "Farmer", "year": 1, "score": 2.2},
]
ORDERED = [
    {"orderId": 201, "custid": 301, "prodId": 100, "numPurchased": 20},
    {"orderId": 202, "custid": 302, "prodId": 101, "numPurchased": 10},
    {"orderId": 203, "custid": 303, "prodId": 102, "numPurchased": 5},
    {"orderId": 204, "custid": 303, "prodId": 103, "numPurchased": 15},
    {"orderId": 205, "custid": 303, "prodId": 103, "numPurchased": 20},
    {"orderId": 206, "custid": 302, "prodId": 102, "numPurchased": 1},
    {"orderId": 207, "custid": 302, "prodId": 101, "numPurchased": 5},
    {"orderId": 208, "custid": 301, "prodId": 100, "numPurchased": 10},
    {"orderId": 209, "custid": 303, "prodId": 103, "numPurchased": 30},
]
PRICED = [
    {"prodId": 100, "price": 20, "quantity": 125},
    {"prodId": 101, "price": 10, "quantity": 234},
    {"prodId": 102, "price": 15, "quantity": 432},
    {"prodId": 103, "price": 17, "quantity": 320},
]
SENSOR = {"sensorId": 5578, "type": "temperature"}
WEATHER = [
    {"metadata": SENSOR, "timestamp": datetime(2021, 5, 18 + day, hour), "temp": temp}
    for day, temps in enumerate([[12, 11, 11, 12, 16, 15], [13, 12, 11, 12, 17, 12]])
    for hour, temp in zip(range(0, 24, 4), temps, strict=True)
]
SERIES = {"timeField": "timestamp", "metaField": "metadata", "granularity": "hours"}


def _sales(collection: Any) -> Any:
    """What a view of orders and prices says of each product."""
    database = collection.database
    database.drop_collection("sales")
    database.command(
        {
            "create": "sales",
            "viewOn": collection.name,
            "pipeline": [
                {
                    "$lookup": {
                        "from": "others",
                        "localField": "prodId",
                        "foreignField": "prodId",
                        "as": "inventoryDocs",
                    }
                },
                {"$project": {"_id": 0, "prodId": 1, "orderId": 1, "price": "$inventoryDocs.price", "numPurchased": 1}},
                {"$unwind": "$price"},
            ],
        }
    )
    try:
        return _made_of(
            {"$group": {"_id": "$prodId", "amountSold": {"$sum": {"$multiply": ["$price", "$numPurchased"]}}}},
            {"$sort": {"_id": 1}},
        )(database.sales)
    finally:
        database.drop_collection("sales")


def _options(name: str) -> Call:
    """The options with which a collection is listed."""
    return _database(
        listCollections=1,
        filter={"name": name},
        of=lambda reply: dict(sorted(_plain(reply["cursor"]["firstBatch"][0]["options"]).items())),
    )


def _dropped(collection: Any) -> Any:
    """A database that is dropped, and dropped again."""
    database = collection.database.client[f"{collection.database.name}_2"]
    database.cases.insert_one({"_id": 1})
    replies = [database.command({"dropDatabase": 1}) for _ in range(2)]
    return [reply.get("dropped") == database.name for reply in replies]


def _system(collection: Any) -> Any:
    return _write_code("insert", documents=[{"_id": 1}])(collection.database["system.nothing"])


COLLECTIONS = [
    Case(
        "a view of the first year",
        FRESHMEN,
        after(
            _view({"$match": {"year": 1}}),
            lambda collection: list(collection.database.others.find({}, {"_id": 0, "name": 1})),
        ),
        [{"name": "Alex"}, {"name": "Drew"}, {"name": "Farmer"}],
        "manual: core/views/create-view",
    ),
    Case(
        "a view that joins two collections",
        ORDERED,
        _sales,
        [
            {"_id": 100, "amountSold": 600},
            {"_id": 101, "amountSold": 150},
            {"_id": 102, "amountSold": 90},
            {"_id": 103, "amountSold": 1105},
        ],
        "manual: core/views/join-collections-with-view",
        others=PRICED,
    ),
    Case(
        "a delete from a view",
        ONE,
        after(_view(), _other(_write_code("delete", deletes=[{"q": {}, "limit": 0}]))),
        166,
        "manual: core/views",
    ),
    Case(
        "a view that has no pipeline",
        ONE,
        after(
            lambda collection: collection.database.command({"create": "others", "viewOn": collection.name}),
            _other(stored),
        ),
        ONE,
        "manual: reference/command/create",
    ),
    Case(
        "a capped collection is listed with its size and its number of documents",
        [],
        after(_create(capped=True, size=5242880, max=5000), _options("cases")),
        {"capped": True, "max": 5000, "size": 5242880},
        "manual: core/capped-collections",
    ),
    Case(
        "a collection is copied into a capped one",
        ONE,
        after(
            command("cloneCollectionAsCapped", toCollection="others", size=100096),
            _both(_of(_options("others"), lambda options: options["capped"]), _other(find({}))),
        ),
        [True, [1]],
        "manual: reference/command/cloneCollectionAsCapped",
    ),
    Case(
        "a copy into a collection that is there",
        ONE,
        _refusal(command("cloneCollectionAsCapped", toCollection="others", size=100096)),
        [48, "NamespaceExists"],
        "server: src/mongo/db/commands/collection_to_capped.cpp",
        others=ONE,
    ),
    Case(
        "a collection is renamed by a command of admin alone",
        ONE,
        _refusal(_database(renameCollection="cases.cases", to="cases.others")),
        UNAUTHORIZED,
        "manual: reference/command/renameCollection",
    ),
    Case(
        "a name that begins with a dot",
        [],
        _refusal(_database(create=".cases")),
        NO_NAME,
        "manual: reference/limits",
    ),
    Case("an insert into a collection of the system", [], _system, 73, "manual: reference/system-collections"),
    Case("a database that is dropped is told", [], _dropped, [True, False], "manual: reference/command/dropDatabase"),
    Case(
        "measurements by their days",
        [],
        after(
            made(timeseries=SERIES),
            lambda collection: collection.insert_many([dict(each) for each in WEATHER]),
            _made_of(
                {
                    "$group": {
                        "_id": {"$dateToString": {"format": "%Y-%m-%d", "date": "$timestamp"}},
                        "avgTmp": {"$avg": "$temp"},
                        "most": {"$max": "$temp"},
                        "n": {"$sum": 1},
                    }
                },
                {"$sort": {"_id": 1}},
            ),
        ),
        [
            {"_id": "2021-05-18", "avgTmp": 12.833333, "most": 16, "n": 6},
            {"_id": "2021-05-19", "avgTmp": 12.833333, "most": 17, "n": 6},
        ],
        "manual: core/timeseries/timeseries-procedures",
    ),
    Case(
        "an update of one measurement",
        [],
        after(
            made(timeseries=SERIES),
            _insert(WEATHER[0]),
            _update_code({"metadata.sensorId": 5578}, {"$set": {"metadata.sensorId": 5579}}),
        ),
        72,
        "manual: core/timeseries/timeseries-limitations",
    ),
    Case(
        "a time series becomes coarser, and never finer",
        [],
        after(
            made(timeseries={**SERIES, "granularity": "seconds"}),
            _both(
                command("collMod", timeseries={"granularity": "minutes"}),
                _refusal(command("collMod", timeseries={"granularity": "seconds"})),
            ),
        ),
        [1.0, OPTIONS],
        "manual: core/timeseries/timeseries-granularity",
    ),
]


# Validators

STUDENT_SCHEMA = {
    "bsonType": "object",
    "title": "Student Object Validation",
    "required": ["address", "major", "name", "year"],
    "properties": {
        "name": {"bsonType": "string", "description": "'name' must be a string and is required"},
        "year": {
            "bsonType": "int",
            "minimum": 2017,
            "maximum": 3017,
            "description": "'year' must be an integer in [ 2017, 3017 ] and is required",
        },
        "gpa": {"bsonType": ["double"], "description": "'gpa' must be a double if the field exists"},
    },
}
ALICE = {"_id": 1, "name": "Alice", "year": 2019, "major": "History", "gpa": 3, "address": {"city": "NYC"}}
STOCKED = [
    {"_id": 1, "item": "journal", "qty": 25, "size": {"h": 14, "w": 21, "uom": "cm"}, "instock": True},
    {"_id": 2, "item": "notebook", "qty": 50, "size": {"h": 8.5, "w": 11, "uom": "in"}, "instock": True},
    {"_id": 3, "item": "paper", "qty": 100, "size": {"h": 8.5, "w": 11, "uom": "in"}, "instock": 1},
    {"_id": 4, "item": "planner", "qty": 75, "size": {"h": 22.85, "w": 30, "uom": "cm"}, "instock": 1},
    {"_id": 5, "item": "postcard", "qty": 45, "size": {"h": 10, "w": 15.25, "uom": "cm"}, "instock": True},
    {"_id": 6, "item": "apple", "qty": 45, "status": "A", "instock": True},
    {"_id": 7, "item": "pears", "qty": 50, "status": "A", "instock": True},
]
STOCK_SCHEMA = {
    "$jsonSchema": {
        "required": ["item", "qty", "instock"],
        "properties": {
            "item": {"bsonType": "string"},
            "qty": {"bsonType": "int"},
            "size": {
                "bsonType": "object",
                "required": ["uom"],
                "properties": {
                    "uom": {"bsonType": "string"},
                    "h": {"bsonType": "double"},
                    "w": {"bsonType": "double"},
                },
            },
            "instock": {"bsonType": "bool"},
        },
    }
}
TAXED = {"$eq": ["$totalWithVAT", {"$multiply": ["$total", {"$sum": [1, "$VAT"]}]}]}
CONTACTS = [
    {"_id": 1, "name": "Anne", "phone": "+1 555 123 456", "city": "London", "status": "Complete"},
    {"_id": 2, "name": "Ivan", "city": "Vancouver"},
]
CONTACT_SCHEMA = {
    "bsonType": "object",
    "required": ["phone", "name"],
    "properties": {"phone": {"bsonType": "string"}, "name": {"bsonType": "string"}},
}


def _details(validator: Any, document: Any) -> Call:
    """Why a validator refuses a document."""
    return after(
        made(validator=validator),
        command("insert", of=lambda reply: reply["writeErrors"][0]["errInfo"]["details"], documents=[document]),
    )


def _property(schema: Any, document: Any) -> Call:
    """Why a schema refuses the one property of a document."""
    return _of(
        _details({"$jsonSchema": schema}, document),
        lambda found: found["schemaRulesNotSatisfied"][0]["propertiesNotSatisfied"][0],
    )


def _no_schema(name: str, schema: Any, expected: Any) -> Case:
    call = _refusal(_create(validator={"$jsonSchema": schema}))
    return Case(name, [], call, expected, "server: src/mongo/db/matcher/schema/json_schema_parser.cpp")


VALIDATORS = [
    Case(
        "a student whose grade is no double",
        [],
        _details({"$jsonSchema": STUDENT_SCHEMA}, ALICE),
        {
            "operatorName": "$jsonSchema",
            "title": "Student Object Validation",
            "schemaRulesNotSatisfied": [
                {
                    "operatorName": "properties",
                    "propertiesNotSatisfied": [
                        {
                            "propertyName": "gpa",
                            "description": "'gpa' must be a double if the field exists",
                            "details": [
                                {
                                    "operatorName": "bsonType",
                                    "specifiedAs": {"bsonType": ["double"]},
                                    "reason": "type did not match",
                                    "consideredValue": 3,
                                    "consideredType": "int",
                                }
                            ],
                        }
                    ],
                }
            ],
        },
        "manual: core/schema-validation/specify-json-schema",
    ),
    Case(
        "an order with another total than its tax makes",
        [],
        _details(
            {"$expr": TAXED},
            {"_id": 1, "total": Decimal128("141"), "VAT": Decimal128("0.20"), "totalWithVAT": Decimal128("169")},
        ),
        {
            "operatorName": "$expr",
            "specifiedAs": {"$expr": TAXED},
            "reason": "expression did not match",
            "expressionResult": False,
        },
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
    Case(
        "an order with the total that its tax makes",
        [],
        after(
            made(validator={"$expr": TAXED}),
            _insert(
                {"_id": 1, "total": Decimal128("141"), "VAT": Decimal128("0.20"), "totalWithVAT": Decimal128("169.2")}
            ),
            find({}),
        ),
        [1],
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
    Case(
        "a country that is none of those allowed",
        [],
        _property(
            {
                "bsonType": "object",
                "title": "Shipping Country Validation",
                "properties": {
                    "country": {
                        "enum": ["France", "United Kingdom", "United States"],
                        "description": "Must be either France, United Kingdom, or United States",
                    }
                },
            },
            {"_id": 1, "item": "sweater", "size": "medium", "country": "Germany"},
        ),
        {
            "propertyName": "country",
            "description": "Must be either France, United Kingdom, or United States",
            "details": [
                {
                    "operatorName": "enum",
                    "specifiedAs": {"enum": ["France", "United Kingdom", "United States"]},
                    "reason": "value was not found in enum",
                    "consideredValue": "Germany",
                }
            ],
        },
        "manual: core/schema-validation/specify-json-schema/specify-allowed-field-values",
    ),
    Case(
        "documents that match a schema, and others",
        STOCKED,
        _both(find(STOCK_SCHEMA), find({"$nor": [STOCK_SCHEMA]})),
        [[6, 7], [1, 2, 3, 4, 5]],
        "manual: core/schema-validation/use-json-schema-query-conditions",
    ),
    Case(
        "documents that do not match a schema are marked, and deleted",
        STOCKED,
        _both(
            lambda collection: (
                collection.update_many({"$nor": [STOCK_SCHEMA]}, {"$set": {"isValid": False}}).modified_count
            ),
            lambda collection: collection.delete_many({"isValid": False}).deleted_count,
            find({}),
        ),
        [5, 5, [6, 7]],
        "manual: core/schema-validation/use-json-schema-query-conditions",
    ),
    Case(
        "a document that failed before may not be updated, if that is strict",
        CONTACTS,
        after(
            command("collMod", validator={"$jsonSchema": CONTACT_SCHEMA}, validationLevel="strict"),
            _both(
                _update_code({"_id": 1}, {"$set": {"name": 10}}),
                _update_code({"_id": 2}, {"$set": {"city": "Calgary"}}),
                _update_code({"_id": 2}, {"$set": {"phone": "+1 555 123 457"}}),
            ),
        ),
        [121, 121, None],
        "manual: core/schema-validation/specify-validation-level",
    ),
    _no_schema("a schema that requires a text", {"required": "name"}, MISMATCH),
    _no_schema("a schema with a length below zero", {"properties": {"a": {"minLength": -1}}}, UNPARSED),
    Case(
        "a validator with a search for text",
        [],
        _refusal(_create(validator={"$text": {"$search": "coffee"}})),
        BAD_VALUE,
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
]


# Stages

ENGINEERS = [
    {"_id": 1, "firstname": "Elise", "dateofbirth": datetime(1972, 1, 13, 9, 32, 7), "vocation": "ENGINEER"},
    {"_id": 2, "firstname": "Olive", "dateofbirth": datetime(1985, 5, 12, 23, 14, 30), "vocation": "ENGINEER"},
    {"_id": 3, "firstname": "Toni", "dateofbirth": datetime(1991, 11, 23, 16, 53, 56), "vocation": "POLITICIAN"},
    {"_id": 4, "firstname": "Bert", "dateofbirth": datetime(1941, 4, 7, 22, 11, 52), "vocation": "FLORIST"},
    {"_id": 5, "firstname": "Sophie", "dateofbirth": datetime(1959, 7, 6, 17, 35, 45), "vocation": "ENGINEER"},
    {"_id": 6, "firstname": "Carl", "dateofbirth": datetime(1998, 12, 26, 13, 13, 55), "vocation": "ENGINEER"},
]
PURCHASES = [
    {"customer_id": "elise_smith@myemail.com", "orderdate": datetime(2020, 5, 30, 8, 35, 52), "value": 231},
    {"customer_id": "elise_smith@myemail.com", "orderdate": datetime(2020, 1, 13, 9, 32, 7), "value": 99},
    {"customer_id": "oranieri@warmmail.com", "orderdate": datetime(2020, 1, 1, 8, 25, 37), "value": 63},
    {"customer_id": "tj@wheresmyemail.com", "orderdate": datetime(2019, 5, 28, 19, 13, 32), "value": 2},
    {"customer_id": "tj@wheresmyemail.com", "orderdate": datetime(2020, 11, 23, 22, 56, 53), "value": 187},
    {"customer_id": "tj@wheresmyemail.com", "orderdate": datetime(2020, 8, 18, 23, 4, 48), "value": 4},
    {"customer_id": "elise_smith@myemail.com", "orderdate": datetime(2020, 12, 26, 8, 55, 46), "value": 48},
    {"customer_id": "tj@wheresmyemail.com", "orderdate": datetime(2021, 2, 28, 7, 49, 32), "value": 1024},
    {"customer_id": "elise_smith@myemail.com", "orderdate": datetime(2020, 10, 3, 13, 49, 44), "value": 102},
]
PACKED = [
    {
        "_id": 1,
        "products": [
            {"prod_id": "abc12345", "name": "Asus Laptop", "price": 431},
            {"prod_id": "def45678", "name": "Karcher Hose Set", "price": 22},
        ],
    },
    {"_id": 2, "products": [{"prod_id": "abc12345", "name": "Asus Laptop", "price": 429}]},
    {
        "_id": 3,
        "products": [
            {"prod_id": "pqr88223", "name": "Morphy Richards Food Mixer", "price": 431},
            {"prod_id": "def45678", "name": "Karcher Hose Set", "price": 21},
        ],
    },
    {
        "_id": 4,
        "products": [
            {"prod_id": "def45678", "name": "Karcher Hose Set", "price": 23},
            {"prod_id": "jkl77336", "name": "Picky Pencil Sharpener", "price": 1},
            {"prod_id": "xyz11228", "name": "Russell Hobbs Chrome Kettle", "price": 16},
        ],
    },
]
SOLD = [
    {"_id": 1, "item": "abc", "price": 10, "quantity": 2, "date": datetime(2014, 3, 1, 8)},
    {"_id": 2, "item": "jkl", "price": 20, "quantity": 1, "date": datetime(2014, 3, 1, 9)},
    {"_id": 3, "item": "xyz", "price": 5, "quantity": 10, "date": datetime(2014, 3, 15, 9)},
    {"_id": 4, "item": "xyz", "price": 5, "quantity": 20, "date": datetime(2014, 4, 4, 11, 21, 39)},
    {"_id": 5, "item": "abc", "price": 10, "quantity": 10, "date": datetime(2014, 4, 4, 21, 23, 13)},
    {"_id": 6, "item": "def", "price": 7.5, "quantity": 5, "date": datetime(2015, 6, 4, 5, 8, 13)},
    {"_id": 7, "item": "def", "price": 7.5, "quantity": 10, "date": datetime(2015, 9, 10, 8, 43)},
    {"_id": 8, "item": "abc", "price": 10, "quantity": 5, "date": datetime(2016, 2, 6, 20, 20, 13)},
]
AMOUNT = {"$sum": {"$multiply": ["$price", "$quantity"]}}
BOOKS = [
    {"_id": 8751, "title": "The Banquet", "author": "Dante", "copies": 2},
    {"_id": 8752, "title": "Divine Comedy", "author": "Dante", "copies": 1},
    {"_id": 8645, "title": "Eclogues", "author": "Dante", "copies": 2},
    {"_id": 7000, "title": "The Odyssey", "author": "Homer", "copies": 10},
    {"_id": 7020, "title": "Iliad", "author": "Homer", "copies": 10},
]
CLOTHES = [
    {"_id": 1, "item": "ABC", "price": 80, "sizes": ["S", "M", "L"]},
    {"_id": 2, "item": "EFG", "price": 120, "sizes": []},
    {"_id": 3, "item": "IJK", "price": 160, "sizes": "M"},
    {"_id": 4, "item": "LMN", "price": 10},
    {"_id": 5, "item": "XYZ", "price": 5.75, "sizes": None},
]
OFFICE = [
    {
        "_id": 1,
        "items": [
            {"name": "pens", "tags": ["writing", "office", "school", "stationary"], "price": 12.0, "quantity": 5},
            {"name": "envelopes", "tags": ["stationary", "office"], "price": 19.95, "quantity": 8},
        ],
    },
    {
        "_id": 2,
        "items": [
            {"name": "laptop", "tags": ["office", "electronics"], "price": 800.0, "quantity": 1},
            {"name": "notepad", "tags": ["stationary", "school"], "price": 14.95, "quantity": 3},
        ],
    },
]
SCORES = [
    {"_id": 1, "student": "Maya", "homework": [10, 5, 10], "quiz": [10, 8], "extraCredit": 0},
    {"_id": 2, "student": "Ryan", "homework": [5, 6, 5], "quiz": [8, 8], "extraCredit": 8},
]
ABSENCES = [{"_id": 1, "student": "Ann Aardvark"}, {"_id": 2, "student": "Zoe Zebra"}]
HOLIDAYS = [
    {"_id": 1, "year": 2018, "name": "New Years", "date": datetime(2018, 1, 1)},
    {"_id": 2, "year": 2018, "name": "Pi Day", "date": datetime(2018, 3, 14)},
    {"_id": 3, "year": 2017, "name": "New Years", "date": datetime(2017, 1, 1)},
]
NUTS = [
    {"_id": 1, "item": "almonds", "price": 12, "quantity": 2},
    {"_id": 2, "item": "pecans", "price": 20, "quantity": 1},
]
NUT_ITEMS = [
    {"_id": 1, "item": "almonds", "description": "almond clusters", "instock": 120},
    {"_id": 2, "item": "bread", "description": "raisin and nut bread", "instock": 80},
    {"_id": 3, "item": "pecans", "description": "candied pecans", "instock": 60},
]
PEOPLE = [
    {"_id": 1, "name": "Tanya Jordan", "friends": ["Shirley Soto", "Carole Hale"], "hobbies": ["tennis", "golf"]},
    {"_id": 2, "name": "Carole Hale", "friends": ["Joseph Dennis", "Tanya Jordan"], "hobbies": ["archery", "golf"]},
    {"_id": 3, "name": "Terry Hawkins", "friends": ["Angelo Ward"], "hobbies": ["knitting", "frisbee"]},
    {"_id": 4, "name": "Joseph Dennis", "friends": ["Angelo Ward", "Carole Hale"], "hobbies": ["tennis", "golf"]},
    {"_id": 5, "name": "Angelo Ward", "friends": ["Terry Hawkins"], "hobbies": ["travel", "golf"]},
    {"_id": 6, "name": "Shirley Soto", "friends": ["Angelo Ward", "Tanya Jordan"], "hobbies": ["frisbee"]},
]
ART = [
    {"_id": 1, "title": "The Pillars of Society", "year": 1926, "price": 199.99},
    {"_id": 2, "title": "Melancholy III", "year": 1902, "price": 280.00},
    {"_id": 3, "title": "Dancer", "year": 1925, "price": 76.04},
    {"_id": 4, "title": "The Great Wave off Kanagawa", "price": 167.30},
    {"_id": 5, "title": "The Persistence of Memory", "year": 1931, "price": 483.00},
    {"_id": 6, "title": "Composition VII", "year": 1913, "price": 385.00},
    {"_id": 7, "title": "The Scream", "year": 1893},
    {"_id": 8, "title": "Blue Flower", "year": 1918, "price": 118.42},
]
QUIZZES = [
    {"_id": 1, "name": "dave123", "quiz": 1, "score": 85},
    {"_id": 2, "name": "dave2", "quiz": 1, "score": 90},
    {"_id": 3, "name": "ahn", "quiz": 1, "score": 71},
    {"_id": 4, "name": "li", "quiz": 2, "score": 96},
    {"_id": 5, "name": "annT", "quiz": 2, "score": 77},
    {"_id": 6, "name": "ty", "quiz": 2, "score": 82},
]


def _no_stage(name: str, expected: Any, *stages: Any, source: str = "src/mongo/db/pipeline/pipeline.cpp") -> Case:
    expected = _location(expected) if isinstance(expected, int) else expected
    return Case(name, ONE, _refusal(_piped(*stages)), expected, f"server: {source}")


STAGES = [
    Case(
        "the three youngest engineers",
        ENGINEERS,
        _piped(
            {"$match": {"vocation": "ENGINEER"}},
            {"$sort": {"dateofbirth": -1}},
            {"$limit": 3},
            {"$unset": ["_id", "vocation", "dateofbirth"]},
        ),
        [{"firstname": "Carl"}, {"firstname": "Olive"}, {"firstname": "Elise"}],
        "manual: tutorial/aggregation-examples/filtered-subset",
    ),
    Case(
        "what customers bought in a year, by their first order",
        PURCHASES,
        _made_of(
            {"$match": {"orderdate": {"$gte": datetime(2020, 1, 1), "$lt": datetime(2021, 1, 1)}}},
            {"$sort": {"orderdate": 1}},
            {
                "$group": {
                    "_id": "$customer_id",
                    "first": {"$first": "$orderdate"},
                    "total_value": {"$sum": "$value"},
                    "total_orders": {"$sum": 1},
                    "orders": {"$push": "$value"},
                }
            },
            {"$sort": {"first": 1}},
            {"$set": {"customer_id": "$_id"}},
            {"$unset": ["_id", "first"]},
        ),
        [
            {"total_value": 63, "total_orders": 1, "orders": [63], "customer_id": "oranieri@warmmail.com"},
            {
                "total_value": 480,
                "total_orders": 4,
                "orders": [99, 231, 102, 48],
                "customer_id": "elise_smith@myemail.com",
            },
            {"total_value": 191, "total_orders": 2, "orders": [4, 187], "customer_id": "tj@wheresmyemail.com"},
        ],
        "manual: tutorial/aggregation-examples/group-and-total",
    ),
    Case(
        "products of all orders above a price",
        PACKED,
        _made_of(
            {"$unwind": {"path": "$products"}},
            {"$match": {"products.price": {"$gt": 15}}},
            {
                "$group": {
                    "_id": "$products.prod_id",
                    "product": {"$first": "$products.name"},
                    "total_value": {"$sum": "$products.price"},
                    "quantity": {"$sum": 1},
                }
            },
            {"$set": {"product_id": "$_id"}},
            {"$unset": ["_id"]},
            {"$sort": {"product_id": 1}},
        ),
        [
            {"product": "Asus Laptop", "total_value": 860, "quantity": 2, "product_id": "abc12345"},
            {"product": "Karcher Hose Set", "total_value": 66, "quantity": 3, "product_id": "def45678"},
            {"product": "Morphy Richards Food Mixer", "total_value": 431, "quantity": 1, "product_id": "pqr88223"},
            {"product": "Russell Hobbs Chrome Kettle", "total_value": 16, "quantity": 1, "product_id": "xyz11228"},
        ],
        "manual: tutorial/aggregation-examples/unpack-arrays",
    ),
    Case(
        "items that sold for a hundred or more",
        SOLD,
        _made_of(
            {"$group": {"_id": "$item", "totalSaleAmount": AMOUNT}},
            {"$match": {"totalSaleAmount": {"$gte": 100}}},
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": "abc", "totalSaleAmount": 170},
            {"_id": "def", "totalSaleAmount": 112.5},
            {"_id": "xyz", "totalSaleAmount": 150},
        ],
        f"{AGGREGATION}/group",
    ),
    Case(
        "sums, averages and counts of the days of a year",
        SOLD,
        _made_of(
            {"$match": {"date": {"$gte": datetime(2014, 1, 1), "$lt": datetime(2015, 1, 1)}}},
            {
                "$group": {
                    "_id": {"$dateToString": {"format": "%Y-%m-%d", "date": "$date"}},
                    "totalSaleAmount": AMOUNT,
                    "averageQuantity": {"$avg": "$quantity"},
                    "count": {"$sum": 1},
                }
            },
            {"$sort": {"totalSaleAmount": -1}},
        ),
        [
            {"_id": "2014-04-04", "totalSaleAmount": 200, "averageQuantity": 15, "count": 2},
            {"_id": "2014-03-15", "totalSaleAmount": 50, "averageQuantity": 10, "count": 1},
            {"_id": "2014-03-01", "totalSaleAmount": 40, "averageQuantity": 1.5, "count": 2},
        ],
        f"{AGGREGATION}/group",
    ),
    Case(
        "the copies of all books of an author",
        BOOKS,
        _made_of(
            {"$group": {"_id": "$author", "books": {"$push": "$$ROOT"}}},
            {"$addFields": {"totalCopies": {"$sum": "$books.copies"}}},
            {"$project": {"books.title": 1, "totalCopies": 1}},
            {"$sort": {"_id": 1}},
        ),
        [
            {
                "_id": "Dante",
                "books": [{"title": "The Banquet"}, {"title": "Divine Comedy"}, {"title": "Eclogues"}],
                "totalCopies": 5,
            },
            {"_id": "Homer", "books": [{"title": "The Odyssey"}, {"title": "Iliad"}], "totalCopies": 20},
        ],
        f"{AGGREGATION}/group",
    ),
    Case(
        "average prices by sizes, and of what has none",
        CLOTHES,
        _made_of(
            {"$unwind": {"path": "$sizes", "preserveNullAndEmptyArrays": True}},
            {"$group": {"_id": "$sizes", "averagePrice": {"$avg": "$price"}}},
            {"$sort": {"averagePrice": -1, "_id": 1}},
        ),
        [
            {"_id": "M", "averagePrice": 120},
            {"_id": "L", "averagePrice": 80},
            {"_id": "S", "averagePrice": 80},
            {"_id": None, "averagePrice": 45.25},
        ],
        f"{AGGREGATION}/unwind",
    ),
    Case(
        "sales by the tags of items in arrays",
        OFFICE,
        _made_of(
            {"$unwind": "$items"},
            {"$unwind": "$items.tags"},
            {
                "$group": {
                    "_id": "$items.tags",
                    "totalSalesAmount": {"$sum": {"$multiply": ["$items.price", "$items.quantity"]}},
                }
            },
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": "electronics", "totalSalesAmount": 800},
            {"_id": "office", "totalSalesAmount": 1019.6},
            {"_id": "school", "totalSalesAmount": 104.85},
            {"_id": "stationary", "totalSalesAmount": 264.45},
            {"_id": "writing", "totalSalesAmount": 60},
        ],
        f"{AGGREGATION}/unwind",
    ),
    Case(
        "$addFields of what a stage before has added",
        SCORES,
        _made_of(
            {"$addFields": {"totalHomework": {"$sum": "$homework"}, "totalQuiz": {"$sum": "$quiz"}}},
            {"$addFields": {"totalScore": {"$add": ["$totalHomework", "$totalQuiz", "$extraCredit"]}}},
            {"$project": {"homework": 0, "quiz": 0}},
        ),
        [
            {"_id": 1, "student": "Maya", "extraCredit": 0, "totalHomework": 25, "totalQuiz": 18, "totalScore": 43},
            {"_id": 2, "student": "Ryan", "extraCredit": 8, "totalHomework": 16, "totalQuiz": 16, "totalScore": 40},
        ],
        f"{AGGREGATION}/addFields",
    ),
    Case(
        "$project of an array of fields, of which one is missing",
        [{"_id": 1, "x": 1, "y": 1}],
        _piped({"$project": {"myArray": ["$x", "$y", "$someField"]}}),
        [{"_id": 1, "myArray": [1, 1, None]}],
        f"{AGGREGATION}/project",
    ),
    Case(
        "a subquery that has nothing to do with the document",
        ABSENCES,
        _piped(
            {
                "$lookup": {
                    "from": "others",
                    "pipeline": [
                        {"$match": {"year": 2018}},
                        {"$project": {"_id": 0, "date": {"name": "$name", "date": "$date"}}},
                        {"$replaceRoot": {"newRoot": "$date"}},
                    ],
                    "as": "holidays",
                }
            }
        ),
        [
            {
                **absent,
                "holidays": [
                    {"name": "New Years", "date": datetime(2018, 1, 1)},
                    {"name": "Pi Day", "date": datetime(2018, 3, 14)},
                ],
            }
            for absent in ABSENCES
        ],
        f"{AGGREGATION}/lookup",
        others=HOLIDAYS,
    ),
    Case(
        "documents merged with what they look up",
        NUTS,
        _piped(
            {"$lookup": {"from": "others", "localField": "item", "foreignField": "item", "as": "fromItems"}},
            {"$replaceRoot": {"newRoot": {"$mergeObjects": [{"$arrayElemAt": ["$fromItems", 0]}, "$$ROOT"]}}},
            {"$project": {"fromItems": 0}},
        ),
        [
            {
                "_id": 1,
                "item": "almonds",
                "description": "almond clusters",
                "instock": 120,
                "price": 12,
                "quantity": 2,
            },
            {"_id": 2, "item": "pecans", "description": "candied pecans", "instock": 60, "price": 20, "quantity": 1},
        ],
        f"{AGGREGATION}/lookup",
        others=NUT_ITEMS,
    ),
    Case(
        "friends of friends that all play golf",
        PEOPLE,
        _of(
            _piped(
                {"$match": {"name": "Tanya Jordan"}},
                {
                    "$graphLookup": {
                        "from": "cases",
                        "startWith": "$friends",
                        "connectFromField": "friends",
                        "connectToField": "name",
                        "as": "golfers",
                        "restrictSearchWithMatch": {"hobbies": "golf"},
                    }
                },
            ),
            lambda found: sorted(each["name"] for each in found[0]["golfers"]),
        ),
        ["Angelo Ward", "Carole Hale", "Joseph Dennis", "Tanya Jordan"],
        f"{AGGREGATION}/graphLookup",
    ),
    Case(
        "two facets of buckets",
        ART,
        _made_of(
            {
                "$facet": {
                    "price": [
                        {
                            "$bucket": {
                                "groupBy": "$price",
                                "boundaries": [0, 200, 400],
                                "default": "Other",
                                "output": {"count": {"$sum": 1}, "averagePrice": {"$avg": "$price"}},
                            }
                        }
                    ],
                    "year": [
                        {
                            "$bucket": {
                                "groupBy": "$year",
                                "boundaries": [1890, 1910, 1920, 1940],
                                "default": "Unknown",
                            }
                        }
                    ],
                }
            }
        ),
        [
            {
                "price": [
                    {"_id": 0, "count": 4, "averagePrice": 140.4375},
                    {"_id": 200, "count": 2, "averagePrice": 332.5},
                    {"_id": "Other", "count": 2, "averagePrice": 483},
                ],
                "year": [
                    {"_id": 1890, "count": 2},
                    {"_id": 1910, "count": 2},
                    {"_id": 1920, "count": 3},
                    {"_id": "Unknown", "count": 1},
                ],
            }
        ],
        f"{AGGREGATION}/bucket",
    ),
    Case(
        "$stdDevPop of the scores of quizzes",
        QUIZZES,
        _made_of({"$group": {"_id": "$quiz", "stdDev": {"$stdDevPop": "$score"}}}, {"$sort": {"_id": 1}}),
        [{"_id": 1, "stdDev": 8.041559}, {"_id": 2, "stdDev": 8.041559}],
        f"{AGGREGATION}/stdDevPop",
    ),
    _no_stage(
        "$bucket with a default between its bounds",
        40199,
        {"$bucket": {"groupBy": "$a", "boundaries": [0, 10], "default": 5}},
        source="src/mongo/db/pipeline/document_source_bucket.cpp",
    ),
    _no_stage("two names in a stage", 40323, {"$match": {"a": 1}, "$limit": 1}),
    _no_stage("$out within $facet", 40600, {"$facet": {"all": [{"$out": "others"}]}}),
    _no_stage(
        "$unwind with a place that begins with a dollar",
        28822,
        {"$unwind": {"path": "$a", "includeArrayIndex": "$i"}},
        source="src/mongo/db/pipeline/document_source_unwind.cpp",
    ),
    _no_stage(
        "$group with a field that adds up nothing",
        40234,
        {"$group": {"_id": None, "a": "$a"}},
        source="src/mongo/db/pipeline/accumulation_statement.cpp",
    ),
    _no_stage(
        "$out within $lookup",
        51047,
        {"$lookup": {"from": "others", "pipeline": [{"$out": "more"}], "as": "b"}},
        source="src/mongo/db/pipeline/document_source_lookup.cpp",
    ),
    _no_stage(
        "$addFields of an operator that there is not",
        NO_OPERATOR,
        {"$addFields": {"b": {"$plus": ["$a", 1]}}},
        source="src/mongo/db/pipeline/expression.cpp, parseExpression",
    ),
]


# Windows

CAKES = [
    {
        "_id": number,
        "type": kind,
        "orderDate": datetime(*date),
        "state": state,
        "price": price,
        "quantity": quantity,
    }
    for number, (kind, date, state, price, quantity) in enumerate(
        [
            ("chocolate", (2020, 5, 18, 14, 10, 30), "CA", 13, 120),
            ("chocolate", (2021, 3, 20, 11, 30, 5), "WA", 14, 140),
            ("vanilla", (2021, 1, 11, 6, 31, 15), "CA", 12, 145),
            ("vanilla", (2020, 2, 8, 13, 13, 23), "WA", 13, 104),
            ("strawberry", (2019, 5, 18, 16, 9, 1), "CA", 41, 162),
            ("strawberry", (2019, 1, 8, 6, 12, 3), "WA", 43, 134),
        ]
    )
]
SO_FAR = {"documents": ["unbounded", "current"]}
QUOTES = [
    {"_id": 1, "price": 500},
    {"_id": 2},
    {"_id": 3, "price": 515},
    {"_id": 4, "price": None},
    {"_id": 5},
    {"_id": 6, "price": 485},
]


def _windows(output: Any, **fields: Any) -> Call:
    """What a window makes of the cakes of each state by their dates."""
    return _of(
        _piped(
            {
                "$setWindowFields": {
                    "partitionBy": "$state",
                    "sortBy": {"orderDate": 1},
                    **fields,
                    "output": {"r": output},
                }
            },
            {"$sort": {"state": 1, "orderDate": 1}},
        ),
        lambda found: [[each["_id"], _plain(each["r"])] for each in found],
    )


def _no_window(name: str, expected: Any, output: Any, **fields: Any) -> Case:
    expected = _location(expected) if isinstance(expected, int) else expected
    call = _refusal(_piped({"$setWindowFields": {**fields, "output": {"r": output}}}))
    return Case(name, ONE, call, expected, "server: src/mongo/db/pipeline/window_function")


WINDOWS = [
    Case(
        "the quantities of a state so far",
        CAKES,
        _windows({"$push": "$quantity", "window": SO_FAR}),
        [
            [4, [162]],
            [0, [162, 120]],
            [2, [162, 120, 145]],
            [5, [134]],
            [3, [134, 104]],
            [1, [134, 104, 140]],
        ],
        f"{AGGREGATION}/push",
    ),
    Case(
        "$stdDevPop and $stdDevSamp of the quantities of a state so far",
        CAKES,
        _both(
            _windows({"$stdDevPop": "$quantity", "window": SO_FAR}),
            _windows({"$stdDevSamp": "$quantity", "window": SO_FAR}),
        ),
        [
            [[4, 0], [0, 21], [2, 17.249799], [5, 0], [3, 15], [1, 15.748016]],
            [[4, None], [0, 29.698485], [2, 21.126603], [5, None], [3, 21.213203], [1, 19.287302]],
        ],
        f"{AGGREGATION}/stdDevPop",
    ),
    Case(
        "$covariancePop of the years and quantities of a state so far",
        CAKES,
        _windows({"$covariancePop": [{"$year": "$orderDate"}, "$quantity"], "window": SO_FAR}),
        [[4, 0], [0, -10.5], [2, -5.666667], [5, 0], [3, -7.5], [1, 2]],
        f"{AGGREGATION}/covariancePop",
    ),
    Case(
        "the lowest quantity of a document and its neighbours",
        CAKES,
        _windows({"$min": "$quantity", "window": {"documents": [-1, 1]}}),
        [[4, 120], [0, 120], [2, 120], [5, 104], [3, 104], [1, 104]],
        f"{AGGREGATION}/min",
    ),
    Case(
        "$locf carries the last price on",
        QUOTES,
        _of(
            _piped({"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"price": {"$locf": "$price"}}}}),
            lambda found: [each["price"] for each in found],
        ),
        [500, 500, 515, 515, 515, 485],
        f"{AGGREGATION}/locf",
    ),
    _no_window("$rank in a window", 5371601, {"$rank": {}, "window": SO_FAR}, sortBy={"a": 1}),
    _no_window("$documentNumber without a sort", 5371602, {"$documentNumber": {}}),
    _no_window("a range without a sort", 5339902, {"$sum": "$a", "window": {"range": [-1, 1]}}),
    _no_window(
        "a window that ends before it begins",
        5339900,
        {"$sum": "$a", "window": {"documents": [1, -1]}},
        sortBy={"a": 1},
    ),
]


# Dates

DELIVERED = [
    {"_id": 456, "purchased": datetime(2020, 12, 31), "delivered": datetime(2021, 1, 5)},
    {"_id": 457, "purchased": datetime(2021, 2, 28), "delivered": datetime(2021, 3, 7)},
    {"_id": 458, "purchased": datetime(2021, 2, 16), "delivered": datetime(2021, 2, 18)},
]
SUBSCRIBED = [
    {"_id": 456, "start": datetime(2010, 1, 1), "end": datetime(2011, 1, 1)},
    {"_id": 457, "start": datetime(2010, 1, 1), "end": datetime(2011, 7, 1)},
    {"_id": 458, "start": datetime(2010, 3, 1), "end": datetime(2010, 4, 30)},
]
SALE = [{"_id": 1, "date": datetime(2014, 1, 1, 8, 15, 39, 736000)}]
HIRED = [
    {"_id": 1, "at": datetime(1998, 11, 2)},
    {"_id": 2, "at": datetime(1998, 11, 7)},
    {"_id": 3, "at": datetime(2015, 12, 29)},
]
LOGGED = [
    {"_id": 1, "date": "2017-02-08T12:10:40.787"},
    {"_id": 2, "date": "20177-02-09"},
    {"_id": 3, "date": None},
]


def _shown(format: str, *zone: str) -> Any:
    return {"$dateToString": {"format": format, "date": "$date", **({"timezone": zone[0]} if zone else {})}}


DATES = [
    Case(
        "three days after a purchase",
        DELIVERED,
        _each({"$dateAdd": {"startDate": "$purchased", "unit": "day", "amount": 3}}),
        [datetime(2021, 1, 3), datetime(2021, 3, 3), datetime(2021, 2, 19)],
        f"{AGGREGATION}/dateAdd",
    ),
    Case(
        "a month after the last day of October",
        ONE,
        evaluate({"$dateAdd": {"startDate": datetime(2020, 10, 31, 12, 10, 5), "unit": "month", "amount": 1}}),
        datetime(2020, 11, 30, 12, 10, 5),
        f"{AGGREGATION}/dateAdd",
    ),
    Case(
        "the average days of a delivery",
        DELIVERED,
        _made_of(
            {
                "$group": {
                    "_id": None,
                    "averageTime": {
                        "$avg": {"$dateDiff": {"startDate": "$purchased", "endDate": "$delivered", "unit": "day"}}
                    },
                }
            },
            {"$project": {"_id": 0, "numDays": {"$trunc": ["$averageTime", 1]}}},
        ),
        [{"numDays": 4.6}],
        f"{AGGREGATION}/dateDiff",
    ),
    Case(
        "years, months and days that begin between",
        SUBSCRIBED,
        _each(
            [
                {"$dateDiff": {"startDate": "$start", "endDate": "$end", "unit": unit}}
                for unit in ("year", "month", "day")
            ]
        ),
        [[1, 12, 365], [1, 18, 546], [0, 1, 60]],
        f"{AGGREGATION}/dateDiff",
    ),
    Case(
        "a time with its offset, of places and as a number",
        SALE,
        evaluate(
            [
                _shown("%H:%M:%S:%L%z", "America/New_York"),
                _shown("%H:%M:%S:%L%z", "+04:30"),
                _shown("%Z", "America/New_York"),
            ]
        ),
        ["03:15:39:736-0500", "12:45:39:736+0430", "-300"],
        f"{AGGREGATION}/dateToString",
    ),
    Case(
        "the parts of a date",
        SALE,
        _each(
            [
                {f"${part}": "$date"}
                for part in (
                    *("year", "month", "dayOfMonth", "hour", "minute", "second", "millisecond"),
                    *("dayOfYear", "dayOfWeek", "week"),
                )
            ]
        ),
        [[2014, 1, 1, 8, 15, 39, 736, 1, 4, 0]],
        f"{AGGREGATION}/millisecond",
    ),
    Case(
        "weeks, days and years by ISO",
        HIRED,
        _each([{"$isoWeek": "$at"}, {"$isoDayOfWeek": "$at"}, {"$isoWeekYear": "$at"}]),
        [[45, 1, 1998], [45, 6, 1998], [53, 2, 2015]],
        f"{AGGREGATION}/isoWeek",
    ),
    Case(
        "a date from its parts, by weeks, and in a time zone",
        ONE,
        evaluate(
            [
                {"$dateFromParts": {"year": 2017, "month": 2, "day": 8, "hour": 12}},
                {"$dateFromParts": {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12}},
                {
                    "$dateFromParts": {
                        **{"year": 2016, "month": 12, "day": 31, "hour": 23, "minute": 46, "second": 12},
                        "timezone": "America/New_York",
                    }
                },
            ]
        ),
        [datetime(2017, 2, 8, 12), datetime(2017, 2, 8, 12), datetime(2017, 1, 1, 4, 46, 12)],
        f"{AGGREGATION}/dateFromParts",
    ),
    Case(
        "what is no date is left as it is, and null is the beginning of time",
        LOGGED,
        _each(
            {
                "$dateFromString": {
                    "dateString": "$date",
                    "timezone": "America/New_York",
                    "onError": "$date",
                    "onNull": datetime(1970, 1, 1),
                }
            }
        ),
        [datetime(2017, 2, 8, 17, 10, 40, 787000), "20177-02-09", datetime(1970, 1, 1)],
        f"{AGGREGATION}/dateFromString",
    ),
    Case(
        "quantities by half years",
        CAKES,
        _made_of(
            {
                "$group": {
                    "_id": {"$dateTrunc": {"date": "$orderDate", "unit": "month", "binSize": 6}},
                    "sumQuantity": {"$sum": "$quantity"},
                }
            },
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": datetime(2019, 1, 1), "sumQuantity": 296},
            {"_id": datetime(2020, 1, 1), "sumQuantity": 224},
            {"_id": datetime(2021, 1, 1), "sumQuantity": 285},
        ],
        f"{AGGREGATION}/dateTrunc",
    ),
    Case(
        "a date and the milliseconds of three days",
        SALE,
        evaluate({"$add": ["$date", 3 * 24 * 60 * 60000]}),
        datetime(2014, 1, 4, 8, 15, 39, 736000),
        f"{AGGREGATION}/add",
    ),
    Case(
        "a unit of time in the plural",
        SALE,
        _computed({"$dateAdd": {"startDate": "$date", "unit": "days", "amount": 3}}),
        UNPARSED,
        "server: src/mongo/db/query/datetime/date_time_support.cpp",
    ),
    Case(
        "a year and a week by ISO",
        ONE,
        _computed({"$dateFromParts": {"year": 2017, "isoWeek": 6}}),
        _location(40489),
        "server: src/mongo/db/pipeline/expression.cpp",
    ),
    Case(
        "a format of dates that there is not",
        SALE,
        _computed(_shown("%Q")),
        _location(18536),
        "server: src/mongo/db/query/datetime/date_time_support.cpp",
    ),
]


# Expressions

WAREHOUSES = [
    {"_id": 1, "item": "ABC1", "instock": {"warehouse1": 2500, "warehouse2": 500}},
    {"_id": 2, "item": "ABC2", "instock": {"warehouse2": 500, "warehouse3": 200}},
]
HOBBIES = [
    {"_id": 1, "name": "Melissa", "hobbies": ["softball", "drawing", "reading"]},
    {"_id": 2, "name": "Josh", "hobbies": ["programming"]},
    {"_id": 3, "name": "Claire", "hobbies": []},
]
FLOWERS = [
    {"_id": 1, "a": ["rose", "orchid"], "b": ["rose", "orchid"]},
    {"_id": 2, "a": ["rose", "orchid"], "b": ["orchid", "rose", "orchid"]},
    {"_id": 3, "a": ["rose", "orchid"], "b": ["rose", "orchid", "jasmine"]},
    {"_id": 4, "a": ["rose", "orchid"], "b": ["jasmine", "rose"]},
    {"_id": 5, "a": ["rose", "orchid"], "b": []},
    {"_id": 6, "a": ["rose", "orchid"], "b": [["rose", "orchid"]]},
    {"_id": 7, "a": [], "b": ["rose"]},
]
MIXED = [
    20,
    4,
    {"a": "Free"},
    6,
    21,
    5,
    "Gratis",
    {"a": None},
    {"a": {"sale": True, "price": 19}},
    10.23,
    {"a": "On sale"},
]
GAMES = [
    {"_id": 1, "score": [1, 2, 3]},
    {"_id": 2, "score": [12, 90, 7, 89, 8]},
    {"_id": 3, "score": [None]},
    {"_id": 4, "score": []},
    {"_id": 5, "score": [1293, "2", 3489, 9]},
]
COATS = [
    {"_id": 1, "item": "sweatshirt", "price.usd": 45.99},
    {"_id": 2, "item": "winter coat", "price.usd": 499.99},
    {"_id": 3, "item": "sun dress", "price.usd": 199.99},
    {"_id": 4, "item": "leather jacket", "price.usd": 249.99},
]
DESCRIBED = [
    {"_id": 1, "description": "Single LINE description."},
    {"_id": 2, "description": "First lines\nsecond line"},
    {"_id": 3, "description": "Many spaces before     line"},
    {"_id": 4, "description": "Multiple\nline descriptions"},
    {"_id": 5, "description": "anchors, links and hyperlinks"},
    {"_id": 6},
]
PAINTS = [
    {"_id": 1, "item": "blue paint"},
    {"_id": 2, "item": "blue and green paint"},
    {"_id": 3, "item": "blue paint with blue paintbrush"},
    {"_id": 4, "item": "blue paint with green paintbrush"},
]
CITIES = [
    {"_id": 1, "city": "Berkeley, CA", "qty": 648},
    {"_id": 2, "city": "Bend, OR", "qty": 491},
    {"_id": 3, "city": "Kensington, CA", "qty": 233},
    {"_id": 4, "city": "Eugene, OR", "qty": 842},
    {"_id": 5, "city": "Reno, NV", "qty": 655},
    {"_id": 6, "city": "Portland, OR", "qty": 408},
    {"_id": 7, "city": "Sacramento, CA", "qty": 574},
]
TAXES = [
    {"_id": 1, "price": 10, "tax": 0.50, "applyDiscount": True},
    {"_id": 2, "price": 10, "tax": 0.25, "applyDiscount": False},
]
MOMENTS = [
    {"_id": 1, "at": ObjectId("5ab9c3da31c2ab715d421285")},
    {"_id": 2, "at": 120000000000.5},
    {"_id": 3, "at": Int64(1100000000000)},
    {"_id": 4, "at": "2018-03-03"},
    {"_id": 5, "at": "2018-03-20 11:00:06 +0500"},
]
DISTANCES = [
    {"_id": 0, "city": "San Jose", "distance": 42},
    {"_id": 1, "city": "Sacramento", "distance": 88},
    {"_id": 2, "city": "Reno", "distance": 218},
    {"_id": 3, "city": "Los Angeles", "distance": 383},
]
FIRST_WORDS = "My hobbies include:"


def _no_value(name: str, expression: Any, expected: Any) -> Case:
    expected = _location(expected) if isinstance(expected, int) else expected
    return Case(name, ONE, _computed(expression), expected, "server: src/mongo/db/pipeline/expression.cpp")


EXPRESSIONS = [
    Case(
        "what warehouses have, by their names",
        WAREHOUSES,
        _made_of(
            {"$project": {"warehouses": {"$objectToArray": "$instock"}}},
            {"$unwind": "$warehouses"},
            {"$group": {"_id": "$warehouses.k", "total": {"$sum": "$warehouses.v"}}},
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": "warehouse1", "total": 2500},
            {"_id": "warehouse2", "total": 1000},
            {"_id": "warehouse3", "total": 200},
        ],
        f"{AGGREGATION}/objectToArray",
    ),
    Case(
        "a matrix on its side, and rows that are filled up",
        [{"_id": 1, "matrix": [[1, 2], [2, 3], [3, 4]]}],
        evaluate(
            [
                {"$zip": {"inputs": [{"$arrayElemAt": ["$matrix", row]} for row in range(3)]}},
                {"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": True, "defaults": ["a", "b"]}},
            ]
        ),
        [[[1, 2, 3], [2, 3, 4]], [[1, 2], ["a", 3]]],
        f"{AGGREGATION}/zip",
    ),
    Case(
        "$reduce joins texts with commas",
        HOBBIES,
        _each(
            {
                "$reduce": {
                    "input": "$hobbies",
                    "initialValue": FIRST_WORDS,
                    "in": {"$concat": ["$$value", {"$cond": [{"$eq": ["$$value", FIRST_WORDS]}, " ", ", "]}, "$$this"]},
                }
            }
        ),
        [f"{FIRST_WORDS} softball, drawing, reading", f"{FIRST_WORDS} programming", FIRST_WORDS],
        f"{AGGREGATION}/reduce",
    ),
    Case(
        "flowers that only the second has",
        FLOWERS,
        _each({"$setDifference": ["$b", "$a"]}),
        [[], [], ["jasmine"], ["jasmine"], [], [["rose", "orchid"]], ["rose"]],
        f"{AGGREGATION}/setDifference",
    ),
    Case(
        "$sortArray of values of several types",
        ONE,
        evaluate({"$sortArray": {"input": {"$literal": MIXED}, "sortBy": 1}}),
        [
            *(4, 5, 6, 10.23, 20, 21, "Gratis"),
            *({"a": None}, {"a": "Free"}, {"a": "On sale"}, {"a": {"sale": True, "price": 19}}),
        ],
        f"{AGGREGATION}/sortArray",
    ),
    Case(
        "the two highest of values of several types",
        GAMES,
        _each({"$maxN": {"n": 2, "input": "$score"}}),
        [[3, 2], [90, 89], [], [], ["2", 3489]],
        f"{AGGREGATION}/maxN-array-element",
    ),
    Case(
        "$getField of a name with a dot",
        COATS,
        find({"$expr": {"$gt": [{"$getField": "price.usd"}, 200]}}),
        [2, 4],
        f"{AGGREGATION}/getField",
    ),
    Case(
        "where a pattern is found first",
        DESCRIBED,
        _each({"$regexFind": {"input": "$description", "regex": Regex("line")}}),
        [
            None,
            {"match": "line", "idx": 6, "captures": []},
            {"match": "line", "idx": 23, "captures": []},
            {"match": "line", "idx": 9, "captures": []},
            None,
            None,
        ],
        f"{AGGREGATION}/regexFind",
    ),
    Case(
        "$replaceOne of the first of two",
        PAINTS,
        _each({"$replaceOne": {"input": "$item", "find": "blue paint", "replacement": "red paint"}}),
        [
            "red paint",
            "blue and green paint",
            "red paint with blue paintbrush",
            "red paint with green paintbrush",
        ],
        f"{AGGREGATION}/replaceOne",
    ),
    Case(
        "totals of states that are split from cities",
        CITIES,
        _made_of(
            {"$project": {"city_state": {"$split": ["$city", ", "]}, "qty": 1}},
            {"$unwind": "$city_state"},
            {"$match": {"city_state": Regex("[A-Z]{2}")}},
            {"$group": {"_id": {"state": "$city_state"}, "total_qty": {"$sum": "$qty"}}},
            {"$sort": {"total_qty": -1}},
        ),
        [
            {"_id": {"state": "OR"}, "total_qty": 1741},
            {"_id": {"state": "CA"}, "total_qty": 1455},
            {"_id": {"state": "NV"}, "total_qty": 655},
        ],
        f"{AGGREGATION}/split",
    ),
    Case(
        "$toDate of IDs, numbers and texts",
        MOMENTS,
        _each({"$toDate": "$at"}),
        [
            datetime(2018, 3, 27, 4, 8, 58),
            datetime(1973, 10, 20, 21, 20),
            datetime(2004, 11, 9, 11, 33, 20),
            datetime(2018, 3, 3),
            datetime(2018, 3, 20, 6, 0, 6),
        ],
        f"{AGGREGATION}/toDate",
    ),
    Case(
        "a price with its tax and its discount",
        TAXES,
        _each(
            {
                "$let": {
                    "vars": {
                        "total": {"$add": ["$price", "$tax"]},
                        "discounted": {"$cond": {"if": "$applyDiscount", "then": 0.9, "else": 1}},
                    },
                    "in": {"$multiply": ["$$total", "$$discounted"]},
                }
            }
        ),
        [9.45, 10.25],
        f"{AGGREGATION}/let",
    ),
    Case(
        "$range of the rests on the way",
        DISTANCES,
        _each({"$range": [0, "$distance", 25]}),
        [[0, 25], [0, 25, 50, 75], [*range(0, 218, 25)], [*range(0, 383, 25)]],
        f"{AGGREGATION}/range",
    ),
    Case(
        "$literal of a text with a dollar",
        [{"_id": 1, "price": "$2.50"}, {"_id": 2, "price": "1"}, {"_id": 3, "price": "$1"}],
        _each({"$eq": ["$price", {"$literal": "$1"}]}),
        [False, False, True],
        f"{AGGREGATION}/literal",
    ),
    Case(
        "$map of distances without their fractions",
        [{"_id": 1, "distances": [34.57, 81.96, 44.24]}, {"_id": 2, "distances": []}, {"_id": 3}],
        _each({"$map": {"input": "$distances", "as": "distance", "in": {"$trunc": "$$distance"}}}),
        [[34, 81, 44], [], None],
        f"{AGGREGATION}/map",
    ),
    Case(
        "$switch by the averages of scores",
        [
            {"_id": 1, "name": "Susan Wilkes", "scores": [87, 86, 78]},
            {"_id": 2, "name": "Bob Hanna", "scores": [71, 64, 81]},
            {"_id": 3, "name": "James Torrelio", "scores": [91, 84, 97]},
        ],
        _each(
            {
                "$switch": {
                    "branches": [
                        {"case": {"$gte": [{"$avg": "$scores"}, 90]}, "then": "Doing great!"},
                        {
                            "case": {"$and": [{"$gte": [{"$avg": "$scores"}, 80]}, {"$lt": [{"$avg": "$scores"}, 90]}]},
                            "then": "Doing pretty well.",
                        },
                        {"case": {"$lt": [{"$avg": "$scores"}, 80]}, "then": "Needs improvement."},
                    ],
                    "default": "No scores found.",
                }
            }
        ),
        ["Doing pretty well.", "Needs improvement.", "Doing great!"],
        f"{AGGREGATION}/switch",
    ),
    Case(
        "$indexOfArray of two",
        [
            {"_id": 1, "items": ["one", "two", "three"]},
            {"_id": 2, "items": [1, 2, 3]},
            {"_id": 3, "items": [None, None, 2]},
            {"_id": 4, "items": None},
            {"_id": 5, "amount": 3},
        ],
        _each({"$indexOfArray": ["$items", 2]}),
        [-1, 1, 2, None, None],
        f"{AGGREGATION}/indexOfArray",
    ),
    _no_value("$divide by zero", {"$divide": ["$a", 0]}, BAD_VALUE),
    _no_value("$cond without its other value", {"$cond": {"if": "$a", "then": 1}}, 17082),
    _no_value("$map of nothing", {"$map": {"in": "$$this"}}, 16880),
]


# Transactions


def _told(collection: Any, session: Any, fields: Any) -> Any:
    """The code with which a command in a transaction is refused."""
    try:
        reply = collection.database.command(fields, session=session)
    except OperationFailure as error:
        return error.code
    return reply["writeErrors"][0]["code"] if reply.get("writeErrors") else None


def _inserted_within(collection: Any, session: Any) -> Any:
    return _told(
        collection, session, {"insert": collection.name, "documents": [{"_id": 2, "timestamp": datetime(2021, 5, 18)}]}
    )


def _aborted(collection: Any, session: Any) -> None:
    """A transaction that is aborted by the command."""
    collection.insert_one({"_id": 2}, session=session)
    collection.database.client.admin.command({"abortTransaction": 1}, session=session)


def _inserted_after(collection: Any, session: Any) -> Any:
    _aborted(collection, session)
    return [_inserted_within(collection, session), _ids(stored(collection))]


def _committed_after(collection: Any, session: Any) -> Any:
    _aborted(collection, session)
    session.commit_transaction()


def _made_within(collection: Any) -> Any:
    """A collection that is made in a transaction, before the end of it and after."""
    database = collection.database
    with database.client.start_session() as session:
        session.start_transaction()
        database.others.insert_one({"_id": 1}, session=session)
        before = "others" in database.list_collection_names()
        session.commit_transaction()
    return [before, "others" in database.list_collection_names(), _ids(stored(database.others))]


IN_TRANSACTIONS = [
    Case(
        "an insert into a capped collection, in a transaction",
        [],
        after(made(capped=True, size=4096), _within(_inserted_within)),
        263,
        "manual: core/transactions",
    ),
    Case(
        "an insert into a time series, in a transaction",
        [],
        after(made(timeseries=SERIES), _within(_inserted_within)),
        263,
        "manual: core/timeseries/timeseries-limitations",
    ),
    Case(
        "an insert after the transaction is aborted",
        ONE,
        _within(_inserted_after),
        [251, [1]],
        "server: src/mongo/db/transaction/transaction_participant.cpp",
    ),
    Case(
        "a commit after the transaction is aborted",
        ONE,
        _within(_committed_after),
        NO_TRANSACTION,
        "manual: core/transactions-in-applications",
    ),
    Case(
        "an insert in a transaction makes its collection",
        ONE,
        _made_within,
        [False, True, [1]],
        "manual: core/transactions",
    ),
    Case(
        "listCollections in a transaction",
        ONE,
        _within(lambda collection, session: _told(collection, session, {"listCollections": 1})),
        263,
        "manual: core/transactions",
    ),
]


# Change streams


def _without_token(collection: Any) -> Any:
    """Reads a stream whose events lose their tokens."""
    pipeline = [{"$changeStream": {}}, {"$project": {"_id": 0}}]
    reply = collection.database.command({"aggregate": collection.name, "pipeline": pipeline, "cursor": {}})
    collection.insert_one({"_id": 2})
    for _ in range(10):
        collection.database.command(
            {"getMore": Int64(reply["cursor"]["id"]), "collection": collection.name, "maxTimeMS": 200}
        )


STREAMS = [
    Case(
        "what an insert as an event tells",
        ONE,
        _of(_events(_insert({"_id": 2}), count=1), lambda events: sorted(events[0])),
        ["_id", "clusterTime", "documentKey", "fullDocument", "ns", "operationType", "wallTime"],
        "manual: reference/change-events/insert",
    ),
    Case(
        "a replacement as an event has the whole document",
        ONE,
        _of(
            _events(lambda collection: collection.replace_one({"_id": 1}, {"b": 2}), count=1),
            lambda events: [events[0]["operationType"], events[0]["fullDocument"], "updateDescription" in events[0]],
        ),
        ["replace", {"_id": 1, "b": 2}, False],
        "manual: reference/change-events/replace",
    ),
    Case(
        "a stream of one user, with a field that is added",
        ONE,
        _of(
            _events(
                _insert({"_id": 2, "username": "bob"}),
                _insert({"_id": 3, "username": "alice"}),
                count=1,
                pipeline=[
                    {"$match": {"$or": [{"fullDocument.username": "alice"}, {"operationType": "delete"}]}},
                    {"$addFields": {"newField": "this is an added field!"}},
                ],
            ),
            lambda events: [[each["documentKey"], each["newField"]] for each in events],
        ),
        [[{"_id": 3}, "this is an added field!"]],
        "manual: changeStreams",
    ),
    Case(
        "an array that a pipeline cuts off as an event",
        [{"_id": 1, "a": ["a text that is rather long " * 8] * 20}],
        _of(
            _events(
                lambda collection: collection.update_one({}, [{"$set": {"a": {"$slice": ["$a", 2]}}}]),
                count=1,
            ),
            lambda events: dict(sorted(_plain(events[0]["updateDescription"]).items())),
        ),
        {"removedFields": [], "truncatedArrays": [{"field": "a", "newSize": 2}], "updatedFields": {}},
        "manual: reference/change-events/update",
    ),
    Case(
        "a stream whose events lose their tokens",
        ONE,
        _refusal(_without_token),
        [280, "ChangeStreamFatalError"],
        "manual: changeStreams",
    ),
    Case(
        "a stream with documents that are looked up as there is no way to",
        ONE,
        _refusal(_piped({"$changeStream": {"fullDocument": "sometimes"}})),
        BAD_VALUE,
        f"{AGGREGATION}/changeStream",
    ),
    Case(
        "a stream of admin",
        [],
        _refusal(_admin(aggregate=1, pipeline=[{"$changeStream": {}}], cursor={})),
        NO_NAME,
        "server: src/mongo/db/pipeline/document_source_change_stream.cpp",
    ),
]


# Commands

COMMANDS = [
    Case(
        "getMore of a cursor that is no long",
        ONE,
        _refusal(_database(getMore=5, collection="cases")),
        MISMATCH,
        "server: src/mongo/db/query/getmore_command.idl",
    ),
    Case(
        "find with a batch below zero",
        ONE,
        _refusal(_found(filter={}, batchSize=-1)),
        _location(51024),
        "server: src/mongo/db/query/find_command.idl",
    ),
    Case(
        "aggregate with a document for a pipeline",
        ONE,
        _refusal(command("aggregate", pipeline={"$match": {}}, cursor={})),
        MISMATCH,
        "server: src/mongo/db/pipeline/aggregation_request_helper.cpp",
    ),
    Case(
        "an update with an option that is misspelt",
        ONE,
        _refusal(command("update", updates=[{"q": {}, "u": {"$set": {"a": 2}}, "mutli": True}])),
        UNKNOWN_FIELD,
        "server: src/mongo/db/ops/write_ops.idl",
    ),
]

CASES = [
    *QUERIES,
    *PROJECTIONS,
    *UPDATES,
    *WRITES,
    *INDEXES,
    *COLLECTIONS,
    *VALIDATORS,
    *STAGES,
    *WINDOWS,
    *DATES,
    *EXPRESSIONS,
    *IN_TRANSACTIONS,
    *STREAMS,
    *COMMANDS,
]
