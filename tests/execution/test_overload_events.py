"""Each attempt of an operation publishes events and log messages."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gmongo.errors import OperationFailure
from tests.execution.harness import (
    error_reply,
    events_of_command,
    overload_reply,
    reply_in_sequence,
)
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

FAILED_ATTEMPT_EVENTS = ["CommandStarted", "CommandFailed"]
CASES: dict[str, tuple[list[Any], int, bool]] = {
    "two overload errors": ([overload_reply(), overload_reply()], 3, True),
    "only overload errors": ([overload_reply()] * 9, 6, False),
    "error without label after overload error": ([overload_reply(), error_reply(2)], 2, False),
    "error without label": ([error_reply(2)], 1, False),
    "no error": ([], 1, True),
}


@pytest.mark.requirement("BP-65", "BP-66", "BP-67", "BP-68", "BP-69")
@pytest.mark.parametrize("case", CASES)
def test_each_attempt_publishes_and_logs_start_and_end_of_command(
    server: ScriptedServer, scripted_client: Client, recorder: Recorder, caplog: Any, backoffs: list[float], case: str
) -> None:
    replies, attempts, succeeds = CASES[case]
    server.replies["update"] = {"ok": 1, "n": 0, "nModified": 0}
    reply_in_sequence(server, "update", *replies)
    with caplog.at_level(logging.DEBUG, logger="gmongo"):
        if succeeds:
            scripted_client.db.c.update_many({}, {"$set": {"x": 1}})
        else:
            with pytest.raises(OperationFailure):
                scripted_client.db.c.update_many({}, {"$set": {"x": 1}})
    ending = "CommandSucceeded" if succeeds else "CommandFailed"
    assert events_of_command(recorder, "update") == FAILED_ATTEMPT_EVENTS * (attempts - 1) + ["CommandStarted", ending]
    end_events = recorder.events_named("CommandSucceeded") + recorder.events_named("CommandFailed")
    started_ids = [event.request_id for event in recorder.events_named("CommandStarted")]
    assert sorted(event.request_id for event in end_events) == sorted(set(started_ids))
    assert len(server.commands("update")) == attempts
    log_messages = [each.structured for each in caplog.records if each.name == "gmongo.command"]
    messages = [each["message"] for each in log_messages if each["commandName"] == "update"]
    ending = "Command succeeded" if succeeds else "Command failed"
    assert messages == ["Command started", "Command failed"] * (attempts - 1) + ["Command started", ending]
