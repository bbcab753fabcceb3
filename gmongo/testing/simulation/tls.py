"""The server side of TLS, with memory buffers.

The class `TlsStream` accepts any ``ssl.SSLContext``, and does not block the event loop.
"""

from __future__ import annotations

import ssl
from typing import Any, Protocol

from gevent.lock import Semaphore

_CHUNK_SIZE = 1 << 16


class Stream(Protocol):
    """The socket methods that a connection uses."""

    def recv(self, size: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


class TlsStream:
    """A TLS connection over a connected socket. The constructor performs the handshake."""

    def __init__(self, sock: Any, context: ssl.SSLContext) -> None:
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._send_lock = Semaphore()
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                if not self._fill():
                    raise ConnectionResetError("the client left during the TLS handshake") from None
            except ssl.SSLError:
                self._flush()  # send the TLS alert
                raise
            else:
                break
        self._flush()

    @property
    def peer_certificate(self) -> dict[str, Any] | None:
        """The verified certificate of the client. None if the client sent no certificate."""
        return self._tls.getpeercert() or None

    def recv(self, size: int) -> bytes:
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._flush()
                if not self._fill():
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def sendall(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def close(self) -> None:
        self._socket.close()

    def _fill(self) -> bool:
        data = self._socket.recv(_CHUNK_SIZE)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return bool(data)

    def _flush(self) -> None:
        with self._send_lock:  # greenlets in `recv` and `sendall` may both send TLS records
            if data := self._outgoing.read():
                self._socket.sendall(data)
