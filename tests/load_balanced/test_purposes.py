"""What connections are in use for, and the error that tells of it."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.errors import WaitQueueTimeoutError
from tests.load_balanced.harness import held
from tests.support.fail_points import block


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
