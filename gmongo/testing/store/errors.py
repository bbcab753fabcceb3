"""Functions that return the errors of the store. Each error is a ``CommandError``."""

from __future__ import annotations

from functools import partial

from gmongo.testing.command import CommandError, error
from gmongo.testing.unsupported import not_supported

TRANSIENT_LABEL = "TransientTransactionError"

bad_value = partial(error, 2)  # an invalid value
failed_to_parse = partial(error, 9)  # a command or document that a server cannot parse
type_mismatch = partial(error, 14)  # a value with a wrong type
illegal_operation = partial(error, 20)  # an operation that the deployment or collection forbids
namespace_not_found = partial(error, 26)  # a missing collection
index_not_found = partial(error, 27)
immutable_field = partial(error, 66)  # an update that would change `_id`
cannot_create = partial(error, 67)  # an invalid index
invalid_options = partial(error, 72)  # invalid or conflicting options
invalid_namespace = partial(error, 73)  # an invalid collection name
no_such_transaction = partial(error, 251, labels=[TRANSIENT_LABEL])  # an unknown or aborted transaction
transaction_too_old = partial(error, 225)  # a transaction number below the last number of the session


def create_write_conflict() -> CommandError:
    """Return the error of a write that conflicts with a concurrent write."""
    return error(112, "Write conflict during plan execution and yielding is disabled. Please retry your operation.")


def failed_expression(detail: str) -> CommandError:
    """Return the error of an expression that is malformed or fails."""
    return not_supported("a malformed or failing expression", detail)


def malformed(detail: str) -> CommandError:
    """Return the error of a malformed part of a command."""
    return not_supported("a malformed part of a command", detail)


def create_cursor_error(cursor_id: int) -> CommandError:
    """Return the error of an unknown, killed or finished cursor."""
    return error(43, f"cursor id {cursor_id} not found")
