"""Cursor types."""

from __future__ import annotations

__all__ = ["CursorType"]


class CursorType:
    """Cursor types, for `cursor_type` of :meth:`Collection.find <gmongo.collection.Collection.find>`."""

    NON_TAILABLE = 0
    """The server closes the cursor after the last document."""
    TAILABLE = 2
    """The cursor of a capped collection stays open. A later iteration returns new documents."""
    TAILABLE_AWAIT = 34
    """Like `TAILABLE`, but the server waits some time for new documents."""
    EXHAUST = 64
    """Like `NON_TAILABLE`, but the server sends all batches without further ``getMore`` commands. The cursor uses its
    own connection until its end. An early end closes the connection. The cursor cannot have a limit, and a mongos must
    have MongoDB 7.1 or later. In a transaction, the cursor is non-tailable."""
