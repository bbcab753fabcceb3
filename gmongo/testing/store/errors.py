"""The errors that a server answers with, each made in one place."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import CommandError

TRANSIENT = "TransientTransactionError"

# Errors that end a command wherever it is, and come from no part of it.
INTERRUPTIONS = frozenset({50, 112, 115, 189, 246, 251, 10107, 11600, 11601, 11602, 13435, 13436})


def bad_value(message: str) -> CommandError:
    """A value that no command takes."""
    return CommandError(2, "BadValue", message)


def failed_to_parse(message: str) -> CommandError:
    """A document that cannot be read as what it should be."""
    return CommandError(9, "FailedToParse", message)


def type_mismatch(message: str) -> CommandError:
    """A value of the wrong type."""
    return CommandError(14, "TypeMismatch", message)


def illegal_operation(message: str) -> CommandError:
    """What this kind of deployment or collection does not allow."""
    return CommandError(20, "IllegalOperation", message)


def namespace_not_found(message: str) -> CommandError:
    """A collection that does not exist."""
    return CommandError(26, "NamespaceNotFound", message)


def index_not_found(message: str) -> CommandError:
    """An index that does not exist."""
    return CommandError(27, "IndexNotFound", message)


def cannot_create(message: str) -> CommandError:
    """An index that no collection can have."""
    return CommandError(67, "CannotCreateIndex", message)


def invalid_options(message: str) -> CommandError:
    """Options that do not go together, or not with the command."""
    return CommandError(72, "InvalidOptions", message)


def invalid_namespace(message: str) -> CommandError:
    """A name that no collection can have."""
    return CommandError(73, "InvalidNamespace", message)


def query_feature_not_allowed(message: str) -> CommandError:
    """A part of a query that it cannot have where it is used."""
    return CommandError(224, "QueryFeatureNotAllowed", message)


def immutable_field(message: str) -> CommandError:
    """An update of ``_id``."""
    return CommandError(66, "ImmutableField", message)


def write_conflict() -> CommandError:
    """Another transaction or session is writing, or has written, the same document."""
    message = "Write conflict during plan execution and yielding is disabled. Please retry your operation."
    return CommandError(112, "WriteConflict", message)


def no_such_transaction(message: str) -> CommandError:
    """A transaction that never was, or was aborted."""
    return CommandError(251, "NoSuchTransaction", message, [TRANSIENT])


def transaction_too_old(message: str) -> CommandError:
    """A transaction number below one that the session has used."""
    return CommandError(225, "TransactionTooOld", message)


def cursor_not_found(cursor_id: int) -> CommandError:
    """A cursor that never was, was killed, or has come to its end."""
    return CommandError(43, "CursorNotFound", f"cursor id {cursor_id} not found")


def location(code: int, message: str, **fields: Any) -> CommandError:
    """An error that the server knows by number only."""
    return CommandError(code, f"Location{code}", message, **fields)
