"""On a server that others use as well, the calls touch no database but their own."""

from __future__ import annotations

from collections.abc import Iterator

import pymongo
import pytest

from gmongo.testing import DeploymentProcess

from .scene import ForeignDatabaseError, Scene


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with DeploymentProcess("--replica-set", "1") as deployment:
        yield deployment.uri


@pytest.fixture
def shop(server: str) -> Iterator[pymongo.MongoClient]:
    """A client of a server that has a database ``shop`` with one order."""
    with pymongo.MongoClient(server) as client:
        client.shop.orders.insert_one({"_id": 1})
        yield client
        for name in ("shop", "differential"):
            client.drop_database(name)


def _scene(client: pymongo.MongoClient) -> Scene:
    return Scene(client.address, "a server in use")


def test_what_the_calls_made_is_dropped_and_nothing_else(shop: pymongo.MongoClient) -> None:
    scene = _scene(shop)
    scene.compare("c.insert_one({})")
    scene.compare("client.other.things.insert_one({})")
    scene.compare('client.bulk_write([InsertOne({}, namespace="bulk.things")])')
    shop.meanwhile.things.insert_one({})
    scene.compare("c.insert_one({})")
    scene.close()
    assert set(shop.list_database_names()) - {"admin", "config", "local"} == {"shop", "meanwhile"}
    assert list(shop.shop.orders.find()) == [{"_id": 1}]
    shop.drop_database("meanwhile")


@pytest.mark.parametrize(
    "call",
    [
        "client.drop_database('shop')",
        "client.shop.orders.delete_many({})",
        "client.shop.orders.drop()",
        "client.shop.command({'dropDatabase': 1})",
        'client.bulk_write([InsertOne({"_id": 2}, namespace="shop.orders")])',
    ],
)
def test_a_call_on_a_foreign_database_does_not_reach_the_server(shop: pymongo.MongoClient, call: str) -> None:
    scene = _scene(shop)
    with pytest.raises(ForeignDatabaseError, match="shop"):
        scene.compare(call)
    scene.close()
    assert list(shop.shop.orders.find()) == [{"_id": 1}]


def test_a_database_of_the_calls_own_name_is_not_taken_over(shop: pymongo.MongoClient) -> None:
    shop.differential.precious.insert_one({"_id": 1})
    with pytest.raises(ForeignDatabaseError, match="'differential' already"):
        _scene(shop)
    assert shop.differential.precious.count_documents({}) == 1
