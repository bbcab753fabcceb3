"""Send BSON documents through a socket, between a remote deployment and the code that started the deployment."""

from __future__ import annotations

import select
from typing import Any

import bson
from bson.codec_options import CodecOptions

_LENGTH_SIZE = 4
_CHUNK_SIZE = 1 << 16
_CODEC_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(tz_aware=False)


class Channel:
    """One end of a connection that transfers BSON documents. `sock` is a socket of the standard library or gevent."""

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._unread = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(bson.encode(message, codec_options=_CODEC_OPTIONS))

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """Return the next document, or None if the other end has closed the connection. `seconds` is the timeout."""
        self._socket.settimeout(seconds)
        if not self._read(_LENGTH_SIZE):
            return None
        length = int.from_bytes(self._unread[:_LENGTH_SIZE], "little")
        if not self._read(length):
            return None
        message = bytes(self._unread[:length])
        del self._unread[:length]
        return bson.decode(message, _CODEC_OPTIONS)

    def is_readable(self) -> bool:
        """Return True if the other end has sent unread bytes, or has closed the connection."""
        return bool(self._unread) or bool(select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bool:
        while len(self._unread) < size:
            try:
                chunk = self._socket.recv(_CHUNK_SIZE)
            except ConnectionResetError:
                return False
            if not chunk:
                return False
            self._unread += chunk
        return True
