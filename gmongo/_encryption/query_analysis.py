"""Client of mongocryptd, a local process that marks the values to encrypt in a command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from bson.raw_bson import RawBSONDocument
from gevent import sleep

from gmongo._documents import DocumentDict
from gmongo._encryption.key_vault import Client
from gmongo._redaction import redacted
from gmongo._safe_log import safely
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.events import log
from gmongo.execution.operation import OperationContext
from gmongo.operations.run_command import RunCommand
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer

_SELECTION_TIMEOUT_MS = 10_000
# Fields without data. An error message may quote these fields to name the faulty part of the schema.
_SCHEMA_FIELDS = ("jsonSchema", "isRemoteSchema", "encryptionInformation", "csfleEncryptionSchemas", "$db")
_POLL_INTERVAL, _MAX_POLLS = 0.002, 500  # seconds between two checks, and the maximum number of checks


class Mongocryptd:
    """Client that starts mongocryptd and sends commands. `new_client` creates a client without events and logs."""

    def __init__(self, options: AutoEncryptionOpts, new_client: Callable[..., Client]) -> None:
        self._client: Client = new_client(
            options._mongocryptd_uri, connect=False, serverSelectionTimeoutMS=_SELECTION_TIMEOUT_MS
        )
        self._command = options._mongocryptd_command
        self._spawns = not options._mongocryptd_bypass_spawn
        self._spawned = False

    def analyse(self, database: str, command: bytes) -> bytes:
        """Return the reply of mongocryptd, which contains the command with marks at the values to encrypt."""
        operation = _AnalyseCommand(OperationContext(database), RawBSONDocument(command))
        if self._spawns and not self._spawned:
            self._spawn()
        try:
            reply: bytes = self._client._executor.run(operation)
        except ServerSelectionTimeoutError:
            if not self._spawns:
                raise
            self._spawn()
            reply = self._client._executor.run(operation)
        return reply

    def _spawn(self) -> None:
        self._spawned = True
        if shutil.which(self._command[0]) is None:
            text = "mongocryptd cannot be started: PATH contains no %r (mongocryptd_spawn_path)"
            safely(log.encryption_log.warning, text, self._command[0])
            return
        spawn_detached(self._command)

    def close(self) -> None:
        """Close the connections. Send no command to mongocryptd, which ends when idle."""
        self._client.close()


class _AnalyseCommand(RunCommand):
    """Operation that sends a command to mongocryptd for analysis. The result is the encoded reply."""

    takes_session = False

    def decode(self, body: Buffer) -> DocumentDict:
        self._encoded = bytes(body)
        sent = [value for field, value in self._command.items() if field not in (self.name, *_SCHEMA_FIELDS)]
        return dict(redacted(super().decode(body), sent))

    def result(self, reply: DocumentDict, address: Address) -> bytes:
        return self._encoded


def spawn_detached(command: Sequence[str]) -> None:
    """Start a process that is not a child of this process. Do not block the event loop.

    The function starts a shell, which starts the process and ends. The shell and the process have no standard streams.
    """
    null = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    arguments = ["sh", "-c", '"$@" &', "sh", *command]
    process = os.posix_spawn("/bin/sh", arguments, os.environ, file_actions=null, setsid=True)
    for _ in range(_MAX_POLLS):
        try:
            if os.waitpid(process, os.WNOHANG)[0] == process:
                return
        except ChildProcessError:  # the event loop has already collected the exit status of the shell
            return
        sleep(_POLL_INTERVAL)
