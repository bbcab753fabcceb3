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
    """As `NON_TAILABLE`, but the server sends one batch after the other without being asked for each. The cursor has a
    connection of its own until its end; one that is left early costs that connection. It cannot have a limit, and a
    mongos has to be of MongoDB 7.1 or later. In a transaction it is an ordinary cursor."""
