"""The commands ``insert``, ``update`` and ``delete``, and the functions that execute one write of a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from gmongo._object_ids import new_object_id
from gmongo.testing.command import CommandError, error
from gmongo.testing.store.access import Access
from gmongo.testing.store.apply_update import Update
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import CommandContext, check_writable
from gmongo.testing.store.creation import create_measurement
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.differences import is_replacement_shorter
from gmongo.testing.store.errors import create_write_conflict, failed_to_parse
from gmongo.testing.store.matching import check_allowed, compile_filter
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.selection import Matches, select
from gmongo.testing.store.validation import check_document, check_document_rules, check_size, check_updated_names
from gmongo.testing.store.values import MISSING, Key, are_identical, copy_value

_FORBIDDEN_IN_UPSERTS = frozenset({"$expr"})
# The error codes after which even an unordered command executes no further statement.
FATAL_CODES = frozenset({50, 11602, 112, 246, 251, 73, 40323, 40324})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one write."""

    matched_count: int = 0  # the number of inserted, matched or removed documents
    modified_count: int = 0  # the number of modified documents
    # The `_id` of the document that an upsert inserted, or MISSING if no upsert inserted a document.
    upserted_id: Any = MISSING


_ONE_INSERTED = Outcome(1)


@dataclass
class Target:
    """The collection to which a command writes, and the options of the writes."""

    access: Access  # the access to the data
    collection: Collection | None  # the collection, or None if the collection does not exist
    create_collection: Callable[[], Collection]  # a function that creates the collection, and returns the collection
    bypasses_validation: bool  # the value of `bypassDocumentValidation`
    variables: Mapping[str, Any]  # the values of variables by name
    pace: Pace = field(default_factory=Pace)  # the pace of the command

    def ensure_collection(self) -> Collection:
        """Return the collection. Create a missing collection."""
        if self.collection is None:
            self.collection = self.create_collection()
        return self.collection


def create_target(context: CommandContext) -> Target:
    """Return the target of a command that writes to one collection."""
    collection = context.collection()
    return Target(
        context.access,
        collection,
        context.ensure_collection,
        bool(context.body.get("bypassDocumentValidation")),
        context.variables,
        context.pace,
    )


def insert_one(target: Target, document: Document) -> Outcome:
    """Insert a document. Add an ``_id`` if the document has no ``_id``."""
    check_document_rules(document, target.access.state.version)
    document = copy_value({"_id": document["_id"] if "_id" in document else new_object_id(), **document})
    check_size(document)
    collection = target.ensure_collection()
    if collection.kind == "timeseries":
        document = create_measurement(collection.options["timeseries"], document)
    check_document(collection, document, target.bypasses_validation)
    key, access = collection.key(document["_id"]), target.access
    while access.await_unlocked(collection, key, target.pace) or access.await_unlocked_entries(
        collection, document, None, target.pace
    ):
        pass  # repeat both checks, because during a wait another transaction may lock the record or the entries
    access.insert(collection, document)
    return _ONE_INSERTED


def find_records_to_write(target: Target, statement: Mapping[str, Any], variables: Mapping[str, Any]) -> Matches:
    """Return the records that match the query ``q``, with their keys. Wait until no transaction locks the records.

    If the statement has a ``sort``, return only the first record in this order.
    """
    collection, access = target.collection, target.access
    if collection is None:
        compile_filter(statement["q"], variables)  # a malformed query is an error even if the collection does not exist
        return ()
    collation, order, hint = _select_collation(statement, collection), statement.get("sort"), statement.get("hint")
    if not order:
        return select(access, collection, statement["q"], collation, variables, hint, target.pace, for_write=True)
    sort = compile_sort(order, collation, target.pace)

    def find_first() -> Matches:
        """Return at most one record, the first in sort order. Repeat the search if the record was changed or locked."""
        while True:
            records = select(access, collection, statement["q"], collation, variables, hint, target.pace)
            first_records = list(sort(records, lambda item: item[1].document))[:1]
            if all(_is_unlocked_and_unchanged(target, collection, key, record) for key, record in first_records):
                return first_records

    return find_first()


def _is_unlocked_and_unchanged(target: Target, collection: Collection, key: Key, record: Record) -> bool:
    """If a transaction has locked the record, wait. Return True if there was no wait and the record is unchanged."""
    has_waited = target.access.await_unlocked(collection, key, target.pace)
    return not has_waited and target.access.records(collection).get(key) is record


def update_matching(target: Target, statement: Mapping[str, Any]) -> Outcome:
    """Execute a statement of the command ``update``."""
    update = compile_update(statement, statement["u"], statement["q"], target.variables, target.collection)
    is_multi = bool(statement.get("multi"))
    if is_multi and update.is_replacement:
        raise failed_to_parse("multi update is not supported for replacement-style update")
    if is_multi and statement.get("sort"):
        raise failed_to_parse("Cannot specify sort with multi=true")
    matched_count = modified_count = 0
    for key, record in islice(find_records_to_write(target, statement, update.variables), None if is_multi else 1):
        matched_count += 1
        modified_count += update_one(target, update, key, record.document) is not record.document
    if not matched_count and statement.get("upsert"):
        return Outcome(1, 0, upsert(target, update)["_id"])
    return Outcome(matched_count, modified_count)


