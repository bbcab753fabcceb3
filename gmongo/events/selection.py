"""Log messages of server selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gmongo._documents import DocumentDict
from gmongo.events.log import DEBUG, INFO, Structured, asks, log, milliseconds, server_selection_log, silence, where
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.sdam.selection import Selector
    from gmongo.sdam.topology_description import TopologyDescription


class Named(NamedTuple):
    """What asks for a server: an operation, or what has no more of one than this."""

    name: str
    operation_id: int | None = None


class Asked(NamedTuple):
    """What a server is selected for.

    :param selector: a read preference, or ``WRITABLE``.
    :param operation: its name.
    :param operation_id: what ties it together with others in events and logs, if it is one of several.
    """

    selector: Selector
    operation: str
    operation_id: int | None


class SelectionEvents:
    """The publisher of server selection, which logs only; there are no events.

    :param silent: whether nothing is logged.
    :ivar wanted: whether every selection is logged.
    """

    __slots__ = ("_logger", "wanted")

    def __init__(self, *, silent: bool) -> None:
        self._logger = silence if silent else server_selection_log
        self.wanted = asks(self._logger)

    def started(self, asked: Asked, topology: TopologyDescription) -> None:
        self._log("Server selection started", asked, topology)

    def succeeded(self, asked: Asked, topology: TopologyDescription, address: Address) -> None:
        self._log("Server selection succeeded", asked, topology, **where(address))

    def failed(self, asked: Asked, topology: TopologyDescription, error: BaseException) -> None:
        self._log("Server selection failed", asked, topology, failure=repr(error))

    def waiting(self, asked: Asked, topology: TopologyDescription, remaining: float) -> None:
        message = "Waiting for suitable server to become available"
        self._log(message, asked, topology, INFO, remainingTimeMS=milliseconds(remaining))

    def _log(
        self, message: str, asked: Asked, topology: TopologyDescription, level: int = DEBUG, **extra: object
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        selector, operation, operation_id = asked
        if operation_id is not None:
            extra["operationId"] = operation_id
        fields = {"message": message, "operation": operation, **extra}
        # Neither of the two ever changes.
        structured = Structured(fields, {"selector": (repr, selector), "topologyDescription": (repr, topology)})
        log(self._logger, _Text(structured, extra), structured, level)


class _Text:
    """The text of a message."""

    __slots__ = ("_extra", "_structured")

    def __init__(self, structured: Structured, extra: DocumentDict) -> None:
        self._structured = structured
        self._extra = extra

    def __str__(self) -> str:
        rest = "".join(f", {name}={value}" for name, value in self._extra.items())
        return (
            "{message} for operation {operation}. Selector: {selector}, topology: {topologyDescription}".format(
                **self._structured
            )
            + rest
        )
