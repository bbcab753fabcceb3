"""The manual's examples of stages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .cases import Case
from .examples import AGGREGATION
from .refusals import NO_OPERATOR, ONE, location, of, piped, plainly_piped, refusal

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
    expected = location(expected) if isinstance(expected, int) else expected
    return Case(name, ONE, refusal(piped(*stages)), expected, f"server: {source}")


CASES = [
    Case(
        "the three youngest engineers",
        ENGINEERS,
        piped(
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
        plainly_piped(
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
        plainly_piped(
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
        plainly_piped(
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
        plainly_piped(
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
        plainly_piped(
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
        plainly_piped(
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
        plainly_piped(
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
        plainly_piped(
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
        piped({"$project": {"myArray": ["$x", "$y", "$someField"]}}),
        [{"_id": 1, "myArray": [1, 1, None]}],
        f"{AGGREGATION}/project",
    ),
    Case(
        "a subquery that has nothing to do with the document",
        ABSENCES,
        piped(
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
        piped(
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
        of(
            piped(
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
        plainly_piped(
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
        plainly_piped({"$group": {"_id": "$quiz", "stdDev": {"$stdDevPop": "$score"}}}, {"$sort": {"_id": 1}}),
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
