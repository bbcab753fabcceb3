"""Overload labels of connection errors (Client Backpressure, BP-05, BP-06, BP-A19)."""

from __future__ import annotations

import ssl

from gmongo._server_facts.labels import OVERLOADED, RETRYABLE
from gmongo.errors import AutoReconnect, PoolClearedError
from gmongo.wire.socks5 import ProxyError

_CLOSED_DURING_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def label_connect_error(error: BaseException) -> None:
    """Add the overload labels to a connection error, if overload may be its cause.

    An overloaded server closes a new connection before the handshake ends, or does not reply. A retry is safe, because
    the client has not yet sent the command. Certificate errors, missing TLS support, proxy errors and pool clears do
    not indicate overload. The caller ensures that the name lookup succeeded.
    """
    if not isinstance(error, AutoReconnect) or isinstance(error, PoolClearedError):
        return
    cause = error.__cause__
    while cause is not None:
        excludes_overload = isinstance(cause, ssl.SSLError) and not isinstance(cause, _CLOSED_DURING_TLS)
        if excludes_overload or isinstance(cause, ProxyError):
            return
        cause = cause.__cause__
    error._add_error_label(OVERLOADED)
    error._add_error_label(RETRYABLE)
