"""The driver's loggers, one per component of the logging specification, and how a structured message is logged.

A record's text is the specification's unstructured form; its ``structured`` attribute holds the same as a dictionary.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bson import json_util

from gmongo._safe_log import safely
from gmongo.wire.address import Address

DEBUG = logging.DEBUG
INFO = logging.INFO
# The second name is a slip of PyMongo's, by which applications have set it.
_LONGEST = int(
    os.environ.get("MONGODB_LOG_MAX_DOCUMENT_LENGTH") or os.environ.get("MONGOB_LOG_MAX_DOCUMENT_LENGTH") or 1000
)

connection_log = logging.getLogger("gmongo.connection")
command_log = logging.getLogger("gmongo.command")
topology_log = logging.getLogger("gmongo.topology")
server_selection_log = logging.getLogger("gmongo.serverSelection")
encryption_log = logging.getLogger("gmongo.encryption")


def asks(logger: logging.Logger, listeners: Sequence[Any] = ()) -> Callable[[], bool]:
    """What tells whether there is anybody to tell: a listener, or a logger that is at ``DEBUG`` now.

    It is called several times in an operation, so it is one call and not two.
    """
    return partial(bool, listeners) if listeners else partial(logger.isEnabledFor, DEBUG)


def log(logger: logging.Logger, text: str, structured: dict[str, Any], level: int = DEBUG) -> None:
    """Log `text` with its structured form beside it."""
    safely(logger.log, level, "%s", text, extra={"structured": structured})


def document_text(document: Mapping[str, Any]) -> str:
    """A document as relaxed Extended JSON, cut at ``MONGODB_LOG_MAX_DOCUMENT_LENGTH`` characters."""
    try:
        text = json_util.dumps(document)
    except (RecursionError, ValueError, TypeError, OverflowError) as error:  # a server may have sent it
        return f"(cannot be shown: {type(error).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def milliseconds(seconds: float) -> int:
    """A duration as the specifications log it."""
    return int(seconds * 1000)


def where(address: Address) -> dict[str, Any]:
    """An address as structured messages have it."""
    host, port = address
    return {"serverHost": host} if port is None else {"serverHost": host, "serverPort": port}
