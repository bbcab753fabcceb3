"""Options of client-side encryption: of clients that encrypt by themselves, of single fields, and of connections to
key management services.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from bson.int64 import Int64

from gmongo._documents import Document, DocumentDict, Value
from gmongo._encryption.connect_callback import HTTPProxyKMSConnect, KMSConnectCallback, KMSConnectContext
from gmongo._encryption.handle import Settings
from gmongo._encryption.key_vault import Client, split_namespace
from gmongo._encryption.kms_tls import KmsTls
from gmongo._encryption.library import require_library
from gmongo._locals import forgets_locals
from gmongo._short_text import short

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

_IDLE_OPTION = "--idleShutdownTimeoutSecs"


class AutoEncryptionOpts:
    """How a client encrypts what it sends, and decrypts what it receives, by itself::

        client = MongoClient(auto_encryption_opts=AutoEncryptionOpts({"local": {"key": key}}, "vault.keys"))

    Automatic encryption is an enterprise only feature that only applies to operations on a collection. Automatic
    encryption is not supported for operations on a database or view, and operations that are not bypassed will result
    in error. To bypass automatic encryption for all operations, set ``bypass_auto_encryption=True``. Automatic
    decryption, and explicit encryption with :class:`gmongo.encryption.ClientEncryption`, need no such server.

    If automatic encryption fails on an operation, use a client with ``bypass_auto_encryption=True`` and encrypt values
    with :meth:`gmongo.encryption.ClientEncryption.encrypt`.

    :param kms_providers: the key management services with their credentials, by name: ``aws`` (``accessKeyId``,
        ``secretAccessKey``, ``sessionToken``), ``azure`` (``tenantId``, ``clientId``, ``clientSecret``,
        ``identityPlatformEndpoint``), ``gcp`` (``email``, ``privateKey``, ``endpoint``), ``kmip`` (``endpoint``), and
        ``local`` (``key``, which is 96 bytes, or these in base64). Several of a kind differ by a suffix, as in
        ``"aws:payroll"``. An empty mapping for ``aws``, ``azure`` or ``gcp`` has the credentials fetched when they are
        needed, from the environment or the metadata service of the cloud.
    :param key_vault_namespace: ``"database.collection"``, where the data keys are kept.
    :param key_vault_client: of the deployment where that is; by default it is the client's own.
    :param schema_map: JSON schemas of collections by namespace, with the fields to encrypt. Supplying a schema_map
        provides more security than relying on JSON Schemas obtained from the server. It protects against a malicious
        server advertising a false JSON Schema, which could trick the client into sending unencrypted data that should
        be encrypted. Schemas supplied in the schema_map only apply to configuring automatic encryption for client side
        encryption. Other validation rules in the JSON schema will not be enforced by the driver and will result in an
        error.
    :param bypass_auto_encryption: decrypt only. False by default.
    :param mongocryptd_uri: of the process that analyses commands; ``"mongodb://localhost:27020"`` by default.
    :param mongocryptd_bypass_spawn: do not start that process when it cannot be reached. False by default.
    :param mongocryptd_spawn_path: how it is started; ``"mongocryptd"`` by default, which is looked for in ``PATH``.
    :param mongocryptd_spawn_args: its arguments; ``["--idleShutdownTimeoutSecs=60"]`` by default, which is added to
        others, too.
    :param kms_tls_options: for each KMS provider, options of TLS as a client has them, such as ``tlsCAFile`` and
        ``tlsCertificateKeyFile``.
    :param crypt_shared_lib_path: of the crypt_shared library, which analyses commands inside the process; by default
        it is looked for where the system looks for libraries. All clients in the same process should use the same
        setting, as it is an error to load more than one crypt_shared library simultaneously in a process.
    :param crypt_shared_lib_required: refuse to work without that library, rather than use mongocryptd. False by
        default.
    :param bypass_query_analysis: do not have commands analysed: for explicit encryption of fields that can be queried,
        with automatic decryption. False by default.
    :param encrypted_fields_map: the encrypted fields of collections (Queryable Encryption), by namespace. Supplying an
        encrypted_fields_map provides more security than relying on an encryptedFields obtained from the server. It
        protects against a malicious server advertising a false encryptedFields.
    :param key_expiration_ms: how long a data key is kept in memory, in milliseconds; 0 is for ever, None is a minute.
    :param kms_connect_callback: makes the connections to key management services, for proxies: given a
        :class:`KMSConnectContext`, it returns a connected socket, on which gmongo begins TLS.
    :raises ConfigurationError: pymongocrypt is not installed, or an option is out of its range.
    :raises TypeError: an option has the wrong type.

    Source: Client Side Encryption, "AutoEncryptionOpts".
    """

    @forgets_locals
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
        _check_mappings(schema_map=schema_map, encrypted_fields_map=encrypted_fields_map)
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
        self._mongocryptd_command = [mongocryptd_spawn_path, *_spawn_arguments(mongocryptd_spawn_args)]
        self._kms_tls = KmsTls(kms_tls_options, kms_providers)
        self._kms_connect_callback = kms_connect_callback
        self._encrypted_fields_map = encrypted_fields_map or {}
        analyses = not (bypass_auto_encryption or bypass_query_analysis)
        self._settings = Settings(
            kms_providers=kms_providers,
            key_expiration_ms=key_expiration_ms,
            schema_map=schema_map,
            encrypted_fields_map=encrypted_fields_map,
            bypass_query_analysis=bypass_query_analysis,
            analyses=analyses or crypt_shared_lib_required,
            crypt_shared_lib_path=crypt_shared_lib_path,
            crypt_shared_lib_required=crypt_shared_lib_required,
        )

    @property
    def _kms_providers(self) -> Document:  # by which libraries make a ClientEncryption of these options
        return self._settings.kms_providers


def _check_mappings(**options: object) -> None:
    for name, value in options.items():
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"{name} must be a mapping such as a dict, not {short(value)}")


def _check_flags(**options: object) -> None:
    for name, flag in options.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False, not {short(flag)}")


def _spawn_arguments(given: Sequence[str] | None) -> list[str]:
    if given is None:
        return [f"{_IDLE_OPTION}=60"]
    if not isinstance(given, list):
        raise TypeError(f"mongocryptd_spawn_args must be a list, not {type(given)}")
    has_limit = any(str(each).partition("=")[0] == _IDLE_OPTION for each in given)
    return [str(each) for each in given] + ([] if has_limit else [f"{_IDLE_OPTION}=60"])


def _check_callback(callback: Callable[..., object] | None) -> None:
    if callback is not None and not callable(callback):
        raise TypeError(f"kms_connect_callback must be callable, not {type(callback)}")


def _check_number(option: str, value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"{option} must be an integer, not {short(value)}")


class RangeOpts:
    """How a field is encrypted with the algorithm "Range". They must be those of the collection's encryptedFields.

    :param sparsity: how many levels of the index are left out; None leaves it to libmongocrypt.
    :param trim_factor: how many levels at the top are left out; None leaves it to libmongocrypt.
    :param min: the lowest value, of the field's type; required if `precision` is given.
    :param max: the highest value, of the field's type; required if `precision` is given.
    :param precision: how many digits after the decimal point count; for ``double`` and ``decimal128`` only.
    :raises TypeError: a number is none.

    Source: Client Side Encryption, "EncryptOpts".
    """

    def __init__(
        self,
        sparsity: int | None = None,
        trim_factor: int | None = None,
        min: Value | None = None,
        max: Value | None = None,
        precision: int | None = None,
    ) -> None:
        for option, value in (("sparsity", sparsity), ("trim_factor", trim_factor), ("precision", precision)):
            _check_number(option, value)
        self.min = min
        self.max = max
        self.sparsity = sparsity
        self.trim_factor = trim_factor
        self.precision = precision

    @property
    def document(self) -> DocumentDict:
        """The options as libmongocrypt takes them."""
        named = {
            "sparsity": None if self.sparsity is None else Int64(self.sparsity),
            "trimFactor": self.trim_factor,
            "precision": self.precision,
            "min": self.min,
            "max": self.max,
        }
        return {name: value for name, value in named.items() if value is not None}


class SubstringOpts(TypedDict):
    """How a text can be searched for any part of it."""

    strMaxLength: int
    """The longest text."""
    strMinQueryLength: int
    """The shortest part that is searched for."""
    strMaxQueryLength: int
    """The longest part that is searched for."""


class PrefixOpts(TypedDict):
    """How a text can be searched for its beginning."""

    strMinQueryLength: int
    """The shortest beginning that is searched for."""
    strMaxQueryLength: int
    """The longest beginning that is searched for."""


class SuffixOpts(TypedDict):
    """How a text can be searched for its end."""

    strMinQueryLength: int
    """The shortest end that is searched for."""
    strMaxQueryLength: int
    """The longest end that is searched for."""


class StringOpts:
    """How a text is encrypted with the algorithm "String". They must be those of the collection's encryptedFields.

    :param substring: for searches for any part.
    :param prefix: for searches for the beginning.
    :param suffix: for searches for the end.
    :param case_sensitive: whether upper and lower case differ.
    :param diacritic_sensitive: whether letters with and without accents differ.
    """

    def __init__(
        self,
        substring: SubstringOpts | None = None,
        prefix: PrefixOpts | None = None,
        suffix: SuffixOpts | None = None,
        case_sensitive: bool | None = None,
        diacritic_sensitive: bool | None = None,
    ) -> None:
        self.substring = substring
        self.prefix = prefix
        self.suffix = suffix
        self.case_sensitive = case_sensitive
        self.diacritic_sensitive = diacritic_sensitive

    @property
    def document(self) -> DocumentDict:
        """The options as libmongocrypt takes them."""
        named = {
            "substring": self.substring,
            "prefix": self.prefix,
            "suffix": self.suffix,
            "caseSensitive": self.case_sensitive,
            "diacriticSensitive": self.diacritic_sensitive,
        }
        return {name: value for name, value in named.items() if value is not None}
