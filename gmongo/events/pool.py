"""Events and log messages of a connection pool (CMAP-180 to CMAP-231)."""

from __future__ import annotations

from collections.abc import Callable

from bson.objectid import ObjectId

from gmongo import monitoring
from gmongo._documents import Document, DocumentDict
from gmongo.events.delivery import Delivery
from gmongo.events.log import DEBUG, address_fields, connection_log, enabled_check, log, milliseconds, silent_log
from gmongo.monitoring import ConnectionCheckOutFailedReason, ConnectionClosedReason, publish
from gmongo.wire.address import Address, address_text

CLOSED_REASON_TEXTS = {
    ConnectionClosedReason.STALE: "Connection became stale because the pool was cleared",
    ConnectionClosedReason.IDLE: (
        "Connection has been available but unused for longer than the configured max idle time"
    ),
    ConnectionClosedReason.ERROR: "An error occurred while using the connection",
    ConnectionClosedReason.POOL_CLOSED: "Connection pool was closed",
}
FAILED_REASON_TEXTS = {
    ConnectionCheckOutFailedReason.TIMEOUT: "Wait queue timeout elapsed without a connection becoming available",
    ConnectionCheckOutFailedReason.CONN_ERROR: "An error occurred while trying to establish a new connection",
    ConnectionCheckOutFailedReason.POOL_CLOSED: "Connection pool was closed",
}


class PoolEvents:
    """Publisher of the events of one pool. A silent publisher logs nothing."""

    def __init__(
        self,
        address: Address,
        listeners: tuple[monitoring.ConnectionPoolListener, ...],
        delivery: Delivery,
        on_established: Callable[[Address, float], None] | None,
        *,
        silent: bool,
    ) -> None:
        self._on_established = on_established  # its second argument is a duration in seconds
        self.delivery = delivery
        self._address = address
        self._listeners = listeners
        self._server = address_text(address)
        self._address_fields = address_fields(address)
        self._logger = silent_log if silent else connection_log
        # Returns True if a listener or a log needs events. Otherwise the hot path publishes no event.
        self.is_enabled = enabled_check(self._logger, listeners)

    def record(self, publish: Callable[..., None], *arguments: object) -> None:
        """Record an event without a greenlet switch, if a listener or a logger needs events."""
        if self.is_enabled():
            self.delivery.record(publish, *arguments)

    def record_established(self, seconds: float) -> None:
        """Record a call of `on_established`, without a greenlet switch."""
        if self._on_established is not None:
            self.delivery.record(self._on_established, self._address, seconds)

    def pool_created(self, options: Document) -> None:
        pairs = ", ".join(f"{name}={value}" for name, value in options.items())
        text = f"Connection pool created for {self._server}" + (f" using options {pairs}" if pairs else "")
        self._publish("pool_created", monitoring.PoolCreatedEvent, dict(options))
        self._log("Connection pool created", text, **options)

    def pool_ready(self) -> None:
        self._publish("pool_ready", monitoring.PoolReadyEvent)
        self._log("Connection pool ready", f"Connection pool ready for {self._server}")

    def pool_cleared(self, service_id: ObjectId | None, interrupt: bool) -> None:
        text, extra = f"Connection pool for {self._server} cleared", {}
        if service_id is not None:
            text, extra = f"{text} for serviceId {service_id}", {"serviceId": str(service_id)}
        self._publish("pool_cleared", monitoring.PoolClearedEvent, service_id, interrupt)
        self._log("Connection pool cleared", text, **extra)

    def pool_closed(self) -> None:
        self._publish("pool_closed", monitoring.PoolClosedEvent)
        self._log("Connection pool closed", f"Connection pool closed for {self._server}")

    def connection_created(self, connection_id: int) -> None:
        self._publish("connection_created", monitoring.ConnectionCreatedEvent, connection_id)
        self._log_connection("Connection created", connection_id)

    def connection_ready(self, connection_id: int, duration: float) -> None:
        elapsed = milliseconds(duration)
        self._publish("connection_ready", monitoring.ConnectionReadyEvent, connection_id, duration)
        self._log_connection("Connection ready", connection_id, f", established in={elapsed} ms", durationMS=elapsed)

    def connection_closed(self, connection_id: int, reason: str, error: BaseException | None) -> None:
        text = f". Reason: {CLOSED_REASON_TEXTS[reason]}"
        extra: DocumentDict = {"reason": CLOSED_REASON_TEXTS[reason]}
        if reason == ConnectionClosedReason.ERROR:
            text, extra["error"] = f"{text}. Error: {error!r}", error
        self._publish("connection_closed", monitoring.ConnectionClosedEvent, connection_id, reason)
        self._log_connection("Connection closed", connection_id, text, **extra)

    def check_out_started(self) -> None:
        self._publish("connection_check_out_started", monitoring.ConnectionCheckOutStartedEvent)
        self._log("Connection checkout started", f"Checkout started for connection to {self._server}")

    def check_out_failed(self, reason: str, error: BaseException, duration: float) -> None:
        elapsed = milliseconds(duration)
        text = f"Checkout failed for connection to {self._server}. Reason: {FAILED_REASON_TEXTS[reason]}"
        extra: DocumentDict = {"reason": FAILED_REASON_TEXTS[reason], "durationMS": elapsed}
        if reason == ConnectionCheckOutFailedReason.CONN_ERROR:
            text, extra["error"] = f"{text}. Error: {error!r}", error
        self._publish("connection_check_out_failed", monitoring.ConnectionCheckOutFailedEvent, reason, duration)
        self._log("Connection checkout failed", f"{text}. Duration: {elapsed} ms", **extra)

    def checked_out(self, connection_id: int, duration: float) -> None:
        elapsed = milliseconds(duration)
        self._publish("connection_checked_out", monitoring.ConnectionCheckedOutEvent, connection_id, duration)
        self._log_connection("Connection checked out", connection_id, f", duration={elapsed} ms", durationMS=elapsed)

    def checked_in(self, connection_id: int) -> None:
        self._publish("connection_checked_in", monitoring.ConnectionCheckedInEvent, connection_id)
        self._log_connection("Connection checked in", connection_id)

    def _log_connection(self, message: str, connection_id: int, rest: str = "", **extra: object) -> None:
        text = f"{message}: address={self._server}, driver-generated ID={connection_id}{rest}"
        self._log(message, text, driverConnectionId=connection_id, **extra)

    def _log(self, message: str, text: str, **extra: object) -> None:
        if self._logger.isEnabledFor(DEBUG):
            log(self._logger, text, {"message": message, **self._address_fields, **extra})

    def _publish(self, method: str, event: type, *fields: object) -> None:
        if self._listeners:
            publish(self._listeners, method, event(self._address, *fields))
