"""Exceptions, with PyMongo's names, tree and attributes.

Two kinds matter to the rest of the driver: errors of the *network* (:class:`AutoReconnect` and its children), which
may be retried and say something about a server, and errors that a *server replied* (:class:`OperationFailure` and
its children), which carry a code and the reply.
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
    """Base class of every exception the driver raises, but :class:`DocumentTooLarge` and those for wrong arguments
    (:class:`TypeError`, :class:`ValueError`).

    :param message: what happened; empty by default.
    :param error_labels: what may be done about it, as the server or the driver says; None is none.
    """

    def __init__(self, message: str = "", error_labels: Iterable[str] | None = None) -> None:
        super().__init__(message)
        self._message = message
        self._error_labels: set[str] = set(error_labels or ())

    def __reduce__(self) -> tuple[object, ...]:
        # What an error is made of differs from class to class: a copy is given what this one has, and not made again.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def has_error_label(self, label: str) -> bool:
        """Whether the error has a label.

        :param label: such as ``"TransientTransactionError"``, ``"RetryableWriteError"`` or ``"SystemOverloadedError"``.
        """
        return label in self._error_labels

    def _add_error_label(self, label: str) -> None:
        self._error_labels.add(label)

    @property
    def timeout(self) -> bool:
        """Whether the error was caused by a time-out, on the client's or the server's side."""
        return False


class ProtocolError(PyMongoError):
    """A message on the wire broke the protocol."""


class ConnectionFailure(PyMongoError):
    """A connection to the database could not be made or was lost."""


class AutoReconnect(ConnectionFailure):
    """A connection was lost; the driver reconnects by itself when the next operation runs.

    :param message: what happened; empty by default.
    :param errors: the errors behind this one: a list, or a reply of the server; None is none.
    """

    errors: Document | Sequence[object]
    details: Document | Sequence[object]
    _gist: str | None = None  # the message without durations, which differ each time

    def __init__(self, message: str = "", errors: Document | Sequence[object] | None = None) -> None:
        labels = errors.get("errorLabels") if isinstance(errors, Mapping) else None
        super().__init__(message, labels)
        self.errors = self.details = errors or []


class NetworkTimeout(AutoReconnect):
    """An open connection did not answer in time (``socketTimeoutMS``, ``connectTimeoutMS``, ``timeoutMS``)."""

    @property
    def timeout(self) -> bool:
        return True


class NotPrimaryError(AutoReconnect):
    """The server replied that it is not the primary, is recovering or is shutting down.

    Specification: Server Discovery and Monitoring, "Error handling".

    :param message: what the server says; empty by default.
    :param errors: the reply of the server; None is none.
    """

    def __init__(self, message: str = "", errors: Document | None = None) -> None:
        super().__init__(_with_full_error(message, errors), errors)

    @property
    def code(self) -> int | None:
        """The error code of the reply, if it has one."""
        return self.details.get("code") if isinstance(self.details, Mapping) else None


class ServerSelectionTimeoutError(AutoReconnect):
    """No suitable server was found within ``serverSelectionTimeoutMS``.

    The message names what was asked for and shows the topology as the client last saw it.

    Specification: Server Selection.
    """

    @property
    def timeout(self) -> bool:
        return True


class PoolClearedError(AutoReconnect):
    """A check-out met a paused pool, or a connection was interrupted by a clear; may be retried.

    Specification: Connection Monitoring and Pooling, "Connection Pool Errors".

    :param message: what happened.
    :param address: the address of the pool, as host and port.
    """

    def __init__(self, message: str, address: _Address | None = None) -> None:
        super().__init__(message)
        self.address = address


class PoolClosedError(ConnectionFailure):
    """A check-out met a closed pool.

    Specification: Connection Monitoring and Pooling, "Connection Pool Errors".

    :param address: the address of the pool, as host and port.
    """

    def __init__(self, address: _Address | None = None) -> None:
        super().__init__("Attempted to check out a Connection from closed connection pool")
        self.address = address


class WaitQueueTimeoutError(ConnectionFailure):
    """No connection became free within ``waitQueueTimeoutMS``.

    `holders` says what held the connections: up to five, the longest first, as in :meth:`MongoClient.pool_stats()
    <gmongo.mongo_client.MongoClient.pool_stats>`. The text shows the limits, how many connections are in use for
    what, and the longest holder; from Python 3.11 on a traceback shows all five below it.

    Specification: Connection Monitoring and Pooling, "Connection Pool Errors".

    :param message: what happened, in the words of the specification; it is there as `message`, too.
    :param address: the address of the pool, as host and port.
    :param holders: a mapping for each.
    :param details: the rest of the text: the limits, and what the connections are in use for.
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
    """An option, or a combination of options, is wrong."""


