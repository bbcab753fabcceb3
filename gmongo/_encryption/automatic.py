"""Automatic encryption and decryption of one client."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import bson
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document
from gmongo._encryption.explicit import open_handle
from gmongo._encryption.key_vault import Client, KeyVault, key_vault, split_namespace
from gmongo._encryption.kms import Kms
from gmongo._encryption.library import contexts
from gmongo._encryption.machine import Machine
from gmongo._encryption.query_analysis import Mongocryptd
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import EncryptionError
from gmongo.wire.message import Buffer


class Encrypter:
    """Object that encrypts the commands of a client, and decrypts the replies.

    `new_client` creates a second client from `client_arguments`, which reads the key vault and collection schemas.
    `new_silent_client` creates a client without events and logs for mongocryptd, which receives plaintext.
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
        self._is_unlimited = client.options.merged.get("maxpoolsize", 1) in (0, None)
        self._new_client = new_client
        self._client_arguments = client_arguments
        self._internal: Client | None = None
        self._mongocryptd: Mongocryptd | None = None
        self._encrypts = not options._bypass_auto_encryption
        if options._settings.analyses and self._encrypts and self._handle.crypt_shared_version is None:
            self._mongocryptd = Mongocryptd(options, new_silent_client)
        kms = Kms(options._kms_tls, options._kms_connect_callback)
        self._machine = Machine(self._handle, weakref.proxy(self), kms)

    def encrypt(self, database: str, command: bytes, deadline: float | None) -> bytes:
        """Encrypt a command, or return the command unchanged if no field needs encryption."""
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

    # Requests to servers for the state machine

    def keys(self, filter: bytes) -> list[bytes]:
        client = self.options._key_vault_client or self._client_for_keys()
        return KeyVault(key_vault(client, self.options._key_vault_namespace)).keys(filter)

    def collections(self, database: str, filter: bytes) -> list[bytes]:
        with self._client_for_keys()[database].list_collections(filter=RawBSONDocument(filter)) as cursor:
            return [bson.encode(each) for each in cursor]

    def analyse(self, database: str, command: bytes) -> bytes:
        if self._mongocryptd is None:
            raise EncryptionError(
                RuntimeError("libmongocrypt requests an analysis, but the options disable the analysis")
            )
        return self._mongocryptd.analyse(database, command)

    def _client_for_keys(self) -> Client:
        """Return the encrypted client if its pool is unlimited, otherwise a second client.

        An operation reads keys while it uses a connection. If the pool is limited, such operations could check out all
        connections, and wait forever for another connection.
        """
        client = self._client()
        if client is None:
            raise EncryptionError(ReferenceError("the client no longer exists"))
        if self._is_unlimited:
            return client
        if self._internal is None:
            replaced = ("auto_encryption_opts", "minpoolsize")
            arguments = {name: value for name, value in self._client_arguments.items() if name.lower() not in replaced}
            self._internal = self._new_client(**arguments, minPoolSize=0)
        return self._internal

    def close(self) -> None:
        """Discard the data keys, and close the clients that this object created."""
        self._handle.close()
        internal, self._internal = self._internal, None
        for each in (internal, self._mongocryptd):
            if each is not None:
                each.close()
