"""Loggers of the driver's components, and structured log messages.

The specification defines two forms of a message. The text of a log record is the unstructured form,
and the attribute ``structured`` is the structured form, a dictionary. Expensive conversions run only
when a handler formats or reads the record.
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
# PyMongo misspells the second name. Applications may use this misspelling.
_LENGTH_VARIABLES = ("MONGODB_LOG_MAX_DOCUMENT_LENGTH", "MONGOB_LOG_MAX_DOCUMENT_LENGTH")
_DEFAULT_LENGTH = 1000
# Matches an even number of backslashes and an incomplete escape sequence at the end of a text.
_CUT_ESCAPE_PATTERN = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\ud[89ab][0-9a-f]{2})?(?:\\(?:u[0-9a-f]{0,3})?)?\Z")

connection_log = logging.getLogger("gmongo.connection")
command_log = logging.getLogger("gmongo.command")
topology_log = logging.getLogger("gmongo.topology")
server_selection_log = logging.getLogger("gmongo.serverSelection")
encryption_log = logging.getLogger("gmongo.encryption")

silent_log = logging.Logger("gmongo.silence")
"""Logger of internal clients that handle plaintext of encrypted data. No level is ever enabled."""
silent_log.disabled = True


def enabled_check(logger: logging.Logger, listeners: Sequence[object] = ()) -> Callable[[], bool]:
    """Return a fast function that returns True if a listener exists, or if the logger is enabled for ``DEBUG``."""
    return partial(bool, listeners) if listeners else partial(logger.isEnabledFor, DEBUG)


LazyValues = dict[str, tuple[Callable[[Value], str], Value]]
"""Names of lazy values -> (conversion function, argument of the conversion function)."""


class Structured(DocumentDict):
    """Structured form of a log message: values that need no conversion, and lazy values.

    The first read of any value computes all lazy values, from the documents at that time.
    """

    __slots__ = ("_lazy",)

    def __init__(self, fields: Document, lazy: LazyValues) -> None:
        super().__init__(fields)
        self._lazy = lazy
        self.update(lazy)  # placeholders of the lazy values, which set the order of the fields

    def _convert_lazy_values(self) -> None:
        while self._lazy:
            name, (make, value) = self._lazy.popitem()
            self[name] = make(value)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self),)


def _converting_method(name: str) -> Callable[..., object]:
    read = getattr(dict, name)

    @wraps(read)
    def convert_then_read(self: Structured, *arguments: object) -> object:
        self._convert_lazy_values()
        return read(self, *arguments)

    return convert_then_read


# `Structured` overrides `__iter__`, so that `dict(structured)` calls `__getitem__` for each value.
_READ_METHOD_NAMES = "__eq__ __getitem__ __iter__ __ne__ __or__ __repr__ copy get items pop values"
for _name in _READ_METHOD_NAMES.split():
    setattr(Structured, _name, _converting_method(_name))


class MessageText:
    """Text of a log message: the filled template, and the values that are not in the template."""

    def __init__(self, fields: Structured, template: str = "{message}", separator: str = ": ") -> None:
        self._fields = fields
        self._template = template
        self._separator = separator

    def __str__(self) -> str:
        fields = dict(self._fields)
        remaining_names = [name for name in fields if f"{{{name}}}" not in self._template]
        details = ", ".join(f"{name}={fields[name]}" for name in remaining_names)
        return self._separator.join(filter(None, (self._template.format(**fields), details)))


def log(logger: logging.Logger, text: object, structured: DocumentDict, level: int = DEBUG) -> None:
    """Log a message. Handlers format `text` later. The caller checked that the logger is enabled."""
    safely(_handle_record, logger, text, structured, level)


def _handle_record(logger: logging.Logger, text: object, structured: DocumentDict, level: int) -> None:
    # `Logger.log` would search the stack for the caller. The record names the function `log` instead.
    make_record = logging.getLogRecordFactory()
    record = make_record(logger.name, level, __file__, 0, "%s", (text,), None, "log")
    record.structured = structured
    logger.handle(record)


def document_text(document: Document) -> str:
    """Return relaxed Extended JSON, cut after ``MONGODB_LOG_MAX_DOCUMENT_LENGTH`` characters."""
    value = next(filter(None, map(os.environ.get, _LENGTH_VARIABLES)), "")
    max_length = int(value) if value.isascii() and value.isdigit() else _DEFAULT_LENGTH
    text = _truncated_repr.document_text(document, max_length + 1)
    if len(text) <= max_length:
        return text
    return _CUT_ESCAPE_PATTERN.sub(r"\1", text[:max_length], count=1) + "..."


def milliseconds(seconds: float) -> int:
    """Convert seconds to whole milliseconds, which the specifications require in log messages."""
    return int(seconds * 1000)


def address_fields(address: Address) -> DocumentDict:
    """Return the fields that represent an address in a structured message."""
    host, port = address
    return {"serverHost": host} if port is None else {"serverHost": host, "serverPort": port}
