"""The commands that simulated members receive, and error replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ERROR_NAMES: Mapping[str, str] = json.loads(Path(__file__).with_name("error_names.json").read_text(encoding="utf-8"))
NO_CODE = -1
"""The code of a `CommandError` whose reply has no field ``code``, as in some replies to ``setParameter``."""


@dataclass
class Request:
    """A command that a member received.

    :param name: the name of the command, such as ``find``. The first field of `body` has this name.
    :param body: all fields of the command. `body` contains each document sequence as a field whose
        value is a list of documents.
    :param database: the value of ``$db``.
    :param member: ``host:port`` of the member that received the command.
    :param connection: the connectionId of the connection.
    :param repeated: the name of a field that occurs twice in the command; None by default.
    :ivar killed: a function that returns True if the command was killed; None while the command
        cannot be killed.
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
        """True if ``killOp`` has killed the command."""
        return self.killed is not None and self.killed()

    @property
    def session(self) -> bytes | None:
        """The session ID of the command, or None."""
        lsid = self.body.get("lsid")
        return bytes(lsid["id"]) if lsid else None

    @property
    def transaction_number(self) -> int | None:
        """The number of the transaction or of the retryable write, or None."""
        return self.body.get("txnNumber")

    @property
    def in_transaction(self) -> bool:
        """True if the command belongs to a transaction. False for a retryable write."""
        return self.body.get("autocommit") is False


class CommandError(Exception):
    """The error reply to a command.

    :param code: the error code, such as 26.
    :param name: the name of the error code, such as ``NamespaceNotFound``.
    :param message: the text of the error.
    :param labels: the error labels of the reply; empty by default.
    :param fields: further fields of the reply, by name.
    """

    def __init__(self, code: int, name: str, message: str, labels: Iterable[str] = (), **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.message = message
        self.labels = list(labels)
        self.fields: Mapping[str, Any] = fields

    def reply(self) -> dict[str, Any]:
        """Return the error as a reply document."""
        labels = {"errorLabels": self.labels} if self.labels else {}
        code = {} if self.code == NO_CODE else {"code": self.code, "codeName": self.name}
        return {**labels, "ok": 0.0, "errmsg": self.message, **code, **self.fields}


def find_error_name(code: int) -> str:
    """Return the name of an error code. For a code without a name, return ``Location`` followed by the code."""
    return _ERROR_NAMES.get(str(code), f"Location{code}")


def error(code: int, message: str, labels: Iterable[str] = (), **fields: Any) -> CommandError:
    """Return a CommandError whose name is the name of `code`."""
    return CommandError(code, find_error_name(code), message, labels, **fields)


def create_kill_error() -> CommandError:
    """Return the error of a killed command."""
    return error(11601, "operation was interrupted")
