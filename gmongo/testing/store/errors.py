"""Functions that return the errors of the store. Each error is a ``CommandError``."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.unsupported import not_supported

TRANSIENT = "TransientTransactionError"


def bad_value(message: str) -> CommandError:
    """Return the error of an invalid value."""
    return CommandError(2, "BadValue", message)


def failed_to_parse(message: str) -> CommandError:
    """Return the error of a malformed document."""
    return CommandError(9, "FailedToParse", message)


def type_mismatch(message: str) -> CommandError:
    """Return the error of a value with a wrong type."""
    return CommandError(14, "TypeMismatch", message)


def illegal_operation(message: str) -> CommandError:
    """Return the error of an operation that the deployment or collection does not allow."""
    return CommandError(20, "IllegalOperation", message)


def namespace_not_found(message: str) -> CommandError:
    """Return the error of a missing collection."""
    return CommandError(26, "NamespaceNotFound", message)


def index_not_found(message: str) -> CommandError:
    """Return the error of a missing index."""
    return CommandError(27, "IndexNotFound", message)


def cannot_create(message: str) -> CommandError:
    """Return the error of an invalid index."""
    return CommandError(67, "CannotCreateIndex", message)


def invalid_options(message: str) -> CommandError:
    """Return the error of conflicting options."""
    return CommandError(72, "InvalidOptions", message)


def invalid_namespace(message: str) -> CommandError:
    """Return the error of an invalid collection name."""
    return CommandError(73, "InvalidNamespace", message)


def query_feature_not_allowed(message: str) -> CommandError:
    """Return the error of a query operator that is not allowed in its context."""
    return CommandError(224, "QueryFeatureNotAllowed", message)


def immutable_field(message: str) -> CommandError:
    """Return the error of an update that would change ``_id``."""
    return CommandError(66, "ImmutableField", message)


def write_conflict() -> CommandError:
    """Return the error of a write to a document that a concurrent transaction has written."""
    message = "Write conflict during plan execution and yielding is disabled. Please retry your operation."
    return CommandError(112, "WriteConflict", message)


def no_such_transaction(message: str) -> CommandError:
    """Return the error of an unknown or aborted transaction."""
    return CommandError(251, "NoSuchTransaction", message, [TRANSIENT])


def transaction_too_old(message: str) -> CommandError:
    """Return the error of a transaction number below the last number of the session."""
    return CommandError(225, "TransactionTooOld", message)


def cursor_not_found(cursor_id: int) -> CommandError:
    """Return the error of an unknown, killed or finished cursor."""
    return CommandError(43, "CursorNotFound", f"cursor id {cursor_id} not found")


def location(code: int, message: str, **fields: Any) -> CommandError:
    """Return an error whose code has no name. The name in the reply is ``Location`` and the code."""
    return CommandError(code, f"Location{code}", message, **fields)


def failed_expression(detail: str) -> CommandError:
    """Return the refusal of an expression that is malformed or fails."""
    return not_supported("an error of an expression", detail)


def malformed(detail: str) -> CommandError:
    """Return the refusal of a malformed part of a command."""
    return not_supported("a malformed part of a command", detail)
