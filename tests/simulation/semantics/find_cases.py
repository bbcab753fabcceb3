"""Filters and projections, sorts and collations, as the server's tests have them."""

from __future__ import annotations

from .calls import after, attempt
from .cases import Case, find, project
from .refusals import BAD_VALUE, EXPRESSIONS, NO_INDEX, ONE, QUERY, THREE, found, location, make_index, refusal

NULLS = [{"_id": 1, "a": None}, {"_id": 2}, {"_id": 3, "a": 1}]
PRICES = [{"_id": 1, "price": 1.0}, {"_id": 2, "price": 2.5}, {"_id": 3}]
BUDGETS = [
    {"_id": 1, "category": "food", "budget": 400, "spent": 450},
    {"_id": 2, "category": "drinks", "budget": 100, "spent": 150},
    {"_id": 3, "category": "clothes", "budget": 100, "spent": 50},
    {"_id": 4, "category": "misc", "budget": 500, "spent": 300},
    {"_id": 5, "category": "travel", "budget": 200, "spent": 650},
]
INSTOCK = [
    {"_id": 1, "item": "journal", "instock": [{"warehouse": "A", "qty": 5}, {"warehouse": "C", "qty": 15}]},
    {"_id": 2, "item": "notebook", "instock": [{"warehouse": "C", "qty": 5}]},
    {"_id": 3, "item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 15}]},
    {"_id": 4, "item": "planner", "instock": [{"warehouse": "A", "qty": 40}, {"warehouse": "B", "qty": 5}]},
    {"_id": 5, "item": "postcard", "instock": [{"warehouse": "B", "qty": 15}, {"warehouse": "C", "qty": 35}]},
]

FIND = [
    Case("nothing is above null", NULLS, find({"a": {"$gt": None}}), [], f"{QUERY}/null_query_semantics.js"),
    Case(
        "null and what is missing are not below null",
        NULLS,
        find({"a": {"$gte": None}}),
        [1, 2],
        f"{QUERY}/null_query_semantics.js",
    ),
    Case(
        "$not takes documents without the field",
        PRICES,
        find({"price": {"$not": {"$gt": 1.99}}}),
        [1, 3],
        "manual: reference/operator/query/not",
    ),
    Case(
        "$nor takes documents without its fields",
        [{"_id": 1, "price": 1.99}, {"_id": 2, "sale": True}, {"_id": 3, "price": 2, "sale": False}, {"_id": 4}],
        find({"$nor": [{"price": 1.99}, {"sale": True}]}),
        [3, 4],
        "manual: reference/operator/query/nor",
    ),
    Case(
        "$expr compares two fields of a document",
        BUDGETS,
        find({"$expr": {"$gt": ["$spent", "$budget"]}}),
        [1, 2, 5],
        "manual: reference/operator/query/expr",
    ),
    Case(
        "$expr has what is missing below null, and null below numbers",
        [{"_id": 1, "a": 1}, {"_id": 2}, {"_id": 3, "a": None}, {"_id": 4, "a": 9}],
        find({"$expr": {"$lt": ["$a", 5]}}),
        [1, 2, 3],
        f"{EXPRESSIONS}/comparison_missing_and_key_values.js",
    ),
    Case(
        "conditions on fields of documents in an array may be met by different ones",
        INSTOCK,
        find({"instock.qty": 5, "instock.warehouse": "A"}),
        [1, 4],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "a condition on the first document in an array",
        INSTOCK,
        find({"instock.0.qty": {"$lte": 20}}),
        [1, 2, 5],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "a schema as a filter",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": "1"}, {"_id": 3}],
        find({"$jsonSchema": {"required": ["a"], "properties": {"a": {"bsonType": "int"}}}}),
        [1],
        "manual: reference/operator/query/jsonSchema",
    ),
    Case(
        "a filter with a variable of the command",
        THREE,
        found(filter={"$expr": {"$eq": ["$a", "$$wanted"]}}, let={"wanted": 2}),
        [2],
        "manual: reference/command/find",
    ),
    Case(
        "a filter with a variable that there is not",
        THREE,
        refusal(found(filter={"$expr": {"$eq": ["$a", "$$wanted"]}})),
        location(17276),
        "server: src/mongo/db/pipeline/variables.cpp",
    ),
    Case(
        "$text without an index",
        ONE,
        refusal(find({"$text": {"$search": "coffee"}})),
        NO_INDEX,
        "server: src/mongo/db/query/planner_ixselect.cpp",
    ),
    Case(
        "an operator that there is not",
        ONE,
        refusal(find({"a": {"$above": 1}})),
        BAD_VALUE,
        "server: src/mongo/db/matcher/expression_parser.cpp",
    ),
    Case(
        "$and of no conditions",
        ONE,
        refusal(find({"$and": []})),
        BAD_VALUE,
        "server: src/mongo/db/matcher/expression_parser.cpp",
    ),
    Case(
        "find refuses a field that it does not know",
        ONE,
        attempt(found(filter={}, filters={})),
        40415,
        "server: src/mongo/db/query/find_command.idl (the code; its name is not compared)",
    ),
    Case(
        "find refuses a negative skip",
        ONE,
        refusal(found(filter={}, skip=-1)),
        location(51024),
        "server: src/mongo/db/query/find_command.idl",
    ),
    Case(
        "a text is found by its stem, and not by a stop word",
        [{"_id": 1, "s": "I was running"}, {"_id": 2, "s": "they run"}, {"_id": 3, "s": "the walk"}],
        after(
            make_index({"s": "text"}),
            lambda collection: [
                sorted(find({"$text": {"$search": words}})(collection)) for words in ("runs", "the", "WALK")
            ],
        ),
        [[1, 2], [], [3]],
        "manual: reference/operator/query/text",
    ),
]
ACCENTS = [{"_id": place, "a": word} for place, word in enumerate(["cote", "coté", "côte", "côté"])]

SHOWN = [
    Case(
        "included fields are in the order of the document",
        [{"_id": 1, "a": 1, "b": 2, "c": 3}],
        project({"c": 1, "a": 1}),
        {"_id": 1, "a": 1, "c": 3},
        "manual: tutorial/project-fields-from-query-results",
    ),
    Case(
        "find computes a field",
        [{"_id": 1, "price": 5, "quantity": 4}],
        project({"_id": 0, "total": {"$multiply": ["$price", "$quantity"]}}),
        {"total": 20},
        "manual: reference/method/db.collection.find",
    ),
    Case(
        "find shows a field by another name, and a text",
        [{"_id": 1, "a": 7}],
        project({"_id": 0, "b": "$a", "c": "text"}),
        {"b": 7, "c": "text"},
        "manual: reference/method/db.collection.find",
    ),
    Case(
        "an included path leaves out what is no document in an array",
        [{"_id": 1, "a": [{"b": 1, "c": 2}, {"b": 3}, 5]}],
        project({"a.b": 1}),
        {"_id": 1, "a": [{"b": 1}, {"b": 3}]},
        "server: src/mongo/db/exec/inclusion_projection_executor.cpp",
    ),
    Case(
        "an excluded path keeps what is no document in an array",
        [{"_id": 1, "a": [{"b": 1, "c": 2}, {"b": 3}, 5]}],
        project({"a.b": 0}),
        {"_id": 1, "a": [{"c": 2}, {}, 5]},
        "server: src/mongo/db/exec/exclusion_projection_executor.cpp",
    ),
    Case(
        "a path below one that is projected",
        ONE,
        refusal(found(projection={"a": 1, "a.b": 1})),
        location(31249),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "null and what is missing are sorted alike",
        [{"_id": 1, "a": 2}, {"_id": 2}, {"_id": 3, "a": None}, {"_id": 4, "a": 1}],
        found(sort={"a": 1, "_id": -1}),
        [3, 2, 4, 1],
        "manual: reference/bson-type-comparison-order",
    ),
    Case(
        "a page of what is sorted by two fields",
        [{"_id": place, "a": place % 2, "b": place // 2} for place in range(6)],
        found(sort={"a": -1, "b": 1}, skip=1, limit=3),
        [3, 5, 0],
        "manual: reference/method/cursor.skip",
    ),
    Case("the last inserted first", THREE, found(sort={"$natural": -1}), [3, 2, 1], "manual: reference/glossary"),
    Case(
        "a sort by a direction of two",
        ONE,
        refusal(found(sort={"a": 2})),
        location(15975),
        "server: src/mongo/db/query/sort_pattern.cpp",
    ),
    Case(
        "numbers in texts in their order",
        [{"_id": 1, "a": "a10"}, {"_id": 2, "a": "a2"}, {"_id": 3, "a": "a1"}],
        found(sort={"a": 1}, collation={"locale": "en", "numericOrdering": True}),
        [3, 2, 1],
        "manual: reference/collation",
    ),
    Case(
        "upper case first",
        [{"_id": 1, "a": "b"}, {"_id": 2, "a": "a"}, {"_id": 3, "a": "B"}, {"_id": 4, "a": "A"}],
        found(sort={"a": 1}, collation={"locale": "en", "caseFirst": "upper"}),
        [4, 2, 3, 1],
        "manual: reference/collation",
    ),
    Case(
        "accents from the end of the word",
        ACCENTS,
        found(sort={"a": 1}, collation={"locale": "fr", "backwards": True}),
        [0, 2, 1, 3],
        "manual: reference/collation",
    ),
    Case(
        "punctuation that does not count",
        [{"_id": 1, "a": "black-bird"}, {"_id": 2, "a": "black bird"}, {"_id": 3, "a": "blackbirds"}],
        found(filter={"a": "blackbird"}, collation={"locale": "en", "alternate": "shifted"}),
        [1, 2],
        "manual: reference/collation",
    ),
    Case(
        "a collation of no language",
        ONE,
        refusal(found(collation={"locale": "not_a_collation"})),
        BAD_VALUE,
        "server: src/mongo/db/query/collation/collator_factory_icu.cpp",
    ),
]

CASES = [*FIND, *SHOWN]
