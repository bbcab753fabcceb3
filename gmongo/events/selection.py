"""Log messages of server selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gmongo._documents import DocumentDict
from gmongo.events.log import (
    DEBUG,
    INFO,
    Structured,
    address_fields,
    enabled_check,
    log,
    milliseconds,
    server_selection_log,
    silence,
)
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.sdam.selection import Selector
    from gmongo.sdam.topology_description import TopologyDescription


class NamedOperation(NamedTuple):
    """Operation or internal task that needs a server, with the name and ID for log messages."""

    name: str
    operation_id: int | None = None


class SelectionRequest(NamedTuple):
    """Server selection in progress: the selector, and the operation that needs a server."""

    selector: Selector
    operation: str
    operation_id: int | None


class SelectionEvents:
    """Publisher of log messages about server selection, for which the specification defines no events."""

    def __init__(self, *, silent: bool) -> None:
        self._logger = silence if silent else server_selection_log
        self.is_enabled = enabled_check(self._logger)

    def started(self, request: SelectionRequest, topology: TopologyDescription) -> None:
        self._log("Server selection started", request, topology)

    def succeeded(self, request: SelectionRequest, topology: TopologyDescription, address: Address) -> None:
        self._log("Server selection succeeded", request, topology, **address_fields(address))

    def failed(self, request: SelectionRequest, topology: TopologyDescription, error: BaseException) -> None:
        self._log("Server selection failed", request, topology, failure=repr(error))

    def waiting(self, request: SelectionRequest, topology: TopologyDescription, remaining: float) -> None:
        message = "Waiting for suitable server to become available"
        self._log(message, request, topology, INFO, remainingTimeMS=milliseconds(remaining))

    def _log(
        self,
        message: str,
        request: SelectionRequest,
        topology: TopologyDescription,
        level: int = DEBUG,
        **extra: object,
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        selector, operation, operation_id = request
        if operation_id is not None:
            extra["operationId"] = operation_id
        fields = {"message": message, "operation": operation, **extra}
        # The log record may contain the selector and the topology description, because these objects are immutable.
        structured = Structured(fields, {"selector": (repr, selector), "topologyDescription": (repr, topology)})
        log(self._logger, _Text(structured, extra), structured, level)


class _Text:
    """Text of a log message. The text is formatted when a handler formats the record."""

    def __init__(self, structured: Structured, extra: DocumentDict) -> None:
        self._structured = structured
        self._extra = extra

    def __str__(self) -> str:
        rest = "".join(f", {name}={value}" for name, value in self._extra.items())
        text = "{message} for operation {operation}. Selector: {selector}, topology: {topologyDescription}"
        return text.format(**self._structured) + rest
