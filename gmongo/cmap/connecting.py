"""Establishment of a connection before the hello: name lookup, TCP connection, SOCKS5 proxy and TLS handshake."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from gmongo import _clock
from gmongo._server_facts.labels import OVERLOADED, RETRYABLE
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.cmap.progress import PROXY_STAGE, TCP_STAGE, TLS_STAGE, Progress
from gmongo.errors import AutoReconnect, PoolClearedError
from gmongo.wire import connect as wire
from gmongo.wire.address import address_text
from gmongo.wire.race import Race
from gmongo.wire.socks5 import Proxy, ProxyError, connect_through
from gmongo.wire.timeout import TimeLimit
from gmongo.wire.tls import TlsTransport
from gmongo.wire.transport import Transport, TransportError

if TYPE_CHECKING:
    from gmongo.cmap.server_connection import ServerConnection


class ConnectTimeout:
    """Timer for ``connectTimeoutMS``, which limits the name lookup and each connection attempt.

    A connection attempt consists of the TCP connection to one address, the handshake and the
    authentication.
    """

    def __init__(self, connection: ServerConnection, seconds: float | None, ref: bool) -> None:
        self.seconds = seconds
        self._connection = connection
        self._limit: TimeLimit | None = None
        if seconds is not None:
            self._limit = TimeLimit(lambda _: connection.make_timeout_error(seconds, "connectTimeoutMS"), ref)

    def begin(self, began: float | None = None) -> None:
        """Start the timer for a connection attempt that started at `began` (None means now)."""
        if self._limit is not None and self.seconds is not None:
            elapsed = 0.0 if began is None else _clock.monotonic() - began
            self._limit.begin(self.seconds, self._connection, elapsed)
            self._limit.extend_if_late()  # the event loop may have blocked during the TCP connection

    def begin_stage(self, extra_seconds: float = 0.0) -> None:
        """Begin a stage: add `extra_seconds`, and extend a timeout that ended while the event loop was blocked."""
        if self._limit is not None:
            self._limit.extend_if_late()
            self._limit.add(extra_seconds)

    def pause(self) -> None:
        """Suspend the timeout until the next call of :meth:`begin`."""
        if self._limit is not None:
            self._limit.end()

    def close(self) -> None:
        if self._limit is not None:
            self._limit.end()
            self._limit.close()


def connect(
    connection: ServerConnection, options: ConnectionSettings, progress: Progress, limit: ConnectTimeout
) -> None:
    """Connect to the server, directly or through the proxy. With TLS, also perform the handshake."""
    proxy = None if connection.address[1] is None else options.proxy
    try:
        transport = _connect_stream(connection, options, progress, limit, proxy)
        if proxy is not None:
            progress.begin(PROXY_STAGE)
            limit.begin_stage()
            connect_through(proxy, transport, connection.address)
        if isinstance(transport, TlsTransport):
            progress.begin(TLS_STAGE)
            limit.begin_stage()
            transport.shake_hands()
    except TransportError as error:
        raise connection.make_network_error(error) from error


def _connect_stream(
    connection: ServerConnection,
    options: ConnectionSettings,
    progress: Progress,
    limit: ConnectTimeout,
    proxy: Proxy | None,
) -> Transport:
    """Return a transport with a TCP connection to the server, or to the proxy."""
    ref, tls, host = connection.ref, options.tls, connection.address[0]
    endpoints = wire.resolve(connection.address if proxy is None else proxy.address, ref)
    progress.begin(TCP_STAGE if proxy is None else f"{TCP_STAGE} to the SOCKS5 proxy {address_text(proxy.address)}")
    if len(endpoints) == 1:
        family, sockaddr = endpoints[0]
        progress.record_address(sockaddr, is_only_address=True)
        limit.begin()
        transport = wire.make_transport(family, ref, tls, host)
        connection.attach(transport)
        transport.connect(sockaddr)
        return transport
    limit.pause()  # `Race` limits the time of each TCP connection
    race = Race(
        endpoints, lambda family: wire.make_transport(family, ref, tls, host), limit.seconds, options.address_order, ref
    )
    progress.race = race
    connection.attach_race(race)
    winner = race.run()
    connection.attach(winner.transport)
    progress.record_address(winner.address, is_only_address=False)
    limit.begin(winner.began)
    return winner.transport


_TLS_CLOSED_ERRORS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def label_connect_error(error: BaseException) -> None:
    """Add the overload labels to a connection error, if overload may be its cause.

    An overloaded server closes a new connection before the handshake ends, or does not reply. A retry
    is safe, because the client has not yet sent the command. Certificate errors, missing TLS support,
    proxy errors and pool clears do not indicate overload. The caller ensures that the name lookup
    succeeded.
    """
    if not isinstance(error, AutoReconnect) or isinstance(error, PoolClearedError):
        return
    cause = error.__cause__
    while cause is not None:
        excludes_overload = isinstance(cause, ssl.SSLError) and not isinstance(cause, _TLS_CLOSED_ERRORS)
        if excludes_overload or isinstance(cause, ProxyError):
            return
        cause = cause.__cause__
    error._add_error_label(OVERLOADED)
    error._add_error_label(RETRYABLE)
