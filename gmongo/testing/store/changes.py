"""Change streams: the stage ``$changeStream`` and its cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import bson
from bson.timestamp import Timestamp

from gmongo.testing.command import error
from gmongo.testing.store.change_events import EventConverter
from gmongo.testing.store.context import CommandContext, check_name, check_writable
from gmongo.testing.store.cursors import MAX_BATCH_BYTES, Cursor
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import illegal_operation, invalid_namespace, malformed
from gmongo.testing.store.oplog import AFTER_INVALIDATION, Event, Position, create_position_after, parse_token
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.selection import create_env
from gmongo.testing.store.stages import compile_pipeline, parse_stage
from gmongo.testing.store.state import State
from gmongo.testing.store.values import are_identical
from gmongo.testing.unsupported import not_supported

_SUPPORTED_OPTIONS = frozenset({
    "allChangesForCluster", "fullDocument", "fullDocumentBeforeChange", "resumeAfter", "showExpandedEvents",
    "startAfter", "startAtOperationTime"
})  # fmt: skip
_UNSUPPORTED_OPTIONS = frozenset(
    {"showMigrationEvents", "showRawUpdateDescription", "showSystemEvents", "matchCollectionUUIDForUpdateLookup"}
)
_FULL_DOCUMENT_MODES = ("default", "updateLookup", "whenAvailable", "required")
_BEFORE_CHANGE_MODES = ("off", "whenAvailable", "required")
_ALLOWED_STAGES = frozenset({"$addFields", "$match", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"})
_SPLIT_STAGE = "$changeStreamSplitLargeEvent"
_SYSTEM_DATABASES = frozenset({"admin", "config", "local"})
# The types of events that a stream shows only with the option showExpandedEvents.
_EXPANDED_KINDS = frozenset({"create", "createIndexes", "dropIndexes", "modify", "shardCollection"})
# The types of events that end a change stream, by the level of the stream.
_ENDING_KINDS = {
    "collection": frozenset({"drop", "rename"}), "database": frozenset({"dropDatabase"}), "cluster": frozenset()
}  # fmt: skip


@dataclass(frozen=True)
class Scope:
    """The scope of a change stream: one collection, one database or the whole deployment."""

    level: str  # `collection`, `database` or `cluster`
    database: str  # the name of the database of the `aggregate` command
    collection: str | None  # the name of the collection, or None if the level is not `collection`

    def covers(self, event: Event) -> bool:
        if self.level == "cluster":
            return event.database not in _SYSTEM_DATABASES
        if event.database != self.database:
            return False
        target = event.extra.get("to", {}).get("coll")
        return self.level == "database" or self.collection in (event.collection, target)

    def is_ended_by(self, event: Event) -> bool:
        return event.kind in _ENDING_KINDS[self.level]


def open_change_stream(context: CommandContext) -> ChangeStreamCursor:
    """Return the cursor of an ``aggregate`` whose first stage is ``$changeStream``."""
    if not context.state.has_oplog:
        raise error(40573, "The $changeStream stage is only supported on replica sets")
    level = (context.body.get("readConcern") or {}).get("level", "majority")
    if level != "majority":
        raise error(72, f"$changeStream cannot run with a readConcern other than 'majority'. "
                           f"Current readConcern: {{ level: \"{level}\" }}")  # fmt: skip
    first_stage, *pipeline = context.body["pipeline"]
    options = first_stage["$changeStream"]
    _check_options(options)
    for stage in pipeline:
        if set(stage) != {_SPLIT_STAGE} and parse_stage(stage) not in _ALLOWED_STAGES:
            raise illegal_operation(f"{parse_stage(stage)} is not permitted in a $changeStream pipeline")
    scope = _parse_scope(context, options)
    env = create_env(context.access, context.database, context.variables, context.collation(), Pace())
    run = compile_pipeline([stage for stage in pipeline if _SPLIT_STAGE not in stage], env)
    splits = any(_SPLIT_STAGE in stage for stage in pipeline)
    return ChangeStreamCursor(
        context.state, scope, options, splits, lambda document: next(iter(run([document], context.variables)), None)
    )


def _check_options(options: Any) -> None:
    if not isinstance(options, dict):
        raise malformed("$changeStream")
    for name in options:
        if name in _UNSUPPORTED_OPTIONS:
            raise not_supported("an internal option of $changeStream", name)
        if name not in _SUPPORTED_OPTIONS:
            raise error(40415, f"BSON field '$changeStream.{name}' is an unknown field.")
    start_options = {"resumeAfter", "startAfter", "startAtOperationTime"} & set(options)
    modes = options.get("fullDocument", "default"), options.get("fullDocumentBeforeChange", "off")
    if len(start_options) > 1 or modes[0] not in _FULL_DOCUMENT_MODES or modes[1] not in _BEFORE_CHANGE_MODES:
        raise malformed("$changeStream")


def _parse_scope(context: CommandContext, options: Document) -> Scope:
    target = context.body["aggregate"]
    if options.get("allChangesForCluster"):
        if target != 1 or context.database != "admin":
            raise malformed("$changeStream with allChangesForCluster")
        return Scope("cluster", "admin", None)
    if context.database in _SYSTEM_DATABASES:
        raise invalid_namespace(f"$changeStream may not be opened on the internal {context.database} database")
    if target == 1:
        return Scope("database", context.database, None)
    check_name(context.database, target)
    collection = context.collection()
    if collection is not None:
        check_writable(collection)
    return Scope("collection", context.database, target)


class ChangeStreamCursor(Cursor):
    """The cursor of a change stream. A ``getMore`` without results waits for events."""

    awaits = True

    def __init__(
        self, state: State, scope: Scope, options: Document, splits: bool, run: Callable[[Document], Document | None]
    ) -> None:
        name = "$cmd.aggregate" if scope.collection is None else scope.collection
        super().__init__(f"{scope.database}.{name}", [])
        self._state = state
        self._scope = scope
        self._shows_expanded_events = bool(options.get("showExpandedEvents"))
        self._converter = EventConverter(state, options)
        self._splits = splits
        self._run = run
        self._position = find_start_position(state, options)
        state.oplog.check(self._position)

    def list_extras(self) -> Document:
        return {"postBatchResumeToken": self._position.token()}

    def read_batch(self, limit: int | None, pace: Pace) -> list[Document]:
        documents: list[Document] = []
        # Compute the end position first, because other greenlets may add events during the loop.
        size, end_position = 0, create_position_after(self._state.now())
        for position, event in pace.iterate(self._find_pending_events()):
            document = self._create_document(position, event)
            if document is not None:
                size += len(bson.encode(document))
                if documents and size > MAX_BATCH_BYTES:
                    return documents
                documents.append(document)
            self._position = position
            if position.kind == AFTER_INVALIDATION:
                self.finished = True
                return documents
            if limit is not None and len(documents) >= limit:
                return documents
        self._position = max(self._position, end_position)
        return documents

    def _find_pending_events(self) -> Iterator[tuple[Position, Event]]:
        """Yield (position, event) pairs. An invalidation follows each event that ends the stream."""
        last_event = self._state.oplog.event_at(self._position)
        if last_event is not None and self._ends(last_event):
            yield self._create_invalidation(last_event)
        for event in self._state.oplog.after(self._position):
            yield event.position, event
            if self._ends(event):
                yield self._create_invalidation(event)

    def _ends(self, event: Event) -> bool:
        return self._scope.covers(event) and self._scope.is_ended_by(event)

    def _create_invalidation(self, event: Event) -> tuple[Position, Event]:
        return Position(event.position.time, event.position.order, AFTER_INVALIDATION), event

    def _create_document(self, position: Position, event: Event) -> Document | None:
        """Return the document for an event, or None if the stream does not show the event."""
        if position.kind == AFTER_INVALIDATION:
            document = self._converter.create_invalidation(position, event)
        elif not self._scope.covers(event) or (event.kind in _EXPANDED_KINDS and not self._shows_expanded_events):
            return None
        else:
            document = self._converter.create_document(position, event)
        result = self._run(document)
        if result is None:
            return None
        _check_token(document, result)
        self._check_size(result)
        return result

    def _check_size(self, document: Document) -> None:
        if len(bson.encode(document)) > MAX_BATCH_BYTES:
            if self._splits:
                raise not_supported("$changeStreamSplitLargeEvent of an event above 16 MB")
            raise error(10334, "the change event is larger than 16 MB")


def find_start_position(state: State, options: Document) -> Position:
    """Return the position in the oplog after which a change stream starts."""
    if "startAtOperationTime" in options:
        time = options["startAtOperationTime"]
        if not isinstance(time, Timestamp):
            raise malformed("$changeStream with startAtOperationTime")
        return Position(time, 0, -1)
    if "resumeAfter" in options:
        position = parse_token(options["resumeAfter"])
        if position.kind == AFTER_INVALIDATION:
            raise error(260, "Attempting to resume a change stream using 'resumeAfter' "
                               "is not allowed from an invalidate notification.")  # fmt: skip
        return position
    if "startAfter" in options:
        return parse_token(options["startAfter"])
    return create_position_after(state.now())


def _check_token(document: Document, result: Document) -> None:
    if not are_identical(result.get("_id"), document["_id"]):
        raise error(280, "Encountered an event whose _id field, which contains the resume token, was modified by the "
                    "pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that "
                    "point. Only transformations that retain the unmodified _id field are allowed.",
                    ["NonResumableChangeStreamError"])  # fmt: skip
