"""A cursor pins a connection until the cursor ends, is closed, or is dropped.

``WaitQueueTimeoutError`` reports the number of checked-out connections for each purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo import InsertOne
from gmongo.errors import AutoReconnect, ClientBulkWriteException, InvalidOperation, WaitQueueTimeoutError
from tests.load_balanced.harness import (
    CHECK_OUT_AND_IN,
    PIN_EVENTS,
    SERVICE_ID,
    collect_garbage,
    connection_uses,
    connections_of_commands,
    load_balanced_uri,
)
from tests.support.fail_points import block, close_connection_at, refuse
from tests.support.pools import service_counts
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually

CURSOR_OPENERS: dict[str, Callable[[Any], Any]] = {
    "find": lambda client: client.db.c.find(batch_size=2),
    "aggregate": lambda client: client.db.c.aggregate([], batchSize=2),
    "listCollections": lambda client: client.db.cursor_command({"listCollections": 1, "cursor": {"batchSize": 2}}),
    "listIndexes": lambda client: client.db.cursor_command({"listIndexes": "c", "cursor": {"batchSize": 2}}),
    "raw": lambda client: client.db.c.find_raw_batches(batch_size=2),
}


@pytest.fixture
def cursor(client: Any) -> Any:
    """Return a cursor that has returned two of its ten documents."""
    cursor = client.db.c.find(batch_size=2)
    assert (next(cursor), next(cursor)) == ({"_id": 0}, {"_id": 1})
    return cursor


@pytest.mark.requirement("LB-43", "LB-44", "LB-45", "LB-46", "LB-47", "LB-48", "LB-90")
@pytest.mark.parametrize("method", CURSOR_OPENERS)
def test_cursor_uses_one_connection_until_last_batch(method: str, deployment: Any, client: Any, recorder: Any) -> None:
    for number in range(4):
        client.db[f"c{number}"].insert_one({})
        client.db.c.create_index([(f"field{number}", 1)])
    client.db.c.find_one()
    recorder.clear()
    deployment.commands.clear()
    cursor = CURSOR_OPENERS[method](client)
    next(cursor)
    assert recorder.lines_starting_with(*PIN_EVENTS) == CHECK_OUT_AND_IN[:2]
    assert connection_uses(client) == {"cursors": 1}
    list(cursor)
    name = "find" if method == "raw" else method
    assert deployment.commands.named("getMore")
    assert len(set(connections_of_commands(deployment, name, "getMore"))) == 1
    assert recorder.lines_starting_with(*PIN_EVENTS) == CHECK_OUT_AND_IN  # only one check-in
    assert deployment.commands.named("killCursors") == []
    assert connection_uses(client) == {}


@pytest.mark.requirement("LB-50")
@pytest.mark.parametrize("failure", ["refused", "cut"])
def test_error_of_kill_cursors_is_ignored_and_releases_pinned_connection(
    failure: str, deployment: Any, client: Any, cursor: Any
) -> None:
    if failure == "refused":
        refuse(deployment, "killCursors", 43)
    else:
        close_connection_at(deployment, "killCursors")
    cursor.close()
    assert connection_uses(client) == {}
    assert client.pool_stats()[0]["available"] == (1 if failure == "refused" else 0)


@pytest.mark.requirement("LB-49", "LB-50")
def test_dropped_pinned_cursor_is_killed_on_pinned_connection(deployment: Any, client: Any, recorder: Any) -> None:
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    cursor_connections = connections_of_commands(deployment, "find")
    recorder.clear()
    del cursor  # the last reference to the cursor
    assert recorder.events == []
    assert connection_uses(client) == {"cursors": 1}
    collect_garbage()
    eventually(lambda: connection_uses(client) == {})
    assert connections_of_commands(deployment, "killCursors") == cursor_connections
    assert recorder.lines_starting_with(*PIN_EVENTS) == ["ConnectionCheckedIn"]


@pytest.mark.requirement("LB-89", "LB-46")
def test_pinned_connection_ignores_max_idle_time(deployment: Any, connect: Any) -> None:
    client = connect(deployment, maxIdleTimeMS=10, minPoolSize=1)
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    cursor_connections = connections_of_commands(deployment, "find")
    gevent.sleep(0.3)
    assert connection_uses(client) == {"cursors": 1}
    assert len(cursor.to_list()) == 9
    assert set(connections_of_commands(deployment, "getMore")) == set(cursor_connections)


@pytest.mark.requirement("LB-51")
def test_concurrent_next_on_pinned_cursor_waits_for_batch(deployment: Any, cursor: Any, start_greenlet: Any) -> None:
    block(deployment, "getMore")
    first = start_greenlet(next, cursor)
    assert next(cursor) == {"_id": 3}
    assert first.get(timeout=5) == {"_id": 2}
    assert [document["_id"] for document in cursor] == list(range(4, 10))


@pytest.mark.requirement("LB-51")
def test_close_of_pinned_cursor_during_next_raises_invalid_operation(
    deployment: Any, client: Any, cursor: Any, recorder: Any, start_greenlet: Any
) -> None:
    block(deployment, "getMore")
    first = start_greenlet(next, cursor)
    with pytest.raises(InvalidOperation, match="in use by another greenlet"):
        cursor.close()
    assert first.get(timeout=5) == {"_id": 2}
    assert connection_uses(client) == {"cursors": 1}
    cursor.close()
    assert connection_uses(client) == {}
    assert not recorder.events_named("PoolCleared") + recorder.events_named("ConnectionClosed")


@pytest.mark.requirement("LB-52", "LB-53", "LB-54", "LB-80", "LB-81")
@pytest.mark.parametrize("failure", ["network", "timeout"])
def test_network_error_keeps_connection_pinned_until_cursor_is_closed(
    failure: str, deployment: Any, connect: Any, recorder: Any
) -> None:
    client = connect(deployment, socketTimeoutMS=None if failure == "network" else 100)
    cursor = client.db.c.find(batch_size=2)
    next(cursor), next(cursor)
    if failure == "network":
        close_connection_at(deployment, "getMore")
    else:
        block(deployment, "getMore", 0.3)
    with pytest.raises(AutoReconnect):
        next(cursor)
    assert recorder.lines_starting_with(*PIN_EVENTS) == CHECK_OUT_AND_IN[:2]
    assert connection_uses(client) == {"cursors": 1}
    recorder.clear()
    cursor.close()
    assert recorder.event_lines == ["ConnectionCheckedIn", "ConnectionClosed"]
    assert deployment.commands.named("killCursors") == []
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


def test_limit_kills_cursor_that_server_leaves_open(service: ScriptedServer, connect: Any) -> None:
    service.replies["find"] = lambda command: cursor_reply([{"_id": 1}, {"_id": 2}], cursor_id=7)
    client = connect(load_balanced_uri(service))
    assert len(client.db.c.find(limit=2).to_list()) == 2
    assert service.connections_of("killCursors") == service.connections_of("find")
    assert connection_uses(client) == {}
    assert SERVICE_ID in service_counts(client._topology.pools()[0])


@pytest.mark.requirement("LB-43", "LB-46", "LB-48")
@pytest.mark.parametrize("how_cursor_ends", ["drained", "failed"])
def test_client_bulk_write_reads_results_on_one_connection(
    how_cursor_ends: str, service: ScriptedServer, connect: Any
) -> None:
    result = {"ok": 1, "idx": 0, "n": 1}
    counts = {"nErrors": 0, "nInserted": 2, "nUpserted": 0, "nMatched": 0, "nModified": 0, "nDeleted": 0}
    service.hello_extra["maxWireVersion"] = 25
    service.replies["bulkWrite"] = {**cursor_reply([result], cursor_id=9), **counts}
    if how_cursor_ends == "drained":
        service.replies["getMore"] = cursor_reply([{**result, "idx": 1}], field="nextBatch")
    else:
        service.replies["getMore"] = {"ok": 0, "code": 8, "errmsg": "scripted"}
    client = connect(load_balanced_uri(service))
    client.admin.command("ping")
    models = [InsertOne({"_id": number}, namespace="db.c") for number in range(2)]
    if how_cursor_ends == "drained":
        client.bulk_write(models, verbose_results=True)
    else:
        with pytest.raises(ClientBulkWriteException):
            client.bulk_write(models, verbose_results=True)
        assert len(service.commands("killCursors")) == 1
    assert len({each.connection for each in service.received}) == 1
    assert connection_uses(client) == {}
    assert client.pool_stats()[0]["available"] == 1


@pytest.mark.parametrize("pinned_object", ["cursor", "transaction"])
def test_pinned_cursor_or_transaction_raises_after_client_close(client: Any, cursor: Any, pinned_object: str) -> None:
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({"_id": "x"}, session=session)
    client.close()
    with pytest.raises(InvalidOperation, match=r"^Cannot use MongoClient after close$"):
        next(cursor) if pinned_object == "cursor" else client.db.c.find_one(session=session)


def error_text(max_size: int, cursor_connections: int, transaction_connections: int, other_connections: int) -> str:
    return (
        f"Timeout waiting for connection from the connection pool. maxPoolSize: {max_size}, "
        f"connections in use by cursors: {cursor_connections}, connections in use by transactions: "
        f"{transaction_connections}, connections in use by other operations: {other_connections}"
    )


@pytest.mark.requirement("LB-59", "LB-60")
def test_wait_queue_timeout_error_counts_connections_by_purpose(
    deployment: Any, connect: Any, start_greenlet: Any
) -> None:
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
    inserter = start_greenlet(client.db.c.insert_one, {})
    assert connection_uses(client) == {"cursors": 2, "transactions": 1, "other operations": 1}
    with pytest.raises(WaitQueueTimeoutError) as caught:
        client.db.c.find_one()
    assert caught.value.message == error_text(4, 2, 1, 1)
    inserter.join()
    transaction_cursor.close()
    session.end_session()
    for cursor in cursors:
        cursor.close()
    assert connection_uses(client) == {}
