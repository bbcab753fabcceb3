"""Skip the PROXY preamble that a load balancer sends. The simulation ignores the addresses in the preamble."""

from __future__ import annotations

from typing import Any

from gevent.socket import MSG_PEEK

from gmongo.testing.simulation.framing import receive_exactly
from gmongo.testing.simulation.waiting import pause

_VERSION_1 = b"PROXY "
_VERSION_2 = b"\r\n\r\n\x00\r\nQUIT\n"
_MAX_LINE_BYTES = 107
_LENGTH_OFFSET = 14
_HEADER_SIZE = 16
_CHECK_INTERVAL = 0.001  # seconds


def skip_preamble(sock: Any) -> None:
    """Receive the PROXY preamble of version 1 or 2, if the client sends a preamble.

    :raises OSError: the connection ended, or the preamble is too long.
    """
    size = len(_VERSION_1)
    while len(start := sock.recv(size, MSG_PEEK)) < size:
        if not start:
            raise ConnectionResetError("the connection ended in its first bytes")
        pause(_CHECK_INTERVAL)
    if start == _VERSION_1:
        line = b""
        while not line.endswith(b"\r\n"):
            if len(line) > _MAX_LINE_BYTES:
                raise ConnectionAbortedError("the PROXY preamble has no end")
            line += receive_exactly(sock, 1)
    elif _VERSION_2.startswith(start):
        header = receive_exactly(sock, _HEADER_SIZE)
        receive_exactly(sock, int.from_bytes(header[_LENGTH_OFFSET:], "big"))
