"""Attributes of spans and metrics, without secrets, and by default without application data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gmongo._documents import Document, DocumentDict
from gmongo._truncated_repr import document_text
from gmongo.errors import ConnectionFailure, OperationFailure
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.execution.operation_trace import OperationTrace

_OMITTED_FIELDS = frozenset({"lsid", "$db", "$clusterTime", "signature"})


def operation_attributes(trace: OperationTrace) -> DocumentDict:
    """Return the attributes that the span and the metrics of an operation have in common."""
    names = {"db.namespace": trace.database, "db.operation.name": trace.name}
    collection = {"db.collection.name": trace.collection} if trace.collection else {}
    return {"db.system.name": "mongodb", **names, **collection}


def server_attributes(address: Address) -> DocumentDict:
    host, port = address
    return {"server.address": host, **({} if port is None else {"server.port": port})}


def query_text(command: Document, max_length: int) -> str:
    """Return a command without `_OMITTED_FIELDS` as relaxed Extended JSON, with at most `max_length` characters."""
    return document_text({name: value for name, value in command.items() if name not in _OMITTED_FIELDS}, max_length)


def error_type_of(error: BaseException) -> str:
    """Return the name of an error's class. Unless the class is built in, the name begins with the module."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def error_attributes(error: BaseException, max_text_length: int) -> dict[str, str]:
    """Return the span attributes that describe an error.

    A server or an encoder may quote a document in an error message. Therefore, if `max_text_length`
    is 0, the attributes contain the message only for a connection error without a server reply.
    """
    if max_text_length:
        message = str(error)[:max_text_length]
    elif isinstance(error, OperationFailure) or isinstance(getattr(error, "details", None), Mapping):
        message = _describe_code(error)
    elif isinstance(error, ConnectionFailure):
        message = str(error)
    else:
        message = ""
    return {"exception.type": error_type_of(error), "exception.message": message or type(error).__name__}


def _describe_code(error: BaseException) -> str:
    """Return the name and the code of a server error, such as ``DuplicateKey (code 11000)``."""
    value = getattr(error, "details", None)
    details = value if isinstance(value, Mapping) else {}
    name, code = details.get("codeName"), getattr(error, "code", None)
    label = name if isinstance(name, str) and name.isidentifier() else type(error).__name__
    return label if code is None else f"{label} (code {code})"
