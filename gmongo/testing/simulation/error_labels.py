"""The error labels that servers add to replies, and the error codes that determine the labels."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import Request

# The error codes after which a client may retry a write, a commit or an abort.
RETRYABLE_CODES = frozenset({6, 7, 89, 91, 134, 189, 262, 317, 365, 9001, 10107, 11600, 11602, 13435, 13436})
# The error codes for which a replica set member adds a topologyVersion to the reply.
NOT_PRIMARY_CODES = frozenset({189, 10107, 11602, 13435, 13436})
# The error codes after which a client may retry the whole transaction, even if the commit failed.
TRANSIENT_CODES = frozenset({24, 112, 246, 267, 13388})
# The error codes after which a client may resume a change stream.
RESUMABLE_CODES = frozenset({6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436})
_TRANSACTION_END_COMMANDS = frozenset({"commitTransaction", "abortTransaction"})
_NO_SUCH_TRANSACTION_CODE = 251
OVERLOAD_LABELS = ("SystemOverloadedError", "RetryableError")


def _is_transient(request: Request, code: int | None, write_concern_code: int | None) -> bool:
    if code is None or not request.in_transaction:
        return False
    if request.name in _TRANSACTION_END_COMMANDS:
        return code in TRANSIENT_CODES or (code == _NO_SUCH_TRANSACTION_CODE and write_concern_code is None)
    return code in TRANSIENT_CODES or code in RETRYABLE_CODES or code == _NO_SUCH_TRANSACTION_CODE


def _may_retry_write(request: Request, code: int | None, write_concern_code: int | None) -> bool:
    is_retryable_write = request.transaction_number is not None and not request.in_transaction
    if not is_retryable_write and request.name not in _TRANSACTION_END_COMMANDS:
        return False
    return code in RETRYABLE_CODES or write_concern_code in RETRYABLE_CODES


def add_labels(request: Request, reply: dict[str, Any], supports_retryable_label: bool) -> None:
    """Add error labels to the reply. Do nothing if the reply has error labels.

    :param supports_retryable_label: True if this version can add the label RetryableWriteError.
    """
    if "errorLabels" in reply:
        return
    code = None if reply.get("ok", 1) else reply.get("code")
    write_concern_code = (reply.get("writeConcernError") or {}).get("code")
    labels = ["TransientTransactionError"] if _is_transient(request, code, write_concern_code) else []
    if supports_retryable_label and _may_retry_write(request, code, write_concern_code):
        labels.append("RetryableWriteError")
    if labels:
        reply["errorLabels"] = labels
