"""A command that a simulated member received, and an error reply."""

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
    """A command.

    :param name: the first field of the body, such as ``find``.
    :param body: the whole command, which includes document sequences as lists.
    :param database: the value of ``$db``.
    :param member: ``host:port`` of the member or mongos that received it.
    :param connection: the number of the connection.
    :param repeated: a field that occurs twice.
    :ivar killed: returns True if the command is killed; None while the command cannot be killed.
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
        """True if the command is killed."""
        return self.killed is not None and self.killed()

    @property
    def session(self) -> bytes | None:
        """The ID of the session, or None."""
        lsid = self.body.get("lsid")
        return bytes(lsid["id"]) if lsid else None

    @property
    def transaction_number(self) -> int | None:
        """The number of the transaction or of the retryable write."""
        return self.body.get("txnNumber")

    @property
    def in_transaction(self) -> bool:
        """True if the command belongs to a transaction. False for a retryable write."""
        return self.body.get("autocommit") is False


class CommandError(Exception):
    """The error reply to a command.

    :param code: the server's error code, such as 26.
    :param name: the code's name, such as ``NamespaceNotFound``.
    :param message: the text of the error.
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
        """Return the reply to the command."""
        labels = {"errorLabels": self.labels} if self.labels else {}
        code = {} if self.code == NO_CODE else {"code": self.code, "codeName": self.name}
        return {**labels, "ok": 0.0, "errmsg": self.message, **code, **self.fields}


def name_of(code: int) -> str:
    """Return the name of a code, or ``Location`` and the number for a code without a name."""
    return _NAMES.get(str(code), f"Location{code}")


def error(code: int, message: str) -> CommandError:
    """Return an error with the name of its code."""
    return CommandError(code, name_of(code), message)


def interrupted() -> CommandError:
    """Return the error of a killed command."""
    return CommandError(11601, "Interrupted", "operation was interrupted")
