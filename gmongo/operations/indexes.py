"""Indexes: from what people write to names, and from what the server lists to what people read."""

from __future__ import annotations

from collections.abc import Iterable

from gmongo._documents import Document, DocumentDict
from gmongo.execution.operation import required
from gmongo.operations.keys import KeyOrList, index_name
from gmongo.wire.reply_schema import DOCUMENT, DOCUMENTS, TEXT, unexpected


def name_of(index_or_name: str | KeyOrList) -> str:
    """The name of an index that is given by its name or its keys."""
    return index_or_name if isinstance(index_or_name, str) else index_name(index_or_name, "index_or_name")


def names_created(reply: Document, count: int) -> list[str]:
    """The names in the reply to ``createSearchIndexes``.

    :param count: how many indexes were asked for.
    :raises ProtocolError: it does not name so many.
    """
    created = required(reply, "indexesCreated", DOCUMENTS)
    if len(created) != count:
        raise unexpected("indexesCreated of a reply", f"a list of {count} documents", created)
    return [required(each, "name", TEXT, "an index of a reply") for each in created]


def information(listed: Iterable[Document]) -> dict[str, DocumentDict]:
    """What ``listIndexes`` returns, by name, with the keys as lists of pairs."""
    found: dict[str, DocumentDict] = {}
    for index in listed:
        options = dict(index)
        options["key"] = list(required(index, "key", DOCUMENT).items())
        found[required(index, "name", TEXT)] = options
        del options["name"]
    return found
