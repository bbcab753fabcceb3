"""Exceptions with the names, the class hierarchy and the attributes of PyMongo's exceptions.

Most *network errors* (:class:`AutoReconnect` and its subclasses) allow a retry, and change a server description. A
*server error* (:class:`OperationFailure` and its subclasses) has a code and the reply. Specifications: Connection
Monitoring and Pooling ("Connection Pool Errors"), Server Discovery and Monitoring ("Error handling"), Server Selection,
CRUD API ("Error Handling"), and Bulk Write ("Exception").
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
    """Base class of the driver's exceptions.

    :class:`DocumentTooLarge`, :class:`TypeError` and :class:`ValueError` do not have this base class.

    :param message: the error message; empty by default.
    :param error_labels: the error labels from the server or the driver; None (the default) means no labels.
    """

    def __init__(self, message: str = "", error_labels: Iterable[str] | None = None) -> None:
        super().__init__(message)
        self._message = message
        self._error_labels: set[str] = set(error_labels or ())

    def __reduce__(self) -> tuple[object, ...]:
        # Copy the attributes without a call of the constructor, whose parameters differ between subclasses.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def has_error_label(self, label: str) -> bool:
        """Return True if the error has the given label.

        :param label: the error label, such as ``"TransientTransactionError"``.
        """
        return label in self._error_labels

    def _add_error_label(self, label: str) -> None:
        self._error_labels.add(label)

    @property
    def timeout(self) -> bool:
        """True if a timeout of the client or of the server caused the error."""
        return False


class ProtocolError(PyMongoError):
    """A received message violated the wire protocol."""


class ConnectionFailure(PyMongoError):
    """The driver could not establish a connection, or lost a connection."""


class AutoReconnect(ConnectionFailure):
    """The driver could not connect, or lost a connection. A repeated operation may succeed.

    :param message: the error message; empty by default.
    :param errors: a list of the underlying errors, or the server's reply; None (the default) means no errors.
    """

    errors: Document | Sequence[object]
    details: Document | Sequence[object]
    # The error message without durations. Comparisons of server descriptions use this text.
    _stable_text: str | None = None

    def __init__(self, message: str = "", errors: Document | Sequence[object] | None = None) -> None:
        labels = errors.get("errorLabels") if isinstance(errors, Mapping) else None
        super().__init__(message, labels)
        self.errors = self.details = errors or []


class NetworkTimeout(AutoReconnect):
    """The server did not reply within a time limit (``socketTimeoutMS``, ``connectTimeoutMS``, ``timeoutMS``)."""

    timeout = True


class NotPrimaryError(AutoReconnect):
    """The server that replied is not the primary, is recovering, or is shutting down.

    :param message: the server's error message; empty by default.
    :param errors: the server's reply; None (the default) means no reply.
    """

    def __init__(self, message: str = "", errors: Document | None = None) -> None:
        super().__init__(_append_full_error(message, errors), errors)

    @property
    def code(self) -> int | None:
        """The error code in the server's reply, or None."""
        return self.details.get("code") if isinstance(self.details, Mapping) else None


class ServerSelectionTimeoutError(AutoReconnect):
    """Server selection found no suitable server within ``serverSelectionTimeoutMS`` or ``timeoutMS``.

    The message names the required kind of server, and shows the client's last topology description.
    """

    timeout = True


class PoolClearedError(AutoReconnect):
    """A check-out found a cleared pool, or the clear interrupted a connection. A retry is possible.

    :param message: the error message.
    :param address: the address of the pool's server, as host and port; None by default.
    """

    def __init__(self, message: str, address: _Address | None = None) -> None:
        super().__init__(message)
        self.address = address


class PoolClosedError(ConnectionFailure):
    """An operation attempted to check out a connection from a closed pool.

    :param address: the address of the pool's server, as host and port; None by default.
    """

    def __init__(self, address: _Address | None = None) -> None:
        super().__init__("Attempted to check out a Connection from closed connection pool")
        self.address = address


class WaitQueueTimeoutError(ConnectionFailure):
    """No connection became available within ``waitQueueTimeoutMS`` or another time limit.

    `holders` describes up to five checked-out connections, as in :meth:`.MongoClient.pool_stats`.
    The connections are in the order of check-out. The error text shows the pool's limits, the
    number of connections in use for each purpose, and the first connection. Since Python 3.11, a
    traceback shows all `holders` as notes.

    :param message: the message that the specification defines. The attribute `message` does not contain `details`.
    :param address: the address of the pool's server, as host and port; None by default.
    :param holders: a mapping for each checked-out connection; empty by default.
    :param details: the rest of the error text, with the state of the pool; empty by default.
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

    timeout = True


class ConfigurationError(PyMongoError):
    """An option or a combination of options is invalid."""


class InsecureConnectionWarning(UserWarning):
    """The client will send a password or a token without TLS.

    To raise an exception instead, call ``warnings.simplefilter("error", InsecureConnectionWarning)``.
    """


class InvalidOption(ConfigurationError, ValueError):
    """The value of an option, or a combination of options, is not allowed."""


class InvalidOptionType(ConfigurationError, TypeError):
    """The value of an option has the wrong type."""


class InvalidURI(ConfigurationError):
    """A connection string is malformed, or its options contradict each other."""


class InvalidHost(InvalidURI, ValueError):
    """The name or the port of a host is malformed."""


class OperationFailure(PyMongoError):
    """The server replied with an error.

    :param error: the server's error message.
    :param code: the error code in the server's reply; None (the default) means no code.
    :param details: the whole reply of the server; None (the default) means no reply.
    :param max_wire_version: the highest wire version of the server, for compatibility with PyMongo; None by default.
    """

    def __init__(
        self, error: str, code: int | None = None, details: Document | None = None, max_wire_version: int | None = None
    ) -> None:
        labels = details.get("errorLabels") if details is not None else None
        super().__init__(_append_full_error(error, details), labels)
        self._code = code
        self._details = details
        self._max_wire_version = max_wire_version

    @property
    def code(self) -> int | None:
        """The error code in the server's reply, or None."""
        return self._code

    @property
    def details(self) -> Document | None:
        """The whole reply of the server, or None. The reply may contain more information than the message."""
        return self._details

    @property
    def timeout(self) -> bool:
        return self._code == codes.MAX_TIME_MS_EXPIRED


