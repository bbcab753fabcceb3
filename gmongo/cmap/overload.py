"""What a failed attempt to connect says of the load on a server (Client Backpressure, BP-05, BP-06, BP-A19)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from gmongo._server_facts.labels import OVERLOADED, RETRYABLE
from gmongo.errors import AutoReconnect, PoolClearedError
from gmongo.wire.socks5 import ProxyError


def label_overload(error: BaseException) -> None:
    """Label a failure to connect as a sign of overload: a server that limits new connections closes them early, or lets
    them wait. Nothing has been sent by then, so trying again is safe. A name must have been resolved before.

    A certificate that is not accepted, a peer without TLS and a proxy that refuses are no such signs; nor is the clear
    of a pool, which ends what its connections are doing.
    """
    if not isinstance(error, AutoReconnect) or isinstance(error, PoolClearedError):
        return
    if not any(_is_no_sign(each) for each in _causes(error)):
        error._add_error_label(OVERLOADED)
        error._add_error_label(RETRYABLE)


def _is_no_sign(error: BaseException) -> bool:
    if isinstance(error, ssl.SSLError):
        return not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError))
    return isinstance(error, ProxyError)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__
    while cause is not None:
        yield cause
        cause = cause.__cause__
