"""Commands of administration, and plans as explain tells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import Call, after
from .cases import Case
from .refusals import (
    BAD_VALUE,
    CATALOG,
    ONE,
    OPTIONS,
    QUERY,
    TENS,
    UNAUTHORIZED,
    admin,
    database_command,
    indexed,
    integers,
    listed_collections,
    refusal,
)

VERSIONED = f"{QUERY}/api/api_version_parameters.js"
EXPLAINED = f"{QUERY}/explain"


def _explain(fields: Any, of: Callable[[Any], Any], verbosity: str = "executionStats") -> Call:
    return lambda collection: of(collection.database.command({"explain": fields, "verbosity": verbosity}))


def _of_database(collection: Any) -> Any:
    client, name = collection.database.client, f"{collection.database.name}_sizes"
    client.drop_database(name)
    try:
        client[name].sizes.create_index([("x", 1)])
        client[name].sizes.insert_one({"_id": 1, "x": 1})
        found = client[name].command({"dbStats": 1})
        fields = ["collections", "views", "objects", "avgObjSize", "dataSize", "indexes", "scaleFactor"]
        return [found["db"] == name, *(float(found[field]) for field in fields)]
    finally:
        client.drop_database(name)


ADMINISTRATION = [
    Case(
        "dbStats of one document",
        [],
        _of_database,
        [True, 1.0, 0.0, 1.0, 21.0, 21.0, 2.0, 1.0],
        f"{CATALOG}/db_stats.js",
    ),
    Case(
        "dbStats refuses a scale of zero",
        ONE,
        refusal(database_command(dbStats=1, scale=0)),
        BAD_VALUE,
        f"{CATALOG}/db_stats.js",
    ),
    Case(
        "databases are listed by their names alone",
        ONE,
        lambda collection: admin(
            of=lambda reply: [each == {"name": collection.database.name} for each in reply["databases"]],
            listDatabases=1,
            nameOnly=True,
            filter={"name": collection.database.name},
        )(collection),
        [True],
        f"{CATALOG}/list_databases.js",
    ),
    Case(
        "databases are not listed by another than admin",
        ONE,
        refusal(database_command(listDatabases=1)),
        UNAUTHORIZED,
        "manual: reference/command/listDatabases",
    ),
    Case(
        "hello says the limits",
        ONE,
        admin(
            of=lambda reply: [
                reply["isWritablePrimary"],
                reply["maxBsonObjectSize"],
                reply["maxMessageSizeBytes"],
                reply["maxWriteBatchSize"],
                reply["logicalSessionTimeoutMinutes"],
                reply["readOnly"],
            ],
            hello=1,
        ),
        [True, 16777216, 48000000, 100000, 30, False],
        "manual: reference/command/hello",
    ),
    Case(
        "buildInfo says the version in numbers too",
        ONE,
        admin(
            of=lambda reply: [
                reply["version"].split("-")[0] == ".".join(map(str, reply["versionArray"][:3])),
                len(reply["versionArray"]),
                reply["maxBsonObjectSize"],
                reply["bits"],
            ],
            buildInfo=1,
        ),
        [True, 4, 16777216, 64],
        "manual: reference/command/buildInfo",
    ),
    Case(
        "an unknown command",
        ONE,
        refusal(database_command(noSuchCommandAtAll=1)),
        [59, "CommandNotFound"],
        "server: src/mongo/base/error_codes.yml",
    ),
    Case(
        "a parameter that there is not",
        ONE,
        refusal(admin(setParameter=1, noSuchParameter=1)),
        OPTIONS,
        "server: src/mongo/db/commands/parameters.cpp",
    ),
    Case(
        "a version of the API that there is not",
        ONE,
        refusal(database_command(ping=1, apiVersion="2")),
        [322, "APIVersionError"],
        VERSIONED,
    ),
    Case(
        "a command that the API has not",
        ONE,
        refusal(database_command(buildInfo=1, apiVersion="1", apiStrict=True)),
        [323, "APIStrictError"],
        VERSIONED,
    ),
    Case(
        "explain of a scan",
        TENS,
        _explain(
            {"find": "cases", "filter": {"b": 1}},
            lambda found: [
                found["queryPlanner"]["winningPlan"]["stage"],
                found["queryPlanner"]["namespace"].split(".")[-1],
                found["executionStats"]["executionSuccess"],
                *integers(
                    found["executionStats"][field] for field in ("nReturned", "totalKeysExamined", "totalDocsExamined")
                ),
            ],
        ),
        ["COLLSCAN", "cases", True, 0, 0, 10],
        "manual: reference/explain-results",
    ),
    Case(
        "explain of an index",
        TENS,
        indexed(
            {"a": 1},
            _explain(
                {"find": "cases", "filter": {"a": 1}},
                lambda found: [
                    found["queryPlanner"]["winningPlan"]["stage"],
                    *(
                        found["queryPlanner"]["winningPlan"]["inputStage"][field]
                        for field in ("stage", "keyPattern", "indexName", "isMultiKey", "direction", "indexBounds")
                    ),
                ],
                "queryPlanner",
            ),
        ),
        ["FETCH", "IXSCAN", {"a": 1}, "a_1", False, "forward", {"a": ["[1, 1]"]}],
        "manual: reference/explain-results",
    ),
    Case(
        "explain of a count",
        TENS,
        indexed(
            {"a": 1, "_id": 1},
            _explain(
                {"count": "cases", "query": {"a": 1}, "skip": 3},
                lambda found: [
                    found["executionStats"]["executionStages"]["stage"],
                    int(found["executionStats"]["executionStages"]["nCounted"]),
                ],
            ),
        ),
        ["COUNT", 7],
        f"{EXPLAINED}/explain_count.js",
    ),
    Case(
        "explain of an upsert makes no collection",
        [],
        after(
            _explain(
                {"update": "cases", "updates": [{"q": {"a": 1}, "u": {"a": 1}, "upsert": True}]},
                lambda found: found["ok"],
            ),
            listed_collections({"name": "cases"}),
        ),
        [],
        f"{EXPLAINED}/explain_upsert.js",
    ),
]


CASES = [*ADMINISTRATION]
