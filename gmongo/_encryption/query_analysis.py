"""mongocryptd, a process beside the application that says what in a command has to be encrypted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from bson.raw_bson import RawBSONDocument
from gevent import sleep

from gmongo._documents import DocumentDict
from gmongo._encryption.key_vault import Client
from gmongo._safe_log import safely
from gmongo.cmap.quoting import without_quotes
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.events import log
from gmongo.execution.context import OperationContext
from gmongo.operations.run_command import RunCommand
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer

_SELECTION_TIMEOUT_MS = 10_000
# What a refusal may quote: it says which field of the schema is at fault.
_OF_THE_SCHEMA = ("jsonSchema", "isRemoteSchema", "encryptionInformation", "csfleEncryptionSchemas", "$db")
_LOOK_EVERY, _LOOKS = 0.002, 500  # seconds


class Mongocryptd:
    """Asks mongocryptd, and starts it when it cannot be reached.

    :param options: where it is, and how it is started.
    :param new_client: makes the client that it is asked through, of which nothing is seen: it sends plaintext.
    """

    def __init__(self, options: AutoEncryptionOpts, new_client: Callable[..., Client]) -> None:
        self._client: Client = new_client(
            options._mongocryptd_uri, connect=False, serverSelectionTimeoutMS=_SELECTION_TIMEOUT_MS
        )
        self._command = options._mongocryptd_command
        self._spawns = not options._mongocryptd_bypass_spawn
        self._spawned = False

    def analysed(self, database: str, command: bytes) -> bytes:
        """The reply to a command: the command with marks where it has to be encrypted.

        :raises ServerSelectionTimeoutError: it cannot be reached, and could not be started.
        :raises OperationFailure: the command cannot be encrypted.
        """
        operation = _Analyse(OperationContext(database), RawBSONDocument(command))
        if self._spawns and not self._spawned:
            self._spawn()
        try:
            found: bytes = self._client._executor.run(operation)
        except ServerSelectionTimeoutError:
            if not self._spawns:
                raise
            self._spawn()
            found = self._client._executor.run(operation)
        return found

    def _spawn(self) -> None:
        self._spawned = True
        if shutil.which(self._command[0]) is None:
            text = "mongocryptd cannot be started: there is no %r (mongocryptd_spawn_path) in PATH"
            safely(log.encryption_log.warning, text, self._command[0])
            return
        spawn_apart(self._command)

    def close(self) -> None:
        """Close the connections to it. The process ends by itself when it is not used any more."""
        self._client.close()


class _Analyse(RunCommand):
    """Have a command analysed; the result is the reply, encoded."""

    takes_session = False

    def decode(self, body: Buffer) -> DocumentDict:
        self._encoded = bytes(body)
        sent = [value for field, value in self._command.items() if field not in (self.name, *_OF_THE_SCHEMA)]
        return dict(without_quotes(super().decode(body), sent))

    def result(self, reply: DocumentDict, address: Address) -> bytes:
        return self._encoded


def spawn_apart(command: Sequence[str]) -> None:
    """Start a process that is not a child of this one, which need not care for its end, and does not hold the loop.

    A shell starts it and ends at once. Neither sees the standard streams.
    """
    null = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    arguments = ["sh", "-c", '"$@" &', "sh", *command]
    process = os.posix_spawn("/bin/sh", arguments, os.environ, file_actions=null, setsid=True)
    for _ in range(_LOOKS):
        try:
            if os.waitpid(process, os.WNOHANG)[0] == process:
                return
        except ChildProcessError:  # the loop has noticed its end
            return
        sleep(_LOOK_EVERY)