class InsecureConnectionWarning(UserWarning):
    """The client is about to send a password or a token over a network without TLS. To refuse that, turn the warning
    into an error: ``warnings.simplefilter("error", InsecureConnectionWarning)``.
    """


class InvalidOption(ConfigurationError, ValueError):
    """The value of an option, or a combination of options, is not allowed."""


class InvalidOptionType(ConfigurationError, TypeError):
    """The value of an option has the wrong type."""


class InvalidURI(ConfigurationError):
    """A connection string could not be parsed, or its options contradict each other."""


class InvalidHost(InvalidURI, ValueError):
    """A host, or its port, is not well formed."""


class OperationFailure(PyMongoError):
    """The server replied with an error.

    :param error: what the server says.
    :param code: the error code of the reply; None if it has none.
    :param details: the whole reply; None is none.
    :param max_wire_version: the newest wire protocol version of the server; taken for the sake of PyMongo's programs.
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
        """The error code of the reply, if it has one."""
        return self._code

    @property
    def details(self) -> Document | None:
        """The whole reply, which may say more than the message."""
        return self._details

    @property
    def timeout(self) -> bool:
        return self._code == codes.MAX_TIME_MS_EXPIRED


class CursorNotFound(OperationFailure):
    """The server no longer knows the cursor: it timed out there, or was killed."""

    @property
    def timeout(self) -> bool:
        return False


class ExecutionTimeout(OperationFailure):
    """An operation ran out of the time given by ``max_time_ms``."""

    @property
    def timeout(self) -> bool:
        return True


class WriteConcernError(OperationFailure):
    """A write was done, but its write concern could not be met."""

    _topology_version: Document | None = None  # of the reply


class WriteError(OperationFailure):
    """A write was refused."""


class WTimeoutError(WriteConcernError):
    """The write concern was not met within ``wtimeout`` milliseconds."""

    @property
    def timeout(self) -> bool:
        return True


class DuplicateKeyError(WriteError):
    """A write would have broken a unique index."""


class BulkWriteError(OperationFailure):
    """Some writes of a bulk failed; `details` says which, and what was done.

    Specification: CRUD API, "Error Handling".

    :param results: ``writeErrors`` (each with ``index``, ``code``, ``errmsg`` and ``op``), ``writeConcernErrors`` and
        the counts of the whole bulk.
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
    :param verbose: whether verbose results were asked for; False by default.
    :param partial_result: what was done before the error; None, the default, if it is not known that anything was.
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
        """The error that ended the bulk as a whole, if there was one."""
        return self.details.get("error")

    @property
    def write_errors(self) -> list[Document]:
        """The errors of single writes."""
        return list(self.details.get("writeErrors", []))

    @property
    def write_concern_errors(self) -> list[Document]:
        """The write concern errors met on the way."""
        return list(self.details.get("writeConcernErrors", []))

    @property
    def partial_result(self) -> ClientBulkWriteResult | None:
        """What was done before the error; None if it is not known that anything was."""
        return self._partial_result

    @property
    def timeout(self) -> bool:
        if isinstance(self.error, PyMongoError) and self.error.timeout:
            return True
        return any(_is_write_timeout(error) for error in self.write_concern_errors)


class InvalidOperation(PyMongoError):
    """An operation was asked for that cannot be done in the present state."""


class InvalidName(PyMongoError):
    """A database or collection name is not allowed."""


class CollectionInvalid(PyMongoError):
    """A collection could not be created or validated."""


class DocumentTooLarge(InvalidDocument):
    """An encoded document is larger than the server takes."""


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
    """Creating an encrypted collection failed part of the way.

    :param cause: the exception behind it.
    :param encrypted_fields: the fields with the data keys that were made before the failure.
    """

    def __init__(self, cause: Exception, encrypted_fields: Document) -> None:
        super().__init__(cause)
        self._encrypted_fields = encrypted_fields

    @property
    def encrypted_fields(self) -> Document:
        """The fields with the data keys that were made before the failure."""
        return self._encrypted_fields


def _with_full_error(message: str, details: object) -> str:
    if details is None:
        return message
    message = printable(message)  # it is the server's
    try:
        return f"{message}, full error: {details}"
    except RecursionError:
        return f"{message}, full error: too deeply nested to be shown"


def _is_write_timeout(error: Document) -> bool:
    return error.get("code") == codes.WRITE_CONCERN_TIMEOUT or bool((error.get("errInfo") or {}).get("wtimeout"))
