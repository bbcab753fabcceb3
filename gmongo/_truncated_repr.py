"""Truncated texts of values. The formatting of a whole large document would block the event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from reprlib import Repr

from bson.raw_bson import RawBSONDocument

from gmongo._documents import Value

_MAX_DEPTH = 100  # maximum number of nested levels, as in MongoDB. The copy is recursive.
_MAX_RAW_SIZE = 64 * 1024  # bytes of a raw document. The first access to a field decodes all fields.
_MIN_TRUNCATED_LENGTH = 64  # a UUID is shorter, and remains complete
_MAX_BITS = 200  # maximum number of bits of an integer whose digits are shown


def document_text(document: Value, length: int) -> str:
    """Return the beginning of a document as relaxed Extended JSON, with at most `length` characters.

    Read only the fields that the text shows. For a raw document above 64 KiB, the text shows only the size in bytes.
    """
    from bson import json_util  # imported here, because the import of gmongo does not need json_util

    try:
        return json_util.dumps(_DocumentPrefix(length).copy(document))[:length]
    except Exception as error:  # a custom type raises an error, or a batch from a server is malformed
        return f"(cannot be shown: {type(error).__name__})"[:length]


class _DocumentPrefix:
    """Object that copies a document until the text of the copy has `length` characters."""

    def __init__(self, length: int) -> None:
        self._missing_length = length  # number of missing characters, without closing brackets
        self._depth = 0

    def copy(self, value: Value) -> Value:
        self._missing_length -= 1  # the text of any value has at least one character
        if isinstance(value, (str, bytes)):
            return self._shorten(value)
        if isinstance(value, RawBSONDocument) and len(value.raw) > _MAX_RAW_SIZE:
            return f"({len(value.raw)} bytes of BSON)"
        if hasattr(value, "as_doc"):  # a DBRef
            value = value.as_doc()
        if hasattr(value, "items") or hasattr(value, "__iter__"):
            return self._copy_container(value) if self._depth < _MAX_DEPTH else f"(more than {_MAX_DEPTH} levels)"
        return value

    def _copy_container(self, value: Value) -> Value:
        self._depth += 1
        try:
            if hasattr(value, "items"):
                items = self._yield_until_long_enough(value.items())
                return {self._shorten(str(name)): self.copy(each) for name, each in items}
            return [self.copy(each) for each in self._yield_until_long_enough(value)]
        finally:
            self._depth -= 1

    def _yield_until_long_enough(self, values: Iterable[Value]) -> Iterator[Value]:
        if self._missing_length > 0:
            for each in values:
                yield each
                if self._missing_length <= 0:
                    return

    def _shorten(self, value: Value) -> Value:
        """Truncate a long string or long bytes to a length that is a multiple of 3, so that base64 adds no padding."""
        max_length = max(self._missing_length, _MIN_TRUNCATED_LENGTH) // 3 * 3 + 3
        self._missing_length -= len(value)
        if len(value) <= max_length:
            return value
        return type(value)(value[:max_length])


class _ValueRepr(Repr):
    """Variant of `reprlib.Repr` that does not sort a large container, and does not format all of its items."""

    def repr_dict(self, x: Mapping[Value, Value], level: int) -> str:
        if not x:
            return "{}"
        if level <= 0:
            return "{...}"
        visible_items = islice(x.items(), self.maxdict)
        pieces = [f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}" for key, value in visible_items]
        if len(x) > self.maxdict:
            pieces.append("...")
        return "{" + ", ".join(pieces) + "}"

    def repr_set(self, x: Set[Value], level: int) -> str:
        return self.repr_list(list(islice(x, self.maxset + 1)), level)

    repr_frozenset = repr_set

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() <= _MAX_BITS else f"<integer of {x.bit_length()} bits>"

    def repr_instance(self, x: object, level: int) -> str:
        if isinstance(x, (bytes, bytearray, memoryview)):
            return repr(bytes(x[: self.maxother])) + ("..." if len(x) > self.maxother else "")
        if isinstance(x, str):
            return self.repr_str(x[: self.maxstring + 1], level)
        if isinstance(x, RawBSONDocument):
            return f"RawBSONDocument({self.repr1(x.raw, level)})"
        if isinstance(x, Mapping):
            return f"{type(x).__name__}({self.repr_dict(x, level)})"
        if isinstance(x, (list, tuple, Set, deque)):
            return f"{type(x).__name__}({self.repr_list(list(islice(x, self.maxlist + 1)), level)})"
        return super().repr_instance(x, level)


short = _ValueRepr().repr
"""Function that returns the beginning of the ``repr`` of a value, for error messages."""


def format_milliseconds(seconds: float) -> str:
    """Return a duration in seconds as a text in milliseconds, such as ``0.25 ms`` or ``20000 ms``."""
    return f"{format_decimal(seconds * 1000)} ms"


def format_decimal(number: float) -> str:
    """Return a number as a text without an exponent. The number must be 0, or at least 0.0001."""
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"
