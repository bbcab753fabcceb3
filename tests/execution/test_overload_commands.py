"""The driver retries every command after an overload error, at most five times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo import IndexModel, InsertOne, UpdateMany, UpdateOne
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import BOTH, OVERLOADED, RETRYABLE, fail, overload_reply, reply_in_sequence
from tests.support.clients import Client, Connect
from tests.support.server import ScriptedServer

# For each case, the name of the command, and a function that sends the command.
COMMANDS: dict[str, tuple[str, Callable[[Client], Any]]] = {
    "update_many": ("update", lambda client: client.db.c.update_many({}, {"$set": {"y": 1}})),
    "delete_many": ("delete", lambda client: client.db.c.delete_many({})),
    "bulk with update_many": ("update", lambda client: client.db.c.bulk_write([UpdateMany({}, {"$set": {"y": 2}})])),
    "create": ("create", lambda client: client.db.create_collection("new")),
    "drop": ("drop", lambda client: client.db.c.drop()),
    "dropDatabase": ("dropDatabase", lambda client: client.drop_database("other")),
    "createIndexes": ("createIndexes", lambda client: client.db.c.create_indexes([IndexModel("x")])),
    "dropIndexes": ("dropIndexes", lambda client: client.db.c.drop_indexes()),
    "runCommand": ("ping", lambda client: client.db.command("ping")),
    "insert by command": ("insert", lambda client: client.db.command("insert", "c", documents=[{"z": 1}])),
    "find by cursor_command": ("find", lambda client: list(client.db.cursor_command("find", "c"))),
    "aggregate with $out": ("aggregate", lambda client: client.db.c.aggregate([{"$match": {}}, {"$out": "copy"}])),
    "getMore": ("getMore", lambda client: list(client.db.c.find(batch_size=2))),
    "getMore of an aggregate": ("getMore", lambda client: list(client.db.c.aggregate([{"$match": {}}], batchSize=2))),
    "getMore of a command": ("getMore", lambda client: list(client.db.cursor_command("find", "c", batchSize=2))),
    "clientBulkWrite": (
        "bulkWrite",
        lambda client: client.bulk_write([UpdateMany({}, {"$set": {"y": 3}}, namespace="db.c")]),
    ),
    "find": ("find", lambda client: client.db.c.find_one({})),
    "aggregate": ("aggregate", lambda client: list(client.db.c.aggregate([{"$match": {}}]))),
    "distinct": ("distinct", lambda client: client.db.c.distinct("x")),
    "count": ("aggregate", lambda client: client.db.c.count_documents({})),
    "estimate": ("count", lambda client: client.db.c.estimated_document_count()),
    "listCollections": ("listCollections", lambda client: client.db.list_collection_names()),
    "listDatabases": ("listDatabases", lambda client: client.list_database_names()),
    "listIndexes": ("listIndexes", lambda client: list(client.db.c.list_indexes())),
    "insert_one": ("insert", lambda client: client.db.c.insert_one({"y": 1})),
    "insert_many": ("insert", lambda client: client.db.c.insert_many([{"y": 1}, {"y": 2}])),
    "update_one": ("update", lambda client: client.db.c.update_one({}, {"$set": {"y": 1}})),
    "replace_one": ("update", lambda client: client.db.c.replace_one({"_id": 1}, {"y": 1})),
    "delete_one": ("delete", lambda client: client.db.c.delete_one({})),
    "find_one_and_update": ("findAndModify", lambda client: client.db.c.find_one_and_update({}, {"$set": {"y": 1}})),
    "bulk_write": ("insert", lambda client: client.db.c.bulk_write([InsertOne({}), UpdateOne({}, {"$set": {"y": 1}})])),
    "watch": ("aggregate", lambda client: client.db.c.watch().close()),
}


@pytest.mark.requirement("BP-01", "BP-07", "BP-72")
@pytest.mark.parametrize("case", COMMANDS)
def test_overloaded_command_is_retried(deployment: Deployment, client: Client, sleeps: list[float], case: str) -> None:
    name, run = COMMANDS[case]
    client.db.c.insert_many([{"_id": number, "x": number} for number in range(3)])
    run(client)
    expected = len(deployment.commands.named(name))
    client.db.c.drop()
    client.db.drop_collection("new")
    client.db.c.insert_many([{"_id": number, "x": number} for number in range(3)])
    deployment.commands.clear()
    fail(deployment, name, times=2)
    run(client)
    sent = len(deployment.commands.named(name))
    assert sent >= 3
    assert (case in ("drop", "insert_many", "insert_one", "bulk_write", "insert by command")) or sent == expected + 2
    assert sleeps == [0.1, 0.2]


@pytest.mark.requirement("BP-14", "BP-17", "BP-30", "BP-36", "BP-44")
@pytest.mark.parametrize("case", ["update_many", "create", "runCommand", "find", "insert_one", "clientBulkWrite"])
def test_overloaded_command_fails_after_six_attempts(
    deployment: Deployment, client: Client, sleeps: list[float], case: str
) -> None:
    name, run = COMMANDS[case]
    client.db.c.insert_many([{"_id": number, "x": number} for number in range(3)])
    deployment.commands.clear()
    fail(deployment, name)
    with pytest.raises(OperationFailure) as raised:
        run(client)
    # The code of a ClientBulkWriteException is in its attribute `error`.
    assert getattr(raised.value, "error", raised.value).code == 462
    assert len(deployment.commands.named(name)) == 6
    assert len(sleeps) == 5


@pytest.mark.requirement("BP-17", "BP-44")
@pytest.mark.parametrize("retries", [0, 1, 2, 7])
def test_max_adaptive_retries_limits_the_number_of_retries(
    deployment: Deployment, connect: Connect, sleeps: list[float], retries: int
) -> None:
    client = connect(deployment, maxAdaptiveRetries=retries)
    fail(deployment, "ping")
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert len(deployment.commands.named("ping")) == retries + 1
    assert client.retry_stats()["retries"] == len(sleeps) == retries


@pytest.mark.requirement("BP-14", "BP-17")
def test_get_more_that_fails_six_times_closes_cursor(
    deployment: Deployment, client: Client, sleeps: list[float]
) -> None:
    client.db.c.insert_many([{} for _ in range(5)])
    fail(deployment, "getMore")
    cursor = client.db.c.find(batch_size=2)
    with pytest.raises(OperationFailure) as raised:
        list(cursor)
    assert raised.value.code == 462
    assert len(deployment.commands.named("getMore")) == 6
    (kill,) = deployment.commands.named("killCursors")
    assert kill.body["cursors"] == [deployment.commands.named("getMore")[0].body["getMore"]]
    assert not cursor.alive


@pytest.mark.requirement("BP-04")
def test_rate_limit_error_has_overload_labels(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    client.db.command("ping")
    deployment.rate_limit(requests=1e-6, burst=1.0)
    client.db.command("ping")
    with pytest.raises(OperationFailure) as raised:
        client.db.command("ping")
    assert raised.value.code == 462
    assert raised.value.has_error_label(OVERLOADED)
    assert raised.value.has_error_label(RETRYABLE)
    assert "Rate limiter 'ingressRequestRateLimiter' rate exceeded" in str(raised.value)
    assert raised.value.details["codeName"] == "IngressRequestRateLimitExceeded"


@pytest.mark.requirement("BP-07")
def test_kill_cursors_and_end_sessions_are_not_retried(
    deployment: Deployment, client: Client, sleeps: list[float]
) -> None:
    client.db.c.insert_many([{} for _ in range(5)])
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    fail(deployment, "killCursors", "endSessions")
    cursor.close()
    # Let the client create a second session, which `close` ends with `endSessions`. The client ends
    # the first session with `killSessions`.
    client.db.c.find_one()
    client.close()
    assert len(deployment.commands.named("killCursors")) == 1
    assert len(deployment.commands.named("endSessions")) == 1
    assert sleeps == []


def test_number_of_retries_is_limited_for_each_batch(
    server: ScriptedServer, connect: Connect, sleeps: list[float]
) -> None:
    server.hello_extra["maxWriteBatchSize"] = 1
    client = connect(f"mongodb://{server.name}")
    reply_in_sequence(
        server, "insert", *[overload_reply()] * 4, {"ok": 1, "n": 1}, *[overload_reply()] * 4, {"ok": 1, "n": 1}
    )
    assert len(client.db.c.insert_many([{"_id": 1}, {"_id": 2}]).inserted_ids) == 2
    assert sleeps == [0.1, 0.2, 0.4, 0.8] * 2
    numbers = [command["txnNumber"] for command in server.commands("insert")]
    assert numbers == [numbers[0]] * 5 + [numbers[0] + 1] * 5


def test_retry_stats_count_retries_and_backoff(deployment: Deployment, client: Client, sleeps: list[float]) -> None:
    assert client.retry_stats() == {"tokens": 1000, "retries": 0, "slept": 0, "exhausted": 0}
    fail(deployment, "ping", times=2, labels=BOTH)
    client.db.command("ping")
    stats = client.retry_stats()
    assert (stats["retries"], stats["exhausted"]) == (2, 0)
    assert stats["tokens"] == pytest.approx(999.1)
    assert stats["slept"] == pytest.approx(0.3)
