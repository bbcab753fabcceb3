from __future__ import annotations

import os

import gevent
import pymongo
import pytest
from flask import Flask
from flask_limiter import Limiter
from limits import RateLimitItemPerMinute
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter

URI = os.environ["MONGODB_URI"]


@pytest.fixture(autouse=True)
def drop_limits():
    yield
    with pymongo.MongoClient(URI) as client:
        client.drop_database("limits")


@pytest.mark.parametrize("strategy", ["fixed-window", "moving-window"])
def test_requests_above_limit_fail_with_status_429(strategy):
    app = Flask("test")
    limiter = Limiter(lambda: "me", app=app, storage_uri=URI, strategy=strategy)

    @app.get("/")
    @limiter.limit("5 per minute")
    def index():
        return "ok"

    visits = [gevent.spawn(lambda: app.test_client().get("/").status_code) for _ in range(12)]
    gevent.joinall(visits, raise_error=True)
    assert sorted(each.value for each in visits) == [200] * 5 + [429] * 7
    limiter.reset()
    assert app.test_client().get("/").status_code == 200


@pytest.mark.parametrize("kind", [FixedWindowRateLimiter, MovingWindowRateLimiter])
def test_storage_rejects_hits_above_limit(kind):
    storage = storage_from_string(URI)
    assert storage.check()
    limiter, item = kind(storage), RateLimitItemPerMinute(3)
    assert [limiter.hit(item, "a") for _ in range(4)] == [True, True, True, False]
    assert limiter.test(item, "b")
    assert limiter.get_window_stats(item, "a").remaining == 0
    assert storage.reset()
