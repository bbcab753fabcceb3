"""The replies that open a cursor, and the command that reads on."""

from __future__ import annotations

from typing import Any

from bson.int64 import Int64

from gmongo.testing import clock
from gmongo.testing.command import CommandError
from gmongo.testing.store.context import Context
from gmongo.testing.store.cursors import DEFAULT_BATCH, Cursor, check_owner
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value, cursor_not_found, invalid_namespace, location, type_mismatch
from gmongo.testing.store.values import is_number, long_of, type_name

AWAIT_SECONDS = 1.0


def batch_size(value: Any, name: str = "batchSize") -> int | None:
    """A batch size as commands give it.

    :raises CommandError: if it is negative.
    """
    if value is None:
        return None
    if not is_number(value):
        raise type_mismatch(f"BSON field '{name}' is the wrong type '{type_name(value)}'")
    if long_of(value) < 0:
        raise location(51024, f"BSON field '{name}' value must be >= 0, actual value '{value}'")
    return long_of(value)


def first_reply(context: Context, cursor: Cursor, size: int | None, single: bool = False) -> Document:
    """The first batch; the cursor stays open if there is more."""
    documents = cursor.batch(DEFAULT_BATCH if size is None else size, context.pace)
    if single:
        cursor.finished = True
    if not cursor.finished:
        cursor.session = context.request.session
        if context.request.in_transaction:
            cursor.transaction = context.request.transaction_number
        cursor.command, cursor.snapshot = context.body, context.snapshot
        context.state.cursors.open(cursor, context.request.member)
    reply: Document = {"firstBatch": documents, **cursor.extras(), "id": Int64(cursor.id), "ns": cursor.namespace}
    if context.snapshot is not None:
        reply["atClusterTime"] = context.snapshot
    return {"cursor": reply}


def listing_reply(context: Context, cursor: Cursor) -> Document:
    """Return the first batch of ``listCollections`` or ``listIndexes``."""
    reply = first_reply(context, cursor, batch_size((context.body.get("cursor") or {}).get("batchSize")))
    return {"cursor": {name: reply["cursor"][name] for name in ("id", "ns", "firstBatch")}}


def get_more(context: Context) -> Document:
    """``getMore``."""
    body, state, request = context.body, context.state, context.request
    if not isinstance(body["getMore"], int) or not isinstance(body["collection"], str):
        raise type_mismatch("BSON field 'getMore.getMore' must be a long, and 'getMore.collection' a string")
    if not body["collection"]:
        raise invalid_namespace("Collection names cannot be empty")
    cursor = state.cursors.get(int(body["getMore"]), request.member)
    number = request.transaction_number if request.in_transaction else None
    check_owner(cursor, f"{context.database}.{body['collection']}", request.session, number)
    if cursor.is_lost:
        state.cursors.close(cursor)
        raise CommandError(175, "QueryPlanKilled", f"collection dropped. {cursor.namespace}")
    if "maxTimeMS" in body and not cursor.awaits and not request.in_transaction:
        raise bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor")
    size = batch_size(body.get("batchSize"))
    cursor.in_use = True
    try:
        documents = _batch(context, cursor, size or None)
    except CommandError:
        state.cursors.close(cursor)
        raise
    finally:
        cursor.in_use = False
    if cursor.finished:
        state.cursors.close(cursor)
    cursor_id = 0 if cursor.finished else cursor.id
    reply = {"nextBatch": documents, **cursor.extras(), "id": Int64(cursor_id), "ns": cursor.namespace}
    if cursor.snapshot is not None:
        reply["atClusterTime"] = cursor.snapshot
    return {"cursor": reply}


def _batch(context: Context, cursor: Cursor, size: int | None) -> list[Document]:
    """The next batch; a cursor that awaits data waits for some."""
    limit = context.body.get("maxTimeMS")
    deadline = clock.monotonic() + (AWAIT_SECONDS if limit is None else limit / 1000)
    documents = cursor.batch(size, context.pace)
    while cursor.awaits and not documents and not cursor.finished:
        left = deadline - clock.monotonic()
        if left <= 0:
            break
        context.state.wait(left)
        context.pace.check_killed()
        if not context.state.cursors.is_open(cursor):
            raise cursor_not_found(cursor.id)
        documents = cursor.batch(size, context.pace)
    return documents


def kill_cursors(context: Context) -> Document:
    """``killCursors``."""
    ids = context.body["cursors"]
    if not all(isinstance(one, Int64) for one in ids):
        raise type_mismatch("BSON field 'killCursors.cursors' must be an array of longs")
    reply = context.state.cursors.kill(ids, f"{context.database}.{context.body['killCursors']}", context.request.member)
    context.state.wake()
    return reply
