"""Texts that are cut, made only as long as they are shown: a document may be large, and its text holds the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from reprlib import Repr

from bson.raw_bson import RawBSONDocument

from gmongo._documents import Value

_DEEPEST = 100  # levels, as MongoDB stores them: Python recurses a few hundred times, and not in each place more
_LARGEST_RAW = 64 * 1024  # bytes: to look at any field of a raw document is to decode them all
_SHORTEST_CUT = 64  # characters or bytes: a value of that length is left whole, as its type may ask for it
_BITS_SHOWN = 200


def document_text(document: Value, length: int) -> str:
    """The beginning of a document as relaxed Extended JSON: no more of the document is looked at than it takes.

    A raw document above 64 KiB is shown as its size.

    :param length: in characters.
    """
    from bson import json_util  # takes a fortieth of the time that the import of gmongo does

    try:
        return json_util.dumps(_Beginning(length).of(document))[:length]
    except Exception as error:  # of a type that the application has made, or a server's batch that cannot be decoded
        return f"(cannot be shown: {type(error).__name__})"[:length]


class _Beginning:
    """Copies a document until its text is surely long enough.

    :param length: of the text, in characters.
    """

    def __init__(self, length: int) -> None:
        self._missing = length  # what the text of the copy may still lack; brackets that close come after it
        self._depth = 0

    def of(self, value: Value) -> Value:
        self._missing -= 1  # any value takes a character at least
        if isinstance(value, (str, bytes)):
            return self._cut(value)
        if isinstance(value, RawBSONDocument) and len(value.raw) > _LARGEST_RAW:
            return f"({len(value.raw)} bytes of BSON)"
        if hasattr(value, "as_doc"):  # a DBRef
            value = value.as_doc()
        if hasattr(value, "items") or hasattr(value, "__iter__"):
            return self._of_level(value) if self._depth < _DEEPEST else f"(more than {_DEEPEST} levels)"
        return value

    def _of_level(self, value: Value) -> Value:
        self._depth += 1
        try:
            if hasattr(value, "items"):
                return {self._cut(str(name)): self.of(each) for name, each in self._taken(value.items())}
            return [self.of(each) for each in self._taken(value)]
        finally:
            self._depth -= 1

    def _taken(self, values: Iterable[Value]) -> Iterator[Value]:
        if self._missing > 0:
            for each in values:
                yield each
                if self._missing <= 0:
                    return

    def _cut(self, value: Value) -> Value:
        """A string or bytes. Base64 of a part is part of the base64 if it is cut after a multiple of three."""
        longest = max(self._missing, _SHORTEST_CUT) // 3 * 3 + 3
        self._missing -= len(value)
        if len(value) <= longest:
            return value
        arguments = (value.subtype,) if hasattr(value, "subtype") else ()
        return type(value)(value[:longest], *arguments)


class _Short(Repr):
    """As `reprlib` has it, without a look at all of what is large: nothing is sorted, nor shown in full first."""

    def repr_dict(self, x: Mapping[Value, Value], level: int) -> str:
        if not x:
            return "{}"
        if level <= 0:
            return "{...}"
        pieces = [
            f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}"
            for key, value in islice(x.items(), self.maxdict)
        ]
        return "{" + ", ".join([*pieces, *(["..."] if len(x) > self.maxdict else [])]) + "}"

    def repr_set(self, x: Set[Value], level: int) -> str:
        return self.repr_list(list(islice(x, self.maxset + 1)), level)

    repr_frozenset = repr_set

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() <= _BITS_SHOWN else f"<integer of {x.bit_length()} bits>"

    def repr_instance(self, x: object, level: int) -> str:
        if isinstance(x, (bytes, bytearray, memoryview)):
            text = repr(bytes(x[: self.maxother]))
            return text if len(x) <= self.maxother else f"{text[: self.maxother - 3]}..."
        if isinstance(x, str):
            return self.repr_str(x[: self.maxstring + 1], level)
        if isinstance(x, RawBSONDocument):
            return f"RawBSONDocument({self.repr1(x.raw, level)})"
        if isinstance(x, Mapping):
            return f"{type(x).__name__}({self.repr_dict(x, level)})"
        if isinstance(x, (list, tuple, Set, deque)):
            return f"{type(x).__name__}({self.repr_list(list(islice(x, self.maxlist + 1)), level)})"
        return super().repr_instance(x, level)


short = _Short().repr
"""The beginning of a value's ``repr``, for an error message."""


def milliseconds(seconds: float) -> str:
    """Return a duration such as ``0.25 ms`` or ``20000 ms``.

    :param seconds: the duration.
    """
    return f"{decimal(seconds * 1000)} ms"


def decimal(number: float) -> str:
    """Return a number with three significant digits or as an integer, without an exponent.

    :param number: not negative, and 0.0001 at least unless it is 0.
    """
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"
