"""Texts of commands and errors in spans, without secrets, and by default without data of the application."""

from __future__ import annotations

from collections.abc import Mapping

from gmongo._documents import Document
from gmongo._truncated_repr import document_text
from gmongo.errors import ConnectionFailure, OperationFailure

_NOT_SHOWN = frozenset({"lsid", "$db", "$clusterTime", "signature"})


def query_text(command: Document, length: int) -> str:
    """Return a command as relaxed Extended JSON with at most `length` characters."""
    return document_text({name: value for name, value in command.items() if name not in _NOT_SHOWN}, length)


def error_type_of(error: BaseException) -> str:
    """Return the module and the name of an error's class."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def exception_of(error: BaseException, text_length: int) -> dict[str, str]:
    """Return the attributes of a span for an error.

    A server or an encoder may quote a document in an error message. So the attributes contain the message only if
    `text_length` is not 0, or if the driver wrote the message about a connection.
    """
    if text_length:
        message = str(error)[:text_length]
    elif isinstance(error, OperationFailure) or isinstance(getattr(error, "details", None), Mapping):
        message = _code_of(error)
    elif isinstance(error, ConnectionFailure):
        message = str(error)
    else:
        message = ""
    return {"exception.type": error_type_of(error), "exception.message": message or type(error).__name__}


def _code_of(error: BaseException) -> str:
    """Return the name and the code of a server error, such as ``DuplicateKey (code 11000)``."""
    value = getattr(error, "details", None)
    details = value if isinstance(value, Mapping) else {}
    name, code = details.get("codeName"), getattr(error, "code", None)
    label = name if isinstance(name, str) and name.isidentifier() else type(error).__name__
    return label if code is None else f"{label} (code {code})"
