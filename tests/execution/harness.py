"""Functions that set fail points, script replies, and check events, sessions and connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gevent

from gmongo.execution.retry import TokenBucket
from gmongo.testing import Deployment
from tests.support import fail_points
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

OVERLOADED_LABEL, RETRYABLE_LABEL = "SystemOverloadedError", "RetryableError"
BOTH_LABELS = (OVERLOADED_LABEL, RETRYABLE_LABEL)
NO_WRITES_LABEL = "NoWritesPerformed"


def fail(
    deployment: Deployment,
    *commands: str,
    times: int | None = None,
    code: int | None = 462,
    labels: Iterable[str] | None = BOTH_LABELS,
    **data: Any,
) -> None:
    """Set a fail point for commands, by default with the error of an overloaded server."""
    if code is not None:
        data["errorCode"] = code
    if labels is not None:
        data["errorLabels"] = list(labels)
    fail_points.fail(deployment, *commands, times=times, **data)


def delay_replies(
    deployment: Deployment, *commands: str, milliseconds: int = 10_000, times: int | None = None, **more_data: Any
) -> None:
    """Set a fail point that delays the replies to the given commands."""
    more_data = {"code": None, "labels": None, **more_data}
    fail(deployment, *commands, times=times, blockConnection=True, blockTimeMS=milliseconds, **more_data)


def error_reply(code: int, *labels: str, message: str = "scripted") -> dict[str, Any]:
    return {"ok": 0, "code": code, "errmsg": f"{message} {code}", "errorLabels": list(labels)}


def overload_reply(code: int = 462) -> dict[str, Any]:
    """Return the error reply with which an overloaded server rejects a command."""
    return error_reply(code, *BOTH_LABELS)


def reply_in_sequence(server: ScriptedServer, name: str, *replies: Any) -> None:
    """Let the server answer a command with `replies` in order, and then with the usual reply."""
    usual_reply = server.replies.get(name, {"ok": 1})
    remaining: Iterator[Any] = iter(replies)

    def reply(command: dict[str, Any]) -> Any:
        chosen = next(remaining, usual_reply)
        return chosen(command) if callable(chosen) else chosen

    server.replies[name] = reply


def tokens_of(client: Client) -> float:
    """Return the number of tokens in the token bucket of a client."""
    return client.retry_stats()["tokens"]


def set_tokens(client: Client, tokens: float) -> None:
    client._executor.overload.bucket.missing_tenths = TokenBucket.CAPACITY * 10 - round(tokens * 10)


def events_of_command(recorder: Recorder, name: str) -> list[str]:
    """Return, in order, the kinds of the events of the named command, such as ``CommandStarted``."""
    kinds = ("CommandStarted", "CommandSucceeded", "CommandFailed")
    return [
        kind
        for event in recorder.events
        for kind in kinds
        if type(event).__name__ == f"{kind}Event" and event.command_name == name
    ]


def receiving_members(deployment: Deployment, name: str) -> list[str]:
    """Return, for each received command with the given name, the member that received the command."""
    return [command.member for command in deployment.commands.named(name)]


def idle_session_ids(client: Client) -> list[bytes]:
    """Return the session IDs of the idle server sessions of a client."""
    return [bytes(session.lsid["id"]) for session in client._executor.sessions._idle]


def assert_no_resource_in_use(client: Client) -> None:
    """Check that the client uses no connection or session, and no greenlet waits for a connection."""
    for pool in client.pool_stats():
        assert (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)
    assert not client._executor.sessions.in_use


def no_connection_or_session_in_use(client: Client) -> bool:
    """Return True if the client uses no connection and no session, and reads no batch ahead."""
    uses_connection = any(stats["in_use"] for stats in client.pool_stats())
    return not uses_connection and client._executor.sessions.in_use == 0 and not client._cursor_killer.busy_read_aheads


def run_in_greenlet(action: Callable[[], Any]) -> Any:
    """Run `action` in a new greenlet, and return the result."""
    return gevent.spawn(action).get(timeout=5)


def count_open_cursors(deployment: Deployment) -> int:
    """Return the number of cursors that are open on the servers."""
    return deployment._cluster.store._state.cursors.count()