def _select_collation(statement: Mapping[str, Any], collection: Collection | None) -> Collation:
    spec = statement.get("collation")
    return Collation.from_spec(spec) if spec or collection is None else collection.collation


def compile_update(
    statement: Mapping[str, Any], spec: Any, query: Any, variables: Mapping[str, Any], collection: Collection | None
) -> Update:
    """Compile the update of a statement."""
    if statement.get("upsert"):
        check_allowed(query, _FORBIDDEN_IN_UPSERTS)
    constants = statement.get("c", statement.get("constants"))
    if constants and not isinstance(spec, list):
        raise error(51198, "Constant values may only be specified for pipeline updates")
    variables = {**variables, **(constants or {})}
    return Update(spec, query, variables, statement.get("arrayFilters"), _select_collation(statement, collection))


def update_one(target: Target, update: Update, key: Any, document: Document) -> Document:
    """Update one document, and return the new document. If nothing changes, return the object `document`."""
    updated = update.apply(document)
    if are_identical(updated, document) and not update.writes_always(document):
        return document
    check_document_rules(updated, target.access.state.version)
    check_updated_names(updated, target.access.state.version)
    check_size(updated)
    collection = target.ensure_collection()
    check_document(collection, updated, target.bypasses_validation, document)
    if target.access.await_unlocked_entries(collection, updated, document, target.pace):
        record = target.access.records(collection).get(key)
        if record is None or record.document is not document:
            raise create_write_conflict()
    is_replacement = update.is_replacement or (update.is_pipeline and is_replacement_shorter(document, updated))
    kind = "replace" if is_replacement else "update"
    whole_paths = update.find_whole_paths(document, updated)
    target.access.replace(collection, key, updated, kind, whole_paths)
    return updated


def upsert(target: Target, update: Update) -> Document:
    """Insert the new document of an upsert, and return the document."""
    document = update.create_upserted_document()
    insert_one(target, document)
    return document


def delete_matching(target: Target, statement: Mapping[str, Any]) -> Outcome:
    """Execute a statement of the command ``delete``."""
    variables = {**target.variables, **(statement.get("constants") or {})}
    removed_count = 0
    for key, _ in islice(find_records_to_write(target, statement, variables), 1 if statement.get("limit") else None):
        target.access.remove(target.ensure_collection(), key)
        removed_count += 1
    return Outcome(removed_count)


def insert(context: CommandContext) -> Document:
    """Execute ``insert``."""
    target = create_target(context)
    tally = run_statements(context, target, context.body["documents"], lambda document: insert_one(target, document))
    return tally.reply({"n": tally.matched_count})


def update(context: CommandContext) -> Document:
    """Execute ``update``."""
    target = create_target(context)
    statements = context.body["updates"]
    tally = run_statements(context, target, statements, lambda statement: update_matching(target, statement))
    reply = tally.reply({"n": tally.matched_count})
    if tally.upserted:
        reply["upserted"] = tally.upserted
    return {**reply, "nModified": tally.modified_count}


def delete(context: CommandContext) -> Document:
    """Execute ``delete``."""
    target = create_target(context)
    statements = context.body["deletes"]
    tally = run_statements(context, target, statements, lambda statement: delete_matching(target, statement))
    return tally.reply({"n": tally.matched_count})


@dataclass
class Tally:
    """The combined results of all statements of a command."""

    matched_count: int = 0
    modified_count: int = 0
    upserted: list[Document] = field(default_factory=list)
    errors: list[Document] = field(default_factory=list)

    def add(self, index: int, outcome: Outcome) -> None:
        self.matched_count += outcome.matched_count
        self.modified_count += outcome.modified_count
        if outcome.upserted_id is not MISSING:
            self.upserted.append({"index": index, "_id": outcome.upserted_id})

    def reply(self, counts: Document) -> Document:
        return {**counts, "writeErrors": self.errors} if self.errors else counts


def run_statements(
    context: CommandContext, target: Target, statements: Sequence[Any], run: Callable[[Any], Outcome]
) -> Tally:
    """Execute the statements in order. The first error ends an ordered command or a command in a transaction."""
    tally = Tally()
    context.pace.pause()
    for index, statement in enumerate(context.pace.iterate(statements)):
        try:
            if target.collection is not None:
                check_writable(target.collection)
            tally.add(index, run(statement))
        except CommandError as error:
            if error.code in FATAL_CODES or error.name == "CommandNotSupported":
                raise
            tally.errors.append({"index": index, "code": error.code, "errmsg": error.message, **error.fields})
            if context.body.get("ordered", True) or context.access.in_transaction:
                break
    return tally
