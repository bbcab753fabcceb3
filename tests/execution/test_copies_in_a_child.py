"""What a forked child's copies of greenlets and sessions do, without the fork: all that is the parent's is marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import check_nothing_held, fail
from tests.support.clients import Client
from tests.support.server import ScriptedServer, held


def become_a_child(client: Client) -> None:
    for each in (client._topology, client._executor):
        each.mark_forked()


def test_a_session_of_the_parents_is_refused(client: Client) -> None:
    session = client.start_session()
    client.db.c.find_one(session=session)
    become_a_child(client)
    with pytest.raises(InvalidOperation) as caught:
        client.db.c.find_one(session=session)
    assert str(caught.value) == "the session was started before a fork, and belongs to the parent process"
    assert client.db.c.find_one() is None
    session.end_session()
    check_nothing_held(client)


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (lambda db, session: db.c.find_one({"_id": 1}), "found"),
        (lambda db, session: db.c.find({"_id": 1}).to_list(), "found"),
        (lambda db, session: db.c.insert_one({"_id": 2}), "left"),
        (lambda db, session: db.c.find_one({"_id": 1}, session=session), "left"),
        (lambda db, session: db.c.insert_one({"_id": 2}, session=session), "left"),
    ],
)
@pytest.mark.parametrize("waits", ["for the reply", "for the next try"])
def test_an_operation_that_is_under_way(
    server: ScriptedServer,
    scripted: Client,
    call: Callable[[Any, Any], Any],
    outcome: str,
    waits: str,
) -> None:
    """A read in a session of the driver's is made again; the rest is the parent's."""
    gate, session, usual = Event(), scripted.start_session(), dict(server.replies)
    scripted.db.command("ping")
    for name in ("find", "insert", "ping"):
        server.fail(name, held(gate))
        if waits == "for the next try":
            overloaded = {
                "ok": 0,
                "code": 462,
                "errmsg": "x",
                "errorLabels": ["SystemOverloadedError", "RetryableError"],
            }
            server.replies[name] = lambda command, overloaded=overloaded: overloaded
    waiting = gevent.spawn(call, scripted.db, session)
    gevent.sleep(0)
    while not any(server.commands(name) for name in ("find", "insert")) and len(server.commands("ping")) < 2:
        gevent.sleep(0.001)
    if waits == "for the next try":
        gate.set()
        while not scripted._executor.backing_off:
            gevent.sleep(0.001)
    become_a_child(scripted)
    server.replies = usual
    gate.set()
    waiting.join(30)
    if outcome == "found":
        assert waiting.successful(), waiting.exception
        first, *_, last = (command["lsid"] for command in server.commands("find"))
        assert first != last
    else:
        assert type(waiting.exception) is (AutoReconnect if waits == "for the reply" else OperationFailure)
    scripted.db.command("ping")


def test_a_cursor_of_the_parents_is_left_to_it(deployment: Deployment, client: Client) -> None:
    client.db.c.insert_many([{} for _ in range(5)])
    cursor = client.db.c.find(batch_size=2)
    next(cursor)
    next(cursor)
    become_a_child(client)
    with pytest.raises(AutoReconnect):
        next(cursor)
    cursor.close()
    assert deployment.commands.named("killCursors") == []
    fail(deployment, "find", times=1)
    assert client.db.c.find_one() is not None
