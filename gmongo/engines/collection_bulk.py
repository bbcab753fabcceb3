"""Collection bulk writes: group statements by command, send batches, and add up the replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from gmongo._background import with_checkpoints
from gmongo._documents import Document, DocumentDict, Value
from gmongo._truncated_repr import short
from gmongo.errors import BulkWriteError, WriteConcernError
from gmongo.execution.executor import Executor
from gmongo.execution.operation import OperationContext
from gmongo.execution.operation_trace import OperationTrace
from gmongo.execution.reply_errors import labelled_concern_error, with_labels
from gmongo.execution.sessions import SessionHandle, checked_session, end_if_implicit
from gmongo.operations import models, write
from gmongo.wire.message import next_request_id

# A tuple: the command name, a statement of the command, and True if the write is retryable.
_Statement = tuple[str, Document, bool]


def statement_of(model: object) -> _Statement:
    """Return a tuple for a write model: the command name, the statement, and True if retryable."""
    if isinstance(model, models.InsertOne):
        models.check_is_mapping("document", model.document)
        write.ensure_id(model.document)
        return "insert", model.document, True
    if isinstance(model, (models.DeleteOne, models.DeleteMany)):
        limit = int(isinstance(model, models.DeleteOne))
        statement = write.delete_statement(model.filter, limit=limit, collation=model.collation, hint=model.hint)
        return "delete", statement, limit == 1
    if isinstance(model, (models.UpdateOne, models.UpdateMany, models.ReplaceOne)):
        statement = write.update_statement(
            model.filter,
            models.checked_change(model),
            multi=isinstance(model, models.UpdateMany),
            upsert=bool(model.upsert),
            collation=model.collation,
            array_filters=getattr(model, "array_filters", None),
            hint=model.hint,
            sort=getattr(model, "sort", None),
        )
        return "update", statement, not isinstance(model, models.UpdateMany)
    raise TypeError(f"{short(model)} is not a valid request: bulk_write takes InsertOne, UpdateOne, DeleteOne, ...")


@dataclass(eq=False, repr=False)
class _Run:
    """Statements for one kind of command, with the index of each statement in the request list."""

    kind: str
    statements: list[Document] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    retryable: bool = True

    def add(self, index: int, statement: Document, retryable: bool) -> None:
        self.statements.append(statement)
        self.indexes.append(index)
        self.retryable = self.retryable and retryable


def create_insert_run(documents: list[Value]) -> _Run:
    """Return the only run of an `insert_many` operation."""
    return _Run("insert", documents, list(range(len(documents))))


def yield_runs(statements: Iterable[_Statement], ordered: bool) -> Iterator[_Run]:
    """Yield runs of consecutive statements of one kind. If not `ordered`, yield one run per kind."""
    numbered = enumerate(with_checkpoints(statements))
    if not ordered:
        by_kind = {kind: _Run(kind) for kind in ("insert", "update", "delete")}
        for index, (kind, statement, retryable) in numbered:
            by_kind[kind].add(index, statement, retryable)
        yield from by_kind.values()  # the driver sends no command for an empty run
        return
    for kind, group in groupby(numbered, lambda each: each[1][0]):
        run = _Run(kind)
        for index, (_kind, statement, retryable) in group:
            run.add(index, statement, retryable)
        yield run


class Bulk:
    """Bulk write of a collection. Observers receive the operation name `name`."""

    def __init__(
        self, context: OperationContext, *, name: str, ordered: bool, fields: Document, acknowledged: bool
    ) -> None:
        if not acknowledged:
            write.check_validation_not_bypassed(fields)
        self._context = context
        self._name = name
        self._trace: OperationTrace | None = None
        self._ordered = ordered
        self._fields = {"ordered": ordered, **fields}
        # Servers reject `let` in an insert command, because an insert evaluates no expressions.
        self._insert_fields = {name: value for name, value in self._fields.items() if name != "let"}
        self._acknowledged = acknowledged
        # Ordered writes end at the first error. Therefore, with w=0, each command needs a reply,
        # except a command that contains only the last statement.
        self._needs_replies = acknowledged or ordered
        self._operation_id = next_request_id()
        self._interrupted = False
        self._unacknowledged_fields: dict[str, set[str]] = {}
        self.outcome: DocumentDict = {
            "writeErrors": [],
            "writeConcernErrors": [],
            **dict.fromkeys(("nInserted", "nUpserted", "nMatched", "nModified", "nRemoved"), 0),
            "upserted": [],
        }

    def execute(self, executor: Executor, runs: Iterable[_Run], session: SessionHandle | None) -> DocumentDict:
        """Run all writes, and return the sum of the replies, or {} for unacknowledged writes."""
        with executor.operation_scope(self._name, self._context, session) as self._trace:
            return self._execute(executor, runs, session)

    def _execute(self, executor: Executor, runs: Iterable[_Run], session: SessionHandle | None) -> DocumentDict:
        implicit = executor.implicit_session() if checked_session(session) is None and self._acknowledged else None
        deadline = executor.deadline()
        runs = list(runs)
        if not self._acknowledged:
            self._unacknowledged_fields = self._collect_field_names(runs)
        try:
            for number, run in enumerate(runs, 1):
                if self._is_stopped:
                    break
                self._write(executor, run, session or implicit, deadline, is_last=number == len(runs))
        finally:
            end_if_implicit(implicit)
        if not self._acknowledged:
            return {}
        if self.outcome["writeErrors"] or self.outcome["writeConcernErrors"]:
            self.outcome["writeErrors"].sort(key=lambda error: error["index"])
            raise with_labels(BulkWriteError(self.outcome), self.outcome)
        return self.outcome

    def _collect_field_names(self, runs: Iterable[_Run]) -> dict[str, set[str]]:
        """Return the field names of all commands and statements, keyed by command name."""
        field_names: dict[str, set[str]] = {}
        for run in runs:
            if run.kind == "insert":
                field_names["insert"] = set(self._insert_fields)
            else:
                field_names.setdefault(run.kind, set(self._fields)).update(*run.statements)
        return field_names

    @property
    def _is_stopped(self) -> bool:
        """True if the driver sends no further batch, because a write or a retry failed."""
        return self._interrupted or (self._ordered and bool(self.outcome["writeErrors"]))

    def _write(
        self, executor: Executor, run: _Run, session: SessionHandle | None, deadline: float | None, is_last: bool
    ) -> None:
        """Send the statements of a run in batches. `is_last` is True for the last run."""
        statements = write.Statements(run.kind, run.statements, self._context.codec_options)
        offset, count = 0, len(run.statements)
        while offset < count:
            needs_reply = self._needs_replies and (self._acknowledged or not is_last or offset + 1 < count)
            statements.has_reply = needs_reply
            batch = write.WriteBatch(
                self._context,
                statements,
                self._fields if run.kind != "insert" else self._insert_fields,
                acknowledged=needs_reply,
                retryable=run.retryable and self._acknowledged,
                takes_session=self._acknowledged,
                operation_id=self._operation_id,
                unacknowledged_fields=self._unacknowledged_fields,
            )
            batch.trace = self._trace
            reply = self._run_batch(batch, executor, session, deadline)
            if needs_reply:
                self._add_reply(run, batch, offset, reply)
            offset += len(batch.batch_statements)
            batch.free()
            if self._is_stopped:
                return

    def _run_batch(
        self, batch: write.WriteBatch, executor: Executor, session: SessionHandle | None, deadline: float | None
    ) -> Document:
        try:
            reply: Document = executor.run(batch, session, deadline)
        except WriteConcernError:
            assert batch.reply is not None  # the reply that reports the error
            # The server executed the writes, but is stepping down. For retryable writes, the error
            # comes from the retry, and the driver sends no further batch.
            self._interrupted = batch.transaction_number is not None
            return batch.reply
        return reply

    def _add_reply(self, run: _Run, batch: write.WriteBatch, offset: int, reply: Document) -> None:
        outcome, count = self.outcome, reply.get("n") or 0
        if run.kind == "insert":
            outcome["nInserted"] += count
        elif run.kind == "delete":
            outcome["nRemoved"] += count
        else:
            upserted = [{**each, "index": run.indexes[offset + each["index"]]} for each in reply.get("upserted") or ()]
            outcome["upserted"] += upserted
            outcome["nUpserted"] += len(upserted)
            outcome["nMatched"] += count - len(upserted)
            outcome["nModified"] += reply.get("nModified") or 0
        for error in reply.get("writeErrors") or ():
            index = run.indexes[offset + error["index"]]
            outcome["writeErrors"].append({**error, "index": index, "op": batch.batch_statements[error["index"]]})
        if reply.get("writeConcernError"):
            outcome["writeConcernErrors"].append(labelled_concern_error(reply))
