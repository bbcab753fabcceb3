"""Collections inherit the timeout of the database or client. An invalid timeout raises an error."""

from __future__ import annotations

import pytest

import gmongo
from gmongo.testing import Deployment
from tests.support.clients import Client, Connect

CLIENT_TIMEOUT_MS, DATABASE_TIMEOUT_MS, COLLECTION_TIMEOUT_MS, BLOCK_TIMEOUT_MS = 64_000, 32_000, 16_000, 4_000


@pytest.fixture
def client(deployment: Deployment, connect: Connect) -> Client:
    client = connect(deployment, timeoutMS=CLIENT_TIMEOUT_MS)
    client.db.c.insert_many([{"_id": number} for number in range(6)])
    deployment.commands.clear()
    return client


def max_times_of_commands(deployment: Deployment, name: str) -> list[int | None]:
    """Return ``maxTimeMS`` of each received command with the given name."""
    return [command.body.get("maxTimeMS") for command in deployment.commands.named(name)]


def assert_max_times_below(deployment: Deployment, name: str, timeout_ms: int) -> None:
    times = max_times_of_commands(deployment, name)
    assert times and all(each is not None and timeout_ms / 2 < each <= timeout_ms for each in times), (name, times)


def has_received_no_operation(deployment: Deployment) -> bool:
    return not deployment.commands.named("find", "aggregate", "insert", "commitTransaction", "abortTransaction")


def test_collection_inherits_timeout_of_database_and_client(client, deployment):
    client.db.c.find_one()
    assert_max_times_below(deployment, "find", CLIENT_TIMEOUT_MS)
    deployment.commands.clear()
    database = client.get_database("db", timeout_ms=DATABASE_TIMEOUT_MS)
    for each in (database, database.with_options(), client.db.with_options(timeout_ms=DATABASE_TIMEOUT_MS)):
        for collection in (each.c, each["c"], each.get_collection("c"), each.c.with_options(), each.x.y):
            collection.find_one()
    assert_max_times_below(deployment, "find", DATABASE_TIMEOUT_MS)
    deployment.commands.clear()
    own = database.get_collection("c", timeout_ms=COLLECTION_TIMEOUT_MS)
    for collection in (own, own.with_options(), own.sub, database.c.with_options(timeout_ms=COLLECTION_TIMEOUT_MS)):
        collection.find_one()
    assert_max_times_below(deployment, "find", COLLECTION_TIMEOUT_MS)
    deployment.commands.clear()
    with gmongo.timeout(BLOCK_TIMEOUT_MS / 1000):
        own.find_one()
    assert_max_times_below(deployment, "find", BLOCK_TIMEOUT_MS)


@pytest.mark.parametrize(
    "create_object",
    [
        lambda client, limit: client.get_database("db", timeout_ms=limit),
        lambda client, limit: client.get_default_database("db", timeout_ms=limit),
        lambda client, limit: client.db.with_options(timeout_ms=limit),
        lambda client, limit: client.db.get_collection("c", timeout_ms=limit),
        lambda client, limit: client.db.c.with_options(timeout_ms=limit),
        lambda client, limit: client.start_session(default_timeout_ms=limit),
        lambda client, limit: client.db.c.find(timeout_ms=limit),
        lambda client, limit: client.db.c.find_one(timeout_ms=limit),
        lambda client, limit: client.db.c.aggregate([], timeout_ms=limit),
        lambda client, limit: client.db.c.watch(timeout_ms=limit),
        lambda client, limit: client.start_session().with_transaction(lambda session: None, timeout_ms=limit),
    ],
)
def test_invalid_timeout_ms_raises_at_creation_of_object(create_object, client, deployment):
    for wrong_timeout in ("1", True, object()):
        with pytest.raises(TypeError, match="timeout_ms must be a number of milliseconds"):
            create_object(client, wrong_timeout)
    for wrong_timeout in (-1, float("nan")):
        with pytest.raises(ValueError, match="timeout_ms must be 0 or more milliseconds"):
            create_object(client, wrong_timeout)
    assert has_received_no_operation(deployment)
