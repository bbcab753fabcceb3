"""Skip the PROXY preamble that a load balancer sends. The simulation ignores the addresses in the preamble."""

from __future__ import annotations

from typing import Any

_VERSION_1 = b"PROXY "
_VERSION_2 = b"\r\n\r\n\x00\r\nQUIT\n"
_LONGEST_LINE = 107
_LENGTH_AT = 14
_HEADER = 16


class Pushback:
    """A stream that returns bytes that were received before, and then the bytes of a socket.

    :param sock: the socket of the connection.
    :param first: the bytes that were received before.
    """

    def __init__(self, sock: Any, first: bytes) -> None:
        self._socket = sock
        self._first = first

    def recv(self, size: int) -> bytes:
        """Return at most `size` received bytes. Return an empty result if the client has closed the connection."""
        if self._first:
            first, self._first = self._first[:size], self._first[size:]
            return first
        return bytes(self._socket.recv(size))

    def sendall(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()


def skip_preamble(sock: Any) -> Pushback:
    """Return a stream of the bytes after the PROXY preamble of version 1 or 2. A connection may have no preamble.

    :raises OSError: the connection ended, or the preamble is too long.
    """
    start = _read_until(sock, b"", len(_VERSION_1))
    if start == _VERSION_1:
        return Pushback(sock, _skip_line(sock, start))
    if start == _VERSION_2[: len(start)]:
        start = _read_until(sock, start, _HEADER)
        end = _HEADER + int.from_bytes(start[_LENGTH_AT:_HEADER], "big")
        return Pushback(sock, _read_until(sock, start, end)[end:])
    return Pushback(sock, start)


def _read_until(sock: Any, received: bytes, size: int) -> bytes:
    while len(received) < size:
        chunk = sock.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("the connection ended in its first bytes")
        received += chunk
    return received


def _skip_line(sock: Any, line: bytes) -> bytes:
    while not line.endswith(b"\r\n"):
        if len(line) > _LONGEST_LINE:
            raise ConnectionAbortedError("the PROXY preamble has no end")
        line = _read_until(sock, line, len(line) + 1)
    return b""
