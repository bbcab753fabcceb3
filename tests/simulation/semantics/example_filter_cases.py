"""The manual's examples of filters, and filters that are refused."""

from __future__ import annotations

from typing import Any

from bson import Int64, Regex

from .cases import Case, find
from .examples import INVENTORY, QUERY, STOCK
from .refusals import BAD_VALUE, NO_OPERATOR, ONE, answers, found, refusal

PARSER = "server: src/mongo/db/matcher/expression_parser.cpp"
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
    return Case(name, ONE, refusal(found(filter=filter)), list(expected), source)


CASES = [
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
        answers(find({"instock": {"warehouse": "A", "qty": 5}}), find({"instock": {"qty": 5, "warehouse": "A"}})),
        [[1], []],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "one document within bounds, or one above and another below",
        STOCK,
        answers(
            find({"instock": {"$elemMatch": {"qty": {"$gt": 10, "$lte": 20}}}}),
            find({"instock.qty": {"$gt": 10, "$lte": 20}}),
        ),
        [[1, 3, 5], [1, 3, 4, 5]],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "$elemMatch with $ne takes any other element, $ne alone refuses all",
        SURVEY,
        answers(
            find({"results": {"$elemMatch": {"product": {"$ne": "xyz"}}}}),
            find({"results.product": {"$ne": "xyz"}}),
        ),
        [[1, 2, 3, 4], [4]],
        f"{QUERY}/elemMatch",
    ),
    Case(
        "$type of a text, and of any number",
        ADDRESSES,
        answers(find({"zipCode": {"$type": "string"}}), find({"zipCode": {"$type": "number"}})),
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
        answers(
            find({"quantity": {"$nin": [5, 15]}}),
            find({"quantity": {"$exists": True, "$nin": [5, 15]}}),
        ),
        [[1, 3], [1]],
        f"{QUERY}/nin",
    ),
    Case(
        "descendants by materialized paths",
        PATHS,
        answers(
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
