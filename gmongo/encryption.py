"""Explicit client-side encryption: encryption and decryption of single values, and management of data keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

import bson
from bson.binary import UUID_SUBTYPE, Binary
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document, DocumentDict, Value
from gmongo._encryption.explicit import ExplicitEncryption
from gmongo._encryption.handle import Settings
from gmongo._encryption.key_vault import key_vault_collection
from gmongo._encryption.kms_tls import KmsTls
from gmongo._encryption.library import require_library
from gmongo._inherited_options import has_class_name
from gmongo._parameter_docs import describes_parameters
from gmongo._traceback_scrub import clears_locals
from gmongo._truncated_repr import short
from gmongo.database import Database
from gmongo.encryption_options import AutoEncryptionOpts, KMSConnectCallback, RangeOpts, StringOpts, _check_callback
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
_SHARED_PARAMETERS = """
:param id: the ``_id`` of the data key.
:param key_alt_name: an alternative name of the data key.
:param key_id: the ``_id`` of the data key; None by default. Either `key_id` or `key_alt_name` is required.
:param key_vault_client: the client of the deployment that contains the key vault.
"""


class Algorithm(str, Enum):
    """Encryption algorithms."""

    AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic = "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"
    """Deterministic encryption. Equal values have equal ciphertexts, which allow equality queries."""
    AEAD_AES_256_CBC_HMAC_SHA_512_Random = "AEAD_AES_256_CBC_HMAC_SHA_512-Random"
    """Randomized encryption. Equal values have different ciphertexts."""
    INDEXED = "Indexed"
    """Queryable Encryption that allows equality queries."""
    UNINDEXED = "Unindexed"
    """Queryable Encryption that allows no queries."""
    RANGE = "Range"
    """Queryable Encryption that allows range queries."""
    STRING = "String"
    """Queryable Encryption that allows prefix, suffix and substring queries."""
    TEXTPREVIEW = "TextPreview"
    """The name of the algorithm ``STRING`` on servers with a preview of the algorithm."""


class QueryType(str, Enum):
    """Types of queries that find an encrypted value."""

    EQUALITY = "equality"
    RANGE = "range"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    SUBSTRING = "substring"


@dataclass(frozen=True, eq=False, repr=False)
class RewrapManyDataKeyResult:
    """Result of :meth:`ClientEncryption.rewrap_many_data_key`.

    :param bulk_write_result: the result of the bulk write that updated the data keys; None (the
        default) if no data key matched.
    """

    bulk_write_result: BulkWriteResult | None = None

    def __repr__(self) -> str:
        return f"RewrapManyDataKeyResult({self.bulk_write_result!r})"


@describes_parameters(AutoEncryptionOpts, _SHARED_PARAMETERS)
class ClientEncryption(Generic[DocumentType]):
    """Object that encrypts and decrypts single values, and manages data keys.

    ::

        with ClientEncryption({"local": {"key": key}}, "vault.keys", client, client.codec_options) as encryption:
            key_id = encryption.create_data_key("local")
            secret = encryption.encrypt("457-55-5462", Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random, key_id)

    A time limit applies to each method, including its requests to key management services. The limit is
    :func:`gmongo.timeout`, or else `timeout_ms`, or else ``timeoutMS`` of the key vault client.

    :param codec_options: the options for encoding before encryption and decoding after decryption.
    :param timeout_ms: the time limit of each method, in milliseconds; 0 means no limit, None (the
        default) uses ``timeoutMS`` of the key vault client.
    :raises ConfigurationError: pymongocrypt is not installed, or an option is out of range.
    :raises TypeError: an option has the wrong type.
    :raises ValueError: `kms_providers` is not a mapping, or is incomplete.
    :raises EncryptionError: libmongocrypt rejected the options.

    Specification: Client Side Encryption, "ClientEncryption".
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
        self._key_vault: Collection[Value] = key_vault_collection(key_vault_client, key_vault_namespace)
        if timeout_ms is not None:
            self._key_vault = self._key_vault.with_options(timeout_ms=timeout_ms)
        self._codec_options = codec_options
        self._explicit: ExplicitEncryption | None = ExplicitEncryption(
            Settings(kms_providers=kms_providers, key_expiration_ms=key_expiration_ms),
            self._key_vault,
            KmsTls(kms_tls_options, kms_providers),
            kms_connect_callback,
        )

    def _get_open_encryption(self) -> ExplicitEncryption:
        if self._explicit is None:
            raise InvalidOperation("Cannot use closed ClientEncryption")
        return self._explicit

    def _get_open_key_vault(self) -> Collection[Value]:
        self._get_open_encryption()
        return self._key_vault

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

        Only a client with ``AutoEncryptionOpts`` can insert or query a ciphertext of the algorithms
        "Indexed", "Range" and "String". The client may set ``bypass_query_analysis``, but not
        ``bypass_auto_encryption``.

        :param value: the value to encrypt, which is any BSON value.
        :param algorithm: the encryption algorithm: a value of :class:`Algorithm`.
        :param query_type: a constant of :class:`QueryType` if the ciphertext is for a query; None (the default)
            encrypts for storage.
        :param contention_factor: the contention factor, which must not exceed ``contention`` in the collection's
            encryptedFields. "Indexed", "Range" and "String" require this parameter. None by default.
        :param range_opts: the options of the algorithm "Range"; None by default.
        :param string_opts: the options of the algorithm "String"; None by default.
        :returns: the ciphertext, which is a :class:`~bson.binary.Binary` of subtype 6.
        :raises TypeError: `key_id`, `range_opts` or `string_opts` has the wrong type.
        :raises EncryptionError: the encryption failed.
        """
        options = {"query_type": query_type, "contention_factor": contention_factor}
        encrypted = self._encrypt(value, algorithm, key_id, key_alt_name, range_opts, string_opts, **options)
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
        """Encrypt the values in a range expression.

        The expression has the form ``{"$and": [{"field": {"$gt": low}}, {"field": {"$lt": high}}]}``
        in a query, or an equivalent form in an aggregation.

        :param expression: the range expression, which may also contain ``$gte`` and ``$lte``.
        :param algorithm: the encryption algorithm, which must be ``Algorithm.RANGE``.
        :param query_type: the type of the query, which must be ``QueryType.RANGE``.
        :param contention_factor: the contention factor, as for :meth:`encrypt`; None by default.
        :param range_opts: the bounds and the precision of the encrypted field; None by default.
        :returns: the expression with ciphertexts instead of the values.
        :raises EncryptionError: the encryption failed.
        """
        options = {"query_type": query_type, "contention_factor": contention_factor, "is_expression": True}
        encrypted = self._encrypt(expression, algorithm, key_id, key_alt_name, range_opts, None, **options)
        encrypted_expression: Document = bson.decode(encrypted, self._codec_options)["v"]
        return encrypted_expression

    def _encrypt(
        self,
        value: Value,
        algorithm: str,
        key_id: Binary | UUID | None,
        key_alt_name: str | None,
        range_opts: RangeOpts | None,
        string_opts: StringOpts | None,
        **options: object,
    ) -> bytes:
        explicit = self._get_open_encryption()
        opts_and_classes = {"range_opts": (range_opts, RangeOpts), "string_opts": (string_opts, StringOpts)}
        for name, (opts, kind) in opts_and_classes.items():
            if opts is not None and not isinstance(opts, kind):
                raise TypeError(f"{name} must be an instance of {kind.__name__}, not {short(opts)}")
            options[name] = None if opts is None else bson.encode(opts.document, codec_options=self._codec_options)
        return explicit.encrypt(
            bson.encode({"v": value}, codec_options=self._codec_options),
            algorithm,
            None if key_id is None else bytes(_checked_key_id(key_id)),
            key_alt_name,
            **options,
        )

    @clears_locals
    def decrypt(self, value: Binary) -> Value:
        """Decrypt a ciphertext, which contains the identifiers of its data key and algorithm.

        :param value: the ciphertext, which is a :class:`~bson.binary.Binary` of subtype 6.
        :returns: the decrypted value.
        :raises TypeError: `value` is not a :class:`~bson.binary.Binary` of subtype 6.
        :raises EncryptionError: the decryption failed.
        """
        explicit = self._get_open_encryption()
        if not isinstance(value, Binary) or value.subtype != _CIPHERTEXT_SUBTYPE:
            raise TypeError("value to decrypt must be a bson.binary.Binary with subtype 6")
        return bson.decode(explicit.decrypt(bson.encode({"v": value})), self._codec_options)["v"]

    @clears_locals
    def create_data_key(
        self,
        kms_provider: str,
        master_key: Document | None = None,
        key_alt_names: Sequence[str] | None = None,
        key_material: bytes | None = None,
    ) -> Binary:
        """Create a data key that a key management service encrypts, and insert the data key into the key vault.

        :param kms_provider: the name of a key management service in `kms_providers`.
        :param master_key: the key that the service uses to encrypt the data key, as a mapping. ``aws`` requires
            ``region`` and ``key`` (an ARN), and allows ``endpoint``. ``azure`` requires ``keyVaultEndpoint`` and
            ``keyName``, and allows ``keyVersion``. ``gcp`` requires ``projectId``, ``location``, ``keyRing`` and
            ``keyName``, and allows ``keyVersion`` and ``endpoint``. ``kmip`` allows ``keyId``, ``endpoint`` and
            ``delegated`` (the KMIP server encrypts and decrypts). ``local`` has no master key. None by default.
        :param key_alt_names: a list of alternative names of the data key; None by default.
        :param key_material: the 96 bytes of the data key. None (the default) generates random bytes.
        :returns: the ``_id`` of the data key, which is a :class:`~bson.binary.Binary` of subtype 4.
        :raises EncryptionError: the creation failed.
        """
        if isinstance(key_alt_names, str):
            raise TypeError("key_alt_names must be a list of strings, not one string")
        return self._get_open_encryption().create_data_key(kms_provider, master_key, key_alt_names, key_material)

    @clears_locals
    def rewrap_many_data_key(
        self, filter: Document, provider: str | None = None, master_key: Document | None = None
    ) -> RewrapManyDataKeyResult:
        """Decrypt data keys, and encrypt the same data keys with the given key management service and master key.

        The method does not change existing ciphertexts.

        :param filter: a query for the data keys to encrypt again.
        :param provider: the name of a service in `kms_providers`; None (the default) keeps the service of each key.
        :param master_key: the new master key, as for :meth:`create_data_key`; None by default.
        :raises ConfigurationError: `master_key` is set without `provider`.
        :raises EncryptionError: the operation failed, and no data key has changed.
        """
        explicit = self._get_open_encryption()
        if master_key is not None and provider is None:
            raise ConfigurationError("A provider must be given if a master_key is given")
        updates = []
        for key in explicit.rewrap(filter, provider, master_key):
            fields = {"keyMaterial": key["keyMaterial"], "masterKey": key["masterKey"]}
            updates.append(UpdateOne({"_id": key["_id"]}, {"$set": fields, "$currentDate": {"updateDate": True}}))
        return RewrapManyDataKeyResult(self._key_vault.bulk_write(updates) if updates else None)

    def get_keys(self) -> Cursor[Value]:
        """Return a cursor over all data keys. Each data key is a :class:`bson.raw_bson.RawBSONDocument`."""
        return self._get_open_key_vault().find({})

    def get_key(self, id: Binary | UUID) -> RawBSONDocument | None:
        """Return a data key, or None if the data key does not exist."""
        return self._get_open_key_vault().find_one({"_id": _checked_key_id(id)})

    def get_key_by_alt_name(self, key_alt_name: str) -> RawBSONDocument | None:
        """Return a data key, or None if the data key does not exist."""
        return self._get_open_key_vault().find_one({"keyAltNames": _checked_key_alt_name(key_alt_name)})

    def delete_key(self, id: Binary | UUID) -> DeleteResult:
        """Delete a data key. Only clients that cache the key can still decrypt its ciphertexts."""
        return self._get_open_key_vault().delete_one({"_id": _checked_key_id(id)})

    def add_key_alt_name(self, id: Binary | UUID, key_alt_name: str) -> RawBSONDocument | None:
        """Add an alternative name to a data key.

        :returns: the data key before the change, or None if the data key does not exist.
        """
        update = {"$addToSet": {"keyAltNames": _checked_key_alt_name(key_alt_name)}}
        return self._get_open_key_vault().find_one_and_update({"_id": _checked_key_id(id)}, update)

    def remove_key_alt_name(self, id: Binary | UUID, key_alt_name: str) -> RawBSONDocument | None:
        """Remove an alternative name from a data key.

        :returns: the data key before the change, or None if the data key does not exist.
        """
        name = _checked_key_alt_name(key_alt_name)
        # If no name remains, remove the field: the unique index would include an empty array.
        other_names = {"$filter": {"input": "$keyAltNames", "cond": {"$ne": ["$$this", name]}}}
        names = {"$cond": [{"$eq": ["$keyAltNames", [name]]}, "$$REMOVE", other_names]}
        update = [{"$set": {"keyAltNames": names}}]
        return self._get_open_key_vault().find_one_and_update({"_id": _checked_key_id(id)}, update)

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
        """Create a collection for Queryable Encryption, with a new data key for each field whose ``keyId`` is None.

        To encrypt the fields, use a client with ``auto_encryption_opts``. If its ``encrypted_fields_map``
        contains the returned fields, the client need not trust the server's encryptedFields.

        :param database: the database in which to create the collection.
        :param name: the name of the new collection.
        :param encrypted_fields: the encrypted fields, as for the ``create`` command.
        :param kms_provider: the name of the provider that encrypts new data keys; None by default.
        :param master_key: the master key for the new data keys, as for :meth:`create_data_key`; None by default.
        :param kwargs: further parameters of :meth:`gmongo.database.Database.create_collection`.
        :returns: a tuple of the collection and a copy of `encrypted_fields` with the new data keys.
        :raises TypeError: `database` is not a database, or `encrypted_fields` is not a mapping.
        :raises EncryptedCollectionError: the creation failed. The error holds the created data keys.
        """
        self._get_open_encryption()
        if not isinstance(database, Database):
            raise TypeError(f"database must be a Database, not {short(database)}")
        if not isinstance(encrypted_fields, Mapping):
            raise TypeError(f"encrypted_fields must be a mapping such as a dict, not {short(encrypted_fields)}")
        completed_fields: DocumentDict = deepcopy(dict(encrypted_fields))
        try:
            for each in completed_fields.get("fields") or ():
                if isinstance(each, dict) and "keyId" in each and each["keyId"] is None:
                    each["keyId"] = self.create_data_key(kms_provider, master_key)  # type: ignore[arg-type]
            kwargs = {"check_exists": False, **kwargs, "encryptedFields": completed_fields}
            return database.create_collection(name, **kwargs), completed_fields
        except Exception as error:
            raise EncryptedCollectionError(error, completed_fields) from error

    def __enter__(self) -> ClientEncryption[DocumentType]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle of libmongocrypt, and discard the cached data keys. The key vault client stays open."""
        explicit, self._explicit = self._explicit, None
        if explicit is not None:
            explicit.close()


def _checked_key_id(value: Binary | UUID) -> Binary:
    if isinstance(value, UUID):
        return Binary.from_uuid(value)
    if not isinstance(value, Binary) or value.subtype != UUID_SUBTYPE:
        raise TypeError(
            f"a key identifier must be a bson.binary.Binary with subtype 4 or a uuid.UUID, not {short(value)}"
        )
    return value


def _checked_key_alt_name(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"key_alt_name must be a string, not {short(value)}")
    return value
