"""The driver's loggers, one per component of the logging specification, and how a structured message is logged.

A record's text is the specification's unstructured form; its ``structured`` attribute holds the same as a dictionary.
What takes long to write down, such as documents as JSON, is written when a handler formats or reads it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from functools import partial, wraps

from gmongo import _short_text
from gmongo._documents import Document, DocumentDict, Value
from gmongo._safe_log import safely
from gmongo.wire.address import Address

DEBUG = logging.DEBUG
INFO = logging.INFO
# The second name is a slip of PyMongo's, by which applications have set it.
_LENGTH_VARIABLES = ("MONGODB_LOG_MAX_DOCUMENT_LENGTH", "MONGOB_LOG_MAX_DOCUMENT_LENGTH")
_DEFAULT_LENGTH = 1000
# The beginning of an escape at the end of a text in JSON, after an even number of backslashes.
_CUT_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\ud[89ab][0-9a-f]{2})?(?:\\(?:u[0-9a-f]{0,3})?)?\Z")

connection_log = logging.getLogger("gmongo.connection")
command_log = logging.getLogger("gmongo.command")
topology_log = logging.getLogger("gmongo.topology")
server_selection_log = logging.getLogger("gmongo.serverSelection")
encryption_log = logging.getLogger("gmongo.encryption")

silence = logging.Logger("gmongo.silence")
"""What a client of the driver's own logs to if it handles plaintext: nothing is ever enabled."""
silence.disabled = True


def asks(logger: logging.Logger, listeners: Sequence[object] = ()) -> Callable[[], bool]:
    """A function that says whether an event is wanted: there is a listener, or the logger is at ``DEBUG`` now.

    It is called several times in an operation, so it is one call and not two.
    """
    return partial(bool, listeners) if listeners else partial(logger.isEnabledFor, DEBUG)


Later = dict[str, tuple[Callable[[Value], str], Value]]
"""Values by name that are made later: what makes each, and of what."""


class Structured(DocumentDict):
    """The structured form of a message, some of whose values are made when any value is first read.

    A handler that keeps records and reads them later sees documents as they are then.

    :param fields: the values that are there already.
    :param later: by name, what makes the value of another field, and of what.
    """

    __slots__ = ("_later",)

    def __init__(self, fields: Document, later: Later) -> None:
        super().__init__(fields)
        self._later = later
        self.update(later)  # they have their places; they are made when they are first read

    def _make(self) -> None:
        while self._later:
            name, (make, value) = self._later.popitem()
            self[name] = make(value)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (dict(self),)


def _reading(name: str) -> Callable[..., object]:
    read = getattr(dict, name)

    @wraps(read)
    def made_first(self: Structured, *arguments: object) -> object:
        self._make()
        return read(self, *arguments)

    return made_first


# With a method of its own for iterating, a copy to a dictionary asks for each value, too.
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
    setattr(Structured, _name, _reading(_name))


class Details:
    """The text of a message that consists of its structured form."""

    __slots__ = ("_structured",)

    def __init__(self, structured: Structured) -> None:
        self._structured = structured

    def __str__(self) -> str:
        fields = self._structured
        details = ", ".join(f"{name}={value}" for name, value in fields.items() if name != "message")
        return f"{fields['message']}: {details}"


def log(logger: logging.Logger, text: object, structured: DocumentDict, level: int = DEBUG) -> None:
    """Log `text`, once it is formatted, with its structured form beside it. The logger is enabled for the level."""
    safely(_handle, logger, text, structured, level)


def _handle(logger: logging.Logger, text: object, structured: DocumentDict, level: int) -> None:
    # As Logger.log does, but for the search for the caller: that is always this place.
    make = logging.getLogRecordFactory()
    record = make(logger.name, level, __file__, 0, "%s", (text,), None, "log")
    record.structured = structured
    logger.handle(record)


def document_text(document: Document) -> str:
    """A document as relaxed Extended JSON, cut at ``MONGODB_LOG_MAX_DOCUMENT_LENGTH`` characters."""
    longest = _longest()
    text = _short_text.document_text(document, longest + 1)
    if len(text) <= longest:
        return text
    return _CUT_ESCAPE.sub(r"\1", text[:longest], count=1) + "..."


def _longest() -> int:
    """The length from the environment, where no number is the default."""
    given = next(filter(None, map(os.environ.get, _LENGTH_VARIABLES)), "")
    return int(given) if given.isascii() and given.isdigit() else _DEFAULT_LENGTH


def milliseconds(seconds: float) -> int:
    """A duration as the specifications log it."""
    return int(seconds * 1000)


def where(address: Address) -> DocumentDict:
    """An address as structured messages have it."""
    host, port = address
    return {"serverHost": host} if port is None else {"serverHost": host, "serverPort": port}
