"""A cursor keeps its connection until it is done: drained, closed, dropped, or failed and then closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo import InsertOne
from gmongo.errors import AutoReconnect, ClientBulkWriteException, InvalidOperation, OperationFailure
from tests.load_balanced.harness import PINNING, SERVICE, balanced, collect, connections, held
from tests.support.fail_points import block, break_off, refuse
from tests.support.pools import services
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually

PAIR = ["ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckedIn"]
OPENERS: dict[str, Callable[[Any], Any]] = {
    "find": lambda client: client.db.c.find(batch_size=2),
    "aggregate": lambda client: client.db.c.aggregate([], batchSize=2),
    "listCollections": lambda client: client.db.cursor_command({"listCollections": 1, "cursor": {"batchSize": 2}}),
    "listIndexes": lambda client: client.db.cursor_command({"listIndexes": "c", "cursor": {"batchSize": 2}}),
    "raw": lambda client: client.db.c.find_raw_batches(batch_size=2),
}


@pytest.fixture
def cursor(client: Any) -> Any:
    """A cursor with two documents here and eight on the server."""
    cursor = client.db.c.find(batch_size=2)
    assert (next(cursor), next(cursor)) == ({"_id": 0}, {"_id": 1})
    return cursor


# Pinning


@pytest.mark.requirement("LB-43", "LB-44", "LB-45", "LB-46", "LB-47", "LB-48")
@pytest.mark.parametrize("opener", OPENERS)
def test_one_connection_from_the_first_command_to_the_last(
    opener: str, deployment: Any, client: Any, recorder: Any
) -> None:
    for number in range(4):
        client.db[f"c{number}"].insert_one({})
        client.db.c.create_index([(f"field{number}", 1)])
    client.db.c.find_one()
    recorder.forget()
    deployment.commands.clear()
    cursor = OPENERS[opener](client)
    next(cursor)
    assert recorder.only(*PINNING) == PAIR[:2]
    assert held(client) == {"cursors": 1}
    list(cursor)
    name = "find" if opener == "raw" else opener
    assert deployment.commands.named("getMore")
    assert len(set(connections(deployment, name, "getMore"))) == 1
    assert recorder.only(*PINNING) == PAIR  # as soon as the last batch is there
    assert deployment.commands.named("killCursors") == []
    assert held(client) == {}


@pytest.mark.requirement("LB-46")
@pytest.mark.parametrize("opener", ["small", "failed", "one"])
def test_nothing_is_kept_without_a_cursor(opener: str, deployment: Any, client: Any, recorder: Any) -> None:
    if opener == "small":
        assert len(client.db.c.find({"_id": {"$lt": 2}}).to_list()) == 2
    elif opener == "one":
        client.db.c.find_one()
    else:
        refuse(deployment, "find", 2)
        with pytest.raises(OperationFailure):
            client.db.c.find().to_list()
    assert recorder.only(*PINNING) == PAIR
    assert held(client) == {}


@pytest.mark.requirement("LB-46")
def test_a_kill_while_the_cursor_is_opened(deployment: Any, client: Any, go: Any) -> None:
    block(deployment, "find")
    opening = go(lambda: next(client.db.c.find(batch_size=2)))
    opening.kill()
    assert client.pool_stats()[0]["total"] == 0


# Letting go


@pytest.mark.requirement("LB-49", "LB-50")
def test_closing_kills_on_the_same_connection(deployment: Any, client: Any, cursor: Any, recorder: Any) -> None:
    cursor.close()
    assert len(set(connections(deployment, "find", "killCursors"))) == 1
    assert recorder.only(*PINNING) == PAIR
    cursor.close()
    assert len(deployment.commands.named("killCursors")) == 1
    assert client.pool_stats()[0]["available"] == 1


@pytest.mark.requirement("LB-50")
@pytest.mark.parametrize("how", ["refused", "cut"])
def test_the_result_of_killing_does_not_matter(how: str, deployment: Any, client: Any, cursor: Any, go: Any) -> None:
    if how == "refused":
        refuse(deployment, "killCursors", 43)
    else:
        break_off(deployment, "killCursors")
    cursor.close()
    assert held(client) == {}
    assert client.pool_stats()[0]["available"] == (1 if how == "refused" else 0)


@pytest.mark.requirement("LB-50")
def test_a_kill_while_closing(deployment: Any, client: Any, cursor: Any, go: Any) -> None:
    block(deployment, "killCursors")
    closing = go(cursor.close)
    closing.kill()
    eventually(lambda: held(client) == {})
    assert client.pool_stats()[0]["total"] == 0


@pytest.mark.requirement("LB-49", "LB-50")
def test_a_dropped_cursor_is_ended_by_a_greenlet(deployment: Any, client: Any, recorder: Any) -> None:
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    where = connections(deployment, "find")
    recorder.forget()
    del cursor  # the finaliser runs here
    assert recorder.events == []
    assert held(client) == {"cursors": 1}
    collect()
    eventually(lambda: held(client) == {})
    assert connections(deployment, "killCursors") == where
    assert recorder.only(*PINNING) == ["ConnectionCheckedIn"]


@pytest.mark.requirement("LB-49")
def test_the_finaliser_may_run_in_another_thread(deployment: Any, client: Any, recorder: Any) -> None:
    cursors = [client.db.c.find(batch_size=2)]
    next(cursors[0])
    gevent.get_hub().threadpool.apply(cursors.clear)
    eventually(lambda: held(client) == {})
    assert len(deployment.commands.named("killCursors")) == 1


@pytest.mark.requirement("LB-89", "LB-46")
def test_an_idle_cursor_is_left_alone(deployment: Any, connect: Any) -> None:
    client = connect(deployment, maxIdleTimeMS=10, minPoolSize=1)
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    where = connections(deployment, "find")
    gevent.sleep(0.3)
    assert held(client) == {"cursors": 1}
    assert len(cursor.to_list()) == 9
    assert set(connections(deployment, "getMore")) == set(where)


@pytest.mark.requirement("LB-51")
def test_next_during_next_waits_for_the_batch(deployment: Any, client: Any, cursor: Any, go: Any) -> None:
    block(deployment, "getMore")
    first = go(next, cursor)
    assert next(cursor) == {"_id": 3}
    assert first.get(timeout=5) == {"_id": 2}
    assert [document["_id"] for document in cursor] == list(range(4, 10))


# Concurrent use


@pytest.mark.requirement("LB-51")
def test_close_during_next_is_refused(deployment: Any, client: Any, cursor: Any, recorder: Any, go: Any) -> None:
    block(deployment, "getMore")
    first = go(next, cursor)
    with pytest.raises(InvalidOperation, match="in use by another greenlet"):
        cursor.close()
    assert first.get(timeout=5) == {"_id": 2}
    assert held(client) == {"cursors": 1}
    cursor.close()
    assert held(client) == {}
    assert not recorder.of("PoolCleared") + recorder.of("ConnectionClosed")


# Errors


@pytest.mark.requirement("LB-52", "LB-53", "LB-54")
@pytest.mark.parametrize("how", ["network", "time-out"])
def test_an_error_of_the_network(how: str, deployment: Any, connect: Any, recorder: Any) -> None:
    client = connect(deployment, socketTimeoutMS=None if how == "network" else 100)
    cursor = client.db.c.find(batch_size=2)
    next(cursor), next(cursor)
    if how == "network":
        break_off(deployment, "getMore")
    else:
        block(deployment, "getMore", 0.3)
    with pytest.raises(AutoReconnect):
        next(cursor)
    assert recorder.only(*PINNING) == PAIR[:2]
    assert held(client) == {"cursors": 1}
    recorder.forget()
    cursor.close()
    assert recorder.story == ["ConnectionCheckedIn", "ConnectionClosed"]
    assert deployment.commands.named("killCursors") == []


@pytest.mark.requirement("LB-80", "LB-52")
def test_the_service_may_close_the_connection_of_a_reaped_cursor(
    deployment: Any, client: Any, cursor: Any, recorder: Any
) -> None:
    for member in deployment.members:
        member.drop_connections()
    with pytest.raises(AutoReconnect):
        next(cursor)
    cursor.close()
    assert held(client) == {}
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@pytest.mark.requirement("LB-81", "LB-53")
def test_no_other_connection_is_told_of_a_lost_cursor(deployment: Any, client: Any, cursor: Any) -> None:
    for member in deployment.members:
        member.drop_connections()
    cursor.close()
    client.db.c.find_one()
    assert deployment.commands.named("killCursors") == []


def test_limits_end_a_cursor_that_the_server_leaves_open(service: ScriptedServer, connect: Any) -> None:
    service.replies["find"] = lambda command: cursor_reply([{"_id": 1}, {"_id": 2}], cursor_id=7)
    client = connect(balanced(service))
    assert len(client.db.c.find(limit=2).to_list()) == 2
    assert service.connections_of("killCursors") == service.connections_of("find")
    assert held(client) == {}
    assert SERVICE in services(client._topology.pools()[0])


@pytest.mark.requirement("LB-43", "LB-46", "LB-48")
@pytest.mark.parametrize("ending", ["drained", "failed"])
def test_the_results_of_a_bulk_are_read_on_its_connection(ending: str, service: ScriptedServer, connect: Any) -> None:
    result = {"ok": 1, "idx": 0, "n": 1}
    counts = {"nErrors": 0, "nInserted": 2, "nUpserted": 0, "nMatched": 0, "nModified": 0, "nDeleted": 0}
    service.hello_extra["maxWireVersion"] = 25
    service.replies["bulkWrite"] = {**cursor_reply([result], cursor_id=9), **counts}
    if ending == "drained":
        service.replies["getMore"] = cursor_reply([{**result, "idx": 1}], field="nextBatch")
    else:
        service.replies["getMore"] = {"ok": 0, "code": 8, "errmsg": "scripted"}
    client = connect(balanced(service))
    client.admin.command("ping")
    models = [InsertOne({"_id": number}, namespace="db.c") for number in range(2)]
    if ending == "drained":
        client.bulk_write(models, verbose_results=True)
    else:
        with pytest.raises(ClientBulkWriteException):
            client.bulk_write(models, verbose_results=True)
        assert len(service.commands("killCursors")) == 1
    assert len({each.connection for each in service.received}) == 1
    assert held(client) == {}
    assert client.pool_stats()[0]["available"] == 1


def test_a_cursor_belongs_to_its_thread(deployment: Any, client: Any, cursor: Any) -> None:
    def from_elsewhere() -> str:
        try:
            return str(next(cursor))
        except InvalidOperation as error:
            return f"refused: {error}"

    assert "native thread" in gevent.get_hub().threadpool.apply(from_elsewhere)
    assert next(cursor) == {"_id": 2}


@pytest.mark.parametrize("pinned", ["cursor", "transaction"])
def test_what_is_pinned_says_that_the_client_was_closed(client: Any, cursor: Any, pinned: str) -> None:
    session = client.start_session()
    session.start_transaction()
    client.db.c.insert_one({"_id": "x"}, session=session)
    client.close()
    with pytest.raises(InvalidOperation, match=r"^Cannot use MongoClient after close$"):
        next(cursor) if pinned == "cursor" else client.db.c.find_one(session=session)
