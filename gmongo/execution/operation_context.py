"""Namespace and options that an operation takes from its collection, database or client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._documents import Document, Value
from gmongo.sdam.selection import WRITABLE, Selector


@dataclass(slots=True)
class OperationContext:
    """Namespace and options of operations. All operations of an object share it, so it never changes.

    :param database: database name.
    :param collection: collection name; empty if there is none.
    :param codec_options: codec options for documents of the application.
    :param selector: server selector of reads: a read preference, or ``WRITABLE``.
    :param read_concern: read concern of operations that support one; None sends none.
    :param write_concern: write concern of operations that support one; None sends none.
    """

    database: str
    collection: str = ""
    codec_options: CodecOptions[Value] = DEFAULT_CODEC_OPTIONS
    selector: Selector = WRITABLE
    read_concern: Document | None = None
    write_concern: Document | None = None

    def replace(self, **changes: Any) -> OperationContext:
        """Return a copy with changed fields."""
        return replace(self, **changes)
