"""Functions that convert error replies to exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from gmongo import errors
from gmongo._documents import Document, DocumentDict
from gmongo._server_facts import codes
from gmongo.execution.operation import Operation
from gmongo.sdam.application_errors import is_state_change
from gmongo.wire.reply import has_builtin_types
from gmongo.wire.reply_schema import ERROR_SCHEMA, WRITE_CONCERN_ERROR_SCHEMA, check

_ERROR_CLASS_BY_CODE: dict[object, Callable[..., errors.OperationFailure]] = {
    codes.CURSOR_NOT_FOUND: errors.CursorNotFound,
    codes.MAX_TIME_MS_EXPIRED: errors.ExecutionTimeout,
    codes.DUPLICATE_KEY: errors.DuplicateKeyError,
    codes.DUPLICATE_KEY_IN_UPDATE: errors.DuplicateKeyError,
    codes.DUPLICATE_KEY_IN_CAPPED_COLLECTION: errors.DuplicateKeyError,
}


def error_of(
    reply: Document, max_wire_version: int | None = None, concern_first: bool = False
) -> errors.PyMongoError | None:
    """Return the exception for an error reply, or None for the reply to a successful command.

    Ignore write errors, because a bulk write may continue after a write error. Ignore a write concern
    error of a successful command, unless its code reports a state change of the server. In this case,
    return a WriteConcernError, because applications would repeat the executed write after a
    NotPrimaryError. With `concern_first`, a write concern error has priority over the error of the
    command.
    """
    check(reply, ERROR_SCHEMA)
    concern = reply.get("writeConcernError")
    if concern:
        check(concern, WRITE_CONCERN_ERROR_SCHEMA, "a writeConcernError")
    if reply.get("ok"):
        return _concern_error(reply) if concern and concern.get("code") in codes.STATE_CHANGE else None
    message = str(reply.get("errmsg") or reply.get("$err") or "command failed")
    code = reply.get("code")
    if is_state_change(reply):
        return errors.NotPrimaryError(message, reply)
    if concern and concern_first:
        return _concern_error(reply)
    kind = _ERROR_CLASS_BY_CODE.get(code, errors.OperationFailure)
    return kind(message, code, reply, max_wire_version)


def raise_error_of(reply: Document, max_wire_version: int | None, concern_first: bool) -> None:
    """Raise the exception of :func:`error_of`, if any."""
    error = error_of(reply, max_wire_version, concern_first)
    try:
        if error is not None:
            raise error
    finally:
        del error  # prevent a reference cycle between this frame and the error


def malformed_reply_error(failure: Exception, operation: Operation) -> Exception:
    """Return a ProtocolError, or `failure` if a custom type decoder may have raised `failure`."""
    traceback = failure.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    module_name = "" if traceback is None else str(traceback.tb_frame.f_globals.get("__name__"))
    if not module_name.startswith("gmongo.") and not has_builtin_types(operation.context.codec_options):
        return failure
    cause = f"{type(failure).__name__}: {failure}"
    error = errors.ProtocolError(f"the reply to {operation.name} cannot be read: {cause}")
    error.__cause__ = failure
    return error


def is_namespace_missing(error: errors.OperationFailure) -> bool:
    """Return True if a command failed because its collection does not exist."""
    return error.code == codes.NAMESPACE_NOT_FOUND or "ns not found" in str(error)


def raise_write_error(error: Document) -> NoReturn:
    """Raise the exception for one element of ``writeErrors``."""
    code = error.get("code")
    is_duplicate = _ERROR_CLASS_BY_CODE.get(code) is errors.DuplicateKeyError
    kind = errors.DuplicateKeyError if is_duplicate else errors.WriteError
    raise kind(error.get("errmsg", "write error"), code, error)


def labelled_concern_error(reply: Document) -> DocumentDict:
    """Return the ``writeConcernError`` document of a reply with the error labels of the reply."""
    labels = reply.get("errorLabels")
    return {**reply["writeConcernError"], **({"errorLabels": labels} if labels else {})}


def with_labels(error: errors.PyMongoError, outcome: Document) -> errors.PyMongoError:
    """Add the labels of all write concern errors of a bulk write to `error`, and return `error`."""
    for concern in outcome["writeConcernErrors"]:
        for label in concern.get("errorLabels", ()):
            error._add_error_label(label)
    return error


def raise_write_concern_error(reply: Document) -> None:
    """Raise the exception for the ``writeConcernError`` of a reply, if any."""
    if reply.get("writeConcernError"):
        raise _concern_error(reply)


def _concern_error(reply: Document) -> errors.WriteConcernError:
    error = reply["writeConcernError"]
    kind = errors.WTimeoutError if errors._is_write_timeout(error) else errors.WriteConcernError
    raised = kind(error.get("errmsg", "write concern error"), error.get("code"), labelled_concern_error(reply))
    raised._topology_version = reply.get("topologyVersion")
    return raised
