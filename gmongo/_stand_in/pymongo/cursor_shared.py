"""Names of the private module ``pymongo.cursor_shared`` that libraries import."""

from __future__ import annotations

from gmongo.cursor import CursorType

__all__ = ["CursorType"]

_OPTION_NAMES = ("tailable_cursor", "secondary_okay", "oplog_replay", "no_timeout", "await_data", "exhaust", "partial")
_QUERY_OPTIONS = {option: 2 << bit for bit, option in enumerate(_OPTION_NAMES)}
