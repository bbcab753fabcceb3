"""What connections are in use for, and the error that tells of it."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.errors import WaitQueueTimeoutError
from gmongo.testing import Deployment
from tests.load_balanced.harness import collect, held
from tests.support.fail_points import block
from tests.support.wait import eventually


def text(limit: int, cursors: int, transactions: int, others: int) -> str:
    return (
        f"Timeout waiting for connection from the connection pool. maxPoolSize: {limit}, "
        f"connections in use by cursors: {cursors}, connections in use by transactions: {transactions}, "
        f"connections in use by other operations: {others}"
    )


@pytest.mark.requirement("LB-59", "LB-60")
def test_the_error_names_the_holders_of_connections(deployment: Any, connect: Any, go: Any) -> None:
    client = connect(deployment, maxPoolSize=4, waitQueueTimeoutMS=50)
    cursors = [client.db.c.find(batch_size=2) for _ in range(2)]
    for cursor in cursors:
        next(cursor)
    session = client.start_session()
    session.start_transaction()
    client.db.c.find_one(session=session)
    within = client.db.c.find(session=session, batch_size=2)
    next(within)
    block(deployment, "insert", 0.3)
    inserting = go(client.db.c.insert_one, {})
    assert held(client) == {"cursors": 2, "transactions": 1, "other operations": 1}
    with pytest.raises(WaitQueueTimeoutError) as caught:
        client.db.c.find_one()
    assert caught.value.message == text(4, 2, 1, 1)
    inserting.join()
    within.close()
    session.end_session()
    for cursor in cursors:
        cursor.close()
    assert held(client) == {}


@pytest.mark.requirement("LB-59", "LB-60")
@pytest.mark.parametrize("first", ["cursors", "transactions"])
def test_a_connection_goes_from_purpose_to_purpose(first: str, deployment: Any, connect: Any) -> None:
    client = connect(deployment, maxPoolSize=1, waitQueueTimeoutMS=20)
    for purpose in (first, "cursors", "transactions", first):
        session = client.start_session()
        cursor = None
        if purpose == "cursors":
            cursor = client.db.c.find(batch_size=2)
            next(cursor)
        else:
            session.start_transaction()
            client.db.c.find_one(session=session)
        with pytest.raises(WaitQueueTimeoutError) as caught:
            client.db.c.find_one()
        assert caught.value.message == text(1, int(purpose == "cursors"), int(purpose == "transactions"), 0)
        if cursor is not None:
            cursor.close()
        session.end_session()
        assert held(client) == {}
    assert client.pool_stats()[0]["total"] == 1


@pytest.mark.requirement("LB-59")
def test_a_cursor_that_outlives_its_transaction_counts_as_one(client: Any) -> None:
    session = client.start_session()
    session.start_transaction()
    cursor = client.db.c.find(session=session, batch_size=2)
    next(cursor)
    assert held(client) == {"transactions": 1}
    session.abort_transaction()
    assert held(client) == {"cursors": 1}
    cursor.close()
    session.end_session()
    assert held(client) == {}


@pytest.mark.requirement("LB-60")
def test_a_waiter_gets_the_connection_of_a_dropped_cursor(deployment: Any, connect: Any, go: Any) -> None:
    client = connect(deployment, maxPoolSize=1, waitQueueTimeoutMS=3000)
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    waiting = go(client.db.c.find_one)
    assert client.pool_stats()[0]["waiting"] == 1
    del cursor
    eventually(lambda: (collect(), waiting.ready())[1])
    assert waiting.get() == {"_id": 0}


def test_elsewhere_the_error_is_that_of_any_pool(connect: Any, go: Any) -> None:
    with Deployment.standalone() as deployment:
        client = connect(deployment, maxPoolSize=1, waitQueueTimeoutMS=20)
        client.db.c.find_one()
        block(deployment, "find", 0.2)
        finding = go(client.db.c.find_one)
        with pytest.raises(WaitQueueTimeoutError, match="Timed out while checking out a Connection"):
            client.db.c.find_one()
        finding.join()


@pytest.mark.requirement("LB-59", "LB-60")
@pytest.mark.parametrize("before", ["cursors", "transactions"])
def test_what_a_connection_was_used_for_is_forgotten(before: str, deployment: Any, connect: Any, go: Any) -> None:
    client = connect(deployment, maxPoolSize=1)
    if before == "cursors":
        with client.db.c.find(batch_size=2) as cursor:
            next(cursor)
            assert held(client) == {"cursors": 1}
    else:
        with client.start_session() as session, session.start_transaction():
            client.db.c.find_one(session=session)
            assert held(client) == {"transactions": 1}
    assert held(client) == {}
    block(deployment, "ping", 0.3)
    pinging = go(client.db.command, "ping")
    assert held(client) == {"other operations": 1}
    pinging.join()
