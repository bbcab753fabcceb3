"""Position of a change stream, and the errors after which a change stream resumes. This module does no I/O."""

from __future__ import annotations

from bson.timestamp import Timestamp

from gmongo._documents import DocumentDict, Value, without_none
from gmongo._server_facts import codes, wire_versions
from gmongo._server_facts.labels import RESUMABLE_CHANGE_STREAM
from gmongo.errors import ConnectionFailure, NotPrimaryError, OperationFailure, ProtocolError, PyMongoError


def is_resumable(error: PyMongoError, wire_version: int) -> bool:
    """Return True if a change stream resumes after an error on a server with `wire_version`."""
    if isinstance(error, (OperationFailure, NotPrimaryError)):
        if error.code == codes.CURSOR_NOT_FOUND or error.has_error_label(RESUMABLE_CHANGE_STREAM):
            return True
        return wire_version < wire_versions.ERROR_LABELS and error.code in codes.RESUMABLE_CHANGE_STREAM
    return isinstance(error, (ConnectionFailure, ProtocolError))


class Position:
    """Position at which a change stream resumes. The application sets the initial position."""

    def __init__(self, resume_after: Value, start_after: Value, operation_time: Timestamp | None) -> None:
        start = {"resumeAfter": resume_after, "startAfter": start_after, "startAtOperationTime": operation_time}
        self._start_fields = without_none({}, **start)
        self._operation_time = operation_time
        self._starts_after = start_after is not None  # True from a start with startAfter until the first change
        self.token: Value = resume_after if start_after is None else start_after
        self.resuming = False

    def fields(self) -> DocumentDict:
        if not self.resuming:
            return self._start_fields
        if self.token is not None:
            return {"startAfter" if self._starts_after else "resumeAfter": self.token}
        if self._operation_time is not None:
            return {"startAtOperationTime": self._operation_time}
        return self._start_fields

    def after_open(self, has_changes: bool, batch_token: Value, operation_time: Timestamp | None) -> None:
        """Update the position after `aggregate`, whose first batch may contain changes."""
        self.resuming = True
        if has_changes:
            return
        if batch_token is not None:
            self.token = batch_token
        elif self._operation_time is None:
            self._operation_time = operation_time

    def after_empty_batch(self, batch_token: Value) -> None:
        if batch_token is not None:
            self.token = batch_token

    def after_change(self, token: Value) -> None:
        """Update the position. For a batch's last change, `token` is the ``postBatchResumeToken``."""
        self.token = token
        self._starts_after = False
