"""The driver's loggers, one per component of the logging specification, and how a structured message is logged.

A record's text is the specification's unstructured form; its ``structured`` attribute holds the same as a dictionary.
"""

from __future__ import annotations

import logging
from typing import Any

from gmongo.wire.address import Address

DEBUG = logging.DEBUG

connection_log = logging.getLogger("gmongo.connection")
command_log = logging.getLogger("gmongo.command")
topology_log = logging.getLogger("gmongo.topology")
server_selection_log = logging.getLogger("gmongo.serverSelection")


def log(logger: logging.Logger, text: str, structured: dict[str, Any], level: int = DEBUG) -> None:
    """Log `text` with its structured form beside it."""
    logger.log(level, "%s", text, extra={"structured": structured})


def milliseconds(seconds: float) -> int:
    """A duration as the specifications log it."""
    return int(seconds * 1000)


def where(address: Address) -> dict[str, Any]:
    """An address as structured messages have it."""
    host, port = address
    return {"serverHost": host} if port is None else {"serverHost": host, "serverPort": port}
