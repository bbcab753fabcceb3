"""Proxies between a client and a server: a proxy that compresses messages, and a SOCKS5 proxy."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

import gevent
from gevent import socket as gevent_socket
from gevent.server import StreamServer

from gmongo.wire.compression import decompress_message, make_compressor
from gmongo.wire.message import OP_COMPRESSED, OP_MSG

HEADER = struct.Struct("<iiii")


def read(sock: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError
        data += chunk
    return data


def copy_bytes(source: Any, target: Any) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass


def relay(sock: Any, other: Any, copy: Callable[[Any, Any], None] = copy_bytes) -> None:
    """Copy bytes in both directions until one socket closes."""
    greenlets = [gevent.spawn(copy, sock, other), gevent.spawn(copy, other, sock)]
    gevent.joinall(greenlets, count=1)
    gevent.killall(greenlets)


class ProxyServer:
    """Context manager of a proxy on the loopback interface. Subclasses define ``serve``."""

    def __init__(self, **options: Any) -> None:
        self._listener = StreamServer(("127.0.0.1", 0), self._accept, **options)

    def __enter__(self) -> Any:
        self._listener.start()
        self.port = self._listener.server_port
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop(timeout=0)

    def _accept(self, sock: Any, _address: Any) -> None:
        try:
            self.serve(sock)
        except OSError:
            pass
        finally:
            sock.close()

    def serve(self, sock: Any) -> None:
        raise NotImplementedError


class CompressingProxy(ProxyServer):
    """Proxy for a server without compression. The proxy decompresses each compressed request. If
    `reply_compressor` is set, the proxy compresses the replies to these requests.
    """

    def __init__(self, server: Any, offered_compressors: list[str], reply_compressor: str | None = None) -> None:
        super().__init__()
        self.server = server
        self.offered_compressors = offered_compressors
        self.reply_compressor = reply_compressor
        self.compressor_ids: list[int] = []
        self.tamper: Callable[[bytes], bytes] = lambda message: message

    def serve(self, sock: Any) -> None:
        with gevent_socket.create_connection(self.server.address) as server_socket:
            while True:
                length, request_id, response_to, opcode = HEADER.unpack(read(sock, 16))
                payload = read(sock, length - 16)
                was_compressed = opcode == OP_COMPRESSED
                if was_compressed:
                    self.compressor_ids.append(payload[8])
                    opcode, view = decompress_message(memoryview(payload), 48_000_000)
                    payload = bytes(view)
                server_socket.sendall(HEADER.pack(16 + len(payload), request_id, response_to, opcode) + payload)
                length, request_id, response_to, opcode = HEADER.unpack(read(server_socket, 16))
                reply = read(server_socket, length - 16)
                if was_compressed and self.reply_compressor is not None:
                    sock.sendall(self.tamper(self._compress_reply(request_id, response_to, opcode, reply)))
                else:
                    sock.sendall(HEADER.pack(length, request_id, response_to, opcode) + reply)

    def _compress_reply(self, request_id: int, response_to: int, opcode: int, reply: bytes) -> bytes:
        assert opcode == OP_MSG
        compressor = make_compressor(self.reply_compressor or "zlib", -1)
        content = compressor.compress(reply)
        wrapper = struct.pack("<iiB", opcode, len(reply), compressor.id)
        return HEADER.pack(25 + len(content), request_id, response_to, OP_COMPRESSED) + wrapper + content


class Socks5Proxy(ProxyServer):
    """Context manager of a SOCKS5 proxy."""

    def __init__(
        self,
        required_credentials: tuple[str, str] | None = None,
        addresses_by_host: dict[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.required_credentials = required_credentials
        self.addresses_by_host = addresses_by_host or {}
        self.requests: list[tuple[int, str, int]] = []
        self.methods: list[bytes] = []
        self.refuse_with = 0
        self.bound_address = b"\x01\x7f\x00\x00\x01\x00\x00"

    def serve(self, sock: Any) -> None:
        _version, count = read(sock, 2)
        methods = read(sock, count)
        self.methods.append(methods)
        method = 2 if self.required_credentials else 0
        if method not in methods:
            sock.sendall(b"\x05\xff")
            return
        sock.sendall(bytes([5, method]))
        if self.required_credentials and not self._authenticate(sock):
            return
        _version, _command, _reserved, kind = read(sock, 4)
        host = self._read_host(sock, kind)
        [port] = struct.unpack(">H", read(sock, 2))
        self.requests.append((kind, host, port))
        if self.refuse_with:
            sock.sendall(bytes([5, self.refuse_with, 0]) + self.bound_address)
            return
        with gevent_socket.create_connection((self.addresses_by_host.get(host, host), port)) as server_socket:
            sock.sendall(b"\x05\x00\x00" + self.bound_address)
            relay(sock, server_socket)

    def _authenticate(self, sock: Any) -> bool:
        read(sock, 1)
        credentials = tuple(read(sock, read(sock, 1)[0]).decode() for _ in range(2))
        sock.sendall(b"\x01\x00" if credentials == self.required_credentials else b"\x01\x01")
        return credentials == self.required_credentials

    def _read_host(self, sock: Any, kind: int) -> str:
        if kind == 3:
            return read(sock, read(sock, 1)[0]).decode()
        family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
        return socket.inet_ntop(family, read(sock, size))
