"""Limits of time by object: client, database, collection, session, transaction and cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gmongo
from gmongo.client_session import SessionOptions
from gmongo.cursor import CursorType
from gmongo.engines.server_cursor import ServerCursor
from gmongo.errors import ConfigurationError, InvalidOperation, PyMongoError
from gmongo.gridfs import GridFSBucket
from gmongo.testing import Deployment
from tests.execution.harness import slow
from tests.support.clients import Client

CLIENT, DATABASE, COLLECTION, OPERATION, BLOCK = 64_000, 32_000, 16_000, 8_000, 4_000


@pytest.fixture
def client(deployment: Deployment, connect: Callable[..., Client]) -> Client:
    client = connect(deployment, timeoutMS=CLIENT)
    client.db.c.insert_many([{"_id": number} for number in range(6)])
    deployment.commands.clear()
    return client


def told(deployment: Deployment, name: str) -> list[int | None]:
    """The ``maxTimeMS`` of all commands of this name, which is a little less than the limit."""
    return [command.body.get("maxTimeMS") for command in deployment.commands.named(name)]


def assert_limit(deployment: Deployment, name: str, limit: int) -> None:
    found = told(deployment, name)
    assert found and all(each is not None and limit / 2 < each <= limit for each in found), (name, found)


def nothing_asked(deployment: Deployment) -> bool:
    return not deployment.commands.named("find", "aggregate", "insert", "commitTransaction", "abortTransaction")


# What inherits from what


def test_a_collection_inherits_from_its_database_and_that_from_the_client(client, deployment):
    client.db.c.find_one()
    assert_limit(deployment, "find", CLIENT)
    deployment.commands.clear()
    database = client.get_database("db", timeout_ms=DATABASE)
    for each in (database, database.with_options(), client.db.with_options(timeout_ms=DATABASE)):
        for collection in (each.c, each["c"], each.get_collection("c"), each.c.with_options(), each.x.y):
            collection.find_one()
    assert_limit(deployment, "find", DATABASE)
    deployment.commands.clear()
    own = database.get_collection("c", timeout_ms=COLLECTION)
    for collection in (own, own.with_options(), own.sub, database.c.with_options(timeout_ms=COLLECTION)):
        collection.find_one()
    assert_limit(deployment, "find", COLLECTION)
    deployment.commands.clear()
    with gmongo.timeout(BLOCK / 1000):
        own.find_one()
    assert_limit(deployment, "find", BLOCK)


def test_a_bucket_inherits_from_its_database(client, deployment):
    bucket = GridFSBucket(client.get_database("db", timeout_ms=DATABASE))
    file_id = bucket.upload_from_stream("f", b"content")
    assert bucket.open_download_stream(file_id).read() == b"content"
    bucket.delete(file_id)
    for name in ("find", "insert", "delete"):
        assert_limit(deployment, name, DATABASE)


@pytest.mark.parametrize(
    "make",
    [
        lambda client, limit: client.get_database("db", timeout_ms=limit),
        lambda client, limit: client.get_default_database("db", timeout_ms=limit),
        lambda client, limit: client.db.with_options(timeout_ms=limit),
        lambda client, limit: client.db.get_collection("c", timeout_ms=limit),
        lambda client, limit: client.db.c.with_options(timeout_ms=limit),
        lambda client, limit: client.start_session(default_timeout_ms=limit),
        lambda client, limit: client.db.c.find(timeout_ms=limit),
        lambda client, limit: client.db.c.aggregate([], timeout_ms=limit),
        lambda client, limit: client.db.c.watch(timeout_ms=limit),
        lambda client, limit: client.start_session().with_transaction(lambda session: None, timeout_ms=limit),
    ],
)
def test_what_is_no_limit_is_refused_when_the_object_is_made(make, client, deployment):
    for wrong in ("1", True, object()):
        with pytest.raises(TypeError, match="timeout_ms must be a number of milliseconds"):
            make(client, wrong)
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="timeout_ms must be 0 or more milliseconds"):
            make(client, wrong)
    assert nothing_asked(deployment)


# Sessions and transactions


def test_a_session_has_a_limit_for_commit_and_abort(client, deployment):
    assert SessionOptions(default_timeout_ms=DATABASE).default_timeout_ms == DATABASE
    with client.start_session(default_timeout_ms=DATABASE) as session:
        with session.start_transaction():
            client.db.c.insert_one({}, session=session)
        with session.start_transaction():
            client.db.c.insert_one({}, session=session)
            session.abort_transaction()
    assert_limit(deployment, "insert", CLIENT)  # operations have that of their collection
    assert_limit(deployment, "commitTransaction", DATABASE)
    assert_limit(deployment, "abortTransaction", DATABASE)


def test_a_commit_and_an_abort_may_have_their_own(client, deployment):
    with client.start_session() as session:
        for end in (session.commit_transaction, session.abort_transaction):
            session.start_transaction()
            client.db.c.insert_one({}, session=session)
            end(timeout_ms=OPERATION)
    assert_limit(deployment, "commitTransaction", OPERATION)
    assert_limit(deployment, "abortTransaction", OPERATION)


@pytest.mark.parametrize("given", ["session", "call"])
def test_all_operations_of_a_transaction_share_its_limit(given, client, deployment):
    limited = client.db.get_collection("c", timeout_ms=COLLECTION)
    with client.start_session(default_timeout_ms=DATABASE) as session:
        limit = DATABASE if given == "session" else OPERATION
        timeout_ms = None if given == "session" else OPERATION
        session.with_transaction(lambda session: limited.insert_one({}, session=session), timeout_ms=timeout_ms)
    assert_limit(deployment, "insert", limit)
    assert_limit(deployment, "commitTransaction", limit)


@pytest.mark.parametrize("bound", [False, True])
def test_the_limit_of_a_transaction_cannot_be_changed_inside(bound, client, deployment):
    def callback(session: Any) -> None:
        given = {} if bound else {"session": session}
        for operate in (client.db.c.find, client.db.c.watch):
            with pytest.raises(InvalidOperation, match="limit inside the callback"):
                operate(timeout_ms=OPERATION, **given)
        with pytest.raises(InvalidOperation, match="limit inside the callback"):
            client.db.c.aggregate([], timeout_ms=OPERATION, **given)
        with pytest.raises(InvalidOperation, match="limit inside the callback"):
            session.commit_transaction(timeout_ms=OPERATION)

    with client.start_session() as session:
        if bound:
            with session.bind(end_session=False):
                session.with_transaction(callback)
        else:
            session.with_transaction(callback)
    assert nothing_asked(deployment)


def test_a_limited_collection_uses_the_sessions_of_its_client(client, connect, deployment):
    limited = client.db.get_collection("c", timeout_ms=COLLECTION)
    with client.start_session() as session:
        limited.insert_one({}, session=session)
        with session.bind(end_session=False):
            limited.find_one()
        with pytest.raises(InvalidOperation, match="MongoClient that started it"):
            connect(deployment).db.get_collection("c", timeout_ms=1000).find_one(session=session)
    lsids = {
        bytes(command.body["lsid"]["id"])
        for command in deployment.commands.named("insert", "find")
        if "lsid" in command.body
    }
    assert len(lsids) == 1


# Cursors


def drained(deployment: Deployment, connect: Callable[..., Client], opened: Callable[[Any], Any]) -> int:
    """How many documents come out of a cursor with batches of 2 under a limit of 100 ms, when each command takes 60."""
    client = connect(deployment)
    client.db.c.insert_many([{"_id": number} for number in range(6)])
    slow(deployment, "find", "getMore", "aggregate", milliseconds=60)
    got = 0
    try:
        for _ in opened(client.db.c):
            got += 1
    except PyMongoError as error:
        assert error.timeout
    return got


OPENERS: dict[str, Callable[..., Any]] = {
    "find": lambda c, **how: c.find({}, batch_size=2, timeout_ms=100, **how),
    "aggregate": lambda c, **how: c.aggregate([], batchSize=2, timeout_ms=100, **how),
    "cursor_command": lambda c, **how: c.database.cursor_command(
        "find", "c", batchSize=2, timeout_ms=100, **how
    ).batch_size(2),
}


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize(("mode", "expected"), [(None, 2), ("cursor_lifetime", 2), ("iteration", 6)])
def test_a_limit_is_for_the_lifetime_or_for_each_iteration(opener, mode, expected, connect):
    with Deployment.replica_set(1) as deployment:
        how = {} if mode is None else {"timeout_mode": mode}
        assert drained(deployment, connect, lambda c: OPENERS[opener](c, **how)) == expected
        first = "aggregate" if opener == "aggregate" else "find"
        limits = [each for each in told(deployment, first) if each is not None]
        assert bool(limits) is (mode != "iteration")
        assert set(told(deployment, "getMore")) == {None}


def test_a_mode_needs_a_limit(connect, deployment):
    client = connect(deployment)
    for operate in (
        client.db.c.find,
        lambda **how: client.db.c.aggregate([], **how),
        lambda **how: client.db.aggregate([], **how),
        client.db.c.list_indexes,
        client.db.list_collections,
        client.db.list_collection_names,
        lambda **how: client.db.cursor_command("find", "c", **how),
    ):
        with pytest.raises(ConfigurationError, match="timeout_mode needs a time limit: set timeout_ms"):
            operate(timeout_mode="iteration")
    with gmongo.timeout(10):
        client.db.c.find(timeout_mode="iteration").to_list()
    client.db.with_options(timeout_ms=0).c.find(timeout_mode="iteration").to_list()


def test_modes_that_make_no_sense(client, deployment):
    with pytest.raises(ValueError, match="timeout_mode must be"):
        client.db.c.find(timeout_mode="for ever")
    with pytest.raises(ConfigurationError, match="a tailable cursor has no end"):
        client.db.c.find(cursor_type=CursorType.TAILABLE, timeout_mode="cursor_lifetime")
    with pytest.raises(ConfigurationError, match="a tailable cursor has no end"):
        client.db.cursor_command("find", "c", tailable=True, timeout_mode="cursor_lifetime")
    for stage in ({"$out": "d"}, {"$merge": "d"}):
        with pytest.raises(ConfigurationError, match="a pipeline that writes"):
            client.db.c.aggregate([stage], timeout_mode="iteration")
    assert nothing_asked(deployment)


def test_one_iteration_has_one_limit_however_often_it_asks(connect, monkeypatch):
    """Empty batches make one iteration several commands; together they have its limit."""
    with Deployment.replica_set(1) as deployment:
        client = connect(deployment)
        client.db.c.insert_many([{"_id": number} for number in range(3)])
        cursor = client.db.c.find({}, batch_size=1, timeout_ms=100, timeout_mode="iteration")
        next(cursor)
        asked = 0
        fetch = ServerCursor._fetch

        def fetch_nothing(engine: ServerCursor, deadline: float | None) -> bool:
            nonlocal asked
            asked += 1
            fetch(engine, deadline)
            engine.documents = iter(())
            return False

        monkeypatch.setattr(ServerCursor, "_fetch", fetch_nothing)
        slow(deployment, "getMore", milliseconds=60)
        with pytest.raises(PyMongoError) as raised:
            next(cursor)
        assert raised.value.timeout and asked == 2


def test_a_wait_for_documents_ends_with_the_limit(client, deployment):
    client.db.create_collection("capped", capped=True, size=4096)
    client.db.capped.insert_one({})
    cursor = client.db.capped.find(cursor_type=CursorType.TAILABLE_AWAIT, timeout_ms=10_000).max_await_time_ms(50)
    next(cursor)
    with pytest.raises(StopIteration):
        next(cursor)
    with gmongo.timeout(0.02), pytest.raises((StopIteration, PyMongoError)):
        next(cursor)
    first, second = told(deployment, "getMore")
    assert first == 50 and second is not None and second <= 20


# Change streams


def test_a_change_stream_has_its_limit_for_each_iteration(client, deployment):
    with client.db.c.watch(timeout_ms=OPERATION, max_await_time_ms=5) as stream:
        assert stream.try_next() is None
        client.db.c.insert_one({"_id": "new"})
        assert next(stream)["documentKey"] == {"_id": "new"}
    assert_limit(deployment, "aggregate", OPERATION)
    assert set(told(deployment, "getMore")) == {5}
