"""The session reaper ends interrupted commands and open transactions on the server
(``docs/time-limits.md``).
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import gevent
import pytest
from gevent.event import Event

import gmongo
from gmongo import _clock
from gmongo.client_session import ClientSession
from gmongo.errors import AutoReconnect, InvalidOperation, PyMongoError, WriteConcernError
from gmongo.read_preferences import ReadPreference
from gmongo.server_api import ServerApi
from gmongo.testing import Deployment
from tests.execution.harness import assert_no_resource_in_use, delay_replies, fail, idle_session_ids
from tests.gevent.switching.servers import count_open_resources
from tests.support.clients import Client, Connect
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("virtual_time")


def insert_in_new_session(client: Client) -> None:
    with client.start_session() as session:
        client.db.c.insert_one({"_id": 1}, session=session)


OPERATIONS: dict[str, tuple[str, Callable[[Client], Any]]] = {
    "read": ("find", lambda client: client.db.c.find_one({})),
    "write": ("update", lambda client: client.db.c.update_many({}, {"$set": {"a": 1}})),
    "write in explicit session": ("insert", insert_in_new_session),
}


def run_and_kill(deployment: Deployment, command: str, run: Callable[[], Any], milliseconds: int = 10_000) -> bytes:
    """Kill the greenlet of a command after the server has received the command. Return the ID of the
    command's session.
    """
    delay_replies(deployment, command, milliseconds=milliseconds, times=1)
    received_count = len(deployment.commands.named(command))
    running = gevent.spawn(run)
    eventually(lambda: len(deployment.commands.named(command)) > received_count)
    running.kill()
    return bytes(deployment.commands.named(command)[-1].body["lsid"]["id"])


def killed_session_ids(deployment: Deployment) -> list[list[bytes]]:
    """Return, for each `killSessions` command, the session IDs in the command."""
    return [
        [bytes(each["id"]) for each in command.body["killSessions"]]
        for command in deployment.commands.named("killSessions")
    ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_session_of_interrupted_command_is_killed_three_times_and_dropped(name, deployment, client):
    command, run = OPERATIONS[name]
    session = run_and_kill(deployment, command, lambda: run(client))
    assert killed_session_ids(deployment) == []
    gevent.sleep(0.2)
    assert killed_session_ids(deployment) == [[session]]
    gevent.sleep(5)
    assert killed_session_ids(deployment) == [[session]] * 3
    assert session not in idle_session_ids(client)
    assert_no_resource_in_use(client)


def test_sessions_of_commands_interrupted_together_are_killed_by_one_command(deployment, client):
    delay_replies(deployment, "find")
    running = [gevent.spawn(client.db.c.find_one, {}) for _ in range(5)]
    eventually(lambda: len(deployment.commands.named("find")) == 5)
    gevent.killall(running)
    gevent.sleep(0.2)
    assert [len(sessions) for sessions in killed_session_ids(deployment)] == [5]


def test_new_session_is_killed_before_next_attempt_for_older_session(deployment, client):
    sessions = []
    for _ in range(2):
        sessions.append([run_and_kill(deployment, "find", lambda: client.db.c.find_one({}))])
        gevent.sleep(0.2)
        assert killed_session_ids(deployment) == sessions


@pytest.mark.parametrize(("milliseconds", "kill_count", "kill_fails"), [(50, 0, 0), (300, 1, 0), (300, 1, 1)])
def test_session_is_reused_after_late_reply_unless_kill_sessions_failed(
    milliseconds, kill_count, kill_fails, deployment, connect
):
    client = connect(deployment, drainLateReplies=True)
    session = run_and_kill(deployment, "find", lambda: client.db.c.find_one({}), milliseconds)
    if kill_fails:
        fail(deployment, "killSessions", code=6, labels=[])
    gevent.sleep(5)
    assert killed_session_ids(deployment) == [[session]] * kill_count
    assert (session in idle_session_ids(client)) is not bool(kill_fails)


def test_client_close_kills_sessions_a_tenth_of_a_second_after_interruption(deployment, connect):
    client = connect(deployment)
    session = run_and_kill(deployment, "update", lambda: OPERATIONS["write"][1](client))
    interruption_time = _clock.monotonic()
    client.close()
    assert killed_session_ids(deployment) == [[session]]
    assert _clock.monotonic() - interruption_time == pytest.approx(0.1, abs=0.01)
    gevent.sleep(0.01)
    assert not client._session_reaper._is_running
    (end_command,) = deployment.commands.named("endSessions")
    assert session in [bytes(each["id"]) for each in end_command.body["endSessions"]]
    gevent.sleep(5)
    assert killed_session_ids(deployment) == [[session]]


class QueueWithoutIteration(deque[Any]):
    """Queue whose iteration fails, as if a finaliser had appended an element during the iteration."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("deque mutated during iteration")


