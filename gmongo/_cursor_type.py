"""Cursor types."""

from __future__ import annotations

__all__ = ["CursorType"]


class CursorType:
    """Values of the parameter `cursor_type` of :meth:`Collection.find <gmongo.collection.Collection.find>`."""

    NON_TAILABLE = 0
    """The server closes the cursor after the last document."""
    TAILABLE = 2
    """The cursor of a capped collection stays open after the last document. A later iteration returns new documents."""
    TAILABLE_AWAIT = 34
    """Like `TAILABLE`, but the server waits for new documents before it returns an empty batch."""
    EXHAUST = 64
    """Like `NON_TAILABLE`, but the server sends all batches without further ``getMore`` commands. The cursor uses its
    own connection until the last batch. If the application closes the cursor before the last batch, the driver closes
    the connection. The cursor cannot have a limit. A mongos must have MongoDB 7.1 or later. In a transaction, the
    driver uses `NON_TAILABLE` instead."""
