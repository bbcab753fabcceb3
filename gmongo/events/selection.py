"""Log messages of server selection."""

from __future__ import annotations

from typing import Any

from gmongo.events.log import DEBUG, INFO, asks, log, milliseconds, server_selection_log, where
from gmongo.wire.address import Address


class SelectionEvents:
    """The publisher of server selection, which logs only; there are no events."""

    __slots__ = ()

    wanted = staticmethod(asks(server_selection_log))
    """Whether anybody logs every selection."""

    def started(self, selector: Any, operation: str, topology: Any) -> None:
        self._log("Server selection started", selector, operation, topology)

    def succeeded(self, selector: Any, operation: str, topology: Any, address: Address) -> None:
        self._log("Server selection succeeded", selector, operation, topology, **where(address))

    def failed(self, selector: Any, operation: str, topology: Any, error: BaseException) -> None:
        self._log("Server selection failed", selector, operation, topology, failure=repr(error))

    def waiting(self, selector: Any, operation: str, topology: Any, remaining: float) -> None:
        message = "Waiting for suitable server to become available"
        self._log(message, selector, operation, topology, INFO, remainingTimeMS=milliseconds(remaining))

    def _log(
        self, message: str, selector: Any, operation: str, topology: Any, level: int = DEBUG, **extra: Any
    ) -> None:
        if not server_selection_log.isEnabledFor(level):
            return
        rest = "".join(f", {name}={value}" for name, value in extra.items())
        text = f"{message} for operation {operation}. Selector: {selector}, topology: {topology}{rest}"
        fields = {"selector": repr(selector), "operation": operation, "topologyDescription": repr(topology)}
        log(server_selection_log, text, {"message": message, **fields, **extra}, level)
