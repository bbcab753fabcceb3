"""Kinds of cursors."""

from __future__ import annotations

__all__ = ["CursorType"]


class CursorType:
    """What a cursor does at the end of its results."""

    NON_TAILABLE = 0
    """It closes."""
    TAILABLE = 2
    """On a capped collection, it stays open, and can be iterated again for what was added meanwhile."""
    TAILABLE_AWAIT = 34
    """As `TAILABLE`, and the server waits a while for something to be added."""
    EXHAUST = 64
    """It closes, but batches come without being asked for, as long as there are any."""
