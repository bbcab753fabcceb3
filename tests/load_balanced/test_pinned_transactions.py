"""In load-balanced mode, a transaction pins a connection instead of a mongos."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.engines import transaction
from gmongo.errors import AutoReconnect
from gmongo.testing import Deployment
from tests.load_balanced.harness import (
    CHECK_OUT_AND_IN,
    PIN_EVENTS,
    collect_garbage,
    connection_uses,
    connections_of_commands,
)
from tests.support.wait import eventually

TRANSIENT_LABEL = "TransientTransactionError"


@pytest.fixture
def session(client: Any) -> Any:
    """Return a session in whose open transaction one document was inserted."""
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({"_id": "new"}, session=session)
    return session


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
    assert recorder.lines_starting_with(*PIN_EVENTS) == CHECK_OUT_AND_IN


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
    insert_connections = [connections_of_commands(deployment, "insert")[number] for number in range(3)]
    assert len(set(insert_connections)) == 3
    assert connections_of_commands(deployment, "commitTransaction") == insert_connections


@pytest.mark.requirement("LB-57")
def test_dropped_session_with_transaction_releases_pinned_connection(client: Any, recorder: Any) -> None:
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({}, session=session)
    recorder.clear()
    del session  # the last reference to the session
    assert recorder.events == []
    eventually(lambda: (collect_garbage(), connection_uses(client) == {})[1])
    assert recorder.lines_starting_with(*PIN_EVENTS) == ["ConnectionCheckedIn"]


@pytest.mark.requirement("LB-82", "LB-83")
def test_service_aborts_transaction_whose_pinned_connection_closes(deployment: Any, client: Any, session: Any) -> None:
    for member in deployment.members:
        member.drop_connections()
    with pytest.raises(AutoReconnect) as caught:
        client.db.c.find_one(session=session)
    assert caught.value.has_error_label(TRANSIENT_LABEL)
    session.end_session()
    assert connection_uses(client) == {}
    assert client.db.c.count_documents({"_id": "new"}) == 0


def test_commit_retries_of_with_transaction_wait_between_attempts(
    deployment: Any, connect: Any, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop all services in the first transaction. Restart them in the fifth pause between attempts.

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
