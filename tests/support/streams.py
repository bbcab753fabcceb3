"""Open the socket of a connection, but send no MongoDB handshake."""

from __future__ import annotations

from gmongo.cmap.connecting import ConnectTimeout, connect
from gmongo.cmap.connection import Connection
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.cmap.progress import Progress
from gmongo.wire.tls import Tls


def open_stream(connection: Connection, tls: Tls | None = None) -> None:
    """Open the transport (TCP, or TLS if `tls` is set) of `connection` without a time limit."""
    settings = ConnectionSettings(tls=tls)
    progress = Progress(connection.address[0], settings)
    connect(connection, settings, progress, ConnectTimeout(connection, None, True))