class CursorNotFound(OperationFailure):
    """The server does not know the cursor, because the cursor timed out or was killed."""

    timeout = False


class ExecutionTimeout(OperationFailure):
    """An operation took longer than its time limit, such as ``max_time_ms`` or ``timeoutMS``."""

    timeout = True


class WriteConcernError(OperationFailure):
    """The server executed a write, but could not satisfy its write concern."""

    _topology_version: Document | None = None  # the topologyVersion in the server's reply


class WriteError(OperationFailure):
    """The server rejected a write."""


class WTimeoutError(WriteConcernError):
    """The server did not satisfy the write concern within ``wtimeout`` milliseconds."""

    timeout = True


class DuplicateKeyError(WriteError):
    """A write would have violated a unique index."""


class BulkWriteError(OperationFailure):
    """Some writes of a bulk write failed.

    :param results: the errors and the results of the writes. ``writeErrors`` is a list of mappings
        with ``index``, ``code``, ``errmsg`` and ``op``. ``writeConcernErrors`` is a list of errors.
        ``upserted`` is a list of mappings with ``index`` and ``_id``. The other fields are counts.
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

    :param results: the errors, the counts of documents, and the results of single writes.
    :param verbose: True if the application requested verbose results; False by default.
    :param partial_result: the result of the successful writes; None (the default) if no success is known.
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
        """The error that ended the bulk write before its last write, or None."""
        return self.details.get("error")

    @property
    def write_errors(self) -> list[Document]:
        """The errors of single writes."""
        return list(self.details.get("writeErrors", []))

    @property
    def write_concern_errors(self) -> list[Document]:
        """The write concern errors of all commands of the bulk write."""
        return list(self.details.get("writeConcernErrors", []))

    @property
    def partial_result(self) -> ClientBulkWriteResult | None:
        """The result of the successful writes, or None if the client does not know of a successful write."""
        return self._partial_result

    @property
    def timeout(self) -> bool:
        if isinstance(self.error, PyMongoError) and self.error.timeout:
            return True
        return any(_is_write_timeout(error) for error in self.write_concern_errors)


class InvalidOperation(PyMongoError):
    """The operation is not allowed in the current state of an object."""


class InvalidName(PyMongoError):
    """The name of a database or a collection is not allowed."""


class CollectionInvalid(PyMongoError):
    """A collection could not be created, or is not valid."""


class DocumentTooLarge(InvalidDocument):
    """An encoded document or command is too large for the server."""


class EncryptionError(PyMongoError):
    """Client-side field level encryption failed.

    :param cause: the exception that caused the failure, for example of libmongocrypt or of a key vault query.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(printable(str(cause)))
        self._cause = cause

    @property
    def cause(self) -> Exception:
        """The exception that caused the failure."""
        return self._cause

    @property
    def timeout(self) -> bool:
        return isinstance(self._cause, PyMongoError) and self._cause.timeout


class EncryptedCollectionError(EncryptionError):
    """The creation of an encrypted collection failed after the creation of data keys had started.

    :param cause: the exception that interrupted the creation.
    :param encrypted_fields: the encrypted fields, including the data keys that were created before the failure.
    """

    def __init__(self, cause: Exception, encrypted_fields: Document) -> None:
        super().__init__(cause)
        self._encrypted_fields = encrypted_fields

    @property
    def encrypted_fields(self) -> Document:
        """The encrypted fields, including the data keys that were created before the failure."""
        return self._encrypted_fields


def _append_full_error(message: str, details: object) -> str:
    if details is None:
        return message
    message = printable(str(message))  # the server's text may contain control characters
    try:
        return f"{message}, full error: {details}"
    except RecursionError:
        return f"{message}, full error: too deeply nested to be shown"


def _is_write_timeout(error: Document) -> bool:
    timed_out = error.get("code") in (codes.MAX_TIME_MS_EXPIRED, codes.WRITE_CONCERN_TIMEOUT)
    return timed_out or bool((error.get("errInfo") or {}).get("wtimeout"))
