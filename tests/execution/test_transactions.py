"""Transactions that a kill, a timeout or an error interrupts."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event

import gmongo
from gmongo import _clock
from gmongo.client_session import ClientSession
from gmongo.errors import ExecutionTimeout, InvalidOperation, NetworkTimeout, OperationFailure, PyMongoError
from gmongo.testing import Deployment, VirtualTime
from tests.execution.harness import BOTH_LABELS, assert_no_resource_in_use, delay_replies, fail, receiving_members
from tests.support.clients import Client, Connect
from tests.support.fail_points import block
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

TRANSIENT = "TransientTransactionError"


def test_kill_in_callback_does_not_wait_for_abort(deployment: Deployment, client: Client) -> None:
    entered = Event()

    def insert_and_sleep(session: ClientSession) -> None:
        client.db.c.insert_one({"_id": 1}, session=session)
        entered.set()
        gevent.sleep(10)

    with client.start_session() as session:
        working = gevent.spawn(session.with_transaction, insert_and_sleep)
        assert entered.wait(5)
        delay_replies(deployment, "abortTransaction")
        start = _clock.monotonic()
        working.kill()
        assert _clock.monotonic() - start == pytest.approx(1, abs=0.1)
        assert not session.in_transaction
        (pool,) = client.pool_stats()
        assert (pool["in_use"], pool["waiting"]) == (0, 0)


def test_kill_during_backoff_of_with_transaction_leaves_no_transaction(
    deployment: Deployment, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gmongo.engines.transaction._FIRST_BACKOFF", 60.0)
    monkeypatch.setattr("gmongo.engines.transaction._MAX_BACKOFF", 60.0)
    fail(deployment, "insert", times=1, code=112, labels=[TRANSIENT])
    with client.start_session() as session:
        working = gevent.spawn(session.with_transaction, lambda s: client.db.c.insert_one({}, session=s))
        eventually(lambda: deployment.commands.named("abortTransaction"))
        gevent.sleep(0.02)
        with gevent.Timeout(1):
            working.kill()
        assert not session.in_transaction
    assert_no_resource_in_use(client)


def test_overload_error_in_callback_retries_only_the_operation(
    deployment: Deployment, client: Client, backoffs: list[float]
) -> None:
    fail(deployment, "insert", times=3, labels=[*BOTH_LABELS, TRANSIENT])
    calls: list[Any] = []
    with client.start_session() as session:
        session.with_transaction(lambda s: calls.append(client.db.c.insert_one({}, session=s)))
    assert len(calls) == 1
    assert backoffs == [0.1, 0.2, 0.4]


@pytest.mark.parametrize(
    ("time_limit", "error_class", "message"),
    [
        (None, NetworkTimeout, "with_transaction ran out of time after 120 s: try again"),
        (120, ExecutionTimeout, "with_transaction ran out of time: try again"),
    ],
)
def test_callback_that_exceeds_the_timeout_is_not_called_again(
    virtual_time: VirtualTime, client: Client, time_limit: float | None, error_class: type[PyMongoError], message: str
) -> None:
    transient_error = PyMongoError("try again", [TRANSIENT])
    calls = []

    def callback(session: ClientSession) -> None:
        calls.append(session)
        gevent.sleep(120)
        raise transient_error

    with (
        client.start_session() as session,
        gmongo.timeout(time_limit),
        pytest.raises(error_class, match=f"^{message}$") as raised,
    ):
        session.with_transaction(callback)
    assert type(raised.value) is error_class
    assert getattr(raised.value, "code", None) == (time_limit and 50)
    assert raised.value.__cause__ is transient_error
    assert raised.value.has_error_label(TRANSIENT)
    assert len(calls) == 1


def test_commit_is_not_retried_after_time_limit_of_with_transaction(
    deployment: Deployment, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gmongo.engines.transaction._TIME_LIMIT", 0)
    fail(deployment, "commitTransaction", code=6, labels=["UnknownTransactionCommitResult"])
    with client.start_session() as session, pytest.raises(NetworkTimeout, match="ran out of time"):
        session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
    assert len(deployment.commands.named("commitTransaction")) == 1


def test_transaction_timeout_names_missing_primary(deployment: Deployment, client: Client) -> None:
    def insert_without_primary(session: ClientSession) -> None:
        deployment.members.primary.kill()
        client.db.c.insert_one({}, session=session)

    client.db.c.find_one()
    message = r"ran out of time: .* \(no server accepts writes: ReplicaSetNoPrimary\)$"
    with (
        client.start_session() as session,
        gmongo.timeout(1),
        pytest.raises(ExecutionTimeout, match=rf"{message}(?!\w)"),
    ):
        session.with_transaction(insert_without_primary)


WRITES: dict[str, Any] = {
    "insert_one": lambda c, **s: c.insert_one({"_id": 9}, **s).acknowledged,
    "find_one_and_update": lambda c, **s: c.find_one_and_update({}, {"$set": {"a": 1}}, **s) == {"_id": 1},
    "bulk_write": lambda c, **s: c.bulk_write([gmongo.DeleteOne({})], **s).deleted_count == 1,
    "client bulk_write": lambda c, **s: (
        c.database.client.bulk_write([gmongo.DeleteOne({}, namespace="db.c")], **s).deleted_count == 1
    ),
}


@pytest.mark.parametrize("is_bound", [False, True], ids=["argument", "bound"])
@pytest.mark.parametrize("write", WRITES)
def test_write_in_transaction_ignores_w_0_of_client(deployment: Any, write: str, is_bound: bool) -> None:
    with gmongo.MongoClient(deployment.uri, w=0) as client, client.start_session() as session:
        client.get_database("db", write_concern=gmongo.WriteConcern(1)).c.insert_one({"_id": 1})
        session.start_transaction(write_concern=gmongo.WriteConcern(1))
        if is_bound:
            with session.bind(end_session=False):
                assert WRITES[write](client.db.c)
        else:
            assert WRITES[write](client.db.c, session=session)
        session.commit_transaction()
        with pytest.raises(gmongo.errors.ConfigurationError, match="w=0"):
            client.db.c.insert_one({"_id": 2}, session=session)
        assert not client.db.c.insert_one({"_id": 3}).acknowledged


@pytest.mark.parametrize("last_error", [ExecutionTimeout("too late", 50), PyMongoError("no"), ValueError("no")])
def test_only_timeout_in_retried_callback_has_previous_error_as_cause(client: Client, last_error: Exception) -> None:
    transient_error = PyMongoError("try again", [TRANSIENT])
    errors = iter([transient_error, last_error])

    def callback(_session: ClientSession) -> None:
        raise next(errors)

    with client.start_session() as session, pytest.raises(type(last_error)) as raised:
        session.with_transaction(callback)
    assert raised.value is last_error
    assert raised.value.__cause__ is (transient_error if isinstance(last_error, ExecutionTimeout) else None)


def test_greenlet_that_callback_starts_may_use_session_despite_time_limit(deployment: Deployment) -> None:
    with Client(deployment.uri, timeoutMS=5000) as client, client.start_session() as session:

        def insert_in_greenlet(session: Any) -> bool:
            return bool(gevent.spawn(client.test.c.insert_one, {}, session=session).get().acknowledged)

        assert session.with_transaction(insert_in_greenlet)


@pytest.mark.parametrize(("end", "stored_count"), [("commit", 1), ("abort", 0)])
def test_callback_may_end_transaction_within_shorter_limit(deployment: Deployment, end: str, stored_count: int) -> None:
    with Client(deployment.uri, timeoutMS=5000) as client, client.start_session() as session:

        def insert_and_end(session: ClientSession) -> None:
            client.test.c.insert_one({"_id": 1}, session=session)
            with gmongo.timeout(1):
                getattr(session, f"{end}_transaction")()

        session.with_transaction(insert_and_end)
        assert len(deployment.commands.named(f"{end}Transaction")) == 1
        assert client.test.c.count_documents({}) == stored_count


@pytest.mark.parametrize("form", ["with_transaction", "block"])
def test_interrupted_commit_that_was_not_sent_aborts_transaction(deployment: Deployment, form: str) -> None:
    with Client(deployment.uri, maxPoolSize=1) as client, client.start_session() as session:
        block(deployment, "distinct", 1.5)

        def insert_and_use_connection(session: ClientSession) -> None:
            client.test.c.insert_one({"_id": 1}, session=session)
            gevent.spawn(client.test.c.distinct, "x")
            eventually(lambda: deployment.commands.named("distinct"))

        with gevent.Timeout(0.3, False):
            if form == "with_transaction":
                session.with_transaction(insert_and_use_connection)
            else:
                with session.start_transaction():
                    insert_and_use_connection(session)
        assert not session.in_transaction
        eventually(lambda: deployment.commands.named("abortTransaction"))
        assert deployment.commands.named("commitTransaction") == []
        session.with_transaction(lambda _session: None)


def test_timeout_in_bound_session_propagates_and_ends_session(deployment: Deployment, client: Client) -> None:
    block(deployment, "distinct", 1.5)
    session = client.start_session()
    session.start_transaction()
    with pytest.raises(gevent.Timeout) as caught, gevent.Timeout(0.3) as limit, session.bind():
        gevent.spawn(client.test.c.distinct, "x", session=session)
        gevent.sleep(1)
    assert caught.value is limit
    # The session ends after the operation of the other greenlet.
    eventually(lambda: session.has_ended and deployment.commands.named("abortTransaction"))


def test_failed_block_aborts_transaction_after_operation_of_another_greenlet(
    deployment: Deployment, client: Client
) -> None:
    block(deployment, "distinct", 1.5)
    with client.start_session() as session:
        with pytest.raises(KeyError), session.start_transaction():
            client.test.c.insert_one({"_id": 1}, session=session)
            other = gevent.spawn(client.test.c.distinct, "_id", session=session)
            eventually(lambda: deployment.commands.named("distinct"))
            for end in (session.commit_transaction, session.abort_transaction):
                with pytest.raises(InvalidOperation, match="in use by another greenlet"):
                    end()
            assert session.in_transaction
            raise KeyError
        assert deployment.commands.named("abortTransaction") == []
        assert other.get() == [1]
        eventually(lambda: deployment.commands.named("abortTransaction"))
    assert client.test.c.count_documents({}) == 0


def test_close_of_client_without_primary_ends_sessions_on_secondary(server: ScriptedServer, connect: Any) -> None:
    server.hello_extra = {"setName": "rs", "hosts": [server.name], "isWritablePrimary": False, "secondary": True}
    client = connect(server, replicaSet="rs", readPreference="secondary")
    client.db.c.find_one()
    client.close()
    assert len(server.commands("endSessions")) == 1


def test_close_of_client_inside_bound_session_sends_end_sessions(deployment: Deployment) -> None:
    client = Client(deployment.uri)
    with client.start_session():  # the implicit session of the operation is a second server session
        client.test.c.find_one()
    with client.start_session().bind():
        client.close()
    assert len(deployment.commands.named("endSessions")) == 1


def test_transaction_of_replica_set_uses_newly_elected_primary(connect: Connect) -> None:
    deployment = Deployment.replica_set(members=3)
    with deployment, connect(deployment).start_session() as session:
        client = session.client
        session.start_transaction()
        client.db.c.insert_one({}, session=session)
        first_primary = client.primary
        deployment.members.primary.step_down()
        eventually(lambda: client.primary not in (None, first_primary))
        with pytest.raises(OperationFailure, match="has been aborted"):
            client.db.c.insert_one({}, session=session)
    assert len(set(receiving_members(deployment, "insert"))) == 2
