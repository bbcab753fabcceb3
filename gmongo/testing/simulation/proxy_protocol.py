"""Skip the PROXY preamble that a load balancer sends. The simulation ignores the addresses in the preamble."""

from __future__ import annotations

from typing import Any

from gevent.socket import MSG_PEEK

from gmongo.testing.simulation.framing import receive_exactly
from gmongo.testing.simulation.waiting import pause

_VERSION_1_PREFIX = b"PROXY "
_VERSION_2_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_MAX_LINE_BYTES = 107
_LENGTH_OFFSET = 14
_HEADER_SIZE = 16
_CHECK_INTERVAL = 0.001  # seconds


def skip_preamble(sock: Any) -> None:
    """Receive the PROXY preamble of version 1 or 2, if the client sends a preamble.

    :raises OSError: the connection ended, or the preamble is too long.
    """
    size = len(_VERSION_1_PREFIX)
    while len(first_bytes := sock.recv(size, MSG_PEEK)) < size:
        if not first_bytes:
            raise ConnectionResetError("the connection ended before its first byte")
        pause(_CHECK_INTERVAL)
    if first_bytes == _VERSION_1_PREFIX:
        line = b""
        while not line.endswith(b"\r\n"):
            if len(line) > _MAX_LINE_BYTES:
                raise ConnectionAbortedError("the line of the PROXY preamble is too long")
            line += receive_exactly(sock, 1)
    elif _VERSION_2_SIGNATURE.startswith(first_bytes):
        header = receive_exactly(sock, _HEADER_SIZE)
        receive_exactly(sock, int.from_bytes(header[_LENGTH_OFFSET:], "big"))
