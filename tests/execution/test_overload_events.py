"""What listeners and logs tell of retries, and what is held while the client waits: nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import check_nothing_held, error, fail, in_turn, rejected, told
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cut
from tests.support.wait import eventually

PAIRS = ["CommandStarted", "CommandFailed"]
SCENARIOS: dict[str, tuple[list[Any], int, bool]] = {
    "twice too busy": ([rejected(), rejected()], 3, True),
    "always too busy": ([rejected()] * 9, 6, False),
    "plain error after overload": ([rejected(), error(2)], 2, False),
    "plain error": ([error(2)], 1, False),
    "nothing": ([], 1, True),
}


def check_pairs(recorder: Recorder, name: str, count: int) -> None:
    started = {event.request_id for event in recorder.of("CommandStarted") if event.command_name == name}
    ended = [
        event.request_id
        for event in recorder.of("CommandSucceeded") + recorder.of("CommandFailed")
        if event.command_name == name
    ]
    assert len(started) == count
    assert sorted(ended) == sorted(started)


@pytest.mark.requirement("BP-65", "BP-67", "BP-68", "BP-69")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_pair_of_events_for_each_try(
    server: ScriptedServer, scripted: Client, recorder: Recorder, sleeps: list[float], scenario: str
) -> None:
    replies, tries, succeeds = SCENARIOS[scenario]
    server.replies["update"] = {"ok": 1, "n": 0, "nModified": 0}
    in_turn(server, "update", *replies)
    if succeeds:
        scripted.db.c.update_many({}, {"$set": {"x": 1}})
    else:
        with pytest.raises(OperationFailure):
            scripted.db.c.update_many({}, {"$set": {"x": 1}})
    ending = "CommandSucceeded" if succeeds else "CommandFailed"
    assert told(recorder, "update") == PAIRS * (tries - 1) + ["CommandStarted", ending]
    check_pairs(recorder, "update", tries)
    assert len(server.commands("update")) == tries


@pytest.mark.requirement("BP-65", "BP-67", "BP-68")
def test_a_network_error_and_a_kill_end_their_events(
    server: ScriptedServer, scripted: Client, recorder: Recorder
) -> None:
    server.fail("find", cut(0))
    scripted.db.c.find_one()
    assert told(recorder, "find") == [*PAIRS, "CommandStarted", "CommandSucceeded"]
    check_pairs(recorder, "find", 2)
    server.answering.clear()
    asking = gevent.spawn(scripted.db.command, "ping")
    server.wait_for("ping")
    asking.kill()
    check_pairs(recorder, "ping", 1)
    server.answering.set()


@pytest.mark.requirement("BP-66", "BP-67", "BP-68")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_pair_of_log_messages_for_each_try(
    server: ScriptedServer, scripted: Client, caplog: Any, sleeps: list[float], scenario: str
) -> None:
    replies, tries, succeeds = SCENARIOS[scenario]
    in_turn(server, "ping", *replies)
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
    assert kinds == ["started", "failed"] * (tries - 1) + ["started", "succeeded" if succeeds else "failed"]


# While it waits


@pytest.fixture
def waiting(deployment: Deployment, connect: Callable[..., Client]) -> Client:
    """A client with one connection that waits for long between tries."""
    client = connect(deployment, maxPoolSize=1, baseBackoffMS=10_000)
    client.db.command("ping")
    return client


@pytest.mark.requirement("BP-72")
def test_the_connection_is_checked_in(deployment: Deployment, waiting: Client) -> None:
    fail(deployment, "insert")
    slow = gevent.spawn(waiting.db.c.insert_one, {})
    eventually(lambda: waiting.retry_stats()["slept"] > 0)
    (pool,) = waiting.pool_stats()
    assert (pool["in_use"], pool["available"]) == (0, 1)
    with gevent.Timeout(2):
        waiting.db.command("ping")
    slow.kill()


@pytest.mark.parametrize("how", ["kill", "timeout"])
def test_what_ends_the_wait_ends_it_at_once(deployment: Deployment, waiting: Client, how: str) -> None:
    fail(deployment, "insert")
    with gevent.Timeout(5):
        if how == "kill":
            slow = gevent.spawn(waiting.db.c.insert_one, {})
            eventually(lambda: waiting.retry_stats()["slept"] > 0)
            slow.kill()
            assert isinstance(slow.value, gevent.GreenletExit)
        else:
            mine = gevent.Timeout(0.05)
            with pytest.raises(gevent.Timeout) as raised, mine:
                waiting.db.c.insert_one({})
            assert raised.value is mine
    check_nothing_held(waiting)
    assert len(deployment.commands.named("insert")) == 1
    assert waiting.retry_stats()["tokens"] == pytest.approx(999), "the token is spent all the same (BP-A04)"


def test_a_kill_while_a_session_of_the_applications_waits(deployment: Deployment, waiting: Client) -> None:
    fail(deployment, "insert", times=1)
    with waiting.start_session() as session:
        slow = gevent.spawn(waiting.db.c.insert_one, {}, session=session)
        eventually(lambda: waiting.retry_stats()["slept"] > 0)
        slow.kill()
        waiting.db.c.insert_one({"_id": 1}, session=session)
    check_nothing_held(waiting)
