"""Options of automatic encryption, of explicit encryption, and of key management services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from bson.int64 import Int64

from gmongo._documents import Document, DocumentDict, Value, without_none
from gmongo._encryption.connect_callback import HTTPProxyKMSConnect, KMSConnectCallback, KMSConnectContext
from gmongo._encryption.handle import Settings
from gmongo._encryption.key_vault import Client, split_namespace
from gmongo._encryption.kms_tls import KmsTls
from gmongo._encryption.library import require_library
from gmongo._traceback_scrub import clears_locals
from gmongo._truncated_repr import short

__all__ = [
    "AutoEncryptionOpts",
    "HTTPProxyKMSConnect",
    "KMSConnectCallback",
    "KMSConnectContext",
    "PrefixOpts",
    "RangeOpts",
    "StringOpts",
    "SubstringOpts",
    "SuffixOpts",
]

_IDLE_TIMEOUT_OPTION = "--idleShutdownTimeoutSecs"


class AutoEncryptionOpts:
    """Options of automatic encryption and decryption in a client.

    ::

        client = MongoClient(auto_encryption_opts=AutoEncryptionOpts({"local": {"key": key}}, "vault.keys"))

    Automatic encryption is an enterprise only feature that only applies to operations on a collection. Automatic
    encryption is not supported for operations on a database or view, and operations that are not bypassed will result
    in error. To bypass automatic encryption for all operations, set ``bypass_auto_encryption=True``. Automatic
    decryption, and explicit encryption with :class:`gmongo.encryption.ClientEncryption`, need no enterprise server.

    If automatic encryption fails on an operation, use a client with ``bypass_auto_encryption=True``
    and encrypt values with :meth:`gmongo.encryption.ClientEncryption.encrypt`.

    :param kms_providers: a mapping of the names of key management services to their credentials. ``aws`` has the
        fields ``accessKeyId``, ``secretAccessKey`` and ``sessionToken``. ``azure`` has ``tenantId``, ``clientId``,
        ``clientSecret`` and ``identityPlatformEndpoint``. ``gcp`` has ``email``, ``privateKey`` and ``endpoint``.
        ``kmip`` has ``endpoint``. ``local`` has ``key``, which is 96 bytes or the base64 of 96 bytes. A suffix
        distinguishes several providers of one type, as in ``"aws:payroll"``. If ``aws``, ``azure`` or ``gcp`` is
        an empty mapping, the client fetches the credentials from the environment or the cloud's metadata service.
    :param key_vault_namespace: the namespace of the key vault, in the form ``"database.collection"``.
    :param key_vault_client: the client of the deployment that contains the key vault. None (the
        default) uses the deployment of the encrypted client.
    :param schema_map: a mapping of namespaces to JSON schemas, which describe the fields to encrypt; None by default.
        Supplying a schema_map provides more security than relying on JSON Schemas obtained from the server. It protects
        against a malicious server advertising a false JSON Schema, which could trick the client into sending
        unencrypted data that should be encrypted. Schemas supplied in the schema_map only apply to configuring
        automatic encryption for client side encryption. Other validation rules in the JSON schema will not be enforced
        by the driver and will result in an error.
    :param bypass_auto_encryption: True disables automatic encryption, but not automatic decryption. False by default.
    :param mongocryptd_uri: the URI of mongocryptd; ``"mongodb://localhost:27020"`` by default.
    :param mongocryptd_bypass_spawn: True never starts mongocryptd; False by default.
    :param mongocryptd_spawn_path: the path of mongocryptd; by default, the client searches ``PATH``.
    :param mongocryptd_spawn_args: the arguments of mongocryptd; ``["--idleShutdownTimeoutSecs=60"]`` by default.
    :param kms_tls_options: a mapping of KMS providers to TLS options such as ``tlsCAFile``; None by default.
    :param crypt_shared_lib_path: the path of the crypt_shared library, which analyses commands within the process; None
        (the default) searches the system's library path. All clients in the same process should use the same setting.
        It is an error to load more than one crypt_shared library simultaneously in a process.
    :param crypt_shared_lib_required: True requires the crypt_shared library. False by default.
    :param bypass_query_analysis: True disables the analysis of commands, so that only the application
        encrypts. The client still decrypts automatically. False by default.
    :param encrypted_fields_map: a mapping of namespaces to the encrypted fields of collections (Queryable Encryption);
        None by default. Supplying an encrypted_fields_map provides more security than relying on an encryptedFields
        obtained from the server. It protects against a malicious server advertising a false encryptedFields.
    :param key_expiration_ms: the lifetime of a cached data key in milliseconds; 0 means no limit, None means 60,000 ms.
    :param kms_connect_callback: a function that connects to key management services, for example through a proxy. The
        function receives a :class:`KMSConnectContext`, and returns a socket without TLS. None by default.
    :raises ConfigurationError: pymongocrypt is not installed, or an option is out of range.
    :raises TypeError: an option has the wrong type.

    Specification: Client Side Encryption, "AutoEncryptionOpts".
    """

    @clears_locals
    def __init__(
        self,
        kms_providers: Document,
        key_vault_namespace: str,
        key_vault_client: Client | None = None,
        schema_map: Document | None = None,
        bypass_auto_encryption: bool = False,
        mongocryptd_uri: str = "mongodb://localhost:27020",
        mongocryptd_bypass_spawn: bool = False,
        mongocryptd_spawn_path: str = "mongocryptd",
        mongocryptd_spawn_args: list[str] | None = None,
        kms_tls_options: Document | None = None,
        crypt_shared_lib_path: str | None = None,
        crypt_shared_lib_required: bool = False,
        bypass_query_analysis: bool = False,
        encrypted_fields_map: Document | None = None,
        key_expiration_ms: int | None = None,
        kms_connect_callback: KMSConnectCallback | None = None,
    ) -> None:
        require_library()
        for name, mapping in (("schema_map", schema_map), ("encrypted_fields_map", encrypted_fields_map)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise TypeError(f"{name} must be a mapping such as a dict, not {short(mapping)}")
        if not isinstance(kms_providers, Mapping):
            raise TypeError("kms_providers must be a dict")
        _check_flags(
            bypass_auto_encryption=bypass_auto_encryption,
            mongocryptd_bypass_spawn=mongocryptd_bypass_spawn,
            crypt_shared_lib_required=crypt_shared_lib_required,
            bypass_query_analysis=bypass_query_analysis,
        )
        split_namespace(key_vault_namespace)
        _check_callback(kms_connect_callback)
        self._key_vault_namespace = key_vault_namespace
        self._key_vault_client = key_vault_client
        self._bypass_auto_encryption = bypass_auto_encryption
        self._mongocryptd_uri = mongocryptd_uri
        self._mongocryptd_bypass_spawn = mongocryptd_bypass_spawn
        self._mongocryptd_command = [mongocryptd_spawn_path, *_complete_spawn_arguments(mongocryptd_spawn_args)]
        self._kms_tls = KmsTls(kms_tls_options, kms_providers)
        self._kms_connect_callback = kms_connect_callback
        self._encrypted_fields_map = encrypted_fields_map or {}
        needs_analysis = not (bypass_auto_encryption or bypass_query_analysis)
        self._settings = Settings(
            kms_providers=kms_providers,
            key_expiration_ms=key_expiration_ms,
            schema_map=schema_map,
            encrypted_fields_map=encrypted_fields_map,
            bypass_query_analysis=bypass_query_analysis,
            loads_crypt_shared=needs_analysis or crypt_shared_lib_required,
            crypt_shared_lib_path=crypt_shared_lib_path,
            crypt_shared_lib_required=crypt_shared_lib_required,
        )

    @property
    def _kms_providers(self) -> Document:  # libraries create a ClientEncryption with this attribute
        return self._settings.kms_providers


def _check_flags(**options: object) -> None:
    for name, flag in options.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False, not {short(flag)}")


def _complete_spawn_arguments(arguments: Sequence[str] | None) -> list[str]:
    if arguments is None:
        return [f"{_IDLE_TIMEOUT_OPTION}=60"]
    if not isinstance(arguments, list):
        raise TypeError(f"mongocryptd_spawn_args must be a list, not {type(arguments)}")
    has_limit = any(str(each).partition("=")[0] == _IDLE_TIMEOUT_OPTION for each in arguments)
    return [str(each) for each in arguments] + ([] if has_limit else [f"{_IDLE_TIMEOUT_OPTION}=60"])


def _check_callback(callback: Callable[..., object] | None) -> None:
    if callback is not None and not callable(callback):
        raise TypeError(f"kms_connect_callback must be callable, not {type(callback)}")


@dataclass(eq=False, repr=False)
class RangeOpts:
    """Options of the algorithm "Range". The options must equal the options in the collection's encryptedFields.

    :param sparsity: the sparsity of the index; None (the default) uses libmongocrypt's default.
    :param trim_factor: the number of omitted top tree levels; None (the default) uses libmongocrypt's default.
    :param min: the minimum value of the field, with the type of the field; required with `precision`. None by default.
    :param max: the maximum value of the field, with the type of the field; required with `precision`. None by default.
    :param precision: the number of decimal places of a ``double`` or ``decimal128`` field; None by default.
    :raises TypeError: `sparsity`, `trim_factor` or `precision` is not an integer.

    Specification: Client Side Encryption, "EncryptOpts".
    """

    sparsity: int | None = None
    trim_factor: int | None = None
    min: Value | None = None
    max: Value | None = None
    precision: int | None = None

    def __post_init__(self) -> None:
        for option in ("sparsity", "trim_factor", "precision"):
            value = getattr(self, option)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(f"{option} must be an integer, not {short(value)}")

    @property
    def document(self) -> DocumentDict:
        """The options in the form that libmongocrypt expects."""
        sparsity = None if self.sparsity is None else Int64(self.sparsity)
        options = {"trimFactor": self.trim_factor, "precision": self.precision, "min": self.min, "max": self.max}
        return without_none({}, sparsity=sparsity, **options)


class SubstringOpts(TypedDict):
    """Options of substring queries on a string."""

    strMaxLength: int
    """The maximum length of the encrypted string."""
    strMinQueryLength: int
    """The minimum length of the substring in a query."""
    strMaxQueryLength: int
    """The maximum length of the substring in a query."""


class PrefixOpts(TypedDict):
    """Options of prefix queries on a string."""

    strMinQueryLength: int
    """The minimum length of the prefix in a query."""
    strMaxQueryLength: int
    """The maximum length of the prefix in a query."""


class SuffixOpts(TypedDict):
    """Options of suffix queries on a string."""

    strMinQueryLength: int
    """The minimum length of the suffix in a query."""
    strMaxQueryLength: int
    """The maximum length of the suffix in a query."""


@dataclass(eq=False, repr=False)
class StringOpts:
    """Options of the algorithm "String". The options must equal the options in the collection's encryptedFields.

    :param substring: the options of substring queries; None by default.
    :param prefix: the options of prefix queries; None by default.
    :param suffix: the options of suffix queries; None by default.
    :param case_sensitive: True distinguishes upper and lower case.
    :param diacritic_sensitive: True distinguishes letters with and without diacritics.
    """

    substring: SubstringOpts | None = None
    prefix: PrefixOpts | None = None
    suffix: SuffixOpts | None = None
    case_sensitive: bool | None = None
    diacritic_sensitive: bool | None = None

    @property
    def document(self) -> DocumentDict:
        """The options in the form that libmongocrypt expects."""
        query_options = {"substring": self.substring, "prefix": self.prefix, "suffix": self.suffix}
        sensitivity = {"caseSensitive": self.case_sensitive, "diacriticSensitive": self.diacritic_sensitive}
        return without_none({}, **query_options, **sensitivity)
