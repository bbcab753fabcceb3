"""Client bulk writes: batches that fit into a `bulkWrite` command, and the sum of the replies."""

from __future__ import annotations

from dataclasses import dataclass

from gmongo import errors
from gmongo._background import with_checkpoints
from gmongo._documents import Document, DocumentDict
from gmongo.engines.cursor_killer import CursorKiller
from gmongo.engines.server_cursor import ServerCursor
from gmongo.execution.executor import Executor
from gmongo.execution.operation import OperationContext
from gmongo.execution.operation_trace import OperationTrace
from gmongo.execution.reply_errors import labelled_concern_error, with_labels
from gmongo.execution.sessions import SessionHandle, end_if_implicit
from gmongo.operations.client_bulk import COUNT_FIELDS, USUAL_LIMITS, BulkWriteBatch, Write, Writes
from gmongo.operations.find import CursorReply
from gmongo.operations.write import check_validation_not_bypassed
from gmongo.results import ClientBulkWriteResult, DeleteResult, InsertOneResult, UpdateResult
from gmongo.wire.message import next_request_id

_PARTIAL_RESULT_FIELDS = ("anySuccessful", "writeErrors", "writeConcernErrors")
_RESULTS_FIELD_BY_KIND = {"insert": "insertResults", "update": "updateResults", "delete": "deleteResults"}


@dataclass(eq=False, repr=False)
class ClientBulk:
    """Client bulk write. Every command contains `fields`, the optional fields such as ``let``."""

    executor: Executor
    cursor_killer: CursorKiller
    context: OperationContext
    ordered: bool
    verbose: bool
    fields: Document
    acknowledged: bool
    session: SessionHandle | None
    _trace: OperationTrace | None = None

    def __post_init__(self) -> None:
        if not self.acknowledged:
            check_validation_not_bypassed(self.fields)
        self.fields = {"errorsOnly": not self.verbose, "ordered": self.ordered, **self.fields}
        self._deadline = self.executor.deadline()
        self._operation_id = next_request_id()
        self.outcome: DocumentDict = {
            "anySuccessful": False,
            "error": None,
            "writeErrors": [],
            "writeConcernErrors": [],
            **dict.fromkeys(COUNT_FIELDS, 0),
            **{name: {} for name in _RESULTS_FIELD_BY_KIND.values()},
        }

    def execute(self, writes: Writes) -> DocumentDict:
        """Run all writes, and return the sum of the replies, or raise ClientBulkWriteException."""
        with self.executor.operation_scope("bulkWrite", self.context, self.session) as self._trace:
            return self._execute(writes)

    def _execute(self, writes: Writes) -> DocumentDict:
        session = self.session
        if session is None and self.acknowledged:
            session = self.executor.implicit_session()
        try:
            self._run(writes, session)
        except Exception as error:
            has_results = any(self.outcome[name] for name in _PARTIAL_RESULT_FIELDS)
            if not (has_results or _is_server_error(error)):
                raise
            self.outcome["error"] = error
            raise self._create_exception(error) from error
        finally:
            end_if_implicit(session)
        if self.outcome["writeErrors"] or self.outcome["writeConcernErrors"]:
            raise self._create_exception(None)
        return self.outcome

    def _create_exception(self, error: Exception | None) -> errors.ClientBulkWriteException:
        self.outcome["writeErrors"].sort(key=lambda each: each["idx"])
        result = ClientBulkWriteResult(self.outcome, True, self.verbose) if self.outcome["anySuccessful"] else None
        failure = errors.ClientBulkWriteException(self.outcome, self.verbose, result)
        with_labels(failure, self.outcome)
        if isinstance(error, errors.PyMongoError):
            for label in error._error_labels:
                failure._add_error_label(label)
        return failure

    def _run(self, writes: Writes, session: SessionHandle | None) -> None:
        limits = USUAL_LIMITS
        while writes:
            batch = BulkWriteBatch(self.context, writes, self.fields, limits, self._operation_id, self.acknowledged)
            batch.trace = self._trace
            reply = self._run_batch(batch, session)
            limits = batch.limits
            if reply is not None:
                self._add_reply(batch, reply, session)
                if self.ordered and (self.outcome["writeErrors"] or reply.reply.get("nErrors")):
                    return

    def _run_batch(self, batch: BulkWriteBatch, session: SessionHandle | None) -> CursorReply | None:
        try:
            reply: CursorReply | None = self.executor.run(batch, session, self._deadline)
            return reply
        except errors.WriteConcernError:
            # The server executed the writes and sent the results, but is stepping down or shutting
            # down.
            assert batch.reply is not None
            cursor_reply: CursorReply = batch.result(batch.reply, ("", None))
            return cursor_reply._replace(cursor_id=0)

    def _add_reply(self, batch: BulkWriteBatch, cursor_reply: CursorReply, session: SessionHandle | None) -> None:
        outcome, reply = self.outcome, cursor_reply.reply
        for name in COUNT_FIELDS:
            outcome[name] += reply.get(name) or 0
        if reply.get("writeConcernError"):
            outcome["writeConcernErrors"].append(labelled_concern_error(reply))
        error_count = reply.get("nErrors") or 0
        if error_count == 0 or (not self.ordered and error_count < len(batch.batch_writes)):
            outcome["anySuccessful"] = True
        cursor = ServerCursor(
            self.executor, self.cursor_killer, cursor_reply, session, batch.decoding, deadline=self._deadline
        )
        try:
            self._read_results(batch, cursor)
        except BaseException as error:
            if isinstance(error, errors.PyMongoError) and error.timeout:
                cursor.drop()  # the time limit also covers the close of the cursor
            else:
                cursor.close_after_block(error)
            raise
        cursor.close()

    def _read_results(self, batch: BulkWriteBatch, cursor: ServerCursor) -> None:
        for result in with_checkpoints(iter(cursor.next_document, None)):
            batch.check_result(result)
            write = batch.batch_writes[result["idx"]]
            if result["ok"]:
                self._record_success(write, result)
                continue
            if result["idx"] > 0:
                self.outcome["anySuccessful"] = self.outcome["anySuccessful"] or self.ordered
            self.outcome["writeErrors"].append({**result, "idx": write.index, "op": write.document})

    def _record_success(self, write: Write, result: DocumentDict) -> None:
        result["idx"] = write.index
        write_result: InsertOneResult | UpdateResult | DeleteResult
        if write.kind == "insert":
            write_result = InsertOneResult(write.inserted_id, True)
        elif write.kind == "update":
            write_result = UpdateResult(result, True, in_client_bulk=True)
        else:
            write_result = DeleteResult(result, True)
        self.outcome[_RESULTS_FIELD_BY_KIND[write.kind]][write.index] = write_result


def _is_server_error(error: Exception) -> bool:
    """Return True if the server sent the error, or the connection failed after server selection."""
    if isinstance(error, errors.ServerSelectionTimeoutError):
        return False
    return isinstance(error, (errors.OperationFailure, errors.ConnectionFailure))
