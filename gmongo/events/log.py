"""Loggers of the driver, one for each component of the logging specification, and structured log messages.

The text of a record is the unstructured form of the specification. Its attribute ``structured`` is a dictionary with
the same data. Expensive conversions, such as documents to JSON, run when a handler formats or reads the record.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from functools import partial, wraps

from gmongo import _truncated_repr
from gmongo._documents import Document, DocumentDict, Value
from gmongo._safe_log import safely
from gmongo.wire.address import Address

DEBUG = logging.DEBUG
INFO = logging.INFO
# The second name is a misspelling in PyMongo that applications have used.
_LENGTH_VARIABLES = ("MONGODB_LOG_MAX_DOCUMENT_LENGTH", "MONGOB_LOG_MAX_DOCUMENT_LENGTH")
_DEFAULT_LENGTH = 1000
# An incomplete escape sequence at the end of a JSON text, after an even number of backslashes.
_CUT_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\ud[89ab][0-9a-f]{2})?(?:\\(?:u[0-9a-f]{0,3})?)?\Z")

connection_log = logging.getLogger("gmongo.connection")
command_log = logging.getLogger("gmongo.command")
topology_log = logging.getLogger("gmongo.topology")
server_selection_log = logging.getLogger("gmongo.serverSelection")
encryption_log = logging.getLogger("gmongo.encryption")

silence = logging.Logger("gmongo.silence")
"""Logger of internal clients that handle plaintext. No level is ever enabled."""
silence.disabled = True


def enabled_check(logger: logging.Logger, listeners: Sequence[object] = ()) -> Callable[[], bool]:
    """Return a function that is true if there is a listener, or if the logger is enabled for ``DEBUG``.

    Operations call the function several times, so it consists of a single call.
    """
    return partial(bool, listeners) if listeners else partial(logger.isEnabledFor, DEBUG)


Later = dict[str, tuple[Callable[[Value], str], Value]]
"""Lazy values by name: the conversion function, and its argument."""


class Structured(DocumentDict):
    """Structured form of a message. Its lazy values are converted when any value is first read.

    A handler that reads stored records later sees the documents in their state at that time.

    :param fields: the immediate values.
    :param later: the lazy values.
    """

    __slots__ = ("_later",)

    def __init__(self, fields: Document, later: Later) -> None:
        super().__init__(fields)
        self._later = later
        self.update(later)  # placeholders, which keep the order of the fields

    def _make(self) -> None:
        while self._later:
            name, (make, value) = self._later.popitem()
            self[name] = make(value)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self),)


def _converting_method(name: str) -> Callable[..., object]:
    read = getattr(dict, name)

    @wraps(read)
    def convert_then_read(self: Structured, *arguments: object) -> object:
        self._make()
        return read(self, *arguments)

    return convert_then_read


# With the override of __iter__, a copy to a dictionary uses __getitem__ for each value.
for _name in (
    "__eq__",
    "__getitem__",
    "__iter__",
    "__ne__",
    "__or__",
    "__repr__",
    "copy",
    "get",
    "items",
    "pop",
    "values",
):
    setattr(Structured, _name, _converting_method(_name))


class Details:
    """Text of a message that lists its structured form."""

    __slots__ = ("_structured",)

    def __init__(self, structured: Structured) -> None:
        self._structured = structured

    def __str__(self) -> str:
        fields = self._structured
        details = ", ".join(f"{name}={value}" for name, value in fields.items() if name != "message")
        return f"{fields['message']}: {details}"


def log(logger: logging.Logger, text: object, structured: DocumentDict, level: int = DEBUG) -> None:
    """Log `text`, which is formatted lazily, with its structured form. The logger is enabled for the level."""
    safely(_handle, logger, text, structured, level)


def _handle(logger: logging.Logger, text: object, structured: DocumentDict, level: int) -> None:
    # The same as Logger.log without the search for the caller, which is always this function.
    make = logging.getLogRecordFactory()
    record = make(logger.name, level, __file__, 0, "%s", (text,), None, "log")
    record.structured = structured
    logger.handle(record)


def document_text(document: Document) -> str:
    """Return a document as relaxed Extended JSON of at most ``MONGODB_LOG_MAX_DOCUMENT_LENGTH`` characters."""
    longest = _max_document_length()
    text = _truncated_repr.document_text(document, longest + 1)
    if len(text) <= longest:
        return text
    return _CUT_ESCAPE.sub(r"\1", text[:longest], count=1) + "..."


def _max_document_length() -> int:
    """Return the maximum length from the environment, or the default if the variable is not a number."""
    value = next(filter(None, map(os.environ.get, _LENGTH_VARIABLES)), "")
    return int(value) if value.isascii() and value.isdigit() else _DEFAULT_LENGTH


def milliseconds(seconds: float) -> int:
    """Return a duration in whole milliseconds, as the specifications log durations."""
    return int(seconds * 1000)


def address_fields(address: Address) -> DocumentDict:
    """Return the fields of an address in structured messages."""
    host, port = address
    return {"serverHost": host} if port is None else {"serverHost": host, "serverPort": port}
