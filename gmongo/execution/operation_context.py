"""Namespace and options that an operation takes from its collection, database or client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._documents import Document, Value
from gmongo.sdam.selection import WRITABLE, Selector


@dataclass(slots=True)
class OperationContext:
    """Namespace and options of operations. All operations of a collection share one context, which never changes.

    :param database: database name.
    :param collection: collection name; empty for a database or a client.
    :param codec_options: codec options for the documents of the application.
    :param selector: server selector of reads: a read preference, or ``WRITABLE``.
    :param read_concern: read concern for operations that take one; None uses the server's default.
    :param write_concern: write concern for operations that take one; None uses the server's default.
    """

    database: str
    collection: str = ""
    codec_options: CodecOptions[Value] = DEFAULT_CODEC_OPTIONS
    selector: Selector = WRITABLE
    read_concern: Document | None = None
    write_concern: Document | None = None

    def replace(self, **changes: Any) -> OperationContext:
        return replace(self, **changes)
