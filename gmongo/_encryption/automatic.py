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
from gmongo._encryption.library import Native, contexts
from gmongo._encryption.machine import Machine
from gmongo._encryption.query_analysis import Mongocryptd
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import EncryptionError
from gmongo.wire.message import Buffer


class Encrypter:
    """Object that encrypts the commands of a client, and decrypts the replies.

    :param new_client: a function that creates another client, which reads the key vault and the schemas of collections.
    :param new_silent_client: a function that creates a client without events and logs for mongocryptd, which receives
        plaintext.
    :param client_arguments: the arguments with which the application created `client`.
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
        self._machine = Machine(
            self._handle, _ServerRequests(self), Kms(options._kms_tls, options._kms_connect_callback)
        )

    def encrypt(self, database: str, command: bytes, deadline: float | None) -> bytes:
        """Encrypt a command, or return the command unchanged if no field needs encryption."""
        if not self._encrypts:
            return command

        def make_context(new_pointer: Callable[[], Native]) -> Native:
            return contexts.EncryptionContext(new_pointer(), self._machine.kms_providers, database, command)

        encrypted = self._machine.run(make_context, len(command), deadline)
        return command if encrypted is None else encrypted

    def decrypt(self, reply: Buffer, deadline: float | None) -> bytes | None:
        """Decrypt a reply, or return None if the reply contains no encrypted values."""

        def make_context(new_pointer: Callable[[], Native]) -> Native:
            return contexts.DecryptionContext(new_pointer(), self._machine.kms_providers, reply)

        decrypted = self._machine.run(make_context, len(reply), deadline)
        return None if decrypted == reply else decrypted

    def encrypted_fields(self, namespace: str) -> Document | None:
        """Return the encrypted fields of a collection from ``encrypted_fields_map``, or None."""
        fields: Document | None = self.options._encrypted_fields_map.get(namespace)
        return fields

    # Clients

    def key_vault(self) -> KeyVault:
        """Return the key vault, with the client that the options name or with :meth:`client_for_keys`."""
        client = self.options._key_vault_client or self.client_for_keys()
        return KeyVault(key_vault(client, self.options._key_vault_namespace))

    def client_for_keys(self) -> Client:
        """Return the encrypted client if its pool is unlimited, or a second client for the deployment.

        An operation reads keys while the operation uses a connection. In a limited pool, such operations could check
        out all connections, and wait forever for another connection.
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

    def analyse(self, database: str, command: bytes) -> bytes:
        if self._mongocryptd is None:
            raise EncryptionError(
                RuntimeError("libmongocrypt requests an analysis, but the options disable the analysis")
            )
        return self._mongocryptd.analyse(database, command)

    def close(self) -> None:
        """Discard the data keys, and close the clients that this object created."""
        self._handle.close()
        internal, self._internal = self._internal, None
        for each in (internal, self._mongocryptd):
            if each is not None:
                each.close()


class _ServerRequests:
    def __init__(self, encrypter: Encrypter) -> None:
        self._encrypter = weakref.proxy(encrypter)

    def keys(self, filter: bytes) -> list[bytes]:
        keys: list[bytes] = self._encrypter.key_vault().keys(filter)
        return keys

    def collections(self, database: str, filter: bytes) -> list[bytes]:
        client = self._encrypter.client_for_keys()
        with client[database].list_collections(filter=RawBSONDocument(filter)) as cursor:
            return [bson.encode(each) for each in cursor]

    def analyse(self, database: str, command: bytes) -> bytes:
        reply: bytes = self._encrypter.analyse(database, command)
        return reply
