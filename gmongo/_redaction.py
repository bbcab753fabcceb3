"""Removal of secrets from error replies. Exceptions and logs show error replies, which may quote the request."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping

from gmongo._documents import Document

# Fields of an error reply that the driver reads, or that describe the error.
_KEPT_FIELDS = frozenset(
    {"ok", "code", "codeName", "errmsg", "$err", "errorLabels", "topologyVersion", "$clusterTime", "operationTime"}
)
_WORD_PATTERN = re.compile(r"[^\x00-\x20\x7f]+")
_MIN_LENGTH = 4  # a message may contain a shorter text by chance


def redacted(reply: Document, secrets: object, public: Collection[object] = ()) -> Document:
    """Return a copy of an error reply without unknown fields and without messages that quote secrets.

    Return a successful reply unchanged.

    :param secrets: the secrets that the driver sent: a string, bytes, or a container of strings and bytes.
    :param public: the values in `secrets` that a message may quote, such as the user name.
    """
    if reply.get("ok"):
        return reply
    redacted_reply = {field: value for field, value in reply.items() if field in _KEPT_FIELDS}
    texts = {text for text in _yield_quotable_forms(secrets) if len(text) >= _MIN_LENGTH and text not in public}
    for field in ("errmsg", "$err"):
        if any(text in str(redacted_reply.get(field, "")) for text in texts):
            redacted_reply[field] = "message withheld, because it quotes secret data"
    return redacted_reply


def _yield_quotable_forms(value: object) -> Iterator[str]:
    """Yield each form in which a message may quote a value. The forms of bytes are words, base64 and hexadecimal."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield from _WORD_PATTERN.findall(value.decode("utf-8", "ignore"))
        yield from (b64encode(value).decode(), value.hex(), value.hex().upper())
    elif isinstance(value, (Mapping, list, tuple)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _yield_quotable_forms(each)
