"""Explicit encryption, explicit decryption and operations on data keys, with encoded documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import bson
from bson import Binary
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document
from gmongo._encryption.connect_callback import KMSConnectContext
from gmongo._encryption.context import MakeContext
from gmongo._encryption.handle import Handle, Settings
from gmongo._encryption.key_vault import RAW_CODEC_OPTIONS, KeyCollection, KeyVaultRequests
from gmongo._encryption.kms import Kms
from gmongo._encryption.kms_tls import KmsTls
from gmongo._encryption.library import DataKeyOpts, ExplicitEncryptOpts, MongoCryptError, Native, contexts
from gmongo._encryption.machine import Machine
from gmongo.errors import EncryptionError, PyMongoError
from gmongo.execution.deadline import until

# Fast algorithms. Other algorithms compute hundreds of tokens even for a small value.
_FAST_ALGORITHMS = (
    "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic",
    "AEAD_AES_256_CBC_HMAC_SHA_512-Random",
    "Indexed",
    "Unindexed",
)
_ENCODER = SimpleNamespace(bson_encode=bson.encode)  # the encoder for pymongocrypt


class ExplicitEncryption:
    """Encryption and decryption of single values, and operations on data keys."""

    def __init__(
        self,
        settings: Settings,
        key_vault: KeyCollection,
        tls: KmsTls,
        connect_callback: Callable[[KMSConnectContext], object] | None,
    ) -> None:
        self._key_vault = key_vault
        self._executor = key_vault._executor
        self._machine = Machine(open_handle(settings), KeyVaultRequests(key_vault), Kms(tls, connect_callback))

    def close(self) -> None:
        self._machine.handle.close()

    def encrypt(
        self, document: bytes, algorithm: str, key_id: bytes | None, key_alt_name: str | None, **options: object
    ) -> bytes:
        """Encrypt the value in an encoded document ``{"v": value}``."""
        name = None if key_alt_name is None else bson.encode({"keyAltName": key_alt_name})
        algorithm_name, providers = str(getattr(algorithm, "value", algorithm)), self._machine.kms_providers

        def make_context(new_pointer: Callable[[], Native]) -> Native:
            encrypt_options = ExplicitEncryptOpts(algorithm_name, key_id, name, **options)
            return contexts.ExplicitEncryptionContext(new_pointer(), providers, document, encrypt_options)

        return self._run(make_context, len(document), is_slow=algorithm not in _FAST_ALGORITHMS)

    def decrypt(self, document: bytes) -> bytes:
        """Decrypt the ciphertext in an encoded document ``{"v": ciphertext}``."""
        providers = self._machine.kms_providers
        return self._run(
            lambda new_pointer: contexts.ExplicitDecryptionContext(new_pointer(), providers, document), len(document)
        )

    def create_data_key(
        self,
        kms_provider: str,
        master_key: Document | None,
        key_alt_names: Sequence[str] | None,
        key_material: bytes | None,
    ) -> Binary:
        """Create a data key, insert the data key into the key vault, and return its ``_id``."""

        def make_context(new_pointer: Callable[[], Native]) -> Native:
            names = [bson.encode({"keyAltName": each}) for each in key_alt_names or ()]
            material = None if key_material is None else bson.encode({"keyMaterial": key_material})
            key_options = DataKeyOpts(None if master_key is None else dict(master_key), names, material)
            return contexts.DataKeyContext(new_pointer(), providers, kms_provider, key_options, _ENCODER)

        providers, deadline = self._machine.kms_providers, self._executor.deadline()
        key: RawBSONDocument = RawBSONDocument(self._run(make_context, 0, deadline=deadline))
        try:
            with until(deadline):
                self._key_vault.insert_one(key)
        except PyMongoError as error:
            raise EncryptionError(error) from error
        key_id: Binary = key["_id"]
        return key_id

    def rewrap(self, filter: Document, provider: str | None, master_key: Document | None) -> list[Document]:
        """Return the data keys that match `filter`, re-encrypted. By default, keep master keys."""

        def make_context(new_pointer: Callable[[], Native]) -> Native:
            providers = self._machine.kms_providers
            return contexts.RewrapManyDataKeyContext(new_pointer(), providers, filter, provider, master_key, _ENCODER)

        keys = self._machine.run(make_context, 0, self._executor.deadline(), is_slow=True)
        return [] if keys is None else list(bson.decode(keys, RAW_CODEC_OPTIONS)["v"])

    def _run(
        self, make_context: MakeContext, size: int, *, is_slow: bool = False, deadline: float | None = None
    ) -> bytes:
        result = self._machine.run(make_context, size, deadline or self._executor.deadline(), is_slow=is_slow)
        if result is None:
            raise EncryptionError(ValueError("libmongocrypt returned no result"))
        return result


def open_handle(settings: Settings) -> Handle:
    try:
        return Handle(settings)
    except MongoCryptError as error:
        raise EncryptionError(error) from error
