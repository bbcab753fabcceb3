"""Names of indexes, and the conversion of index descriptions for the application."""

from __future__ import annotations

from collections.abc import Iterable

from gmongo._documents import Document, DocumentDict
from gmongo.execution.operation import required_field
from gmongo.operations.keys import KeyOrList, index_name
from gmongo.wire.reply_schema import DOCUMENT, DOCUMENTS, TEXT, unexpected


def name_of(index_or_name: str | KeyOrList) -> str:
    """Return an index name unchanged, or the default index name for the keys of an index."""
    return index_or_name if isinstance(index_or_name, str) else index_name(index_or_name, "index_or_name")


def created_index_names(reply: Document, count: int) -> list[str]:
    """Return the index names in the reply to ``createSearchIndexes`` for `count` indexes."""
    created_indexes = required_field(reply, "indexesCreated", DOCUMENTS)
    if len(created_indexes) != count:
        raise unexpected("indexesCreated of a reply", f"a list of {count} documents", created_indexes)
    return [required_field(each, "name", TEXT, "an index of a reply") for each in created_indexes]


def index_information(index_documents: Iterable[Document]) -> dict[str, DocumentDict]:
    """Return index options by index name, with ``key`` as a list of ``(field, direction)`` pairs."""
    indexes: dict[str, DocumentDict] = {}
    for index in index_documents:
        options = dict(index)
        options["key"] = list(required_field(index, "key", DOCUMENT).items())
        indexes[required_field(index, "name", TEXT)] = options
        del options["name"]
    return indexes
