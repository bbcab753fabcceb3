"""What spans say of commands and errors, without what is secret, or the user's."""

from __future__ import annotations

from collections.abc import Mapping

from gmongo._documents import Document
from gmongo._short_text import document_text
from gmongo.errors import ConnectionFailure, OperationFailure

_NOT_SHOWN = frozenset({"lsid", "$db", "$clusterTime", "signature"})


def query_text(command: Document, length: int) -> str:
    """A command as relaxed Extended JSON.

    :param length: of the text at most.
    """
    return document_text({name: value for name, value in command.items() if name not in _NOT_SHOWN}, length)


def kind_of(error: BaseException) -> str:
    """The name of an error's class, with its module."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def exception_of(error: BaseException, text_length: int) -> dict[str, str]:
    """An error as attributes of a span.

    What a server or an encoder complains of may quote a document (the key that is there already, for example), and any
    other error may say anything. So only the driver's own words on connections are shown as they are, unless the text
    of commands is shown, too.

    :param text_length: how many characters of a command are shown.
    """
    if text_length:
        message = str(error)[:text_length]
    elif isinstance(error, OperationFailure) or isinstance(getattr(error, "details", None), Mapping):
        message = _code_of(error)
    elif isinstance(error, ConnectionFailure):
        message = str(error)
    else:
        message = ""
    return {"exception.type": kind_of(error), "exception.message": message or type(error).__name__}


def _code_of(error: BaseException) -> str:
    """The server's number and name for an error."""
    found = getattr(error, "details", None)
    details = found if isinstance(found, Mapping) else {}
    name, code = details.get("codeName"), getattr(error, "code", None)
    shown = name if isinstance(name, str) and name.isidentifier() else type(error).__name__
    return shown if code is None else f"{shown} (code {code})"
