"""Exceptions, with PyMongo's names, tree and attributes.

Two groups matter to the rest of the driver. A *network error* (:class:`AutoReconnect` and its subclasses) may be
retried, and changes the state of a server. A *server error* (:class:`OperationFailure` and its subclasses) carries a
code and the reply.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bson.errors import InvalidDocument

from gmongo._documents import Document
from gmongo._safe_log import printable
from gmongo._server_facts import codes

if TYPE_CHECKING:
    from gmongo.results import ClientBulkWriteResult

_Address = tuple[str, int | None]

__all__ = [
    "AutoReconnect",
    "BulkWriteError",
    "ClientBulkWriteException",
    "CollectionInvalid",
    "ConfigurationError",
    "ConnectionFailure",
    "CursorNotFound",
    "DocumentTooLarge",
    "DuplicateKeyError",
    "EncryptedCollectionError",
    "EncryptionError",
    "ExecutionTimeout",
    "InsecureConnectionWarning",
    "InvalidHost",
    "InvalidName",
    "InvalidOperation",
    "InvalidOption",
    "InvalidOptionType",
    "InvalidURI",
    "NetworkTimeout",
    "NotPrimaryError",
    "OperationFailure",
    "PoolClearedError",
    "PoolClosedError",
    "ProtocolError",
    "PyMongoError",
    "ServerSelectionTimeoutError",
    "WTimeoutError",
    "WaitQueueTimeoutError",
    "WriteConcernError",
    "WriteError",
]


class PyMongoError(Exception):
    """Base class of the driver's exceptions, except :class:`DocumentTooLarge`, :class:`TypeError`, :class:`ValueError`.

    :param message: the error message; empty by default.
    :param error_labels: the error labels from the server or the driver; None (the default) means no labels.
    """

    def __init__(self, message: str = "", error_labels: Iterable[str] | None = None) -> None:
        super().__init__(message)
        self._message = message
        self._error_labels: set[str] = set(error_labels or ())

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses take different arguments: copy the attributes without a call of the constructor.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def has_error_label(self, label: str) -> bool:
        """Return True if the error has the label.

        :param label: such as ``"TransientTransactionError"``, ``"RetryableWriteError"`` or ``"SystemOverloadedError"``.
        """
        return label in self._error_labels

    def _add_error_label(self, label: str) -> None:
        self._error_labels.add(label)

    @property
    def timeout(self) -> bool:
        """True if a timeout of the client or of the server caused the error."""
        return False


class ProtocolError(PyMongoError):
    """A message violated the wire protocol."""


class ConnectionFailure(PyMongoError):
    """The driver could not establish a connection, or lost a connection."""


class AutoReconnect(ConnectionFailure):
    """The driver lost a connection. The next operation reconnects.

    :param message: the error message; empty by default.
    :param errors: the underlying errors (a list) or the server's reply; None (the default) means no errors.
    """

    errors: Document | Sequence[object]
    details: Document | Sequence[object]
    _stable_text: str | None = None  # the message without durations, so that equal errors compare equal

    def __init__(self, message: str = "", errors: Document | Sequence[object] | None = None) -> None:
        labels = errors.get("errorLabels") if isinstance(errors, Mapping) else None
        super().__init__(message, labels)
        self.errors = self.details = errors or []


class NetworkTimeout(AutoReconnect):
    """The server did not reply in time (``socketTimeoutMS``, ``connectTimeoutMS``, ``timeoutMS``)."""

    @property
    def timeout(self) -> bool:
        return True


class NotPrimaryError(AutoReconnect):
    """The server replied that it is not the primary, is recovering or is shutting down.

    Specification: Server Discovery and Monitoring, "Error handling".

    :param message: the server's error message; empty by default.
    :param errors: the server's reply; None (the default) means no reply.
    """

    def __init__(self, message: str = "", errors: Document | None = None) -> None:
        super().__init__(_with_full_error(message, errors), errors)

    @property
    def code(self) -> int | None:
        """The error code of the reply, or None."""
        return self.details.get("code") if isinstance(self.details, Mapping) else None


class ServerSelectionTimeoutError(AutoReconnect):
    """Server selection found no suitable server within ``serverSelectionTimeoutMS``.

    The message names the required servers and shows the last topology description of the client.

    Specification: Server Selection.
    """

    @property
    def timeout(self) -> bool:
        return True


class PoolClearedError(AutoReconnect):
    """The pool was cleared: it is paused, or it interrupted this connection. The operation may be retried.

    Specification: Connection Monitoring and Pooling, "Connection Pool Errors".

    :param message: the error message.
    :param address: the address of the pool, as host and port.
    """

    def __init__(self, message: str, address: _Address | None = None) -> None:
        super().__init__(message)
        self.address = address


class PoolClosedError(ConnectionFailure):
    """An operation attempted to check out a connection from a closed pool.

    Specification: Connection Monitoring and Pooling, "Connection Pool Errors".

    :param address: the address of the pool, as host and port.
    """

    def __init__(self, address: _Address | None = None) -> None:
        super().__init__("Attempted to check out a Connection from closed connection pool")
        self.address = address


class WaitQueueTimeoutError(ConnectionFailure):
    """No connection became available within ``waitQueueTimeoutMS``.

    `holders` describes up to five checked-out connections, the longest-held first, as in
    :meth:`MongoClient.pool_stats() <gmongo.mongo_client.MongoClient.pool_stats>`. The message shows the pool's limits,
    the connections in use by purpose, and the first holder. From Python 3.11, a traceback shows all holders as notes.

    Specification: Connection Monitoring and Pooling, "Connection Pool Errors".

    :param message: the message of the specification, also available as the attribute `message`.
    :param address: the address of the pool, as host and port.
    :param holders: one mapping for each checked-out connection; none by default.
    :param details: the rest of the error text: the limits and the connections in use; empty by default.
    """

    def __init__(
        self, message: str, address: _Address | None = None, holders: Iterable[Document] = (), details: str = ""
    ) -> None:
        super().__init__(message + details)
        self.message = message
        self.address = address
        self.holders = list(holders)
        add_note = getattr(self, "add_note", None)
        if add_note is not None:
            for holder in self.holders:
                add_note(
                    "Connection {connection} has been held for {seconds:.3f} s by {greenlet}, for {purpose}; "
                    "its last command: {operation}".format(**holder)
                )

    @property
    def timeout(self) -> bool:
        return True


class ConfigurationError(PyMongoError):
    """An option or a combination of options is invalid."""


class InsecureConnectionWarning(UserWarning):
    """The client is about to send a password or a token without TLS.

    To forbid this, call ``warnings.simplefilter("error", InsecureConnectionWarning)``.
    """


class InvalidOption(ConfigurationError, ValueError):
    """The value of an option, or a combination of options, is not allowed."""


class InvalidOptionType(ConfigurationError, TypeError):
    """The value of an option has the wrong type."""


class InvalidURI(ConfigurationError):
    """A connection string is malformed, or its options contradict each other."""


class InvalidHost(InvalidURI, ValueError):
    """A host or its port is malformed."""


class OperationFailure(PyMongoError):
    """The server replied with an error.

    :param error: the server's error message.
    :param code: the error code of the reply; None (the default) means no code.
    :param details: the whole reply; None (the default) means no reply.
    :param max_wire_version: the server's highest wire version, for compatibility with PyMongo; None by default.
    """

    def __init__(
        self, error: str, code: int | None = None, details: Document | None = None, max_wire_version: int | None = None
    ) -> None:
        labels = details.get("errorLabels") if details is not None else None
        super().__init__(_with_full_error(error, details), labels)
        self._code = code
        self._details = details
        self._max_wire_version = max_wire_version

    @property
    def code(self) -> int | None:
        """The error code of the reply, or None."""
        return self._code

    @property
    def details(self) -> Document | None:
        """The whole reply, which may contain more than the message, or None."""
        return self._details

    @property
    def timeout(self) -> bool:
        return self._code == codes.MAX_TIME_MS_EXPIRED


class CursorNotFound(OperationFailure):
    """The server does not know the cursor: the cursor timed out, or was killed."""

    @property
    def timeout(self) -> bool:
        return False


class ExecutionTimeout(OperationFailure):
    """An operation exceeded ``max_time_ms``."""

    @property
    def timeout(self) -> bool:
        return True


class WriteConcernError(OperationFailure):
    """The server executed a write, but could not satisfy its write concern."""

    _topology_version: Document | None = None  # topology version of the reply


class WriteError(OperationFailure):
    """The server rejected a write."""


class WTimeoutError(WriteConcernError):
    """The server did not satisfy the write concern within ``wtimeout`` milliseconds."""

    @property
    def timeout(self) -> bool:
        return True


class DuplicateKeyError(WriteError):
    """A write violated a unique index."""


class BulkWriteError(OperationFailure):
    """Some writes of a bulk write failed. `details` contains the errors and the result.

    Specification: CRUD API, "Error Handling".

    :param results: ``writeErrors`` (each with ``index``, ``code``, ``errmsg`` and ``op``), ``writeConcernErrors`` and
        the counts of the whole bulk write.
    """

    details: Document

    def __init__(self, results: Document) -> None:
        super().__init__("batch op errors occurred", codes.MULTIPLE_ERRORS_OCCURRED, results)

    @property
    def timeout(self) -> bool:
        concern_errors = self._details.get("writeConcernErrors", []) if self._details else []
        if any(_is_write_timeout(error) for error in concern_errors):
            return True
        write_errors = self._details.get("writeErrors", []) if self._details else []
        return any(error.get("code") == codes.MAX_TIME_MS_EXPIRED for error in write_errors)


class ClientBulkWriteException(OperationFailure):
    """Some writes of :meth:`MongoClient.bulk_write <gmongo.mongo_client.MongoClient.bulk_write>` failed.

    Specification: Bulk Write, "Exception".

    :param results: the errors and the partial result.
    :param verbose: True if the caller requested verbose results; False by default.
    :param partial_result: the result of the completed writes, if any write is known to have succeeded; else None.
    """

    details: Document

    def __init__(
        self, results: Document, verbose: bool = False, partial_result: ClientBulkWriteResult | None = None
    ) -> None:
        super().__init__("batch op errors occurred", codes.MULTIPLE_ERRORS_OCCURRED, results)
        self.verbose = verbose
        self._partial_result = partial_result

    @property
    def error(self) -> PyMongoError | None:
        """The error that ended the whole bulk write, or None."""
        return self.details.get("error")

    @property
    def write_errors(self) -> list[Document]:
        """The errors of individual writes."""
        return list(self.details.get("writeErrors", []))

    @property
    def write_concern_errors(self) -> list[Document]:
        """The write concern errors of all commands of the bulk write."""
        return list(self.details.get("writeConcernErrors", []))

    @property
    def partial_result(self) -> ClientBulkWriteResult | None:
        """The result of the writes before the error, or None if no write is known to have succeeded."""
        return self._partial_result

    @property
    def timeout(self) -> bool:
        if isinstance(self.error, PyMongoError) and self.error.timeout:
            return True
        return any(_is_write_timeout(error) for error in self.write_concern_errors)


class InvalidOperation(PyMongoError):
    """The state of an object does not allow the operation."""


class InvalidName(PyMongoError):
    """A database or collection name is not allowed."""


class CollectionInvalid(PyMongoError):
    """A collection could not be created or validated."""


class DocumentTooLarge(InvalidDocument):
    """An encoded document exceeds the server's maximum size."""


