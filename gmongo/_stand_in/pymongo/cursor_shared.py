"""Names of the private module ``pymongo.cursor_shared`` that libraries import."""

from __future__ import annotations

from gmongo.cursor import CursorType

__all__ = ["CursorType"]

_QUERY_OPTIONS = {
    "tailable_cursor": 2,
    "secondary_okay": 4,
    "oplog_replay": 8,
    "no_timeout": 16,
    "await_data": 32,
    "exhaust": 64,
    "partial": 128,
}
