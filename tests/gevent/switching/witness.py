"""Who sees what the driver tells of."""

from __future__ import annotations

from typing import Any

from gmongo.monitoring import CommandListener, ConnectionPoolListener, ServerListener


class Witness(CommandListener, ServerListener, ConnectionPoolListener):
    """Notes what has begun and ended, and whatever was held against the server."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.failures: list[Any] = []
        self.blamed: list[Any] = []

    def started(self, event: Any) -> None:
        self.begun.append(event.request_id)

    def succeeded(self, event: Any) -> None:
        self.ended.append(event.request_id)

    def failed(self, event: Any) -> None:
        self.ended.append(event.request_id)
        self.failures.append(event)

    def description_changed(self, event: Any) -> None:
        if not event.new_description.is_server_type_known:
            self.blamed.append(event)

    def pool_cleared(self, event: Any) -> None:
        self.blamed.append(event)

    def _ignore(self, event: Any) -> None:
        pass

    opened = closed = pool_created = pool_ready = pool_closed = _ignore
    connection_created = connection_ready = connection_closed = _ignore
    connection_check_out_started = connection_check_out_failed = _ignore
    connection_checked_out = connection_checked_in = _ignore
