"""What an explicit session refuses, and what it makes of the times of replies: the first one, and those that follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson import Timestamp

import gmongo
from gmongo import _clock
from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.read_preferences import Nearest, PrimaryPreferred, Secondary, SecondaryPreferred
from gmongo.testing import Deployment
from gmongo.write_concern import WriteConcern
from tests.execution.harness import check_nothing_held
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer


@pytest.mark.parametrize("value", [5, "session", object(), gmongo.MongoClient])
@pytest.mark.parametrize("operation", ["find_one", "insert_one", "aggregate", "count_documents"])
def test_only_a_session_is_one(client: Client, value: Any, operation: str) -> None:
    given = [] if operation == "aggregate" else {}
    complaint = f"session must be a ClientSession or None, not an instance of {type(value).__name__}"
    with pytest.raises(ValueError) as caught:
        getattr(client.db.c, operation)(given, session=value)
    assert str(caught.value) == complaint


def test_operations_of_another_client_do_not_run_in_a_bound_session(
    deployment: Deployment, client: Client, connect: Callable[..., Client]
) -> None:
    other = connect(deployment)
    complaint = "only operations of the client whose session is bound here can run inside bind()"
    with client.start_session() as session, session.bind():
        client.db.c.insert_one({"_id": 1})
        for call in (other.db.c.find_one, other.db.command, lambda name: list(other.db.c.find())):
            with pytest.raises(InvalidOperation) as caught:
                call("ping")
            assert str(caught.value) == complaint
    assert other.db.c.find_one() == {"_id": 1}


@pytest.mark.parametrize("way", ["collection", "insert_many", "bulk"])
def test_a_write_without_acknowledgement_has_no_session(client: Client, way: str) -> None:
    collection = client.db.c.with_options(write_concern=WriteConcern(w=0))
    calls: dict[str, Callable[[Any], Any]] = {
        "collection": lambda session: collection.insert_one({}, session=session),
        "insert_many": lambda session: collection.insert_many([{}, {}], session=session),
        "bulk": lambda session: collection.bulk_write([gmongo.InsertOne({})], session=session),
    }
    with client.start_session() as session:
        with pytest.raises(ConfigurationError) as caught:
            calls[way](session)
        assert str(caught.value) == "Explicit sessions are incompatible with unacknowledged write concern: w=0"
        client.db.c.insert_one({"_id": 1}, session=session)  # it is free again
    assert client.db.c.count_documents({}) == 1


@pytest.mark.parametrize("mode", ["alone", "in a transaction"])
def test_a_session_that_is_used_stays_young(client: Client, mode: str) -> None:
    """The server counts from the last command of a session, not from its first."""
    client.db.c.insert_many([{} for _ in range(3)])
    with client.start_session() as session:
        if mode == "in a transaction":
            session.start_transaction()
        cursor = client.db.c.find(batch_size=1, session=session)
        next(cursor)
        server_session = session._state.server_session
        for _ in range(2):
            server_session.last_used -= 20 * 60
            next(cursor)
            assert server_session.last_used == pytest.approx(_clock.monotonic(), abs=1)


# Times


def reading(command: Any) -> Any:
    return dict(command.get("readConcern") or {})


def test_a_snapshot_is_that_of_the_first_read(server: ScriptedServer, scripted: Client) -> None:
    times = iter([Timestamp(3, 1), Timestamp(4, 1), Timestamp(5, 1)])
    server.replies["find"] = lambda command: {
        "ok": 1,
        "cursor": {"id": 0, "ns": "db.c", "firstBatch": [], "atClusterTime": next(times)},
    }
    with scripted.start_session(snapshot=True) as session:
        for _ in range(3):
            list(scripted.db.c.find(session=session))
    assert [reading(command) for command in server.commands("find")] == [
        {"level": "snapshot"},
        {"level": "snapshot", "atClusterTime": Timestamp(3, 1)},
        {"level": "snapshot", "atClusterTime": Timestamp(3, 1)},
    ]


@pytest.mark.parametrize(
    ("options", "follows"),
    [({}, True), ({"causal_consistency": True}, True), ({"causal_consistency": False}, False)],
)
def test_reads_follow_what_the_session_has_seen(
    client: Client, recorder: Recorder, options: dict[str, Any], follows: bool
) -> None:
    later = Timestamp(2**31 - 1, 5)
    with client.start_session(**options) as session:
        client.db.c.insert_one({}, session=session)
        session.advance_operation_time(later)
        session.advance_operation_time(Timestamp(1, 1))  # an older one changes nothing
        assert session.operation_time == later
        client.db.c.find_one(session=session)
    (command,) = recorder.sent("find")
    assert reading(command) == ({"afterClusterTime": later} if follows else {})


# Which server a transaction reads from


def test_a_transaction_reads_from_the_primary_whatever_the_collection_prefers(client: Client) -> None:
    """There is no secondary at all."""
    preferring = client.db.c.with_options(read_preference=Secondary())
    with client.start_session() as session, session.start_transaction():
        assert preferring.find_one(session=session) is None
        assert client.db.command("distinct", "c", key="_id", session=session)["values"] == []
        preferring.insert_one({"_id": 1}, session=session)
        assert preferring.find_one(session=session) == {"_id": 1}


@pytest.mark.parametrize("preference", [Secondary(), SecondaryPreferred(), PrimaryPreferred(), Nearest()])
@pytest.mark.parametrize("where", ["transaction", "command"])
def test_no_other_read_preference_holds_in_a_transaction(client: Client, preference: Any, where: str) -> None:
    given = {"read_preference": preference}
    with client.start_session() as session, session.start_transaction(**(given if where == "transaction" else {})):
        if where == "transaction":
            client.db.c.insert_one({}, session=session)
        with pytest.raises(InvalidOperation) as caught:
            if where == "transaction":
                client.db.c.find_one(session=session)
            else:
                client.db.command("find", "c", session=session, **given)
        assert str(caught.value) == f"read preference in a transaction must be primary, not: {preference!r}"
        session.abort_transaction()
    check_nothing_held(client)
