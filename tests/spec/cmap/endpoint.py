"""A server for the pool's tests: it answers handshakes, slowly or badly if a fail point says so."""

from __future__ import annotations

import struct
from typing import Any

import bson
import gevent
from gevent import socket
from gevent.server import StreamServer

OP_QUERY = 2004
HELLO = {
    "ok": 1,
    "helloOk": True,
    "isWritablePrimary": True,
    "ismaster": True,
    "minWireVersion": 0,
    "maxWireVersion": 25,
    "maxBsonObjectSize": 16 * 1024 * 1024,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
}


class Endpoint:
    """Answers any command with a hello.

    :param fail_point: a ``configureFailPoint`` command; it applies to handshakes of its ``appName``.
    """

    def __init__(self, fail_point: dict[str, Any] | None = None) -> None:
        self._fail_point = fail_point or {}
        mode = self._fail_point.get("mode", "off")
        self._times = mode["times"] if isinstance(mode, dict) else 1 << 30 if mode == "alwaysOn" else 0
        self._server = StreamServer(("127.0.0.1", 0), self._serve)

    def __enter__(self) -> Endpoint:
        self._server.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.stop(timeout=0)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self._server.server_port

    def _serve(self, sock: socket.socket, _peer: Any) -> None:
        with sock, sock.makefile("rb") as stream:
            while True:
                header = stream.read(16)
                if len(header) < 16:
                    return
                length, request_id, _, opcode = struct.unpack("<iiii", header)
                command = self._command(opcode, stream.read(length - 16))
                reply = self._reply(command)
                if reply is None:
                    return
                sock.sendall(_encoded(opcode, request_id, bson.encode(reply)))

    @staticmethod
    def _command(opcode: int, payload: bytes) -> dict[str, Any]:
        if opcode == OP_QUERY:
            return bson.decode(payload[payload.index(b"\x00", 4) + 9 :])
        return bson.decode(payload[5:])

    def _reply(self, command: dict[str, Any]) -> dict[str, Any] | None:
        fault = self._fail_point.get("data", {})
        name = command.get("client", {}).get("application", {}).get("name")
        if self._times == 0 or fault.get("appName") != name:
            return HELLO
        self._times -= 1
        gevent.sleep(fault.get("blockTimeMS", 0) / 1000)
        if fault.get("closeConnection"):
            return None
        if "errorCode" in fault:
            return {"ok": 0, "code": fault["errorCode"], "errmsg": "fail point"}
        return HELLO


def _encoded(opcode: int, request_id: int, body: bytes) -> bytes:
    if opcode == OP_QUERY:
        rest, kind = struct.pack("<iqii", 0, 0, 0, 1), 1
    else:
        rest, kind = b"\x00" * 5, 2013
    return struct.pack("<iiii", 16 + len(rest) + len(body), 1, request_id, kind) + rest + body
