"""Fail points of simulated deployments and servers."""

from __future__ import annotations

from typing import Any

from gmongo import MongoClient
from gmongo.testing import Deployment


def fail(
    target: Deployment | MongoClient[Any], *commands: str, times: int | None = 1, member: Any = None, **data: Any
) -> None:
    """Set the fail point ``failCommand``."""
    mode: Any = "alwaysOn" if times is None else {"times": times}
    data = {"failCommands": list(commands), **data}
    if isinstance(target, MongoClient):
        target.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)
    else:
        target.set_fail_point("failCommand", mode, data, member=member)


def block(target: Deployment | MongoClient[Any], command: str, seconds: float = 0.15) -> None:
    """Let the server wait before the execution of the next `command`."""
    fail(target, command, blockConnection=True, blockTimeMS=int(seconds * 1000))


def refuse(target: Deployment | MongoClient[Any], command: str, code: int, *labels: str) -> None:
    """Let the server reply to the next `command` with an error that has the error code `code` and
    the error labels `labels`.
    """
    fail(target, command, errorCode=code, errorLabels=list(labels))


def close_connection_at(target: Deployment | MongoClient[Any], command: str) -> None:
    """Let the server close the connection when the next `command` arrives, without a reply."""
    fail(target, command, closeConnection=True)
