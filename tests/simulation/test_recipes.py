"""Tests that docs/testing-recipes.md shows as recipes.

Most recipes run twice: with gmongo and a deployment in this process, and with PyMongo and a
deployment in a separate process.
"""

from __future__ import annotations

import inspect
import types
from pathlib import Path

import pymongo
import pymongo.errors
import pytest

import gmongo
import gmongo.errors
from gmongo.testing import Deployment, DeploymentProcess, VirtualTime

PAGE = Path(__file__).parents[2] / "docs" / "testing-recipes.md"
DRIVERS = {"gmongo": (gmongo, Deployment), "pymongo": (pymongo, DeploymentProcess)}


@pytest.fixture(params=DRIVERS)
def driver(request):
    return DRIVERS[request.param][0]


@pytest.fixture
def deployment(request, driver):
    with DRIVERS[driver.__name__][1].replica_set(3) as deployment:
        yield deployment


@pytest.fixture
def client(driver, deployment):
    with driver.MongoClient(deployment.uri) as client:
        client.admin.command("ping")
        yield client


def test_transaction_is_retried_after_failover(deployment, client):
    tries = []

    def check_out(session):
        client.shop.stock.update_one({"_id": "tea"}, {"$inc": {"left": -1}}, session=session)
        if tries.append("once more") or len(tries) == 1:
            deployment.members.primary.kill()
        client.shop.orders.insert_one({"item": "tea"}, session=session)

    client.shop.stock.insert_one({"_id": "tea", "left": 5})
    with client.start_session() as session:
        session.with_transaction(check_out)
    assert client.shop.stock.find_one()["left"] == 4
    assert client.shop.orders.count_documents({}) == 1


def test_insert_is_retried_after_overload(deployment, client):
    labels = ["SystemOverloadedError", "RetryableError"]
    rejected = {"failCommands": ["insert"], "errorCode": 462, "errorLabels": labels}
    deployment.set_fail_point("failCommand", {"times": 2}, rejected)
    client.shop.orders.insert_one({"_id": 1})
    assert client.shop.orders.count_documents({}) == 1
    assert len(deployment.commands.named("insert")) == 3


def test_write_is_retried_after_closed_connection(deployment, client):
    deployment.members.primary.drop_after(20, command="insert")
    client.shop.orders.insert_one({"_id": 1})
    assert client.shop.orders.count_documents({}) == 1
    first, second = deployment.commands.named("insert")
    assert first.transaction_number == second.transaction_number


def test_slow_read_times_out(deployment, client, driver):
    slow = {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 2000}
    deployment.set_fail_point("failCommand", {"times": 1}, slow)
    with pytest.raises(driver.errors.ExecutionTimeout):
        client.shop.orders.find_one(max_time_ms=50)
    assert client.shop.orders.find_one(max_time_ms=5000) is None


def test_conflicting_transaction_has_transient_label(client, driver):
    client.shop.stock.insert_one({"_id": "tea", "left": 1})
    with client.start_session() as one, client.start_session() as other:
        one.start_transaction()
        other.start_transaction()
        client.shop.stock.update_one({"_id": "tea"}, {"$inc": {"left": -1}}, session=one)
        with pytest.raises(driver.errors.OperationFailure) as caught:
            client.shop.stock.update_one({"_id": "tea"}, {"$inc": {"left": -1}}, session=other)
        one.commit_transaction()
    assert caught.value.has_error_label("TransientTransactionError")
    assert client.shop.stock.find_one()["left"] == 0


def test_change_stream_resumes_after_step_down(deployment, client):
    with client.shop.orders.watch() as stream:
        client.shop.orders.insert_one({"_id": 1})
        assert next(stream)["documentKey"] == {"_id": 1}
        client.shop.orders.insert_one({"_id": 2})
        deployment.members.primary.step_down()
        deployment.members[0].drop_connections()
        assert next(stream)["documentKey"] == {"_id": 2}


def test_repeated_task_is_paid_once(deployment, client, driver):
    def pay(task):
        once = {"_id": "till", "paid_by": {"$ne": task["_id"]}}
        client.shop.tills.update_one(once, {"$inc": {"cents": task["cents"]}, "$push": {"paid_by": task["_id"]}})

    client.shop.tills.insert_one({"_id": "till", "cents": 0, "paid_by": []})
    failing = {"failCommands": ["update"], "writeConcernError": {"code": 64, "errmsg": "waiting timed out"}}
    deployment.set_fail_point("failCommand", {"times": 1}, failing)
    with pytest.raises(driver.errors.WriteConcernError):
        pay({"_id": 7, "cents": 500})  # the write is done
    pay({"_id": 7, "cents": 500})
    assert client.shop.tills.find_one()["cents"] == 500


def test_carts_expire_after_an_hour():
    with DeploymentProcess.standalone() as deployment, pymongo.MongoClient(deployment.uri) as client:
        client.shop.carts.create_index("at", expireAfterSeconds=3600)
        client.shop.carts.insert_one({"at": client.admin.command("hello")["localTime"]})
        deployment.advance(3500)
        assert client.shop.carts.count_documents({}) == 1
        deployment.advance(200)
        assert client.shop.carts.count_documents({}) == 0


def test_write_waits_for_election_of_30_seconds():
    with (
        VirtualTime() as time,
        Deployment.replica_set(election_delay=30) as deployment,
        gmongo.MongoClient(deployment.uri, serverSelectionTimeoutMS=60_000) as client,
    ):
        client.shop.orders.insert_one({"_id": 1})
        began = time.monotonic()
        deployment.members.primary.kill()
        client.shop.orders.insert_one({"_id": 2})  # milliseconds of real time
        assert time.monotonic() - began >= 30


RECIPES = [
    each for name, each in list(globals().items()) if name.startswith("test_") and isinstance(each, types.FunctionType)
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_page_contains_source_code_of_recipe(recipe):
    source = inspect.getsource(recipe).strip()
    # A recipe has at most fifteen lines of code and the line with its name.
    assert len(source.splitlines()) <= 16
    assert source in PAGE.read_text(encoding="utf-8")