def test_client_close_allows_finalisers_to_add_sessions_at_any_moment(deployment, connect):
    client = connect(deployment)
    client._session_reaper._taken_sessions = QueueWithoutIteration()
    session = run_and_kill(deployment, "find", lambda: client.db.c.find_one({}))
    client.close()
    assert killed_session_ids(deployment) == [[session]]


def test_strict_stable_api_sends_no_kill_sessions(deployment, connect):
    client = connect(deployment, server_api=ServerApi("1", strict=True))
    run_and_kill(deployment, "find", lambda: client.db.c.find_one({}))
    gevent.sleep(5)
    assert killed_session_ids(deployment) == []
    assert_no_resource_in_use(client)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", ["getMore", "killCursors"])
@pytest.mark.parametrize("in_explicit_session", [False, True])
def test_cursor_ends_on_the_server_after_a_network_error(command, in_explicit_session, deployment, client):
    client.db.c.insert_many([{} for _ in range(5)])
    with client.start_session() if in_explicit_session else nullcontext() as session:
        cursor = client.db.c.find(batch_size=2, session=session)
        next(cursor)
        fail(deployment, command, closeConnection=True)
        with suppress(AutoReconnect), cursor:
            next(cursor), next(cursor) if command == "getMore" else None
    eventually(lambda: count_open_resources(deployment)["cursors"] == 0)
    eventually(lambda: killed_session_ids(deployment))


def test_sessions_of_dropped_cursors_are_killed_after_network_error_of_kill_cursors(deployment, client):
    client.db.c.insert_many([{} for _ in range(5)])
    cursors = [client.db.c.find(batch_size=2) for _ in range(2)]
    for cursor in cursors:
        next(cursor)
    fail(deployment, "killCursors", closeConnection=True)
    del cursors, cursor
    eventually(
        lambda: (
            {session for sessions in killed_session_ids(deployment) for session in sessions}
            == {bytes(command.body["lsid"]["id"]) for command in deployment.commands.named("find")}
        )
    )
    assert len(deployment.commands.named("killCursors")) == 1


def test_session_is_killed_on_each_server_that_has_an_interrupted_command(connect):
    with Deployment.replica_set(2) as deployment:
        client = connect(deployment)
        with client.start_session(causal_consistency=False) as session:
            for preference in (ReadPreference.PRIMARY, ReadPreference.SECONDARY):
                collection = client.db.get_collection("c", read_preference=preference)
                run_and_kill(deployment, "find", partial(collection.find_one, {}, session=session))
        gevent.sleep(5)
        reads, kills = (deployment.commands.named(name) for name in ("find", "killSessions"))
        assert [kill.member for kill in kills] == [read.member for read in reads] * 3
        assert len({read.member for read in reads}) == 2


def write(client: Client, session: ClientSession) -> None:
    client.db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)


@pytest.fixture
def second_client(deployment: Deployment, connect: Connect) -> Client:
    """Create a second client, insert a document with the `_id` 1, and return the second client."""
    second_client = connect(deployment)
    second_client.db.c.insert_one({"_id": 1, "n": 0})
    return second_client


def assert_document_unlocked_and_unchanged(second_client: Client) -> None:
    """Assert that the document with the `_id` 1 is neither locked nor changed by a transaction."""
    with gmongo.timeout(1):
        assert second_client.db.c.find_one_and_update({"_id": 1}, {"$set": {"free": True}})["n"] == 0


