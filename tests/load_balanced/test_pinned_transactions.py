"""A transaction pins a connection.

In a sharded cluster, a transaction pins and unpins a mongos at the same steps.
"""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.engines import transaction
from gmongo.errors import AutoReconnect, PyMongoError
from gmongo.testing import Deployment
from tests.load_balanced.harness import PINNING, collect_garbage, connection_uses, connections_of_commands
from tests.support.fail_points import block, close_connection_at, refuse
from tests.support.wait import eventually

PAIR = ["ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckedIn"]
TRANSIENT = "TransientTransactionError"


@pytest.fixture
def session(client: Any) -> Any:
    """Return a session in whose open transaction one document was inserted."""
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({"_id": "new"}, session=session)
    return session


@pytest.mark.requirement("LB-43", "LB-44", "LB-45", "LB-56", "LB-90")
@pytest.mark.parametrize("how_transaction_ends", ["commit", "abort"])
def test_transaction_uses_one_connection(
    how_transaction_ends: str, deployment: Any, client: Any, recorder: Any
) -> None:
    with client.start_session() as session:
        session.start_transaction()
        client.db.c.insert_one({}, session=session)
        assert connection_uses(client) == {"transactions": 1}
        client.db.c.find_one(session=session)
        client.db.c.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
        assert len(client.db.c.find(session=session, batch_size=2).to_list()) == 11
        session.commit_transaction() if how_transaction_ends == "commit" else session.abort_transaction()
    names = ("insert", "find", "update", "getMore", f"{how_transaction_ends}Transaction")
    assert len(set(connections_of_commands(deployment, *names))) == 1
    assert recorder.lines_starting_with(*PINNING) == PAIR
    assert connection_uses(client) == {}


@pytest.mark.requirement("LB-55")
def test_transaction_commands_equal_commands_of_sharded_cluster(deployment: Any, connect: Any) -> None:
    fields = []
    for each in (deployment, Deployment.sharded(1).start()):
        client = connect(each)
        with client.start_session() as session, session.start_transaction():
            client.db.c.insert_one({"_id": "x"}, session=session)
            client.db.c.find_one(session=session)
        commands = each.commands.named("insert", "find", "commitTransaction")
        names = ("txnNumber", "startTransaction", "autocommit", "recoveryToken", "lsid")
        fields.append([(command.name, [name for name in names if name in command.body]) for command in commands])
        if each is not deployment:
            each.close()
    assert fields[0] == fields[1]
    assert fields[0][0] == ("insert", ["txnNumber", "startTransaction", "autocommit", "lsid"])
    assert "recoveryToken" in fields[0][2][1]


@pytest.mark.requirement("LB-43", "LB-56", "LB-44")
def test_cursor_in_transaction_shares_pinned_connection(client: Any, session: Any, recorder: Any) -> None:
    cursor = client.db.c.find(session=session, batch_size=2)
    next(cursor)
    assert connection_uses(client) == {"transactions": 1}
    cursor.close()
    assert connection_uses(client) == {"transactions": 1}  # the transaction still uses the connection
    cursor = client.db.c.find(session=session, batch_size=2)
    next(cursor)
    session.abort_transaction()
    assert client.pool_stats()[0]["in_use"] == 1  # the open cursor still uses the connection
    cursor.close()
    assert connection_uses(client) == {}
    assert recorder.lines_starting_with(*PINNING) == PAIR


@pytest.mark.requirement("LB-58")
def test_concurrent_transactions_use_different_connections(deployment: Any, client: Any) -> None:
    sessions = [client.start_session() for _ in range(3)]
    for number, session in enumerate(sessions):
        session.start_transaction()
        client.db.c.insert_one({"_id": f"x{number}"}, session=session)
    assert connection_uses(client) == {"transactions": 3}
    for session in sessions:
        session.commit_transaction()
        session.end_session()
    used = [connections_of_commands(deployment, "insert")[number] for number in range(3)]
    assert len(set(used)) == 3
    assert connections_of_commands(deployment, "commitTransaction") == used


@pytest.mark.requirement("LB-57")
@pytest.mark.parametrize("next_step", ["operation", "transaction", "end"])
def test_next_step_of_session_after_commit_releases_pinned_connection(
    next_step: str, client: Any, session: Any
) -> None:
    for _ in range(2):  # the second commit also uses the pinned connection
        session.commit_transaction()
        assert connection_uses(client) == {"transactions": 1}
    if next_step == "operation":
        client.db.c.find_one(session=session)
    elif next_step == "transaction":
        session.start_transaction()
    else:
        session.end_session()
    assert connection_uses(client) == {}


@pytest.mark.requirement("LB-57")
@pytest.mark.parametrize("error_kind", ["network", "labelled"])
def test_transient_error_in_transaction_releases_pinned_connection(
    error_kind: str, deployment: Any, client: Any, session: Any
) -> None:
    if error_kind == "network":
        close_connection_at(deployment, "find")
    else:
        refuse(deployment, "find", 112, TRANSIENT)
    with pytest.raises(PyMongoError) as caught:
        client.db.c.find_one(session=session)
    assert caught.value.has_error_label(TRANSIENT)
    assert connection_uses(client) == {}
    session.end_session()
    assert connection_uses(client) == {}


