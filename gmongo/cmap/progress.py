"""Stages in the establishment of a connection."""

from __future__ import annotations

import errno

from gmongo import _clock
from gmongo._truncated_repr import format_milliseconds
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.wire.address import SocketAddress
from gmongo.wire.race import Race
from gmongo.wire.tls import TlsTransport
from gmongo.wire.transport import Transport, TransportError

NAME_LOOKUP_STAGE = "name lookup"
TCP_STAGE = "TCP connection"
PROXY_STAGE = "SOCKS5 proxy"
TLS_STAGE = "TLS handshake"
HELLO_STAGE = "hello"
AUTHENTICATION_STAGE = "authentication"

_CLOSED_ERRNOS = (errno.ECONNRESET, errno.EPIPE)


class Progress:
    """Current stage in the establishment of a connection, for error texts."""

    def __init__(self, host: str, options: ConnectionSettings) -> None:
        self._host = host
        self._order = options.address_order
        self._address: SocketAddress | None = None  # Address of the attempt, or None if the host has no other.
        self.peer = ""  # Host of the current attempt for texts, or empty if equal to `_host`.
        self.race: Race | None = None  # TCP connections in progress to several addresses, or None.
        self.begin(NAME_LOOKUP_STAGE)

    def begin(self, stage: str) -> None:
        self.stage = stage
        self._since = _clock.monotonic()

    def record_address(self, address: SocketAddress, *, is_only_address: bool) -> None:
        """Record the address to which the current attempt connects: an address of the server or of the proxy."""
        self._address = None if is_only_address else address
        host = address if isinstance(address, str) else str(address[0])
        self.peer = "" if host == self._host else host

    def has_result(self, transport: Transport) -> bool:
        """Return True if the TCP connection is complete or, in a later stage, if bytes arrived."""
        return transport.has_peer() if self.stage.startswith(TCP_STAGE) else transport.has_arrived()

    def record_failure(self) -> None:
        """Let later attempts try the failed address last, unless the host has only one address."""
        if self._address is not None:
            self._order.record_failed_address(self._address)

    def __str__(self) -> str:
        race_text = "" if self.race is None or self.stage != TCP_STAGE else str(self.race)
        if race_text:
            return f"{TCP_STAGE} to {race_text}"
        peer = f" with {self.peer}" if self.peer else ""
        return f"{self.stage}{peer} for {format_milliseconds(_clock.monotonic() - self._since)}"

    def likely_reason(self, error: TransportError, transport: Transport | None) -> str:
        """Return a likely reason why the server closed the connection before its hello reply, or an empty text."""
        is_closed = error.errno in _CLOSED_ERRNOS or str(error) == "connection closed by the server"
        if self.stage != HELLO_STAGE or not is_closed:
            return ""
        if isinstance(transport, TlsTransport):
            return "; perhaps the server refused the client certificate (tlsCertificateKeyFile)"
        return "; perhaps the server has stopped, or demands TLS (tls=true)"
