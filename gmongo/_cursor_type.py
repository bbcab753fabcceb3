"""Kinds of cursors."""

from __future__ import annotations

__all__ = ["CursorType"]


class CursorType:
    """What a cursor does at the end of the documents; for `cursor_type` of :meth:`Collection.find
    <gmongo.collection.Collection.find>`.
    """

    NON_TAILABLE = 0
    """It closes."""
    TAILABLE = 2
    """On a capped collection, it stays open, and can be iterated again for what has been added since."""
    TAILABLE_AWAIT = 34
    """As `TAILABLE`, and the server waits a while for something to be added."""
    EXHAUST = 64
    """As `NON_TAILABLE`: the server is asked for each batch all the same. It cannot have a limit."""
