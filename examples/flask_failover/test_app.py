"""Tests of the application with a failing replica set. Run them with ``pytest examples/flask_failover``."""

from __future__ import annotations

import gevent
import pytest

from examples.flask_failover.app import create_app
from gmongo import MongoClient
from gmongo.testing import Deployment


@pytest.fixture
def replica_set():
    with Deployment.replica_set(members=3, election_delay=0.05) as deployment:
        yield deployment


@pytest.fixture
def browser(replica_set):
    with MongoClient(replica_set.uri, serverSelectionTimeoutMS=1000) as client:
        yield create_app(client).test_client()


def place(browser, number):
    return browser.put(f"/orders/{number}", json={"item": "tea"}).status_code


def test_step_down_neither_loses_nor_repeats_an_order(replica_set, browser):
    placing = [gevent.spawn_later(number / 500, place, browser, number) for number in range(50)]
    gevent.sleep(0.03)
    replica_set.members.primary.step_down()
    gevent.joinall(placing)
    assert {each.value for each in placing} == {201}
    assert browser.get("/orders").json["orders"] == list(range(50))


def test_lost_reply_does_not_lose_the_order(replica_set, browser):
    assert place(browser, 1) == 201
    replica_set.members.primary.drop_after(0, command="insert")
    assert place(browser, 2) == 201
    assert len(replica_set.commands.named("insert")) == 3
    assert browser.get("/orders").json["orders"] == [1, 2]


def test_insert_is_retried_when_server_is_overloaded(replica_set, browser):
    labels = ["SystemOverloadedError", "RetryableError"]
    data = {"failCommands": ["insert"], "errorCode": 462, "errorLabels": labels}
    replica_set.set_fail_point("failCommand", {"times": 1}, data)
    assert place(browser, 1) == 201


def test_order_gets_status_503_without_a_primary(replica_set, browser):
    for member in replica_set.members[1:]:
        member.kill()
    assert place(browser, 1) == 503
    replica_set.members[1].restart()
    assert place(browser, 1) == 201
