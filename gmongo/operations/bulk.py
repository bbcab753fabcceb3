"""Bulk writes on one collection: runs of equal statements, batches of what fits one message, and the sum of replies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bson.codec_options import CodecOptions

from gmongo.background import in_turns
from gmongo.errors import BulkWriteError, OperationFailure
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import Session
from gmongo.operations.models import (
    DeleteMany,
    DeleteOne,
    InsertOne,
    ReplaceOne,
    UpdateMany,
    UpdateOne,
)
from gmongo.operations.write import (
    Statements,
    WriteBatch,
    delete_statement,
    insertable,
    update_statement,
)
from gmongo.wire.message import next_request_id

_Statement = tuple[str, Mapping[str, Any], bool]  # kind, element of the command, whether it may be tried again


def statement_of(model: Any) -> _Statement:
    """A write model as an element of a command.

    :raises TypeError: it is not a write model.
    """
    if isinstance(model, InsertOne):
        insertable(model.document)
        return "insert", model.document, True
    if isinstance(model, (DeleteOne, DeleteMany)):
        one = isinstance(model, DeleteOne)
        element = delete_statement(model.filter, limit=int(one), collation=model.collation, hint=model.hint)
        return "delete", element, one
    if isinstance(model, (UpdateOne, UpdateMany, ReplaceOne)):
        return "update", _update_of(model), not isinstance(model, UpdateMany)
    raise TypeError(f"{model!r} is not a valid request: bulk_write takes InsertOne, UpdateOne, DeleteOne, ...")


def _update_of(model: UpdateOne | UpdateMany | ReplaceOne[Any]) -> dict[str, Any]:
    replaces = isinstance(model, ReplaceOne)
    return update_statement(
        model.filter,
        model.replacement if isinstance(model, ReplaceOne) else model.update,
        multi=isinstance(model, UpdateMany),
        upsert=bool(model.upsert),
        collation=model.collation,
        array_filters=None if replaces else getattr(model, "array_filters", None),
        hint=model.hint,
        sort=getattr(model, "sort", None),
    )


class _Run:
    """Statements of one kind that follow each other, and where each stood in the request."""

    __slots__ = ("elements", "indexes", "kind", "retryable")

    def __init__(self) -> None:
        self.kind = ""
        self.elements: list[Mapping[str, Any]] = []
        self.indexes: list[int] = []
        self.retryable = True

    def add(self, index: int, kind: str, element: Mapping[str, Any], retryable: bool) -> None:
        self.kind = kind
        self.elements.append(element)
        self.indexes.append(index)
        self.retryable = self.retryable and retryable


def inserts(documents: list[Any]) -> list[_Run]:
    """The one run that inserts documents."""
    run = _Run()
    run.kind = "insert"
    run.elements = documents
    run.indexes = list(range(len(documents)))
    return [run]


def runs_of(statements: Iterable[_Statement], ordered: bool) -> Iterator[_Run]:
    """In order, a run for each change of kind; unordered, one for each kind."""
    if not ordered:
        by_kind: dict[str, _Run] = defaultdict(_Run)
        for index, (kind, element, retryable) in enumerate(in_turns(statements)):
            by_kind[kind].add(index, kind, element, retryable)
        yield from by_kind.values()
        return
    run: _Run | None = None
    for index, (kind, element, retryable) in enumerate(in_turns(statements)):
        if run is None or run.kind != kind:
            if run is not None:
                yield run
            run = _Run()
        run.add(index, kind, element, retryable)
    if run is not None:
        yield run


class Bulk:
    """One bulk write.

    :param fields: further fields of every command, such as ``let`` and ``comment``.
    """

    def __init__(
        self,
        database: str,
        collection: str,
        codec_options: CodecOptions[Any],
        *,
        ordered: bool,
        fields: Mapping[str, Any],
        write_concern: Mapping[str, Any] | None,
        acknowledged: bool,
    ) -> None:
        if not acknowledged and "bypassDocumentValidation" in fields:
            raise OperationFailure("Cannot set bypass_document_validation with unacknowledged write concern")
        self._database = database
        self._collection = collection
        self._codec_options = codec_options
        self._ordered = ordered
        self._fields = {"ordered": ordered, **fields}
        self._write_concern = write_concern
        self._acknowledged = acknowledged
        self._operation_id = next_request_id()
        self.outcome: dict[str, Any] = {
            "writeErrors": [],
            "writeConcernErrors": [],
            "nInserted": 0,
            "nUpserted": 0,
            "nMatched": 0,
            "nModified": 0,
            "nRemoved": 0,
            "upserted": [],
        }

    def execute(self, executor: Executor, runs: Iterable[_Run], session: Session | None) -> dict[str, Any]:
        """Write everything; returns the sum of the replies.

        :raises BulkWriteError: a write failed, or a write concern was not met.
        """
        implicit = executor.implicit_session() if session is None and self._acknowledged else None
        deadline = executor.deadline()
        try:
            for run in runs:
                self._write(executor, run, session or implicit, deadline)
                if self._ordered and self.outcome["writeErrors"]:
                    break
        finally:
            if implicit is not None:
                implicit.end_implicit()
        if self.outcome["writeErrors"] or self.outcome["writeConcernErrors"]:
            self.outcome["writeErrors"].sort(key=lambda error: error["index"])
            raise BulkWriteError(self.outcome)
        return self.outcome

    def _write(self, executor: Executor, run: _Run, session: Session | None, deadline: float | None) -> None:
        """Write one run, batch by batch."""
        statements = Statements(run.kind, run.elements, self._codec_options, self._acknowledged)
        done = 0
        while done < len(run.elements):
            batch = WriteBatch(
                self._database,
                self._collection,
                statements,
                self._fields,
                self._codec_options,
                acknowledged=self._acknowledged,
                retryable=run.retryable,
            )
            batch.operation_id = self._operation_id
            batch.write_concern = self._write_concern
            reply = executor.run(batch, session, deadline)
            if self._acknowledged:
                self._add(run, batch, done, reply)
            done += len(batch.taken)
            batch.let_go()
            if self._ordered and self.outcome["writeErrors"]:
                return

    def _add(self, run: _Run, batch: WriteBatch, offset: int, reply: Mapping[str, Any]) -> None:
        """Add the reply to one batch to the sum."""
        outcome, n = self.outcome, reply.get("n") or 0
        if run.kind == "insert":
            outcome["nInserted"] += n
        elif run.kind == "delete":
            outcome["nRemoved"] += n
        else:
            upserted = [{**each, "index": run.indexes[offset + each["index"]]} for each in reply.get("upserted") or ()]
            outcome["upserted"] += upserted
            outcome["nUpserted"] += len(upserted)
            outcome["nMatched"] += n - len(upserted)
            outcome["nModified"] += reply.get("nModified") or 0
        for error in reply.get("writeErrors") or ():
            index = run.indexes[offset + error["index"]]
            outcome["writeErrors"].append({**error, "index": index, "op": batch.taken[error["index"]]})
        if reply.get("writeConcernError"):
            outcome["writeConcernErrors"].append(reply["writeConcernError"])
