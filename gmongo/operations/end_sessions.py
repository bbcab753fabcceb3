"""The commands that end sessions and transactions."""

from __future__ import annotations

from collections.abc import Iterator

import bson

from gmongo._documents import DocumentDict
from gmongo.cmap.hello import Hello
from gmongo.errors import PyMongoError
from gmongo.execution.operation import Operation, OperationContext
from gmongo.execution.reply_errors import raise_write_concern_error
from gmongo.execution.server_session import ServerSession
from gmongo.execution.transaction import Transaction
from gmongo.read_preferences import PrimaryPreferred
from gmongo.wire.address import Address

_MAX_IDS = 10_000
ANY_SERVER = PrimaryPreferred()
_CONTEXT = OperationContext("admin", selector=ANY_SERVER)


class EndSessions(Operation):
    """`endSessions` command, which ends at most 10,000 unused sessions."""

    name = "endSessions"
    takes_session = False
    retries_overload = False

    def __init__(self, ids: list[DocumentDict]) -> None:
        super().__init__(_CONTEXT)
        self.ids = ids

    @classmethod
    def batches(cls, ids: list[DocumentDict]) -> Iterator[EndSessions]:
        """Yield operations, each of which contains at most 10,000 session IDs."""
        for start in range(0, len(ids), _MAX_IDS):
            yield cls(ids[start : start + _MAX_IDS])

    def command(self, hello: Hello) -> DocumentDict:
        return {self.name: self.ids}


class KillSessions(EndSessions):
    """`killSessions` command, which ends the commands, cursors and transactions of sessions."""

    name = "killSessions"
    takes_max_time = False
    waits_for_server = False
    in_background = True

    def __init__(self, ids: list[DocumentDict], address: Address) -> None:
        super().__init__(ids)
        self.address = address


class _EndTransaction(Operation):
    """Base class of commands that end transactions. Retries do not depend on ``retryWrites``."""

    is_write = True
    takes_write_concern = True
    retryable = True
    ends_transaction = True

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @property
    def context(self) -> OperationContext:  # type: ignore[override]
        """The operation context, whose write concern may differ between the attempts."""
        return OperationContext("admin", write_concern=self._transaction.end_write_concern)

    def command(self, hello: Hello) -> DocumentDict:
        command: DocumentDict = {self.name: 1}
        if self._transaction.recovery_token is not None:
            command["recoveryToken"] = self._transaction.recovery_token
        return command

    def result(self, reply: DocumentDict, address: Address) -> None:
        raise_write_concern_error(reply)


class CommitTransaction(_EndTransaction):
    """`commitTransaction` command, which makes the writes of the transaction permanent."""

    name = "commitTransaction"

    def command(self, hello: Hello) -> DocumentDict:
        command = super().command(hello)
        limit = self._transaction.settings.max_commit_time_ms
        if limit is not None:
            command["maxTimeMS"] = limit
        return command

    def notify_transaction(self, transaction: Transaction, error: PyMongoError, overloaded: bool) -> None:
        transaction.record_failed_commit(error, overloaded)


class AbortTransaction(_EndTransaction):
    """`abortTransaction` command, which undoes the writes of the transaction."""

    name = "abortTransaction"

    def __init__(self, transaction: Transaction, in_background: bool) -> None:
        super().__init__(transaction)
        self.in_background = in_background

    def notify_transaction(self, transaction: Transaction, error: PyMongoError, overloaded: bool) -> None:
        # After an overload error, the retry needs the pinned connection.
        if not overloaded:
            transaction.unpin()


class AbortAgain(Operation):
    """`abortTransaction` command that the session reaper sends, possibly after a failed first abort.

    The command contains the session ID and the transaction number, because the session may have a
    newer transaction.
    """

    name = "abortTransaction"
    is_write = True
    takes_session = False
    takes_max_time = False
    takes_write_concern = True
    retries_overload = False
    waits_for_server = False
    in_background = True

    def __init__(self, transaction: Transaction, session: ServerSession) -> None:
        super().__init__(OperationContext("admin", write_concern=transaction.settings.write_concern))
        self.address = transaction.pinned_address
        self._fields: DocumentDict = {
            "lsid": session.lsid,
            "txnNumber": bson.Int64(session.transaction_number),
            "autocommit": False,
        }
        if transaction.recovery_token is not None:
            self._fields["recoveryToken"] = transaction.recovery_token

    def command(self, hello: Hello) -> DocumentDict:
        return {self.name: 1, **self._fields}
