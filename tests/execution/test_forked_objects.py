"""Sessions, operations and cursors that a forked child inherits from the parent process.

The tests simulate a fork without a second process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure
from tests.execution.harness import assert_no_resource_in_use, overload_reply
from tests.support.clients import Client
from tests.support.server import ScriptedServer, cursor_reply, hold_reply


def simulate_fork(client: Client) -> None:
    for each in (client._topology, client._executor):
        each.mark_forked()


def test_session_of_parent_raises_invalid_operation_in_forked_child(client: Client) -> None:
    session = client.start_session()
    client.db.c.find_one(session=session)
    simulate_fork(client)
    with pytest.raises(InvalidOperation) as caught:
        client.db.c.find_one(session=session)
    assert str(caught.value) == "the session was started before a fork, and belongs to the parent process"
    assert client.db.c.find_one() is None
    session.end_session()
    assert_no_resource_in_use(client)


@pytest.mark.parametrize(
    ("run_operation", "is_resumed"),
    [
        (lambda db, session: db.c.find_one({"_id": 1}), True),
        (lambda db, session: db.c.find({"_id": 1}).to_list(), True),
        (lambda db, session: db.c.insert_one({"_id": 2}), False),
        (lambda db, session: db.c.find_one({"_id": 1}, session=session), False),
        (lambda db, session: db.c.insert_one({"_id": 2}, session=session), False),
    ],
)
@pytest.mark.parametrize("fork_moment", ["reply", "backoff"])
def test_forked_child_repeats_only_reads_in_implicit_sessions(
    server: ScriptedServer,
    scripted_client: Client,
    run_operation: Callable[[Any, Any], Any],
    is_resumed: bool,
    fork_moment: str,
) -> None:
    gate, session, usual_replies = Event(), scripted_client.start_session(), dict(server.replies)
    scripted_client.db.command("ping")
    for name in ("find", "insert", "ping"):
        server.fail(name, hold_reply(gate))
        if fork_moment == "backoff":
            server.replies[name] = lambda _command: overload_reply()
    waiting = gevent.spawn(run_operation, scripted_client.db, session)
    gevent.sleep(0)
    while not any(server.commands(name) for name in ("find", "insert")) and len(server.commands("ping")) < 2:
        gevent.sleep(0.001)
    if fork_moment == "backoff":
        gate.set()
        while not scripted_client._executor.backoffs:
            gevent.sleep(0.001)
    simulate_fork(scripted_client)
    server.replies = usual_replies
    gate.set()
    waiting.join(30)
    if is_resumed:
        assert waiting.successful(), waiting.exception
        first, *_, last = (command["lsid"] for command in server.commands("find"))
        assert first != last
    else:
        assert type(waiting.exception) is (AutoReconnect if fork_moment == "reply" else OperationFailure)
    scripted_client.db.command("ping")


def test_forked_child_does_not_repeat_get_more_of_parent(server: ScriptedServer, scripted_client: Client) -> None:
    server.replies["find"] = lambda _command: cursor_reply([{"_id": 1}], 7)
    server.replies["getMore"] = lambda _command: overload_reply()
    waiting = gevent.spawn(scripted_client.db.c.find().to_list)
    while not scripted_client._executor.backoffs:
        gevent.sleep(0.001)
    simulate_fork(scripted_client)
    waiting.join(30)
    assert type(waiting.exception) is OperationFailure
    assert len(server.commands("getMore")) == 1
