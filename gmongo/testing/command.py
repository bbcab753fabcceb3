"""A command as a simulated member receives it, and the error that it may answer with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAMES: Mapping[str, str] = json.loads(Path(__file__).with_name("error_names.json").read_text(encoding="utf-8"))
NO_CODE = -1
"""The error of some old commands has no code."""


@dataclass
class Request:
    """One command.

    :param name: the first field of the body, such as ``find``.
    :param body: the whole command; document sequences are merged in as lists.
    :param database: the ``$db``.
    :param member: ``host:port`` of the member or mongos that received it.
    :param connection: the number of the connection it came on.
    :param repeated: a field that occurs twice.
    :ivar killed: tells whether it has been killed meanwhile; None while it cannot be.
    """

    name: str
    body: dict[str, Any]
    database: str
    member: str
    connection: int
    killed: Callable[[], bool] | None = field(default=None, init=False, repr=False, compare=False)
    repeated: str | None = None

    @property
    def is_killed(self) -> bool:
        """Whether it has been killed."""
        return self.killed is not None and self.killed()

    @property
    def session(self) -> bytes | None:
        """The ID of the session, if the command has one."""
        lsid = self.body.get("lsid")
        return bytes(lsid["id"]) if lsid else None

    @property
    def transaction_number(self) -> int | None:
        """The number of the transaction or of the retryable write."""
        return self.body.get("txnNumber")

    @property
    def in_transaction(self) -> bool:
        """Whether the command belongs to a transaction, rather than being a retryable write."""
        return self.body.get("autocommit") is False


class CommandError(Exception):
    """What a command fails with.

    :param code: the server's error code, such as 26.
    :param name: the code's name, such as ``NamespaceNotFound``.
    :param message: what happened.
    :param labels: error labels; none by default.
    :param fields: further fields of the reply.
    """

    def __init__(self, code: int, name: str, message: str, labels: Iterable[str] = (), **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.message = message
        self.labels = list(labels)
        self.fields: Mapping[str, Any] = fields

    def reply(self) -> dict[str, Any]:
        """The reply to the command."""
        labels = {"errorLabels": self.labels} if self.labels else {}
        code = {} if self.code == NO_CODE else {"code": self.code, "codeName": self.name}
        return {**labels, "ok": 0.0, "errmsg": self.message, **code, **self.fields}


def name_of(code: int) -> str:
    """The name of a code; the server calls one that it has no name for ``Location`` and the number."""
    return _NAMES.get(str(code), f"Location{code}")


def error(code: int, message: str) -> CommandError:
    """An error with the name that belongs to its code."""
    return CommandError(code, name_of(code), message)


def interrupted() -> CommandError:
    """The error of a command that was killed."""
    return CommandError(11601, "Interrupted", "operation was interrupted")
