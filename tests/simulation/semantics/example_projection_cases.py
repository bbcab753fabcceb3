"""The manual's examples of projections, sorts and searches of texts."""

from __future__ import annotations

from typing import Any

from .calls import Call, after
from .cases import Case, find, project
from .examples import FRUIT, INVENTORY, QUERY, STOCK
from .refusals import answers, found, location, make_index, of, piped, plainly_piped, refusal

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


def _searched(name: str, expected: Any, **search: Any) -> Case:
    """The articles that a search finds."""
    terms = {f"${field}": value for field, value in search.items()}
    call = after(make_index({"subject": "text"}), find({"$text": terms}, sort=[("_id", 1)]))
    return Case(name, ARTICLES, call, expected, f"{QUERY}/text")


def _scored(search: str) -> Call:
    """The blogs that a search finds, and their scores."""
    return after(
        make_index(
            {"content": "text", "keywords": "text", "about": "text"},
            name="TextIndex",
            weights={"content": 10, "keywords": 5},
        ),
        plainly_piped(
            {"$match": {"$text": {"$search": search}}},
            {"$project": {"score": {"$meta": "textScore"}}},
            {"$sort": {"score": -1}},
        ),
    )


CASES = [
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
        answers(
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
        refusal(found(projection={"size.uom": 1, "size": 1})),
        location(31250),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "from a lower bound of an index on",
        FRUIT,
        after(
            make_index({"item": 1, "type": 1}),
            found(min={"item": "apple", "type": "jonagold"}, hint={"item": 1, "type": 1}),
        ),
        [3, 4, 5, 7, 10, 9, 8],
        "manual: reference/method/cursor.min",
    ),
    Case(
        "up to an upper bound of an index, that is exclusive",
        FRUIT,
        after(make_index({"price": 1}), found(min={"price": 1.39}, max={"price": 1.99}, hint={"price": 1})),
        [10],
        "manual: reference/method/cursor.max",
    ),
    Case(
        "a lower bound without a hint",
        FRUIT,
        after(
            make_index({"price": 1}),
            of(refusal(found(min={"price": 1.39})), lambda refusal: refusal[0] in (291, 51173)),
        ),
        True,
        "manual: reference/method/cursor.min",
    ),
    _searched("any of several words, by their stems", [1, 2, 3, 4, 7], search="bake coffee cake"),
    _searched("a phrase", [2], search='"coffee shop"'),
    _searched("a text in its case", [2], search="Coffee", caseSensitive=True),
    _searched("a text with its accents", [5], search="CAFÉ", diacriticSensitive=True),
    _searched("a text without its accents, and in another alphabet", [5, 6, 8], search="сы́рники CAFÉS"),
    Case(
        "scores by weights of fields",
        BLOG,
        answers(_scored("ice cream"), _scored("food")),
        [[{"_id": 2, "score": 12}, {"_id": 3, "score": 1.5}], [{"_id": 3, "score": 5.5}, {"_id": 2, "score": 1.1}]],
        "manual: tutorial/control-results-of-text-search",
    ),
    Case(
        "a text within a department",
        DEPARTMENTS,
        after(
            make_index({"dept": 1, "description": "text"}),
            find({"dept": "kitchen", "$text": {"$search": "green"}}),
        ),
        [3],
        "manual: tutorial/limit-number-of-items-scanned-for-text-search",
    ),
    Case(
        "a text without the department that its index begins with",
        DEPARTMENTS,
        after(make_index({"dept": 1, "description": "text"}), refusal(found(filter={"$text": {"$search": "green"}}))),
        [291, "NoQueryExecutionPlans"],
        "server: src/mongo/db/query/query_planner.cpp",
    ),
    Case(
        "a text after another stage",
        ARTICLES,
        after(
            make_index({"subject": "text"}),
            refusal(piped({"$limit": 5}, {"$match": {"$text": {"$search": "coffee"}}})),
        ),
        location(17313),
        "manual: tutorial/text-search-in-aggregation",
    ),
]
