"""The call runner protects databases of other users on a shared server."""

from __future__ import annotations

from collections.abc import Iterator

import pymongo
import pytest

from gmongo.testing import DeploymentProcess
from tests.support.cases import with_cases

from .call_runner import CallRunner, ForeignDatabaseError


@pytest.fixture(scope="module")
def server_uri() -> Iterator[str]:
    with DeploymentProcess("--replica-set", "1") as deployment:
        yield deployment.uri


@pytest.fixture
def client(server_uri: str) -> Iterator[pymongo.MongoClient]:
    """Yield a client of a simulated server.

    The server has one database of another user: ``shop``, with one document.
    """
    with pymongo.MongoClient(server_uri) as client:
        client.shop.orders.insert_one({"_id": 1})
        yield client
        for name in ("shop", "differential"):
            client.drop_database(name)


def _call_runner(client: pymongo.MongoClient) -> CallRunner:
    return CallRunner(client.address, "a server in use")


def test_close_of_call_runner_drops_only_databases_of_calls(client: pymongo.MongoClient) -> None:
    runner = _call_runner(client)
    runner.compare("c.insert_one({})")
    runner.compare("client.other.things.insert_one({})")
    runner.compare('client.bulk_write([InsertOne({}, namespace="bulk.things")])')
    client.foreign.things.insert_one({})
    runner.compare("c.insert_one({})")
    runner.close()
    assert set(client.list_database_names()) - {"admin", "config", "local"} == {"shop", "foreign"}
    assert list(client.shop.orders.find()) == [{"_id": 1}]
    client.drop_database("foreign")


@with_cases
def test_call_on_existing_database_raises_error_before_send(client: pymongo.MongoClient, call: str) -> None:
    runner = _call_runner(client)
    with pytest.raises(ForeignDatabaseError, match="shop"):
        runner.compare(call)
    runner.close()
    assert list(client.shop.orders.find()) == [{"_id": 1}]


def test_call_runner_rejects_server_with_database_of_same_name(client: pymongo.MongoClient) -> None:
    client.differential.precious.insert_one({"_id": 1})
    with pytest.raises(ForeignDatabaseError, match="already has the database 'differential'"):
        _call_runner(client)
    assert client.differential.precious.count_documents({}) == 1
