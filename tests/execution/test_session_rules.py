"""Rules of explicit sessions: invalid uses, cluster times, snapshot times, read preferences in transactions."""

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
from tests.execution.harness import assert_no_resource_in_use
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer


@pytest.mark.parametrize("value", [5, "session", object(), gmongo.MongoClient])
@pytest.mark.parametrize("operation", ["find_one", "insert_one", "aggregate", "count_documents"])
def test_session_of_other_type_raises_value_error(client: Client, value: Any, operation: str) -> None:
    argument = [] if operation == "aggregate" else {}
    message = f"session must be a ClientSession or None, not an instance of {type(value).__name__}"
    with pytest.raises(ValueError) as caught:
        getattr(client.db.c, operation)(argument, session=value)
    assert str(caught.value) == message


def test_operation_of_other_client_in_bound_session_raises_invalid_operation(
    deployment: Deployment, client: Client, connect: Connect
) -> None:
    other = connect(deployment)
    message = "only operations of the client whose session is bound here can run inside bind()"
    with client.start_session() as session, session.bind():
        client.db.c.insert_one({"_id": 1})
        for call in (other.db.c.find_one, other.db.command, lambda name: list(other.db.c.find())):
            with pytest.raises(InvalidOperation) as caught:
                call("ping")
            assert str(caught.value) == message
    assert other.db.c.find_one() == {"_id": 1}


@pytest.mark.parametrize("operation", ["insert_one", "insert_many", "bulk_write"])
def test_unacknowledged_write_in_explicit_session_raises_configuration_error(client: Client, operation: str) -> None:
    collection = client.db.c.with_options(write_concern=WriteConcern(w=0))
    calls: dict[str, Callable[[Any], Any]] = {
        "insert_one": lambda session: collection.insert_one({}, session=session),
        "insert_many": lambda session: collection.insert_many([{}, {}], session=session),
        "bulk_write": lambda session: collection.bulk_write([gmongo.InsertOne({})], session=session),
    }
    with client.start_session() as session:
        with pytest.raises(ConfigurationError) as caught:
            calls[operation](session)
        assert str(caught.value) == "Explicit sessions are incompatible with unacknowledged write concern: w=0"
        # Proves that the failed write released the session.
        client.db.c.insert_one({"_id": 1}, session=session)
    assert client.db.c.count_documents({}) == 1


@pytest.mark.parametrize("mode", ["alone", "in a transaction"])
def test_each_command_updates_last_use_of_session(client: Client, mode: str) -> None:
    """Check that each command updates the time of the session's last use.

    The server expires a session a fixed time after the last command in the session.
    """
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


def read_concern_of(command: Any) -> Any:
    return dict(command.get("readConcern") or {})


def test_snapshot_session_sends_cluster_time_of_first_read(server: ScriptedServer, scripted: Client) -> None:
    times = iter([Timestamp(3, 1), Timestamp(4, 1), Timestamp(5, 1)])
    server.replies["find"] = lambda command: {
        "ok": 1,
        "cursor": {"id": 0, "ns": "db.c", "firstBatch": [], "atClusterTime": next(times)},
    }
    with scripted.start_session(snapshot=True) as session:
        for _ in range(3):
            list(scripted.db.c.find(session=session))
    assert [read_concern_of(command) for command in server.commands("find")] == [
        {"level": "snapshot"},
        {"level": "snapshot", "atClusterTime": Timestamp(3, 1)},
        {"level": "snapshot", "atClusterTime": Timestamp(3, 1)},
    ]


@pytest.mark.parametrize(
    ("options", "is_consistent"),
    [({}, True), ({"causal_consistency": True}, True), ({"causal_consistency": False}, False)],
)
def test_read_sends_advanced_operation_time_if_causally_consistent(
    client: Client, recorder: Recorder, options: dict[str, Any], is_consistent: bool
) -> None:
    later = Timestamp(2**31 - 1, 5)
    with client.start_session(**options) as session:
        client.db.c.insert_one({}, session=session)
        session.advance_operation_time(later)
        # No effect, because the session's time is newer.
        session.advance_operation_time(Timestamp(1, 1))
        assert session.operation_time == later
        client.db.c.find_one(session=session)
    (command,) = recorder.sent_commands("find")
    assert read_concern_of(command) == ({"afterClusterTime": later} if is_consistent else {})


def test_transaction_ignores_read_preference_of_collection(client: Client) -> None:
    preferring = client.db.c.with_options(read_preference=Secondary())
    with client.start_session() as session, session.start_transaction():
        assert preferring.find_one(session=session) is None
        assert client.db.command("distinct", "c", key="_id", session=session)["values"] == []
        preferring.insert_one({"_id": 1}, session=session)
        assert preferring.find_one(session=session) == {"_id": 1}


@pytest.mark.parametrize("preference", [Secondary(), SecondaryPreferred(), PrimaryPreferred(), Nearest()])
@pytest.mark.parametrize("source", ["transaction", "command"])
def test_read_preference_other_than_primary_in_transaction_raises(client: Client, preference: Any, source: str) -> None:
    options = {"read_preference": preference}
    with client.start_session() as session, session.start_transaction(**(options if source == "transaction" else {})):
        if source == "transaction":
            client.db.c.insert_one({}, session=session)
        with pytest.raises(InvalidOperation) as caught:
            if source == "transaction":
                client.db.c.find_one(session=session)
            else:
                client.db.command("find", "c", session=session, **options)
        assert str(caught.value) == f"read preference in a transaction must be primary, not: {preference!r}"
        session.abort_transaction()
    assert_no_resource_in_use(client)
