"""Explicit client-side encryption: encryption and decryption of single values, and management of data keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

import bson
from bson.binary import UUID_SUBTYPE, Binary
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document, DocumentDict, Value
from gmongo._encryption.explicit import Explicit
from gmongo._encryption.handle import Settings
from gmongo._encryption.key_vault import key_vault
from gmongo._encryption.kms_tls import KmsTls
from gmongo._encryption.library import require_library
from gmongo._inherited_options import has_class_name
from gmongo._traceback_scrub import clears_locals
from gmongo._truncated_repr import short
from gmongo.database import Database
from gmongo.encryption_options import KMSConnectCallback, RangeOpts, StringOpts, _check_callback
from gmongo.errors import ConfigurationError, EncryptedCollectionError, InvalidOperation
from gmongo.operations.models import UpdateOne

if TYPE_CHECKING:
    from gmongo.collection import Collection
    from gmongo.cursor import Cursor
    from gmongo.mongo_client import MongoClient
    from gmongo.results import BulkWriteResult, DeleteResult

__all__ = ["Algorithm", "ClientEncryption", "QueryType", "RewrapManyDataKeyResult"]

DocumentType = TypeVar("DocumentType", bound=Document)

_CIPHERTEXT_SUBTYPE = 6


class Algorithm(str, Enum):
    """Encryption algorithms."""

    AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic = "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"
    """Deterministic encryption: equal values have equal ciphertexts, which allows equality queries."""
    AEAD_AES_256_CBC_HMAC_SHA_512_Random = "AEAD_AES_256_CBC_HMAC_SHA_512-Random"
    """Randomized encryption: equal values have different ciphertexts."""
    INDEXED = "Indexed"
    """Queryable Encryption with equality queries."""
    UNINDEXED = "Unindexed"
    """Queryable Encryption without queries."""
    RANGE = "Range"
    """Queryable Encryption with range queries."""
    STRING = "String"
    """Queryable Encryption with prefix, suffix and substring queries."""
    TEXTPREVIEW = "TextPreview"
    """The preview name of ``STRING``."""


class QueryType(str, Enum):
    """Query types of an encrypted value."""

    EQUALITY = "equality"
    RANGE = "range"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    SUBSTRING = "substring"


class RewrapManyDataKeyResult:
    """Result of :meth:`ClientEncryption.rewrap_many_data_key`.

    :param bulk_write_result: the result of the updates of the data keys; None by default.
    """

    def __init__(self, bulk_write_result: BulkWriteResult | None = None) -> None:
        self._bulk_write_result = bulk_write_result

    @property
    def bulk_write_result(self) -> BulkWriteResult | None:
        """The result of the updates of the data keys, or None if no key matched."""
        return self._bulk_write_result

    def __repr__(self) -> str:
        return f"RewrapManyDataKeyResult({self._bulk_write_result!r})"


class ClientEncryption(Generic[DocumentType]):
    """Encrypter and decrypter of single values, and manager of data keys.

    ::

        with ClientEncryption({"local": {"key": key}}, "vault.keys", client, client.codec_options) as encryption:
            key_id = encryption.create_data_key("local")
            secret = encryption.encrypt("457-55-5462", Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random, key_id)

    The time limit in force (:func:`gmongo.timeout`, `timeout_ms`, or ``timeoutMS`` of the key vault client) limits each
    method, including its requests to key management services.

    :param kms_providers: the key management services with their credentials; as for
        :class:`gmongo.encryption_options.AutoEncryptionOpts`.
    :param key_vault_namespace: the namespace of the key vault, as ``"database.collection"``.
    :param key_vault_client: the client of the key vault's deployment.
    :param codec_options: the options to encode values before encryption, and to decode values after decryption.
    :param kms_tls_options: TLS options for each KMS provider, with the client's names, such as ``tlsCAFile``.
    :param key_expiration_ms: how long a data key stays in the cache, in milliseconds; 0 is for ever, None is 60,000 ms.
    :param kms_connect_callback: a function that connects to key management services; as for ``AutoEncryptionOpts``.
    :param timeout_ms: the time limit of each method as a whole, in milliseconds; 0 means no limit, None (the default)
        uses ``timeoutMS`` of the key vault client.
    :raises ConfigurationError: pymongocrypt is not installed, or an option is out of range.
    :raises ValueError: `kms_providers` is incomplete; :class:`TypeError` if an option has the wrong type.
    :raises EncryptionError: libmongocrypt rejected the options.

    Source: Client Side Encryption, "ClientEncryption".
    """

    @clears_locals
    def __init__(
        self,
        kms_providers: Document,
        key_vault_namespace: str,
        key_vault_client: MongoClient[Value],
        codec_options: CodecOptions[Value],
        kms_tls_options: Document | None = None,
        key_expiration_ms: int | None = None,
        kms_connect_callback: KMSConnectCallback | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        require_library()
        if not has_class_name("MongoClient", key_vault_client):
            raise TypeError(f"key_vault_client must be a MongoClient, not {short(key_vault_client)}")
        if not isinstance(codec_options, CodecOptions):
            raise TypeError(f"codec_options must be an instance of CodecOptions, not {short(codec_options)}")
        if not isinstance(kms_providers, Mapping):
            raise ValueError("kms_providers must be a dict")
        _check_callback(kms_connect_callback)
        self._keys: Collection[Value] = key_vault(key_vault_client, key_vault_namespace)
        if timeout_ms is not None:
            self._keys = self._keys.with_options(timeout_ms=timeout_ms)
        self._codec_options = codec_options
        self._explicit: Explicit | None = Explicit(
            Settings(kms_providers=kms_providers, key_expiration_ms=key_expiration_ms),
            self._keys,
            KmsTls(kms_tls_options, kms_providers),
            kms_connect_callback,
        )

    def _open(self) -> Explicit:
        if self._explicit is None:
            raise InvalidOperation("Cannot use closed ClientEncryption")
        return self._explicit

    def _vault(self) -> Collection[Value]:
        self._open()
        return self._keys

    # Values

    @clears_locals
    def encrypt(
        self,
        value: Value,
        algorithm: str,
        key_id: Binary | UUID | None = None,
        key_alt_name: str | None = None,
        query_type: str | None = None,
        contention_factor: int | None = None,
        range_opts: RangeOpts | None = None,
        string_opts: StringOpts | None = None,
    ) -> Binary:
        """Encrypt a value.

        To insert or query an "Indexed", "Range" or "String" payload, use a client with ``AutoEncryptionOpts``. Its
        ``bypass_query_analysis`` may be true, its ``bypass_auto_encryption`` must be false.

        :param value: any BSON value.
        :param algorithm: one of :class:`Algorithm`.
        :param key_id: the ``_id`` of the data key. Either `key_id` or `key_alt_name` is required.
        :param key_alt_name: an alternative name of the data key.
        :param query_type: one of :class:`QueryType` for a value in a query; None by default.
        :param contention_factor: the number of different ciphertexts of equal values. Queryable algorithms require it.
            The maximum is the contention factor in the collection's encryptedFields.
        :param range_opts: the options of the algorithm "Range".
        :param string_opts: the options of the algorithm "String".
        :returns: the ciphertext, a binary of subtype 6.
        :raises TypeError: `key_id` is not a UUID, or options have the wrong class.
        :raises EncryptionError: the encryption failed.
        """
        encrypted = self._encrypt(
            value, algorithm, key_id, key_alt_name, query_type, contention_factor, range_opts, string_opts
        )
        ciphertext: Binary = bson.decode(encrypted, self._codec_options.with_options(document_class=dict))["v"]
        return ciphertext

    @clears_locals
    def encrypt_expression(
        self,
        expression: Document,
        algorithm: str,
        key_id: Binary | UUID | None = None,
        key_alt_name: str | None = None,
        query_type: str | None = None,
        contention_factor: int | None = None,
        range_opts: RangeOpts | None = None,
    ) -> Document:
        """Encrypt the values of a range expression.

        The expression is ``{"$and": [{"field": {"$gt": low}}, {"field": {"$lt": high}}]}`` of a query, or the
        equivalent aggregation expression.

        :param expression: the expression. ``$gte`` and ``$lte`` are allowed, too.
        :param algorithm: ``Algorithm.RANGE``.
        :param key_id: the ``_id`` of the data key. Either `key_id` or `key_alt_name` is required.
        :param key_alt_name: an alternative name of the data key.
        :param query_type: ``QueryType.RANGE``.
        :param contention_factor: the number of different ciphertexts of equal values. The maximum is the contention
            factor in the collection's encryptedFields.
        :param range_opts: the bounds and the precision of the field.
        :returns: the expression with ciphertexts.
        :raises EncryptionError: the encryption failed.
        """
        encrypted = self._encrypt(
            expression, algorithm, key_id, key_alt_name, query_type, contention_factor, range_opts, None, True
        )
        encrypted_expression: Document = bson.decode(encrypted, self._codec_options)["v"]
        return encrypted_expression

    def _encrypt(
        self,
        value: Value,
        algorithm: str,
        key_id: Binary | UUID | None,
        key_alt_name: str | None,
        query_type: str | None,
        contention_factor: int | None,
        range_opts: RangeOpts | None,
        string_opts: StringOpts | None,
        is_expression: bool = False,
    ) -> bytes:
        explicit = self._open()
        for name, options, kind in (("range_opts", range_opts, RangeOpts), ("string_opts", string_opts, StringOpts)):
            if options is not None and not isinstance(options, kind):
                raise TypeError(f"{name} must be an instance of {kind.__name__}, not {short(options)}")
        return explicit.encrypt(
            bson.encode({"v": value}, codec_options=self._codec_options),
            algorithm,
            None if key_id is None else bytes(_uuid(key_id)),
            key_alt_name,
            query_type=query_type,
            contention_factor=contention_factor,
            range_opts=None if range_opts is None else self._encoded(range_opts.document),
            string_opts=None if string_opts is None else self._encoded(string_opts.document),
            is_expression=is_expression,
        )

    def _encoded(self, document: Document) -> bytes:
        return bson.encode(document, codec_options=self._codec_options)

    @clears_locals
    def decrypt(self, value: Binary) -> Value:
        """Decrypt a ciphertext, which identifies its key and algorithm.

        :param value: a binary of subtype 6.
        :returns: the value.
        :raises TypeError: `value` is not a binary of subtype 6.
        :raises EncryptionError: the decryption failed.
        """
        explicit = self._open()
        if not isinstance(value, Binary) or value.subtype != _CIPHERTEXT_SUBTYPE:
            raise TypeError("value to decrypt must be a bson.binary.Binary with subtype 6")
        return bson.decode(explicit.decrypt(bson.encode({"v": value})), self._codec_options)["v"]

    # Data keys

    @clears_locals
    def create_data_key(
        self,
        kms_provider: str,
        master_key: Document | None = None,
        key_alt_names: Sequence[str] | None = None,
        key_material: bytes | None = None,
    ) -> Binary:
        """Create a data key, encrypt it with a key management service, and insert it into the key vault.

        :param kms_provider: one of `kms_providers`.
        :param master_key: the key of the service that encrypts the data key. ``aws`` requires ``region`` and
            ``key``, which is an ARN; ``endpoint`` is optional. ``azure`` requires ``keyVaultEndpoint`` and ``keyName``;
            ``keyVersion`` is optional. ``gcp`` requires ``projectId``, ``location``, ``keyRing`` and ``keyName``;
            ``keyVersion`` and ``endpoint`` are optional. ``kmip`` has the optional fields ``keyId``, ``endpoint``, and
            ``delegated``, which lets the service encrypt and decrypt. ``local`` has no master key.
        :param key_alt_names: alternative names of the data key; None by default.
        :param key_material: the 96 bytes of the data key; None (the default) generates random bytes.
        :returns: the ``_id`` of the data key, a binary of subtype 4.
        :raises EncryptionError: the creation failed.
        """
        if isinstance(key_alt_names, str):
            raise TypeError("key_alt_names must be a list of strings, not one string")
        return self._open().create_data_key(kms_provider, master_key, key_alt_names, key_material)

    @clears_locals
    def rewrap_many_data_key(
        self, filter: Document, provider: str | None = None, master_key: Document | None = None
    ) -> RewrapManyDataKeyResult:
        """Decrypt data keys, and encrypt these keys again with another key management service or master key.

        Existing ciphertexts do not change.

        :param filter: a query for the data keys.
        :param provider: one of `kms_providers`; None (the default) keeps the provider of each key.
        :param master_key: as for :meth:`create_data_key`.
        :raises ConfigurationError: `master_key` has no `provider`.
        :raises EncryptionError: the operation failed, and changed no key.
        """
        explicit = self._open()
        if master_key is not None and provider is None:
            raise ConfigurationError("A provider must be given if a master_key is given")
        updates = [
            UpdateOne(
                {"_id": key["_id"]},
                {
                    "$set": {"keyMaterial": key["keyMaterial"], "masterKey": key["masterKey"]},
                    "$currentDate": {"updateDate": True},
                },
            )
            for key in explicit.rewrap(filter, provider, master_key)
        ]
        return RewrapManyDataKeyResult(self._keys.bulk_write(updates) if updates else None)

    def get_keys(self) -> Cursor[Value]:
        """Return a cursor over all data keys, each a :class:`bson.raw_bson.RawBSONDocument`."""
        return self._vault().find({})

    def get_key(self, id: Binary | UUID) -> RawBSONDocument | None:
        """Return a data key, or None.

        :param id: the ``_id`` of the data key.
        """
        return self._vault().find_one({"_id": _uuid(id)})

    def get_key_by_alt_name(self, key_alt_name: str) -> RawBSONDocument | None:
        """Return a data key, or None.

        :param key_alt_name: an alternative name of the data key.
        """
        return self._vault().find_one({"keyAltNames": _checked_key_alt_name(key_alt_name)})

    def delete_key(self, id: Binary | UUID) -> DeleteResult:
        """Delete a data key. Ciphertexts of the key can never be decrypted again.

        :param id: the ``_id`` of the data key.
        """
        return self._vault().delete_one({"_id": _uuid(id)})

    def add_key_alt_name(self, id: Binary | UUID, key_alt_name: str) -> RawBSONDocument | None:
        """Add an alternative name to a data key.

        :param id: the ``_id`` of the data key.
        :param key_alt_name: the name.
        :returns: the original key, or None if the key does not exist.
        """
        update = {"$addToSet": {"keyAltNames": _checked_key_alt_name(key_alt_name)}}
        return self._vault().find_one_and_update({"_id": _uuid(id)}, update)

    def remove_key_alt_name(self, id: Binary | UUID, key_alt_name: str) -> RawBSONDocument | None:
        """Remove an alternative name from a data key.

        :param id: the ``_id`` of the data key.
        :param key_alt_name: the name.
        :returns: the original key, or None if the key does not exist.
        """
        name = _checked_key_alt_name(key_alt_name)
        # Remove an empty field, which the unique index on names would include.
        remaining = {"$filter": {"input": "$keyAltNames", "cond": {"$ne": ["$$this", name]}}}
        names = {"$cond": [{"$eq": ["$keyAltNames", [name]]}, "$$REMOVE", remaining]}
        return self._vault().find_one_and_update({"_id": _uuid(id)}, [{"$set": {"keyAltNames": names}}])

    # Collections

    @clears_locals
    def create_encrypted_collection(
        self,
        database: Database[Value],
        name: str,
        encrypted_fields: Document,
        kms_provider: str | None = None,
        master_key: Document | None = None,
        **kwargs: Value,
    ) -> tuple[Collection[Value], Document]:
        """Create a collection for Queryable Encryption, with a new data key for each field with a ``keyId`` of None.

        Existing clients do not know the fields: create a client with the fields in its ``encrypted_fields_map``.

        :param database: the database of the collection.
        :param name: the name of the collection.
        :param encrypted_fields: the value of the option encryptedFields of the ``create`` command.
        :param kms_provider: the KMS provider of the new keys.
        :param master_key: the master key of the new keys; as for :meth:`create_data_key`.
        :param kwargs: as for :meth:`gmongo.database.Database.create_collection`.
        :returns: the collection, and `encrypted_fields` with the new keys.
        :raises TypeError: `database` is not a database, or `encrypted_fields` is not a mapping.
        :raises EncryptedCollectionError: the creation failed; the error has the fields with the created keys.
        """
        self._open()
        if not isinstance(database, Database):
            raise TypeError(f"database must be a Database, not {short(database)}")
        if not isinstance(encrypted_fields, Mapping):
            raise TypeError(f"encrypted_fields must be a mapping such as a dict, not {short(encrypted_fields)}")
        completed: DocumentDict = deepcopy(dict(encrypted_fields))
        try:
            for each in completed.get("fields") or ():
                if isinstance(each, dict) and "keyId" in each and each["keyId"] is None:
                    each["keyId"] = self.create_data_key(kms_provider, master_key)  # type: ignore[arg-type]
            kwargs = {"check_exists": False, **kwargs, "encryptedFields": completed}
            return database.create_collection(name, **kwargs), completed
        except Exception as error:
            raise EncryptedCollectionError(error, completed) from error

    # Lifetime

    def __enter__(self) -> ClientEncryption[DocumentType]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle and discard cached keys. The key vault client stays open."""
        explicit, self._explicit = self._explicit, None
        if explicit is not None:
            explicit.close()


def _uuid(value: Binary | UUID) -> Binary:
    if isinstance(value, UUID):
        return Binary.from_uuid(value)
    if not isinstance(value, Binary) or value.subtype != UUID_SUBTYPE:
        raise TypeError(f"a key is named by a bson.binary.Binary with subtype 4 or a uuid.UUID, not {short(value)}")
    return value


def _checked_key_alt_name(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"key_alt_name must be a string, not {short(value)}")
    return value
