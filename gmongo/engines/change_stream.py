"""Change streams: where one stands, and which errors it outlives.

Nothing here does I/O; :mod:`gmongo.change_stream` does.
"""

from __future__ import annotations

from bson.timestamp import Timestamp

from gmongo._documents import DocumentDict, Value
from gmongo._server_facts import codes, wire_versions
from gmongo._server_facts.labels import RESUMABLE_CHANGE_STREAM
from gmongo.errors import ConnectionFailure, NotPrimaryError, OperationFailure, ProtocolError, PyMongoError


def is_resumable(error: PyMongoError, wire_version: int) -> bool:
    """Whether a change stream goes on after a `getMore` has failed.

    :param wire_version: of the connection that was used.
    """
    if isinstance(error, (OperationFailure, NotPrimaryError)):
        if error.code == codes.CURSOR_NOT_FOUND or error.has_error_label(RESUMABLE_CHANGE_STREAM):
            return True
        return wire_version < wire_versions.ERROR_LABELS and error.code in codes.RESUMABLE_CHANGE_STREAM
    return isinstance(error, (ConnectionFailure, ProtocolError))


class Position:
    """Where a change stream stands, and so where it has to go on when it is resumed.

    :param resume_after: the token that the application gave.
    :param start_after: the same, for a stream that may begin after an invalidation.
    :param operation_time: the time that the application gave.
    """

    __slots__ = ("_given", "_operation_time", "_starts_after", "resuming", "token")

    def __init__(self, resume_after: Value, start_after: Value, operation_time: Timestamp | None) -> None:
        given = {"resumeAfter": resume_after, "startAfter": start_after, "startAtOperationTime": operation_time}
        self._given = {name: value for name, value in given.items() if value is not None}
        self._operation_time = operation_time
        self._starts_after = start_after is not None  # until the first change
        self.token: Value = resume_after if start_after is None else start_after
        self.resuming = False

    def fields(self) -> DocumentDict:
        """The fields of ``$changeStream`` that say where to begin."""
        if not self.resuming:
            return self._given
        if self.token is not None:
            return {"startAfter" if self._starts_after else "resumeAfter": self.token}
        if self._operation_time is not None:
            return {"startAtOperationTime": self._operation_time}
        return self._given

    def opened(self, has_changes: bool, batch_token: Value, operation_time: Timestamp | None) -> None:
        """The server has replied to the `aggregate`.

        :param batch_token: the ``postBatchResumeToken`` of the reply, if any.
        :param operation_time: of the reply, if any.
        """
        self.resuming = True
        if has_changes:
            return
        if batch_token is not None:
            self.token = batch_token
        elif self._operation_time is None:
            self._operation_time = operation_time

    def saw_nothing(self, batch_token: Value) -> None:
        """A batch was empty."""
        if batch_token is not None:
            self.token = batch_token

    def delivered(self, token: Value) -> None:
        """A change is handed out.

        :param token: its own, or that of the batch if it is the last one.
        """
        self.token = token
        self._starts_after = False
