"""Automatic encryption and decryption of one client."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import bson
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document
from gmongo._encryption.explicit import opened
from gmongo._encryption.key_vault import Client, KeyVault, key_vault, split_namespace
from gmongo._encryption.kms import Kms
from gmongo._encryption.library import Native, contexts
from gmongo._encryption.machine import Machine
from gmongo._encryption.query_analysis import Mongocryptd
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import EncryptionError
from gmongo.wire.message import Buffer


class Encrypter:
    """Encrypts the commands of a client, and decrypts the replies.

    :param client: the client, which owns this.
    :param options: what it is to do.
    :param new_client: makes a further client, for the key vault and for the schemas of collections.
    :param new_silent_client: makes one of which nothing is seen, for mongocryptd: that is asked in plaintext.
    :param construction: the arguments that another client like this one is made with.
    :raises EncryptionError: libmongocrypt refuses the options.
    """

    def __init__(
        self,
        client: Client,
        options: AutoEncryptionOpts,
        new_client: Callable[..., Client],
        new_silent_client: Callable[..., Client],
        construction: Document,
    ) -> None:
        split_namespace(options._key_vault_namespace)
        self.options = options
        self._handle = opened(options._settings)
        self._client = weakref.ref(client)
        self._is_unlimited = client.options.merged.get("maxpoolsize", 1) in (0, None)
        self._new_client = new_client
        self._construction = construction
        self._internal: Client | None = None
        self._mongocryptd: Mongocryptd | None = None
        self._encrypts = not options._bypass_auto_encryption
        if options._settings.analyses and self._encrypts and self._handle.crypt_shared_version is None:
            self._mongocryptd = Mongocryptd(options, new_silent_client)
        self._machine = Machine(self._handle, _Servers(self), Kms(options._kms_tls, options._kms_connect_callback))

    def encrypt(self, database: str, command: bytes, deadline: float | None) -> bytes:
        """Encrypt a command; what needs no encryption stays as it is."""
        if not self._encrypts:
            return command

        def make(new: Callable[[], Native]) -> Native:
            return contexts.EncryptionContext(new(), self._machine.kms_providers, database, command)

        encrypted = self._machine.run(make, len(command), deadline)
        return command if encrypted is None else encrypted

    def decrypt(self, reply: Buffer, deadline: float | None) -> bytes | None:
        """Decrypt a reply; None if there is nothing to decrypt in it."""

        def make(new: Callable[[], Native]) -> Native:
            return contexts.DecryptionContext(new(), self._machine.kms_providers, reply)

        decrypted = self._machine.run(make, len(reply), deadline)
        return None if decrypted == reply else decrypted

    def encrypted_fields(self, namespace: str) -> Document | None:
        """Those that the options name for a collection."""
        found: Document | None = self.options._encrypted_fields_map.get(namespace)
        return found

    # Clients

    def key_vault(self) -> KeyVault:
        """The key vault."""
        client = self.options._key_vault_client or self.other_client()
        return KeyVault(key_vault(client, self.options._key_vault_namespace))

    def other_client(self) -> Client:
        """A client for the same deployment: the same one, if it has connections without limit, or one beside it.

        An operation asks through it while it holds a connection. In one limited pool all connections could be held by
        operations that wait for a second one.
        """
        client = self._client()
        if client is None:
            raise EncryptionError(ReferenceError("the client is gone"))
        if self._is_unlimited:
            return client
        if self._internal is None:
            own = ("auto_encryption_opts", "minpoolsize")
            like = {name: value for name, value in self._construction.items() if name.lower() not in own}
            self._internal = self._new_client(**like, minPoolSize=0)
        return self._internal

    def analysed(self, database: str, command: bytes) -> bytes:
        """What the process for query analysis makes of a command."""
        if self._mongocryptd is None:
            raise EncryptionError(RuntimeError("libmongocrypt asks for an analysis that the options rule out"))
        return self._mongocryptd.analysed(database, command)

    def close(self) -> None:
        """Forget the keys, and close the clients that were made for this."""
        self._handle.close()
        internal, self._internal = self._internal, None
        for each in (internal, self._mongocryptd):
            if each is not None:
                each.close()


class _Servers:
    """What the state machine asks of servers."""

    def __init__(self, encrypter: Encrypter) -> None:
        self._encrypter = weakref.proxy(encrypter)

    def keys(self, filter: bytes) -> list[bytes]:
        found: list[bytes] = self._encrypter.key_vault().keys(filter)
        return found

    def collections(self, database: str, filter: bytes) -> list[bytes]:
        client = self._encrypter.other_client()
        with client[database].list_collections(filter=RawBSONDocument(filter)) as cursor:
            return [bson.encode(each) for each in cursor]

    def analysed(self, database: str, command: bytes) -> bytes:
        found: bytes = self._encrypter.analysed(database, command)
        return found
