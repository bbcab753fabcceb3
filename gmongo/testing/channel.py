"""BSON documents over a socket, between a deployment that runs elsewhere and who started it."""

from __future__ import annotations

import select
from typing import Any

import bson
from bson.codec_options import CodecOptions

_LENGTH = 4
_CHUNK = 1 << 16
_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(tz_aware=False)


class Channel:
    """One end of it.

    :param sock: a connected socket, of the standard library or of gevent.
    """

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._unread = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        """Send a document."""
        self._socket.sendall(bson.encode(message, codec_options=_OPTIONS))

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """The next document; None when the other end has been closed.

        :param seconds: how long it is waited for; None is without end.
        :raises TimeoutError: nothing came in time.
        """
        self._socket.settimeout(seconds)
        if not self._read(_LENGTH):
            return None
        length = int.from_bytes(self._unread[:_LENGTH], "little")
        if not self._read(length):
            return None
        message = bytes(self._unread[:length])
        del self._unread[:length]
        return bson.decode(message, _OPTIONS)

    def has_something(self) -> bool:
        """Whether :meth:`receive` would return at once."""
        return bool(self._unread) or bool(select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _read(self, size: int) -> bool:
        while len(self._unread) < size:
            try:
                chunk = self._socket.recv(_CHUNK)
            except ConnectionResetError:
                return False
            if not chunk:
                return False
            self._unread += chunk
        return True
