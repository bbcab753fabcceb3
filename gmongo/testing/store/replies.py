"""The replies that open a cursor, and the commands ``getMore`` and ``killCursors``."""

from __future__ import annotations

from bson.int64 import Int64

from gmongo.testing import clock
from gmongo.testing.command import CommandError, error
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.cursors import DEFAULT_BATCH_SIZE, Cursor, check_owner
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value, create_cursor_error
from gmongo.testing.store.values import to_long

DEFAULT_AWAIT_SECONDS = 1.0


def parse_batch_size(body: Document) -> int | None:
    """Return ``batchSize`` from a command or from its field ``cursor``. If missing, return None."""
    value = (body.get("cursor") or body).get("batchSize")
    return None if value is None else to_long(value)


def open_cursor(context: CommandContext, cursor: Cursor, size: int | None, is_single: bool = False) -> Document:
    """Return the reply with the first batch of a cursor. If results remain, open the cursor."""
    documents = cursor.read_batch(DEFAULT_BATCH_SIZE if size is None else size, context.pace)
    if is_single:
        cursor.finished = True
    if not cursor.finished:
        cursor.session = context.request.session
        if context.request.in_transaction:
            cursor.transaction = context.request.transaction_number
        cursor.command, cursor.snapshot = context.body, context.snapshot
        context.state.cursors.open(cursor, context.request.member)
    reply: Document = {"firstBatch": documents, **cursor.list_extras(), "id": Int64(cursor.id), "ns": cursor.namespace}
    if context.snapshot is not None:
        reply["atClusterTime"] = context.snapshot
    return {"cursor": reply}


def create_list_reply(context: CommandContext, cursor: Cursor) -> Document:
    """Return the reply to ``listCollections`` or ``listIndexes``, with a cursor's first batch."""
    reply = open_cursor(context, cursor, parse_batch_size(context.body))
    return {"cursor": {name: reply["cursor"][name] for name in ("id", "ns", "firstBatch")}}


def get_more(context: CommandContext) -> Document:
    """Execute ``getMore``."""
    body, state, request = context.body, context.state, context.request
    cursor = state.cursors.get(int(body["getMore"]), request.member)
    transaction_number = request.transaction_number if request.in_transaction else None
    check_owner(cursor, f"{context.database}.{body['collection']}", request.session, transaction_number)
    if cursor.is_lost:
        state.cursors.close(cursor.id)
        raise error(175, f"collection dropped. {cursor.namespace}")
    if "maxTimeMS" in body and not cursor.awaits and not request.in_transaction:
        raise bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor")
    size = parse_batch_size(body)
    cursor.in_use = True
    try:
        documents = _await_batch(context, cursor, size or None)
    except CommandError:
        state.cursors.close(cursor.id)
        raise
    finally:
        cursor.in_use = False
    if cursor.finished:
        state.cursors.close(cursor.id)
    cursor_id = 0 if cursor.finished else cursor.id
    reply = {"nextBatch": documents, **cursor.list_extras(), "id": Int64(cursor_id), "ns": cursor.namespace}
    if cursor.snapshot is not None:
        reply["atClusterTime"] = cursor.snapshot
    return {"cursor": reply}


def _await_batch(context: CommandContext, cursor: Cursor, size: int | None) -> list[Document]:
    """Return the next batch. If there are no results, an ``awaitData`` cursor waits up to ``maxTimeMS``."""
    time_limit = context.body.get("maxTimeMS")
    deadline = clock.monotonic() + (DEFAULT_AWAIT_SECONDS if time_limit is None else time_limit / 1000)
    documents = cursor.read_batch(size, context.pace)
    while cursor.awaits and not documents and not cursor.finished:
        remaining = deadline - clock.monotonic()
        if remaining <= 0:
            break
        context.state.wait(remaining)
        context.pace.check_killed()
        if not context.state.cursors.is_open(cursor):
            raise create_cursor_error(cursor.id)
        documents = cursor.read_batch(size, context.pace)
    return documents


def kill_cursors(context: CommandContext) -> Document:
    """Execute ``killCursors``."""
    ids = [cursor_id for cursor_id in context.body["cursors"] if cursor_id is not None]
    reply = context.state.cursors.kill(ids, f"{context.database}.{context.body['killCursors']}", context.request.member)
    context.state.wake()
    return reply
