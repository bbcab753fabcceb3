"""Only one greenlet at a time uses a session. A dropped session returns to the session pool."""

from __future__ import annotations

import gc
from unittest.mock import Mock

import gevent
import pytest

from gmongo.client_session import ClientSession
from gmongo.errors import InvalidOperation
from gmongo.execution.transaction import Transaction
from gmongo.testing import Deployment
from tests.execution.harness import assert_no_resource_in_use, delay_replies, idle_session_ids, run_in_greenlet
from tests.execution.operations import SESSION_OPERATIONS
from tests.support.clients import Client
from tests.support.wait import eventually


@pytest.mark.parametrize("operation", ["find", "insert_one", "command", "bulk_write", "aggregate"])
def test_concurrent_use_of_session_raises_invalid_operation(
    deployment: Deployment, client: Client, operation: str
) -> None:
    delay_replies(deployment, "update", milliseconds=100)
    with client.start_session() as session:
        first = gevent.spawn(client.db.c.update_one, {}, {"$set": {"x": 1}}, session=session)
        eventually(lambda: deployment.commands.named("update"))
        with pytest.raises(InvalidOperation, match="in use by another greenlet"):
            SESSION_OPERATIONS[operation][1](client, session)
        first.get(timeout=5)
        SESSION_OPERATIONS[operation][1](client, session)
    assert len(deployment.commands.named(SESSION_OPERATIONS[operation][0])) == 1
    assert_no_resource_in_use(client)


def test_cursor_remains_usable_after_get_more_while_session_is_in_use(deployment: Deployment, client: Client) -> None:
    client.db.c.insert_many([{} for _ in range(4)])
    delay_replies(deployment, "update", milliseconds=100)
    with client.start_session() as session:
        cursor = client.db.c.find(batch_size=2, session=session)
        assert next(cursor) and next(cursor)
        writing = gevent.spawn(client.db.c.update_one, {}, {"$set": {"x": 1}}, session=session)
        eventually(lambda: deployment.commands.named("update"))
        with pytest.raises(InvalidOperation, match="in use by another greenlet"):
            next(cursor)
        writing.get(timeout=5)
        assert len(cursor.to_list()) == 2


def test_session_is_free_after_interruption_of_a_switch_before_the_command(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.start_session() as session:
        with monkeypatch.context() as patch, pytest.raises(gevent.GreenletExit):
            patch.setattr(Transaction, "reset_ended", Mock(side_effect=gevent.GreenletExit))
            client.db.c.find_one({}, session=session)
        run_in_greenlet(lambda: client.db.c.find_one({}, session=session))


def test_dropped_session_returns_to_the_session_pool(client: Client) -> None:
    session: ClientSession | None = client.start_session()
    assert session is not None
    client.db.command("ping", session=session)
    lsid = bytes(session.session_id["id"])
    assert client._executor.sessions.in_use
    del session
    gc.collect()
    assert_no_resource_in_use(client)
    assert idle_session_ids(client) == [lsid]


def test_bound_session_applies_only_in_the_greenlet_that_called_bind(deployment: Deployment, client: Client) -> None:
    with client.start_session().bind() as session:
        client.db.c.insert_one({"_id": 1})
        run_in_greenlet(lambda: client.db.c.insert_one({"_id": 2}))
        bound, other = [command.body["lsid"] for command in deployment.commands.named("insert")]
        assert bound == session.session_id != other
    assert_no_resource_in_use(client)
