"""``pool_stats()`` and ``WaitQueueTimeoutError`` report the purposes of checked-out connections."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.errors import WaitQueueTimeoutError
from tests.load_balanced.harness import connection_uses
from tests.support.fail_points import block


def expected_message(max_pool_size: int, cursors: int, transactions: int, other_connections: int) -> str:
    return (
        f"Timeout waiting for connection from the connection pool. maxPoolSize: {max_pool_size}, "
        f"connections in use by cursors: {cursors}, connections in use by transactions: {transactions}, "
        f"connections in use by other operations: {other_connections}"
    )


@pytest.mark.requirement("LB-59", "LB-60")
def test_wait_queue_timeout_error_counts_connections_by_purpose(deployment: Any, connect: Any, go: Any) -> None:
    client = connect(deployment, maxPoolSize=4, waitQueueTimeoutMS=50)
    cursors = [client.db.c.find(batch_size=2) for _ in range(2)]
    for cursor in cursors:
        next(cursor)
    session = client.start_session()
    session.start_transaction()
    client.db.c.find_one(session=session)
    transaction_cursor = client.db.c.find(session=session, batch_size=2)
    next(transaction_cursor)
    block(deployment, "insert", 0.3)
    inserting = go(client.db.c.insert_one, {})
    assert connection_uses(client) == {"cursors": 2, "transactions": 1, "other operations": 1}
    with pytest.raises(WaitQueueTimeoutError) as caught:
        client.db.c.find_one()
    assert caught.value.message == expected_message(4, 2, 1, 1)
    inserting.join()
    transaction_cursor.close()
    session.end_session()
    for cursor in cursors:
        cursor.close()
    assert connection_uses(client) == {}
