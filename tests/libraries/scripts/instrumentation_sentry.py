from __future__ import annotations

import os

import pymongo
import pytest
import sentry_sdk
from sentry_sdk.integrations.pymongo import PyMongoIntegration


@pytest.fixture
def events():
    events = []
    sentry_sdk.init(
        default_integrations=False,
        integrations=[PyMongoIntegration()],
        traces_sample_rate=1.0,
        before_send_transaction=lambda event, _hint: events.append(event),
        before_send=lambda event, _hint: events.append(event),
    )
    yield events
    sentry_sdk.init()


def test_sentry_transaction_has_span_for_each_command(events):
    with pymongo.MongoClient(os.environ["MONGODB_URI"]) as client:
        client.test.sentry.drop()
        with sentry_sdk.start_transaction(name="t"):
            client.test.sentry.insert_one({"_id": 1})
            list(client.test.sentry.find({"_id": 1}))
            with pytest.raises(pymongo.errors.DuplicateKeyError):
                client.test.sentry.insert_one({"_id": 1})
    spans = events[0]["spans"]
    assert [each["op"] for each in spans] == ["db"] * 3
    assert [each["data"]["db.operation"] for each in spans] == ["insert", "find", "insert"]
    assert {each["data"]["db.mongodb.collection"] for each in spans} == {"sentry"}


def test_sentry_message_has_breadcrumb_for_query(events):
    with pymongo.MongoClient(os.environ["MONGODB_URI"]) as client:
        client.test.sentry.find_one()
        sentry_sdk.capture_message("m")
    crumbs = events[0]["breadcrumbs"]["values"]
    assert "query" in [each["category"] for each in crumbs]
