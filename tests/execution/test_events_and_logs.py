"""Events and log messages of commands hide sensitive data. The events contain durations."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect, NetworkTimeout, OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import delay_replies, fail
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

SENSITIVE_COMMANDS = [
    {"authenticate": 1},
    {"saslStart": 1, "mechanism": "PLAIN", "payload": b"secret"},
    {"saslContinue": 1, "conversationId": 1, "payload": b"secret"},
    {"getnonce": 1},
    {"createUser": "u", "pwd": "secret", "roles": []},
    {"updateUser": "u", "pwd": "secret"},
    {"copydbgetnonce": 1},
    {"copydbsaslstart": 1},
    {"copydb": 1},
    {"hello": 1, "speculativeAuthenticate": {"saslStart": 1}},
]
COMMAND_NAMES = [next(iter(command)) for command in SENSITIVE_COMMANDS]


def last_event(recorder: Recorder, event_name: str) -> Any:
    return recorder.events_named(event_name)[-1]


@pytest.fixture
def messages_of(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[dict[str, Any]]]:
    """Return a function that returns the structured log messages of a logging component."""
    caplog.set_level(logging.DEBUG, "gmongo")

    def messages_of_component(component: str) -> list[dict[str, Any]]:
        name = f"gmongo.{component}"
        return [record.structured for record in caplog.records if record.name == name]  # type: ignore[attr-defined]

    return messages_of_component


@pytest.mark.parametrize("command", SENSITIVE_COMMANDS, ids=COMMAND_NAMES)
@pytest.mark.parametrize("fault", ["closed", "timeout"])
def test_events_and_logs_show_network_error_of_sensitive_command(
    deployment: Deployment, connect: Connect, recorder: Recorder, messages_of: Any, command: dict[str, Any], fault: str
) -> None:
    client = connect(deployment, socketTimeoutMS=80 if fault == "timeout" else None)
    name = next(iter(command))
    client.db.command("ping")
    if fault == "closed":
        fail(deployment, name, times=1, code=None, labels=None, closeConnection=True)
    else:
        delay_replies(deployment, name, times=1, milliseconds=600)
    with pytest.raises(AutoReconnect) as raised:
        client.admin.command(command)
    failure = last_event(recorder, "CommandFailed").failure
    kind = NetworkTimeout if fault == "timeout" else AutoReconnect
    assert failure == {"errmsg": str(raised.value), "errtype": kind.__name__}
    assert last_event(recorder, "CommandStarted").command == {}
    [logged] = [each for each in messages_of("command") if each["message"] == "Command failed"]
    assert str(raised.value) in logged["failure"]
    assert "secret" not in str(messages_of("command"))


def reply_after_delay(reply: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def sleep_and_reply(_command: dict[str, Any]) -> dict[str, Any]:
        gevent.sleep(0.25)
        return reply

    return sleep_and_reply


@pytest.mark.parametrize("method", ["find", "find_raw_batches"])
def test_event_contains_documents_of_large_reply(client: Client, recorder: Recorder, method: str) -> None:
    documents = [{"_id": number, "text": "x" * 1000} for number in range(100)]
    client.db.c.insert_many(documents)
    getattr(client.db.c, method)().to_list()
    assert last_event(recorder, "CommandSucceeded").reply["cursor"]["firstBatch"] == documents


@pytest.mark.parametrize("event_name", ["CommandSucceeded", "CommandFailed"])
def test_duration_in_command_event_is_duration_of_exchange(
    server: ScriptedServer, connect: Connect, recorder: Recorder, event_name: str
) -> None:
    server.replies["count"] = reply_after_delay(
        {"ok": 1, "n": 1} if event_name == "CommandSucceeded" else {"ok": 0, "errmsg": "no"}
    )
    client = connect(server)
    with contextlib.suppress(OperationFailure):
        client.db.command("count", "c")
    assert last_event(recorder, event_name).duration_micros == pytest.approx(250_000, abs=10_000)


def test_log_names_server_connection_only_if_hello_contains_connection_id(
    deployment: Deployment, connect: Connect, messages_of: Any
) -> None:
    connect(deployment).db.command("ping")
    with ScriptedServer() as server:
        connect(server).db.command("ping")
    with_id, without_id = [each for each in messages_of("command") if each["message"] == "Command started"]
    assert with_id["serverConnectionId"] > 0 and "serverConnectionId" not in without_id
