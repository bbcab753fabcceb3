"""Refusals that quote what they refuse: a reply becomes an error, which is shown and logged; secrets must not be."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping

from gmongo._documents import Document

# What the driver reads, and what it says of an error.
_KEPT = frozenset(
    {"ok", "code", "codeName", "errmsg", "$err", "errorLabels", "topologyVersion", "$clusterTime", "operationTime"}
)
_WORD = re.compile(r"[^\x00-\x20\x7f]+")
_SHORTEST = 4  # what is shorter is in any text


def without_quotes(reply: Document, sent: object, names: Collection[object] = ()) -> Document:
    """A reply to show in an error. Of a refusal it has only the fields that the driver reads, and of these no text of
    the server's that quotes what was sent.

    :param sent: what must not be seen: a string, bytes, or anything that holds such.
    :param names: what may be, nevertheless.
    """
    if reply.get("ok"):
        return reply
    shown = {field: value for field, value in reply.items() if field in _KEPT}
    texts = {text for text in _texts(sent) if len(text) >= _SHORTEST and text not in names}
    for field in ("errmsg", "$err"):
        if any(text in str(shown.get(field, "")) for text in texts):
            shown[field] = "refused, in words that quote what is secret"
    return shown


def _texts(value: object) -> Iterator[str]:
    """As what it may be quoted: bytes in part, in base64 or in hexadecimal."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield from _WORD.findall(value.decode("utf-8", "ignore"))
        yield from (b64encode(value).decode(), value.hex(), value.hex().upper())
    elif isinstance(value, (Mapping, list, tuple)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
