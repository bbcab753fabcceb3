"""One TLS server that simulates all key management services.

The ciphertext of a secret contains the bytes of the secret in reverse order.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from gevent import socket
from gevent.server import StreamServer
from gevent.ssl import SSLContext

HOST_PATTERN = re.compile(
    r"kms\.[a-z]{2}-[a-z]+-\d\.amazonaws\.com|login\.microsoftonline\.com|.*\.vault\.azure\.net|"
    r"oauth2\.googleapis\.com|cloudkms\.googleapis\.com|localhost|.*\.kms\.example|127\.0\.0\.1"
)
_TOKEN_RESPONSE = {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"}
_CONSTANT_BYTES = bytes(range(96))


class KmsError(Exception):
    """The server does not support the request, and replies with HTTP status 400."""


class KmsServer:
    """Context manager of a TLS server that acts as all key management services.

    :param context: TLS context with the certificate of the server.
    :ivar requests: One pair for each request: the host and the path of an HTTP request, or
        ``"kmip"`` and the KMIP operation.
    :ivar failure_count: Number of the next requests that receive no reply. The server closes their
        connections.
    :ivar status: Status code of the HTTP responses to supported requests, 200 by default.
    :ivar delay: Function that the server calls after each request.
    :ivar open_connection_count: Number of open TLS connections.
    """

    def __init__(self, context: SSLContext) -> None:
        self._context = context
        self._secrets: dict[str, bytes] = {}
        self._server = StreamServer(("127.0.0.1", 0), self._serve)
        self.requests: list[tuple[str, str]] = []
        self.failure_count = 0
        self.status = 200
        self.delay: Callable[[], None] = lambda: None
        self.open_connection_count = 0

    def __enter__(self) -> KmsServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(timeout=0)

    @property
    def port(self) -> int:
        port: int = self._server.server_port
        return port

    def connect(self, context: Any) -> Any:
        """Return a socket that is connected to this server instead of a key management service.

        Tests use this method as ``kms_connect_callback``.
        """
        if not HOST_PATTERN.fullmatch(context.host):
            raise OSError(f"no such host: {context.host}")
        return socket.create_connection(("127.0.0.1", self.port), context.timeout)

    def _serve(self, plain_socket: Any, _address: Any) -> None:
        try:
            sock = self._context.wrap_socket(plain_socket, server_side=True)
        except OSError:
            plain_socket.close()
            return
        self.open_connection_count += 1
        try:
            first_byte = sock.recv(1)
            if first_byte == b"\x42":
                self._serve_kmip(sock, first_byte)
            elif first_byte:
                self._serve_http(sock, first_byte)
        except OSError:
            pass
        finally:
            self.open_connection_count -= 1
            sock.close()

    def _may_reply(self) -> bool:
        self.delay()
        if self.failure_count:
            self.failure_count -= 1
            return False
        return True

    # HTTP

    def _serve_http(self, sock: Any, data: bytes) -> None:
        while b"\r\n\r\n" not in data:
            data += sock.recv(4096)
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            body += sock.recv(4096)
        path = lines[0].split(" ")[1]
        self.requests.append((headers["host"], path))
        if not self._may_reply():
            return
        try:
            status, answer = self.status, self._http_response(path, headers, body)
        except KmsError as error:
            status, answer = 400, {"error": str(error)}
        text = json.dumps(answer if status == 200 else {"error": "refused"}).encode()
        sock.sendall(b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text))

    def _http_response(self, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        if path.partition("?")[0].endswith("/token"):
            return _TOKEN_RESPONSE
        fields = json.loads(body)
        target = headers.get("x-amz-target")
        if target == "TrentService.Encrypt":
            return {"CiphertextBlob": b64encode(encrypt(b64decode(fields["Plaintext"]))).decode()}
        if target == "TrentService.Decrypt":
            return {"Plaintext": b64encode(decrypt(b64decode(fields["CiphertextBlob"]))).decode()}
        if "/wrapkey" in path:
            return {"value": urlsafe_b64encode(encrypt(_urlsafe(fields["value"]))).decode().rstrip("=")}
        if "/unwrapkey" in path:
            return {"value": urlsafe_b64encode(decrypt(_urlsafe(fields["value"]))).decode().rstrip("=")}
        if path.endswith(":encrypt"):
            return {"ciphertext": b64encode(encrypt(b64decode(fields["plaintext"]))).decode()}
        if path.endswith(":decrypt"):
            return {"plaintext": b64encode(decrypt(b64decode(fields["ciphertext"]))).decode()}
        raise KmsError(path)

    # KMIP

    def _serve_kmip(self, sock: Any, data: bytes) -> None:
        while True:
            while len(data) < 8 or len(data) < 8 + struct.unpack(">I", data[4:8])[0]:
                piece = sock.recv(4096)
                if not piece:
                    return
                data += piece
            request, data = _values_by_tag(data), b""
            if not self._may_reply():
                return
            sock.sendall(self._kmip_response(request))

    def _kmip_response(self, request: Mapping[int, bytes]) -> bytes:
        operation = struct.unpack(">I", request[_OPERATION])[0]
        self.requests.append(("kmip", _OPERATION_NAMES[operation]))
        name = request.get(_UNIQUE_IDENTIFIER, b"").decode()
        if _OPERATION_NAMES[operation] in ("Register", "Create"):
            name = f"secret-{len(self._secrets)}"
            self._secrets[name] = request.get(_KEY_MATERIAL, _CONSTANT_BYTES)
        payload = _item(_UNIQUE_IDENTIFIER, 7, name.encode())
        if _OPERATION_NAMES[operation] == "Get":
            value = _item(_KEY_MATERIAL, 8, self._secrets.get(name, _CONSTANT_BYTES))
            block = _item(0x420042, 5, struct.pack(">I", 2)) + _item(0x420045, 1, value)
            secret = _item(0x420086, 5, struct.pack(">I", 1)) + _item(0x420040, 1, block)
            payload = _item(0x420057, 5, struct.pack(">I", 7)) + payload + _item(0x420085, 1, secret)
        elif _OPERATION_NAMES[operation] == "Encrypt":
            payload += _item(_DATA, 8, encrypt(request[_DATA])) + _item(_NONCE, 8, bytes(16))
        elif _OPERATION_NAMES[operation] == "Decrypt":
            payload += _item(_DATA, 8, decrypt(request[_DATA]))
        version = _item(0x42006A, 2, struct.pack(">i", 1)) + _item(0x42006B, 2, struct.pack(">i", 0))
        header = _item(0x420069, 1, version) + _item(0x420092, 9, bytes(8)) + _item(0x42000D, 2, struct.pack(">i", 1))
        batch = _item(_OPERATION, 5, request[_OPERATION]) + _item(0x42007F, 5, bytes(4)) + _item(0x42007C, 1, payload)
        return _item(0x42007B, 1, _item(0x42007A, 1, header) + _item(0x42000F, 1, batch))


_OPERATION, _UNIQUE_IDENTIFIER, _KEY_MATERIAL, _DATA, _NONCE = 0x42005C, 0x420094, 0x420043, 0x4200C2, 0x42003D
_OPERATION_NAMES = {1: "Create", 3: "Register", 10: "Get", 18: "Activate", 31: "Encrypt", 32: "Decrypt"}
_STRUCTURE_TYPE = 1


def encrypt(secret: bytes) -> bytes:
    """Return the ciphertext of a secret: a prefix and the reversed bytes."""
    return b"turned:" + secret[::-1]


def decrypt(ciphertext: bytes) -> bytes:
    """Decrypt a ciphertext that this server created.

    For a ciphertext that this server did not create, return constant bytes.
    """
    return ciphertext[len(b"turned:") :][::-1] if ciphertext.startswith(b"turned:") else _CONSTANT_BYTES


def _urlsafe(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _item(tag: int, kind: int, value: bytes) -> bytes:
    padding = 0 if kind == _STRUCTURE_TYPE else -len(value) % 8
    return struct.pack(">I", tag << 8 | kind) + struct.pack(">I", len(value)) + value + bytes(padding)


def _values_by_tag(data: bytes) -> dict[int, bytes]:
    """Return the values of a KMIP message, keyed by their tags.

    The dictionary also contains the values inside nested structures.
    """
    values: dict[int, bytes] = {}
    position = 0
    while position + 8 <= len(data):
        tag, kind, length = data[position] << 16 | data[position + 1] << 8 | data[position + 2], data[position + 3], 0
        (length,) = struct.unpack(">I", data[position + 4 : position + 8])
        position += 8
        if kind != _STRUCTURE_TYPE:
            values[tag] = data[position : position + length]
            position += length + -length % 8
    return values
