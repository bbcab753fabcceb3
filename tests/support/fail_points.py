"""Fail points of simulated deployments and servers."""

from __future__ import annotations

from typing import Any

from gmongo import MongoClient
from gmongo.testing import Deployment


def fail(
    where: Deployment | MongoClient[Any], *commands: str, times: int | None = 1, member: Any = None, **data: Any
) -> None:
    """Set a fail point for commands.

    :param where: Deployment, or client of a deployment.
    :param times: Number of failures, or None for no limit.
    :param member: Member of a deployment, or None for all members.
    :param data: Fields of ``configureFailPoint``.
    """
    mode: Any = "alwaysOn" if times is None else {"times": times}
    data = {"failCommands": list(commands), **data}
    if isinstance(where, MongoClient):
        where.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)
    else:
        where.set_fail_point("failCommand", mode, data, member=member)


def block(where: Deployment | MongoClient[Any], command: str, seconds: float = 0.15) -> None:
    """Delay the execution of the next `command`."""
    fail(where, command, blockConnection=True, blockTimeMS=int(seconds * 1000))


def refuse(where: Deployment | MongoClient[Any], command: str, code: int, *labels: str) -> None:
    """Fail the next `command` with a server error."""
    fail(where, command, errorCode=code, errorLabels=list(labels))


def break_off(where: Deployment | MongoClient[Any], command: str) -> None:
    """Close the connection instead of a reply to the next `command`."""
    fail(where, command, closeConnection=True)