class EncryptionError(PyMongoError):
    """Client-side field level encryption failed.

    :param cause: the exception of the encryption library.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(printable(str(cause)))
        self._cause = cause

    @property
    def cause(self) -> Exception:
        """The exception of the encryption library."""
        return self._cause

    @property
    def timeout(self) -> bool:
        return isinstance(self._cause, PyMongoError) and self._cause.timeout


class EncryptedCollectionError(EncryptionError):
    """The creation of an encrypted collection failed after it had started.

    :param cause: the underlying exception.
    :param encrypted_fields: the encrypted fields, including the data keys created before the failure.
    """

    def __init__(self, cause: Exception, encrypted_fields: Document) -> None:
        super().__init__(cause)
        self._encrypted_fields = encrypted_fields

    @property
    def encrypted_fields(self) -> Document:
        """The encrypted fields, including the data keys created before the failure."""
        return self._encrypted_fields


def _with_full_error(message: str, details: object) -> str:
    if details is None:
        return message
    message = printable(str(message))  # the text comes from the server
    try:
        return f"{message}, full error: {details}"
    except RecursionError:
        return f"{message}, full error: too deeply nested to be shown"


def _is_write_timeout(error: Document) -> bool:
    return error.get("code") == codes.WRITE_CONCERN_TIMEOUT or bool((error.get("errInfo") or {}).get("wtimeout"))
