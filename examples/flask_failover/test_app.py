"""Tests of the Flask application with a replica set whose members fail.

Run the tests with ``pytest examples/flask_failover``.
"""

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
def http_client(replica_set):
    with MongoClient(replica_set.uri, serverSelectionTimeoutMS=1000) as client:
        yield create_app(client).test_client()


def place_order(http_client, number):
    return http_client.put(f"/orders/{number}", json={"item": "tea"}).status_code


def test_each_order_is_stored_once_if_primary_steps_down(replica_set, http_client):
    greenlets = [gevent.spawn_later(n / 500, place_order, http_client, n) for n in range(50)]
    gevent.sleep(0.03)
    replica_set.members.primary.step_down()
    gevent.joinall(greenlets)
    assert {greenlet.value for greenlet in greenlets} == {201}
    assert http_client.get("/orders").json["orders"] == list(range(50))


def test_insert_is_retried_if_reply_is_lost(replica_set, http_client):
    assert place_order(http_client, 1) == 201
    replica_set.members.primary.drop_after(0, command="insert")
    assert place_order(http_client, 2) == 201
    assert len(replica_set.commands.named("insert")) == 3
    assert http_client.get("/orders").json["orders"] == [1, 2]


def test_insert_is_retried_if_server_is_overloaded(replica_set, http_client):
    labels = ["SystemOverloadedError", "RetryableError"]
    data = {"failCommands": ["insert"], "errorCode": 462, "errorLabels": labels}
    replica_set.set_fail_point("failCommand", {"times": 1}, data)
    assert place_order(http_client, 1) == 201


def test_order_fails_with_status_503_if_replica_set_has_no_primary(replica_set, http_client):
    for member in replica_set.members[1:]:
        member.kill()
    assert place_order(http_client, 1) == 503
    replica_set.members[1].restart()
    assert place_order(http_client, 1) == 201
