from __future__ import annotations

import os

import gevent
import pymongo
import pytest
from flask import Flask, session
from flask_session import Session


@pytest.fixture
def app():
    app = Flask("test")
    client = pymongo.MongoClient(os.environ["MONGODB_URI"])
    app.config.update(
        SESSION_TYPE="mongodb",
        SESSION_MONGODB=client,
        SESSION_MONGODB_DB="flask",
        SESSION_MONGODB_COLLECT="sessions",
    )
    Session(app)

    @app.get("/set/<value>")
    def put(value):
        session["value"] = value
        return "set"

    @app.get("/get")
    def get():
        return session.get("value", "nothing")

    @app.get("/clear")
    def clear():
        session.clear()
        return "cleared"

    yield app
    client.drop_database("flask")
    client.close()


def test_session_is_stored_and_cleared(app):
    browser = app.test_client()
    assert browser.get("/get").text == "nothing"
    browser.get("/set/five")
    assert browser.get("/get").text == "five"
    browser.get("/set/six")
    assert browser.get("/get").text == "six"
    assert app.config["SESSION_MONGODB"].flask.sessions.count_documents({}) == 1
    browser.get("/clear")
    assert browser.get("/get").text == "nothing"


def test_twenty_browsers_have_separate_sessions(app):
    def visit(number):
        browser = app.test_client()
        browser.get(f"/set/{number}")
        return browser.get("/get").text

    visits = [gevent.spawn(visit, number) for number in range(20)]
    gevent.joinall(visits, raise_error=True)
    assert [each.value for each in visits] == [str(number) for number in range(20)]


def test_expiration_creates_ttl_index(app):
    app.test_client().get("/set/x")
    information = app.config["SESSION_MONGODB"].flask.sessions.index_information()
    assert any(index.get("expireAfterSeconds") == 0 for index in information.values())
