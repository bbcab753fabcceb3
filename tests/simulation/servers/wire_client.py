"""A client that sends and receives single wire protocol messages without a driver."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import bson
from gevent import socket

from gmongo.testing import Deployment
from gmongo.wire.message import EXHAUST_ALLOWED, MORE_TO_COME, next_request_id

TIMEOUT_SECONDS = 30.0


@contextmanager
def standalone_client(**settings: Any) -> Iterator[WireClient]:
    """Yield a connection to a new simulated standalone."""
    with (
        Deployment.standalone(**settings) as deployment,
        WireClient(deployment.members[0].address) as client,
    ):
        yield client


class WireClient:
    """Context manager of one connection to a server. The end of the block closes the connection."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, command: dict[str, Any], database: str = "admin", flags: int = 0) -> None:
        body = bson.encode({**command, "$db": database})
        message = struct.pack("<iiiiIB", 21 + len(body), next_request_id(), 0, 2013, flags, 0) + body
        self.socket.sendall(message)

    def receive(self) -> tuple[dict[str, Any], bool]:
        """Return the next reply, and whether the server will send another reply to the request."""
        length, _, _, opcode = struct.unpack("<iiii", self.read(16))
        payload = self.read(length - 16)
        assert opcode == 2013
        flags = struct.unpack_from("<I", payload)[0]
        return bson.decode(payload[5:]), bool(flags & MORE_TO_COME)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise EOFError(data)
            data += chunk
        return data

    def run(self, command: dict[str, Any], database: str = "admin") -> dict[str, Any]:
        """Send a command, and return the reply. If the command fails, return the error reply."""
        self.send(command, database)
        reply, more = self.receive()
        assert not more
        return reply

    def stream(self, command: dict[str, Any]) -> None:
        """Send a command with the flag exhaustAllowed, so that the server may send several
        replies.
        """
        self.send(command, flags=EXHAUST_ALLOWED)

    def server_closes_connection(self) -> bool:
        """Wait until the server sends data or closes the connection.

        Return True if the server closed the connection.
        """
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
