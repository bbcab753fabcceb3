"""What an operation takes from the collection, database or client that it is called on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._documents import Document, Value
from gmongo.sdam.selection import WRITABLE, Selector


@dataclass(slots=True)
class OperationContext:
    """The namespace and the options of operations. One serves all operations of an object, so it is never changed.

    :param database: the name of the database.
    :param collection: the name of the collection; empty if there is none.
    :param codec_options: how the user's documents are encoded and decoded.
    :param selector: which servers suit reads: a read preference, or ``WRITABLE``.
    :param read_concern: for those operations that take one; None sends none.
    :param write_concern: for those operations that take one; None sends none.
    """

    database: str
    collection: str = ""
    codec_options: CodecOptions[Value] = DEFAULT_CODEC_OPTIONS
    selector: Selector = WRITABLE
    read_concern: Document | None = None
    write_concern: Document | None = None

    def replace(self, **changes: Any) -> OperationContext:
        """The same but for these fields."""
        return replace(self, **changes)