@pytest.mark.parametrize("keeps_session", [False, True])
@pytest.mark.parametrize("is_strict_api", [False, True])
def test_transaction_whose_first_command_arrives_after_abort_ends_on_server(
    keeps_session, is_strict_api, deployment, connect, second_client
):
    options = {"server_api": ServerApi("1", strict=True)} if is_strict_api else {}
    client = connect(deployment, drainLateReplies=True, **options)
    session = client.start_session()

    def write_in_transaction() -> None:
        with nullcontext() if keeps_session else session, session.start_transaction():
            write(client, session)

    run_and_kill(deployment, "update", write_in_transaction, 400)
    assert len(deployment.commands.named("abortTransaction")) == 1, (
        "the server receives the abort before the transaction starts"
    )
    gevent.sleep(2)
    assert_document_unlocked_and_unchanged(second_client)
    session.end_session()
    assert_no_resource_in_use(client)


def test_transaction_of_dropped_session_is_aborted(client, second_client):
    session = client.start_session()
    session.start_transaction()
    write(client, session)
    session_id = bytes(session.session_id["id"])
    del session
    gc.collect()
    assert_no_resource_in_use(client)
    gevent.sleep(1)
    assert_document_unlocked_and_unchanged(second_client)
    assert session_id not in idle_session_ids(client)


def test_transaction_whose_abort_times_out_is_aborted_in_the_background(deployment, client, second_client):
    with client.start_session() as session:
        session.start_transaction()
        write(client, session)
        fail(deployment, "abortTransaction", times=1, code=None, labels=None, blockConnection=True, blockTimeMS=9_000)
        session.abort_transaction(timeout_ms=50)
    gevent.sleep(2)
    assert_document_unlocked_and_unchanged(second_client)


@pytest.mark.parametrize("delay", [70, 9_000], ids=["late error reply", "reply after the cleanup"])
@pytest.mark.parametrize("kind", ["replica_set", "sharded"])
def test_transaction_whose_commit_times_out_is_aborted_after_end_of_session(kind, delay, connect):
    with getattr(Deployment, kind)() as deployment:
        client, second_client = connect(deployment), connect(deployment)
        second_client.db.c.insert_one({"_id": 1, "n": 0})
        with client.start_session() as session:
            session.start_transaction()
            write(client, session)
            delay_replies(deployment, "commitTransaction", milliseconds=delay, times=1)
            with pytest.raises(PyMongoError, match="time") as caught:
                session.commit_transaction(timeout_ms=50)
            assert caught.value.has_error_label("UnknownTransactionCommitResult")
        gevent.sleep(2)
        assert_document_unlocked_and_unchanged(second_client)
        assert len(deployment.commands.named("abortTransaction")) == 1


def test_commit_with_write_concern_error_is_followed_by_no_abort(deployment, client):
    concern_error = {"code": 64, "errmsg": "timeout"}
    fail(deployment, "commitTransaction", times=1, code=None, labels=None, writeConcernError=concern_error)
    with client.start_session() as session, pytest.raises(WriteConcernError), session.start_transaction():
        write(client, session)
    gevent.sleep(5)
    assert deployment.commands.named("abortTransaction") == []


def test_client_close_aborts_open_transaction_of_another_greenlet(deployment: Deployment, client: Client) -> None:
    def open_transaction() -> None:
        with client.start_session() as session, session.start_transaction():
            client.db.c.insert_one({"_id": 1}, session=session)
            client_is_closed.wait()

    client_is_closed = Event()
    client.db.create_collection("c")
    greenlet = gevent.spawn(open_transaction)
    eventually(lambda: count_open_resources(deployment)["transactions"] == 1)
    client.close()
    assert count_open_resources(deployment)["transactions"] == 0
    assert len(deployment.commands.named("abortTransaction")) == 1
    client_is_closed.set()
    with pytest.raises(InvalidOperation, match=r"Cannot use MongoClient after close$"):
        greenlet.get()
