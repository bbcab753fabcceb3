"""Bulk writes on several collections: batches of what fits one `bulkWrite` command, and the sum of their replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bson

from gmongo._background import LongWork
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.cmap.shape import COUNT, DOCUMENT, ERROR, check, is_document, unexpected
from gmongo.errors import (
    ClientBulkWriteException,
    ConnectionFailure,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.execution.classify import labelled_concern_error, with_labels
from gmongo.execution.context import OperationContext
from gmongo.execution.executor import Executor
from gmongo.execution.operation import required
from gmongo.execution.sessions import SessionHandle, end_if_implicit
from gmongo.operations.client_writes import USUAL_LIMITS, Limits, Write, Writes, check_size
from gmongo.operations.find import CursorOperation, CursorReply
from gmongo.operations.reaper import CursorReaper
from gmongo.operations.server_cursor import ServerCursor
from gmongo.results import ClientBulkWriteResult, DeleteResult, InsertOneResult, UpdateResult
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, encode_op_msg, next_request_id

_COUNTS = ("nInserted", "nUpserted", "nMatched", "nModified", "nDeleted")
_SUM = {
    **dict.fromkeys((*_COUNTS, "nErrors"), COUNT),
    "writeConcernError": DOCUMENT,
}
_ONE = {
    **dict.fromkeys(("idx", "n", "nModified"), COUNT),
    **{name: ERROR[name] for name in ("ok", "code", "errmsg")},
    "upserted": DOCUMENT,
}
_RESULTS = {"insert": "insertResults", "update": "updateResults", "delete": "deleteResults"}


class BulkWriteBatch(CursorOperation):
    """One `bulkWrite` command, with as many operations as fit. Its reply is a cursor over their results.

    :param writes: to take from.
    :param fields: of the command, such as ``ordered``.
    :param limits: what is supposed to fit, before a connection tells.
    """

    name = "bulkWrite"
    is_write = True
    takes_write_concern = True

    def __init__(
        self,
        context: OperationContext,
        writes: Writes,
        fields: Mapping[str, Any],
        limits: Limits,
        operation_id: int,
        acknowledged: bool = True,
    ) -> None:
        # Counts and indexes are the server's, so they are not decoded into anything of the user's.
        super().__init__(context.replace(codec_options=context.codec_options.with_options(document_class=dict)))
        self.acknowledged = acknowledged
        self.operation_id = operation_id
        self.limits = limits
        self.reply: dict[str, Any] | None = None
        self._writes = writes
        self._fields: dict[str, Any] = {"bulkWrite": 1, **fields}
        self._size = len(bson.encode(self._fields, False, self.context.codec_options))
        self._fitted = False
        self.taken = writes.take(limits, self._size)
        # The server cannot tell a second try of one that writes several documents.
        self.retryable = not any(write.multi for write in self.taken)
        self._namespaces: list[str] = []

    def command(self, hello: Hello) -> dict[str, Any]:
        """Build the command.

        :raises InvalidOperation: the server is too old for it.
        :raises DocumentTooLarge: not even one operation fits.
        """
        if hello.max_wire_version < wire_versions.CLIENT_BULK_WRITE:
            raise InvalidOperation("MongoClient.bulk_write requires MongoDB server version 8.0+.")
        if not self._fitted:
            self._fit(
                Limits(hello.max_write_batch_size, hello.max_message_size, hello.max_bson_size, hello.max_batch_size)
            )
        return dict(self._fields)

    def _fit(self, limits: Limits) -> None:
        """Take what fits for this very server, and number the namespaces. A second try sends the same again."""
        if not self.taken or any(now < before for now, before in zip(limits, self.limits, strict=True)):
            self._writes.give_back(self.taken)
            self.taken = self._writes.take(limits, self._size)
        self.limits = limits
        if not self.taken:
            raise self._writes.refuse_next(limits)
        numbers: dict[str, int] = {}
        work = LongWork()
        for write in self.taken:
            if not self.acknowledged:
                check_size(write, limits, self.context.codec_options)
            write.refer_to(numbers.setdefault(write.namespace, len(numbers)))
            work.checkpoint()
        self._namespaces = list(numbers)
        self._fitted = True

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        operations = [write.encoded for write in self.taken]
        namespaces = [bson.encode(each) for each in self._namespace_documents()]
        return encode_op_msg(request_id, flags, body, (("ops", operations), ("nsInfo", namespaces)))

    def _namespace_documents(self) -> list[dict[str, Any]]:
        return [{"ns": namespace} for namespace in self._namespaces]

    def for_monitoring(self, command: dict[str, Any]) -> dict[str, Any]:
        return {**command, "ops": [write.document for write in self.taken], "nsInfo": self._namespace_documents()}

    def decode(self, body: Buffer) -> dict[str, Any]:
        reply = super().decode(body)
        if reply.get("ok"):
            self.reply = reply  # which a second try that fails does not take back
        return reply

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        check(reply, _SUM)
        opened = super().result(reply, address)
        if isinstance(opened.batch, list):
            for each in opened.batch:
                self.check_one(each)
        return opened

    def check_one(self, result: Any) -> None:
        """Refuse what is not the result of one of the operations.

        :raises ProtocolError: it is not.
        """
        if not is_document(result):
            raise unexpected("an element of a cursor", "a document", result)
        check(result, _ONE, "a result")
        index = required(result, "idx", _ONE["idx"])
        required(result, "ok", _ONE["ok"])
        if index >= len(self.taken):
            raise unexpected("idx of a result", f"from 0 to {len(self.taken) - 1}", index)

    def unacknowledged_result(self) -> None:
        return None


class ClientBulk:
    """One bulk write of a client.

    :param fields: of every command, such as ``let`` and ``comment``.
    :param session: of the application's, if any.
    """

    def __init__(
        self,
        executor: Executor,
        reaper: CursorReaper,
        context: OperationContext,
        *,
        ordered: bool,
        verbose: bool,
        fields: Mapping[str, Any],
        acknowledged: bool,
        session: SessionHandle | None,
    ) -> None:
        self._executor = executor
        self._reaper = reaper
        self._context = context
        self._ordered = ordered
        self._verbose = verbose
        self._fields = {"errorsOnly": not verbose, "ordered": ordered, **fields}
        self._acknowledged = acknowledged
        self._given = session
        self._deadline = executor.deadline()
        self._operation_id = next_request_id()
        self.outcome: dict[str, Any] = {
            "anySuccessful": False,
            "error": None,
            "writeErrors": [],
            "writeConcernErrors": [],
            **dict.fromkeys(_COUNTS, 0),
            **{name: {} for name in _RESULTS.values()},
        }

    def execute(self, writes: Writes) -> dict[str, Any]:
        """Write everything; returns the sum of the replies.

        :raises ClientBulkWriteException: a write failed, a write concern was not met, or the server or the network
            failed.
        """
        session = self._given
        if session is None and self._acknowledged:
            session = self._executor.implicit_session()
        try:
            self._run(writes, session)
        except Exception as error:
            if not (self._has_news or _is_of_server(error)):
                raise
            self.outcome["error"] = error
            raise self._failure(error) from error
        finally:
            end_if_implicit(session)
        if self.outcome["writeErrors"] or self.outcome["writeConcernErrors"]:
            raise self._failure(None)
        return self.outcome

    @property
    def _has_news(self) -> bool:
        outcome = self.outcome
        return bool(outcome["anySuccessful"] or outcome["writeErrors"] or outcome["writeConcernErrors"])

    def _failure(self, error: Exception | None) -> ClientBulkWriteException:
        self.outcome["writeErrors"].sort(key=lambda each: each["idx"])
        done = ClientBulkWriteResult(self.outcome, True, self._verbose) if self.outcome["anySuccessful"] else None
        failure = ClientBulkWriteException(self.outcome, self._verbose, done)
        with_labels(failure, self.outcome)
        if isinstance(error, PyMongoError):
            for label in error._error_labels:
                failure._add_error_label(label)
        return failure

    def _run(self, writes: Writes, session: SessionHandle | None) -> None:
        limits = USUAL_LIMITS
        while writes:
            batch = BulkWriteBatch(self._context, writes, self._fields, limits, self._operation_id, self._acknowledged)
            reply = self._reply_to(batch, session)
            limits = batch.limits
            if reply is not None:
                self._add(batch, reply, session)
                if self._ordered and self.outcome["writeErrors"]:
                    return

    def _reply_to(self, batch: BulkWriteBatch, session: SessionHandle | None) -> CursorReply | None:
        try:
            return self._executor.run(batch, session, self._deadline)
        except WriteConcernError:
            # The server is stepping down or shutting down, but the writes were done.
            if batch.reply is None:
                raise
            opened: CursorReply = batch.result(batch.reply, ("", None))
            return opened._replace(cursor_id=0)

    def _add(self, batch: BulkWriteBatch, opened: CursorReply, session: SessionHandle | None) -> None:
        """Add the reply to one batch to the sum."""
        outcome, reply = self.outcome, opened.reply
        for name in _COUNTS:
            outcome[name] += reply.get(name) or 0
        if reply.get("writeConcernError"):
            outcome["writeConcernErrors"].append(labelled_concern_error(reply))
        failed = reply.get("nErrors") or 0
        if failed == 0 or (not self._ordered and failed < len(batch.taken)):
            outcome["anySuccessful"] = True
        cursor = ServerCursor(self._executor, self._reaper, opened, session, batch.decoding, deadline=self._deadline)
        try:
            self._drain(batch, cursor)
        finally:
            cursor.close()

    def _drain(self, batch: BulkWriteBatch, cursor: ServerCursor) -> None:
        """Read the results of single operations."""
        work = LongWork()
        while True:
            work.checkpoint()
            try:
                result = cursor.next_document()
            except StopIteration:
                return
            batch.check_one(result)
            write = batch.taken[result["idx"]]
            if result["ok"]:
                self._succeeded(write, result)
                continue
            if result["idx"] > 0:
                self.outcome["anySuccessful"] = self.outcome["anySuccessful"] or self._ordered
            self.outcome["writeErrors"].append({**result, "idx": write.index, "op": write.document})
            if self._ordered:
                return

    def _succeeded(self, write: Write, result: dict[str, Any]) -> None:
        if not self._verbose:
            return
        result["idx"] = write.index
        each: InsertOneResult | UpdateResult | DeleteResult
        if write.kind == "insert":
            each = InsertOneResult(write.inserted_id, True)
        elif write.kind == "update":
            each = UpdateResult(result, True, in_client_bulk=True)
        else:
            each = DeleteResult(result, True)
        self.outcome[_RESULTS[write.kind]][write.index] = each


def _is_of_server(error: Exception) -> bool:
    """Whether the server replied with the error, or the connection to it failed, once a server had been found."""
    return isinstance(error, (OperationFailure, ConnectionFailure)) and not isinstance(
        error, ServerSelectionTimeoutError
    )
