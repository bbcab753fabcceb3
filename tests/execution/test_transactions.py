"""Transactions that a kill, a timeout or an error interrupts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest

import gmongo
from gmongo.client_session import ClientSession
from gmongo.errors import ExecutionTimeout, NetworkTimeout, PyMongoError
from gmongo.testing import Deployment, VirtualTime
from tests.execution.harness import BOTH, assert_no_resource_in_use, delay_replies, fail, receiving_members
from tests.support.clients import Client, Connect
from tests.support.wait import eventually

TRANSIENT = "TransientTransactionError"


@pytest.fixture
def waiting_callback(deployment: Deployment, client: Client) -> Iterator[tuple[ClientSession, Any]]:
    """Yield a session, and a pair: a function that runs a transaction in the session, and an event.

    The callback of the transaction sets the event, and then sleeps for 10 seconds.
    """
    entered = gevent.event.Event()

    def run(session: ClientSession) -> Any:
        def callback(session: ClientSession) -> None:
            client.db.c.insert_one({"_id": 1}, session=session)
            entered.set()
            gevent.sleep(10)

        return session.with_transaction(callback)

    with client.start_session() as session:
        yield session, (run, entered)


def test_kill_in_callback_does_not_wait_for_abort(
    deployment: Deployment, client: Client, waiting_callback: Any
) -> None:
    session, (run, entered) = waiting_callback
    working = gevent.spawn(run, session)
    assert entered.wait(5)
    delay_replies(deployment, "abortTransaction")
    with gevent.Timeout(4):
        working.kill()
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


def test_transient_error_in_callback_repeats_the_callback(deployment: Deployment, client: Client) -> None:
    calls: list[int] = []

    def callback(session: ClientSession) -> str:
        calls.append(len(calls))
        client.db.c.insert_one({"_id": len(calls)}, session=session)
        return f"call {len(calls)}"

    fail(deployment, "insert", times=2, code=112, labels=[TRANSIENT])
    with client.start_session() as session:
        assert session.with_transaction(callback) == "call 3"
    assert [document["_id"] for document in client.db.c.find()] == [3]


def test_overload_error_in_callback_retries_only_the_operation(
    deployment: Deployment, client: Client, sleeps: list[float]
) -> None:
    fail(deployment, "insert", times=3, labels=[*BOTH, TRANSIENT])
    calls: list[Any] = []
    with client.start_session() as session:
        session.with_transaction(lambda s: calls.append(client.db.c.insert_one({}, session=s)))
    assert len(calls) == 1
    assert sleeps == [0.1, 0.2, 0.4]


def test_commit_is_retried_on_another_mongos_with_majority_write_concern(connect: Connect) -> None:
    with Deployment.sharded(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        eventually(lambda: len(client.nodes) == 2)
        with client.start_session() as session, session.start_transaction():
            client.db.c.insert_one({"_id": 1}, session=session)
            (pinned,) = [
                member for member in cluster.members if member.address == receiving_members(cluster, "insert")[0]
            ]
            fail(
                cluster,
                "commitTransaction",
                times=1,
                code=None,
                labels=["RetryableWriteError"],
                writeConcernError={"code": 91, "errmsg": "shutting down"},
                member=pinned,
            )
        first, *more = cluster.commands.named("commitTransaction")
        assert more
        assert all("recoveryToken" in command.body for command in (first, *more))
        assert more[-1].member != pinned.address == first.member
        assert more[-1].body["writeConcern"]["w"] == "majority"


def test_end_of_transaction_block_commits_or_aborts(deployment: Deployment, client: Client) -> None:
    with client.start_session() as session:
        with pytest.raises(ZeroDivisionError), session.start_transaction():
            client.db.c.insert_one({"_id": 1}, session=session)
            raise ZeroDivisionError
        with session.start_transaction():
            client.db.c.insert_one({"_id": 2}, session=session)
        with session.start_transaction():
            pass  # sends no command, because the transaction has no operation
    assert [document["_id"] for document in client.db.c.find()] == [2]
    assert len(deployment.commands.named("commitTransaction")) == 1


@pytest.mark.requirement("LB-56", "LB-57")
@pytest.mark.parametrize("deployment_kind", ["sharded", "load_balanced"])
def test_abort_is_retried_on_another_connection_after_network_error(connect: Connect, deployment_kind: str) -> None:
    with getattr(Deployment, deployment_kind)(2) as cluster:
        client = connect(cluster)
        with client.start_session() as session:
            session.start_transaction()
            client.db.c.insert_one({"_id": 1}, session=session)
            fail(cluster, "abortTransaction", times=1, code=None, labels=None, closeConnection=True)
            session.abort_transaction()
            first, second = cluster.commands.named("abortTransaction")
        assert first.connection != second.connection
        assert deployment_kind == "load_balanced" or first.member != second.member
        assert_no_resource_in_use(client)


def test_kill_in_transaction_releases_pinned_connection_of_load_balancer(connect: Connect) -> None:
    with Deployment.load_balanced(2) as balanced:
        client = connect(balanced, maxPoolSize=2)

        def run_transaction() -> None:
            with client.start_session() as session, session.start_transaction():
                client.db.c.insert_one({}, session=session)
                gevent.sleep(10)

        greenlets = [gevent.spawn(run_transaction) for _ in range(2)]
        eventually(lambda: len(balanced.commands.named("insert")) == 2)
        assert client.pool_stats()[0]["in_use"] == 2
        with gevent.Timeout(5):
            gevent.killall(greenlets)
        assert_no_resource_in_use(client)
        with gevent.Timeout(2):
            client.db.command("ping")


@pytest.mark.parametrize(
    ("time_limit", "error_class", "message"),
    [
        (None, NetworkTimeout, "with_transaction ran out of time after 3 s: try again"),
        (3, ExecutionTimeout, "with_transaction ran out of time: try again"),
    ],
)
def test_callback_that_exceeds_the_timeout_is_not_called_again(
    virtual_time: VirtualTime,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    time_limit: float | None,
    error_class: type[PyMongoError],
    message: str,
) -> None:
    monkeypatch.setattr("gmongo.engines.transaction._TIME_LIMIT", 3.0)
    failed = PyMongoError("try again", [TRANSIENT])
    calls = []

    def callback(session: ClientSession) -> None:
        calls.append(session)
        gevent.sleep(3)
        raise failed

    with (
        client.start_session() as session,
        gmongo.timeout(time_limit),
        pytest.raises(error_class, match=f"^{message}$") as raised,
    ):
        session.with_transaction(callback)
    assert type(raised.value) is error_class
    assert raised.value.__cause__ is failed
    assert raised.value.has_error_label(TRANSIENT)
    assert len(calls) == 1


WRITES: dict[str, Any] = {
    "insert_one": lambda c, **s: c.insert_one({"_id": 9}, **s).acknowledged,
    "insert_many": lambda c, **s: c.insert_many([{"_id": 9}], **s).acknowledged,
    "update_one": lambda c, **s: c.update_one({"_id": 1}, {"$set": {"a": 1}}, **s).modified_count == 1,
    "replace_one": lambda c, **s: c.replace_one({"_id": 1}, {"a": 1}, **s).matched_count == 1,
    "delete_many": lambda c, **s: c.delete_many({}, **s).deleted_count == 1,
    "find_one_and_update": lambda c, **s: c.find_one_and_update({}, {"$set": {"a": 1}}, **s) == {"_id": 1},
    "find_one_and_delete": lambda c, **s: c.find_one_and_delete({}, **s) == {"_id": 1},
    "bulk_write": lambda c, **s: c.bulk_write([gmongo.DeleteOne({})], **s).deleted_count == 1,
    "bulk_write with hint": lambda c, **s: c.bulk_write([gmongo.DeleteOne({}, hint="_id_")], **s).deleted_count == 1,
    "client bulk_write": lambda c, **s: (
        c.database.client.bulk_write([gmongo.DeleteOne({}, namespace="db.c")], **s).deleted_count == 1
    ),
}


@pytest.mark.parametrize("is_bound", [False, True], ids=["argument", "bound"])
@pytest.mark.parametrize("write", WRITES)
def test_write_of_w_0_client_is_acknowledged_in_transaction(deployment: Any, write: str, is_bound: bool) -> None:
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


@pytest.mark.parametrize("method", ["commit_transaction", "abort_transaction"])
def test_commit_or_abort_killed_before_check_out_keeps_the_transaction(
    deployment: Deployment, connect: Connect, method: str
) -> None:
    client = connect(deployment, maxPoolSize=1)
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({"_id": 1}, session=session)
    delay_replies(deployment, "ping", milliseconds=300, times=1)
    pinging = gevent.spawn(client.db.command, "ping")
    eventually(lambda: deployment.commands.named("ping"))
    ending = gevent.spawn(getattr(session, method))
    eventually(lambda: client.pool_stats()[0]["waiting"] == 1)
    ending.kill()
    assert session.in_transaction
    pinging.join()
    session.commit_transaction()
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


def test_timeout_in_retried_callback_has_previous_error_as_cause(client: Client) -> None:
    failed = PyMongoError("try again", [TRANSIENT])
    timed_out = ExecutionTimeout("too late", 50)
    errors = iter([failed, timed_out])

    def callback(_session: ClientSession) -> None:
        raise next(errors)

    with client.start_session() as session, pytest.raises(ExecutionTimeout) as raised:
        session.with_transaction(callback)
    assert raised.value is timed_out
    assert raised.value.__cause__ is failed
