"""What these tests stand on: errors to inject, replies in a row, and clients whose story is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gevent

from gmongo.execution.backpressure import TokenBucket
from gmongo.testing import Deployment
from tests.support import fail_points
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

OVERLOADED, RETRYABLE = "SystemOverloadedError", "RetryableError"
BOTH = (OVERLOADED, RETRYABLE)
NO_WRITES = "NoWritesPerformed"


def fail(
    deployment: Deployment,
    *commands: str,
    times: int | None = None,
    code: int | None = 462,
    labels: Iterable[str] | None = BOTH,
    **data: Any,
) -> None:
    """Let commands fail, by default for ever and as an overloaded server does."""
    if code is not None:
        data["errorCode"] = code
    if labels is not None:
        data["errorLabels"] = list(labels)
    fail_points.fail(deployment, *commands, times=times, **data)


def slow(
    deployment: Deployment, *commands: str, milliseconds: int = 10_000, times: int | None = None, **more: Any
) -> None:
    """Let commands be answered late; nothing else is wrong with them."""
    more = {"code": None, "labels": None, **more}
    fail(deployment, *commands, times=times, blockConnection=True, blockTimeMS=milliseconds, **more)


def error(code: int, *labels: str, message: str = "scripted") -> dict[str, Any]:
    """The reply of a command that failed."""
    return {"ok": 0, "code": code, "errmsg": f"{message} {code}", "errorLabels": list(labels)}


def rejected(number: int = 462) -> dict[str, Any]:
    """The reply of an overloaded server."""
    return error(number, *BOTH)


def in_turn(server: ScriptedServer, name: str, *replies: Any) -> None:
    """Let a scripted server answer a command with one reply after the other, and then as usual."""
    usual = server.replies.get(name, {"ok": 1})
    waiting: Iterator[Any] = iter(replies)

    def reply(command: dict[str, Any]) -> Any:
        chosen = next(waiting, usual)
        return chosen(command) if callable(chosen) else chosen

    server.replies[name] = reply


def bucket(client: Client) -> float:
    """How many tokens a client has."""
    return client.retry_stats()["tokens"]


def set_tokens(client: Client, tokens: float) -> None:
    """Let a client have so many tokens."""
    client._executor.overload.bucket.missing = TokenBucket.CAPACITY * 10 - round(tokens * 10)


def told(recorder: Recorder, name: str) -> list[str]:
    """The events of one command by their short names, in order."""
    kinds = ("CommandStarted", "CommandSucceeded", "CommandFailed")
    return [
        kind
        for event in recorder.events
        for kind in kinds
        if type(event).__name__ == f"{kind}Event" and event.command_name == name
    ]


def spread(deployment: Deployment, name: str) -> list[str]:
    """The members that received a command, in order."""
    return [command.member for command in deployment.commands.named(name)]


def idle(client: Client) -> list[bytes]:
    """The IDs of the unused server sessions."""
    return [bytes(session.lsid["id"]) for session in client._executor.sessions._idle]


def check_nothing_held(client: Client) -> None:
    """No connection is checked out, no greenlet waits for one, and no server session is in use."""
    for pool in client.pool_stats():
        assert (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)
    assert not client._executor.sessions.in_use


def bystander(action: Callable[[], Any]) -> Any:
    """Run something in another greenlet to its end."""
    return gevent.spawn(action).get(timeout=5)
