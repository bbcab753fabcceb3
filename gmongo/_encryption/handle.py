"""Handle of a ``mongocrypt_t``, the libmongocrypt object with options and cached keys and schemas."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import bson

from gmongo._documents import Document
from gmongo._encryption import hooks, library
from gmongo._encryption.library import MongoCryptError, Native, ffi, lib
from gmongo._fork import register_after_fork
from gmongo._safe_log import printable, safely
from gmongo.errors import InvalidOperation
from gmongo.events import log

_LOG_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
_LOG_FUNCTION_TYPE = "void(*)(mongocrypt_log_level_t, const char*, uint32_t, void*)"
_MAX_MESSAGES = 100  # maximum number of buffered log messages
_ON_DEMAND_PROVIDERS = ("aws", "gcp", "azure")


@dataclass(frozen=True)
class Settings:
    """Settings of libmongocrypt from parameters of ``AutoEncryptionOpts`` or ``ClientEncryption``."""

    kms_providers: Document = field(repr=False)
    key_expiration_ms: int | None = None
    schema_map: Document | None = None
    encrypted_fields_map: Document | None = None
    bypass_query_analysis: bool = False
    loads_crypt_shared: bool = False  # True to load the query analysis library (crypt_shared)
    crypt_shared_lib_path: str | None = None
    crypt_shared_lib_required: bool = False

    @property
    def on_demand_providers(self) -> tuple[str, ...]:
        """The names of the KMS providers whose credentials the driver fetches on demand."""
        return tuple(name for name in _ON_DEMAND_PROVIDERS if self.kms_providers.get(name) == {})


class Handle:
    """Owner of a ``mongocrypt_t``, freed after :meth:`close` and the end of each ``Context``."""

    def __init__(self, settings: Settings) -> None:
        library.require_library()
        self.settings = settings
        self._messages: deque[tuple[int, str]] = deque(maxlen=_MAX_MESSAGES)
        messages = self._messages  # a reference to `self` in the function below would form a cycle

        def append_message(level: int, message: Native, length: int, _context: Native) -> None:
            messages.append((_LOG_LEVELS[level], ffi.buffer(message, length)[:].decode("utf-8", "replace")))

        self._log_function: Native = ffi.callback(_LOG_FUNCTION_TYPE, append_message)
        self.has_crypt_shared = False  # True if the query analysis library (crypt_shared) is loaded
        # In a forked child, this reference keeps the mongocrypt_t of the parent alive.
        self._crypt_of_parent: Native = None
        self._crypt: Native = self._open()
        register_after_fork(self)

    def crypt(self) -> Native:
        """Return the ``mongocrypt_t``. Create a new ``mongocrypt_t`` in a forked child.

        If a thread of the parent has locked the ``mongocrypt_t``, the lock stays locked in the child.
        """
        if self._crypt is None:
            if self._crypt_of_parent is None:
                raise InvalidOperation("Cannot use client-side encryption that was closed")
            self._crypt = self._open()
        return self._crypt

    def new_context(self, crypt: Native) -> Native:
        """Return a new ``mongocrypt_ctx_t``. The caller must keep a reference to `crypt` until the context closes."""
        context = lib.mongocrypt_ctx_new(crypt)
        if context == ffi.NULL:
            raise _last_error(crypt)
        return context

    def close(self) -> None:
        """Refuse new contexts, and discard the data keys as soon as no context is open."""
        self._crypt = self._crypt_of_parent = None

    def mark_forked(self) -> None:
        """Record in a forked child that the ``mongocrypt_t`` belongs to the parent."""
        if self._crypt is not None:
            self._crypt_of_parent, self._crypt = self._crypt, None

    def log(self) -> None:
        """Log the messages of libmongocrypt, which another thread may have recorded."""
        while self._messages:
            level, message = self._messages.popleft()
            safely(log.encryption_log.log, level, "libmongocrypt: %s", printable(message))

    def _open(self) -> Native:
        settings = self.settings
        schemas, encrypted_fields = (
            None if each is None else bson.encode(each) for each in (settings.schema_map, settings.encrypted_fields_map)
        )
        providers = {  # pymongocrypt rejects access tokens
            name: {} if isinstance(fields, Mapping) and "accessToken" in fields else fields
            for name, fields in settings.kms_providers.items()
        }
        lifetime = settings.key_expiration_ms
        checked_options = library.MongoCryptOptions(providers, schemas, encrypted_fields, key_expiration_ms=lifetime)
        crypt = ffi.gc(lib.mongocrypt_new(), lib.mongocrypt_destroy)
        self._configure(crypt, checked_options)
        _check_success(crypt, lib.mongocrypt_init(crypt))
        self.log()
        version = lib.mongocrypt_crypt_shared_lib_version_string(crypt, ffi.NULL)
        self.has_crypt_shared = version != ffi.NULL
        if settings.crypt_shared_lib_required and not self.has_crypt_shared:
            # If the application has set a path, `mongocrypt_init` fails before this check.
            raise MongoCryptError(
                "crypt_shared_lib_required=True, but the crypt_shared library could not be loaded from the system's "
                "search path for libraries"
            )
        return crypt

    def _configure(self, crypt: Native, options: library.MongoCryptOptions) -> None:
        """Set the options of a new ``mongocrypt_t`` before its initialization."""
        settings = self.settings

        check = partial(_check_success, crypt)

        def set_document(option: Native, document: bytes) -> None:
            with library.MongoCryptBinaryIn(document) as binary:
                check(option(crypt, binary.bin))

        check(lib.mongocrypt_setopt_log_handler(crypt, self._log_function, ffi.NULL))
        set_document(lib.mongocrypt_setopt_kms_providers, bson.encode(settings.kms_providers))
        if options.schema_map is not None:
            set_document(lib.mongocrypt_setopt_schema_map, options.schema_map)
        if options.encrypted_fields_map is not None:
            set_document(lib.mongocrypt_setopt_encrypted_field_config_map, options.encrypted_fields_map)
        if settings.bypass_query_analysis:
            lib.mongocrypt_setopt_bypass_query_analysis(crypt)
        check(lib.mongocrypt_setopt_enable_multiple_collinfo(crypt))
        lib.mongocrypt_setopt_use_need_mongo_collinfo_with_db_state(crypt)
        if not lib.mongocrypt_is_crypto_available():
            check(hooks.install(crypt))
        if settings.loads_crypt_shared:
            if settings.crypt_shared_lib_path is not None:
                path = settings.crypt_shared_lib_path.encode()
                lib.mongocrypt_setopt_set_crypt_shared_lib_path_override(crypt, path)
            lib.mongocrypt_setopt_append_crypt_shared_lib_search_path(crypt, b"$SYSTEM")
        if settings.on_demand_providers:
            lib.mongocrypt_setopt_use_need_kms_credentials_state(crypt)
        check(lib.mongocrypt_setopt_retry_kms(crypt, True))
        if settings.key_expiration_ms is not None:
            check(lib.mongocrypt_setopt_key_expiration(crypt, settings.key_expiration_ms))


def _check_success(crypt: Native, success: object) -> None:
    if not success:
        raise _last_error(crypt)


def _last_error(crypt: Native) -> Exception:
    status = ffi.gc(lib.mongocrypt_status_new(), lib.mongocrypt_status_destroy)
    lib.mongocrypt_status(crypt, status)
    error: Exception = MongoCryptError.from_status(status)
    return error
