"""Automatic encryption and decryption of one client, with libmongocrypt and mongocryptd.

mongocryptd is a local process that marks the values to encrypt in a command.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Sequence

import bson
from bson.raw_bson import RawBSONDocument
from gevent import sleep

from gmongo._documents import Document, DocumentDict
from gmongo._encryption.explicit import open_handle
from gmongo._encryption.key_vault import Client, KeyVaultRequests, key_vault_collection, split_namespace
from gmongo._encryption.kms import Kms
from gmongo._encryption.library import contexts
from gmongo._encryption.machine import Machine
from gmongo._redaction import redacted
from gmongo._safe_log import safely
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import EncryptionError, ServerSelectionTimeoutError
from gmongo.events import log
from gmongo.execution.operation import OperationContext
from gmongo.operations.run_command import RunCommand
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer


class Encrypter:
    """Object that encrypts the commands of a client, and decrypts the replies.

    If the pool of `client` is limited, `new_client` creates a second client from `client_arguments`.
    The second client reads data keys and schemas. For mongocryptd, which receives plaintext,
    `new_silent_client` creates a client without events and logs.
    """

    def __init__(
        self,
        client: Client,
        options: AutoEncryptionOpts,
        new_client: Callable[..., Client],
        new_silent_client: Callable[..., Client],
        client_arguments: Document,
    ) -> None:
        split_namespace(options._key_vault_namespace)
        self.options = options
        self._handle = open_handle(options._settings)
        self._client = weakref.ref(client)
        self._has_unlimited_pool = client.options.merged.get("maxpoolsize", 1) in (0, None)
        self._new_client = new_client
        self._client_arguments = client_arguments
        self._internal_client: Client | None = None
        self._mongocryptd: Mongocryptd | None = None
        self._encrypts = not options._bypass_auto_encryption
        if options._settings.loads_crypt_shared and self._encrypts and not self._handle.has_crypt_shared:
            self._mongocryptd = Mongocryptd(options, new_silent_client)
        kms = Kms(options._kms_tls, options._kms_connect_callback)
        self._machine = Machine(self._handle, weakref.proxy(self), kms)

    def encrypt(self, database: str, command: bytes, deadline: float | None) -> bytes:
        """Encrypt a command. Return an unchanged command if encryption is disabled or unnecessary."""
        if not self._encrypts:
            return command
        providers = self._machine.kms_providers
        encrypted = self._machine.run(
            lambda new_pointer: contexts.EncryptionContext(new_pointer(), providers, database, command),
            len(command),
            deadline,
        )
        return command if encrypted is None else encrypted

    def decrypt(self, reply: Buffer, deadline: float | None) -> bytes | None:
        """Decrypt a reply, or return None if the reply contains no encrypted values."""
        providers = self._machine.kms_providers
        decrypted = self._machine.run(
            lambda new_pointer: contexts.DecryptionContext(new_pointer(), providers, reply), len(reply), deadline
        )
        return None if decrypted == reply else decrypted

    # Requests of libmongocrypt to servers. Filters, commands and replies are encoded documents.

    def find_keys(self, filter: bytes) -> list[bytes]:
        client = self.options._key_vault_client or self._client_for_keys_and_schemas()
        return KeyVaultRequests(key_vault_collection(client, self.options._key_vault_namespace)).find_keys(filter)

    def list_collections(self, database: str, filter: bytes) -> list[bytes]:
        with self._client_for_keys_and_schemas()[database].list_collections(filter=RawBSONDocument(filter)) as cursor:
            return [bson.encode(each) for each in cursor]

    def analyse(self, database: str, command: bytes) -> bytes:
        if self._mongocryptd is None:
            raise EncryptionError(
                RuntimeError("libmongocrypt requests an analysis, but the options disable the analysis")
            )
        return self._mongocryptd.analyse(database, command)

    def _client_for_keys_and_schemas(self) -> Client:
        """Return the encrypted client if its pool is unlimited, otherwise a second client.

        An operation reads keys while the operation uses a connection. With a limited pool, operations
        could check out all connections, and then wait forever for a connection to the key vault.
        """
        client = self._client()
        if client is None:
            raise EncryptionError(ReferenceError("the client no longer exists"))
        if self._has_unlimited_pool:
            return client
        if self._internal_client is None:
            excluded = ("auto_encryption_opts", "minpoolsize")
            arguments = {name: value for name, value in self._client_arguments.items() if name.lower() not in excluded}
            self._internal_client = self._new_client(**arguments, minPoolSize=0)
        return self._internal_client

    def close(self) -> None:
        """Close the handle of libmongocrypt, and the clients that this object created."""
        self._handle.close()
        client, self._internal_client = self._internal_client, None
        for each in (client, self._mongocryptd):
            if each is not None:
                each.close()


_SELECTION_TIMEOUT_MS = 10_000
# Command fields without application data. Quoting these fields in errors of mongocryptd is safe.
_SCHEMA_FIELDS = ("jsonSchema", "isRemoteSchema", "encryptionInformation", "csfleEncryptionSchemas", "$db")
_POLL_INTERVAL, _MAX_POLLS = 0.002, 500  # interval in seconds and maximum number of checks for the end of the shell


class Mongocryptd:
    """Launcher and client of mongocryptd. `new_client` creates a client without events and logs."""

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
        """Close the connections. mongocryptd exits after its idle timeout."""
        self._client.close()


class _AnalyseCommand(RunCommand):
    """Operation that sends a command to mongocryptd for analysis. The result is the encoded reply."""

    takes_session = False

    def decode(self, body: Buffer) -> DocumentDict:
        self._encoded = bytes(body)
        values = [value for field, value in self._command.items() if field not in (self.name, *_SCHEMA_FIELDS)]
        return dict(redacted(super().decode(body), values))

    def result(self, reply: DocumentDict, address: Address) -> bytes:
        return self._encoded


def spawn_detached(command: Sequence[str]) -> None:
    """Start a process that is not a child of this process, without blocking the event loop.

    A shell starts the process in the background, with ``/dev/null`` as standard streams, and exits.
    """
    streams = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    arguments = ["sh", "-c", '"$@" &', "sh", *command]
    shell_pid = os.posix_spawn("/bin/sh", arguments, os.environ, file_actions=streams, setsid=True)
    for _ in range(_MAX_POLLS):
        try:
            if os.waitpid(shell_pid, os.WNOHANG)[0] == shell_pid:
                return
        except ChildProcessError:  # the event loop has already collected the exit status of the shell
            return
        sleep(_POLL_INTERVAL)