@pytest.mark.requirement("LB-57")
@pytest.mark.parametrize("command", ["insert", "find", "commitTransaction", "abortTransaction"])
def test_kill_in_transaction_releases_connection_and_session(
    command: str, deployment: Any, client: Any, go: Any
) -> None:
    def run_transaction() -> None:
        with client.start_session() as session, session.start_transaction():
            client.db.c.insert_one({"_id": "x"}, session=session)
            client.db.c.find_one(session=session)
            if command == "abortTransaction":
                raise RuntimeError("abort, please")

    block(deployment, command, 0.3)
    working = go(run_transaction)
    eventually(lambda: deployment.commands.named(command))
    working.kill()
    eventually(lambda: connection_uses(client) == {})
    stats = client.pool_stats()[0]
    assert (stats["in_use"], stats["pending"], stats["waiting"]) == (0, 0, 0)
    assert not client._executor.sessions.in_use
    assert client.db.c.count_documents({"_id": 1}) == 1


def test_gevent_timeout_in_transaction_aborts_transaction(deployment: Any, client: Any) -> None:
    block(deployment, "find", 0.3)
    with gevent.Timeout(0.05, False), client.start_session() as session, session.start_transaction():
        client.db.c.insert_one({"_id": "x"}, session=session)
        client.db.c.find_one(session=session)
    assert connection_uses(client) == {}
    assert client.db.c.count_documents({"_id": "x"}) == 0


@pytest.mark.requirement("LB-57")
def test_dropped_session_with_transaction_releases_pinned_connection(client: Any, recorder: Any) -> None:
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({}, session=session)
    recorder.clear()
    del session  # runs the finaliser of the session
    assert recorder.events == []
    eventually(lambda: (collect_garbage(), connection_uses(client) == {})[1])
    assert recorder.lines_starting_with(*PINNING) == ["ConnectionCheckedIn"]


@pytest.mark.requirement("LB-83")
@pytest.mark.parametrize("next_operation", [False, True])
def test_interrupted_transaction_is_aborted_by_close_of_connection(
    deployment: Any, client: Any, session: Any, recorder: Any, connect: Any, next_operation: bool
) -> None:
    """Check that the client sends no abortTransaction, but closes the connection.

    The server aborts the transaction, and releases the locks, when the connection closes.
    """
    session.commit_transaction()
    session.start_transaction()
    client.db.c.update_one({"_id": 1}, {"$set": {"x": 1}}, session=session)
    block(deployment, "find", 0.3)
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.05):
        client.db.c.find_one(session=session)
    recorder.clear()
    if next_operation:
        with pytest.raises(AutoReconnect, match="interrupted") as caught:
            client.db.c.find_one(session=session)
        assert caught.value.has_error_label(TRANSIENT)
        assert not recorder.events_named("CommandStarted")
    else:
        session.abort_transaction()
        assert not recorder.events_named("CommandStarted")
    session.end_session()
    assert connection_uses(client) == {}
    with gevent.Timeout(5):
        assert connect(deployment).db.c.update_one({"_id": 1}, {"$set": {"x": 2}}).modified_count == 1


@pytest.mark.requirement("LB-82", "LB-83")
def test_close_of_pinned_connection_by_service_aborts_transaction(deployment: Any, client: Any, session: Any) -> None:
    for member in deployment.members:
        member.drop_connections()
    with pytest.raises(AutoReconnect) as caught:
        client.db.c.find_one(session=session)
    assert caught.value.has_error_label(TRANSIENT)
    session.end_session()
    assert connection_uses(client) == {}
    assert client.db.c.count_documents({"_id": "new"}) == 0


def test_commit_retries_of_with_transaction_wait_between_attempts(
    deployment: Any, connect: Any, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop all services in the first transaction, and restart the services in the fifth pause.

    Without services, the load balancer closes each connection.
    """
    client = connect(deployment, baseBackoffMS=1)
    calls: list[Any] = []
    pauses: list[float] = []

    def insert_and_stop_services(session: Any) -> None:
        client.db.c.insert_one({"_id": "new"}, session=session)
        calls.append(session)
        if len(calls) == 1:
            for service in deployment.members:
                service.kill()
            recorder.clear()

    def sleep_and_restart_services(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            for service in deployment.members:
                service.restart()
        gevent.sleep(seconds)

    monkeypatch.setattr(transaction, "sleep", sleep_and_restart_services)
    with client.start_session() as session:
        session.with_transaction(insert_and_stop_services)
    # The callback ran again, because the restarted services had lost the first transaction.
    assert len(calls) == 2
    assert client.db.c.find_one({"_id": "new"})
    assert len(recorder.lines_starting_with("ConnectionCreated")) < 100
