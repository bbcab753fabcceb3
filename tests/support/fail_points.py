"""Fail points of simulated deployments, and of any server that has them."""

from __future__ import annotations

from typing import Any

from gmongo import MongoClient
from gmongo.testing import Deployment


def fail(
    where: Deployment | MongoClient[Any], *commands: str, times: int | None = 1, member: Any = None, **data: Any
) -> None:
    """Let commands fail.

    :param where: a deployment, or a client of one.
    :param times: how often; None is for ever.
    :param member: of a deployment, whose commands fail; all by default.
    :param data: how they fail, as the command ``configureFailPoint`` has it.
    """
    mode: Any = "alwaysOn" if times is None else {"times": times}
    data = {"failCommands": list(commands), **data}
    if isinstance(where, MongoClient):
        where.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)
    else:
        where.set_fail_point("failCommand", mode, data, member=member)


def block(where: Deployment | MongoClient[Any], command: str, seconds: float = 0.15) -> None:
    """Let the next command of that name wait before it is executed."""
    fail(where, command, blockConnection=True, blockTimeMS=int(seconds * 1000))


def refuse(where: Deployment | MongoClient[Any], command: str, code: int, *labels: str) -> None:
    """Let the next command of that name fail with an error of the server."""
    fail(where, command, errorCode=code, errorLabels=list(labels))


def break_off(where: Deployment | MongoClient[Any], command: str) -> None:
    """Close the connection in the place of a reply to the next command of that name."""
    fail(where, command, closeConnection=True)
