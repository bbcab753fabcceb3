"""SOCKS5 (RFC 1928, RFC 1929): connections to servers through a proxy."""

from __future__ import annotations

import _socket
from dataclasses import dataclass, field

from gmongo.wire.address import Address
from gmongo.wire.transport import Transport, TransportError

_VERSION = 5
_NO_AUTHENTICATION = 0
_USERNAME_PASSWORD = 2
_NO_ACCEPTABLE_METHOD = 0xFF
_CONNECT_COMMAND = 1
_IPV4_TYPE, _DOMAIN_TYPE, _IPV6_TYPE = 1, 3, 4
_MAX_TEXT_SIZE = 255

_REFUSALS = {
    1: "general failure of the proxy",
    2: "connection not allowed by the proxy's rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported by the proxy",
    8: "kind of address not supported by the proxy",
}


class ProxyError(TransportError):
    """Error: the proxy did not connect to the server."""


@dataclass(frozen=True)
class Proxy:
    """SOCKS5 proxy, with the user name and password for authentication."""

    address: Address
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


def connect_through(proxy: Proxy, transport: Transport, destination: Address) -> None:
    """Connect to `destination` through `proxy`, which resolves the host name."""
    try:
        _authenticate(transport, proxy)
        _request_connection(transport, destination)
    except TransportError as error:
        host, port = proxy.address
        raise ProxyError(f"SOCKS5 proxy {host}:{port}: {error}") from error


def _authenticate(transport: Transport, proxy: Proxy) -> None:
    methods = [_NO_AUTHENTICATION] + ([_USERNAME_PASSWORD] if proxy.username else [])
    transport.send_raw(bytes([_VERSION, len(methods), *methods]))
    version, method = transport.read_raw(2)
    _check_version(version)
    if method == _NO_AUTHENTICATION:
        return
    if method not in methods:
        unnamed_method = "another method" if proxy.username else "a username and password"
        required = unnamed_method if method == _NO_ACCEPTABLE_METHOD else f"the method {method}"
        raise TransportError(f"the proxy requires {required}, but gmongo offers the methods {methods}")
    username = _encode_with_length(proxy.username, "username")
    transport.send_raw(b"\x01" + username + _encode_with_length(proxy.password, "password"))
    _version, status = transport.read_raw(2)
    if status != 0:
        raise TransportError("the proxy rejected proxyUsername and proxyPassword")


def _encode_with_length(text: str | None, name: str) -> bytes:
    encoded = (text or "").encode()
    if len(encoded) > _MAX_TEXT_SIZE:
        raise TransportError(f"the {name} is {len(encoded)} bytes long, but SOCKS5 allows {_MAX_TEXT_SIZE}")
    return bytes([len(encoded)]) + encoded


def _request_connection(transport: Transport, destination: Address) -> None:
    host, port = destination
    assert port is not None  # proxies do not support Unix domain sockets
    destination_bytes = _encode_destination(host) + port.to_bytes(2, "big")
    transport.send_raw(bytes([_VERSION, _CONNECT_COMMAND, 0]) + destination_bytes)
    version, status, _reserved, kind = transport.read_raw(4)
    _check_version(version)
    if status != 0:
        raise TransportError(f"{host}:{port}: {_REFUSALS.get(status, f'refused with code {status}')}")
    if kind == _DOMAIN_TYPE:
        rest_size = transport.read_raw(1)[0]
    elif kind in (_IPV4_TYPE, _IPV6_TYPE):
        rest_size = 4 if kind == _IPV4_TYPE else 16
    else:
        raise TransportError(f"the reply of the proxy has an address of the unknown kind {kind}")
    transport.read_raw(rest_size + 2)  # skip the local address of the connection from the proxy to the server


def _encode_destination(host: str) -> bytes:
    for kind, family in ((_IPV4_TYPE, _socket.AF_INET), (_IPV6_TYPE, _socket.AF_INET6)):
        try:
            return bytes([kind]) + _socket.inet_pton(family, host)
        except OSError:
            continue
    return bytes([_DOMAIN_TYPE]) + _encode_with_length(host, "host name")


def _check_version(version: int) -> None:
    if version != _VERSION:
        raise TransportError(f"the proxy does not speak SOCKS5 (version {version})")
