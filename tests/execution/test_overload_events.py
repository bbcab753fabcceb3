"""Each retry publishes events and log messages. During a backoff, the connection is available."""

from __future__ import annotations

import logging
from typing import Any

import gevent
import pytest

from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import (
    assert_no_resource_in_use,
    error_reply,
    events_of_command,
    fail,
    overload_reply,
    reply_in_sequence,
)
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cut_reply
from tests.support.wait import eventually

PAIRS = ["CommandStarted", "CommandFailed"]
CASES: dict[str, tuple[list[Any], int, bool]] = {
    "two overload errors": ([overload_reply(), overload_reply()], 3, True),
    "only overload errors": ([overload_reply()] * 9, 6, False),
    "other error after overload error": ([overload_reply(), error_reply(2)], 2, False),
    "other error": ([error_reply(2)], 1, False),
    "no error": ([], 1, True),
}


def assert_event_pairs(recorder: Recorder, name: str, count: int) -> None:
    started = {event.request_id for event in recorder.events_named("CommandStarted") if event.command_name == name}
    ended = [
        event.request_id
        for event in recorder.events_named("CommandSucceeded") + recorder.events_named("CommandFailed")
        if event.command_name == name
    ]
    assert len(started) == count
    assert sorted(ended) == sorted(started)


@pytest.mark.requirement("BP-65", "BP-67", "BP-68", "BP-69")
@pytest.mark.parametrize("case", CASES)
def test_each_attempt_publishes_command_started_and_end_event(
    server: ScriptedServer, scripted: Client, recorder: Recorder, sleeps: list[float], case: str
) -> None:
    replies, attempts, succeeds = CASES[case]
    server.replies["update"] = {"ok": 1, "n": 0, "nModified": 0}
    reply_in_sequence(server, "update", *replies)
    if succeeds:
        scripted.db.c.update_many({}, {"$set": {"x": 1}})
    else:
        with pytest.raises(OperationFailure):
            scripted.db.c.update_many({}, {"$set": {"x": 1}})
    ending = "CommandSucceeded" if succeeds else "CommandFailed"
    assert events_of_command(recorder, "update") == PAIRS * (attempts - 1) + ["CommandStarted", ending]
    assert_event_pairs(recorder, "update", attempts)
    assert len(server.commands("update")) == attempts


@pytest.mark.requirement("BP-65", "BP-67", "BP-68")
def test_command_publishes_end_event_after_network_error_and_kill(
    server: ScriptedServer, scripted: Client, recorder: Recorder
) -> None:
    server.fail("find", cut_reply(0))
    scripted.db.c.find_one()
    assert events_of_command(recorder, "find") == [*PAIRS, "CommandStarted", "CommandSucceeded"]
    assert_event_pairs(recorder, "find", 2)
    server.answering.clear()
    pinging = gevent.spawn(scripted.db.command, "ping")
    server.wait_for("ping")
    pinging.kill()
    assert_event_pairs(recorder, "ping", 1)
    server.answering.set()


@pytest.mark.requirement("BP-66", "BP-67", "BP-68")
@pytest.mark.parametrize("case", CASES)
def test_each_attempt_logs_command_started_and_end_message(
    server: ScriptedServer, scripted: Client, caplog: Any, sleeps: list[float], case: str
) -> None:
    replies, attempts, succeeds = CASES[case]
    reply_in_sequence(server, "ping", *replies)
    with caplog.at_level(logging.DEBUG, logger="gmongo"):
        try:
            scripted.db.command("ping")
        except OperationFailure:
            assert not succeeds
    messages = [
        record.getMessage().split('"message": "')[-1] if '"message": "' in record.getMessage() else record.getMessage()
        for record in caplog.records
        if record.name.endswith("command") and "ping" in record.getMessage()
    ]
    kinds = [
        next(kind for kind in ("started", "succeeded", "failed") if f"Command {kind}" in each) for each in messages
    ]
    assert kinds == ["started", "failed"] * (attempts - 1) + ["started", "succeeded" if succeeds else "failed"]


@pytest.fixture
def client(deployment: Deployment, connect: Connect) -> Client:
    """Return a client whose pool has one connection, and whose backoff takes 10 seconds."""
    client = connect(deployment, maxPoolSize=1, baseBackoffMS=10_000)
    client.db.command("ping")
    return client


@pytest.mark.requirement("BP-72")
def test_connection_is_checked_in_during_backoff(deployment: Deployment, client: Client) -> None:
    fail(deployment, "insert")
    slow = gevent.spawn(client.db.c.insert_one, {})
    eventually(lambda: client.retry_stats()["slept"] > 0)
    (pool,) = client.pool_stats()
    assert (pool["in_use"], pool["available"]) == (0, 1)
    with gevent.Timeout(2):
        client.db.command("ping")
    slow.kill()


@pytest.mark.parametrize("interruption", ["kill", "timeout"])
def test_interruption_ends_backoff_immediately(deployment: Deployment, client: Client, interruption: str) -> None:
    fail(deployment, "insert")
    with gevent.Timeout(5):
        if interruption == "kill":
            slow = gevent.spawn(client.db.c.insert_one, {})
            eventually(lambda: client.retry_stats()["slept"] > 0)
            slow.kill()
            assert isinstance(slow.value, gevent.GreenletExit)
        else:
            timeout = gevent.Timeout(0.05)
            with pytest.raises(gevent.Timeout) as raised, timeout:
                client.db.c.insert_one({})
            assert raised.value is timeout
    assert_no_resource_in_use(client)
    assert len(deployment.commands.named("insert")) == 1
    assert client.retry_stats()["tokens"] == pytest.approx(999), "the interrupted backoff costs a token (BP-A04)"


def test_explicit_session_is_usable_after_kill_during_backoff(deployment: Deployment, client: Client) -> None:
    fail(deployment, "insert", times=1)
    with client.start_session() as session:
        slow = gevent.spawn(client.db.c.insert_one, {}, session=session)
        eventually(lambda: client.retry_stats()["slept"] > 0)
        slow.kill()
        client.db.c.insert_one({"_id": 1}, session=session)
    assert_no_resource_in_use(client)
