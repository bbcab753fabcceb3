"""Opening sockets: name resolution, then a non-blocking connect to each address in turn.

Then, if that was asked for, a proxy is asked to connect further, and TLS begins.
"""

from __future__ import annotations

import _socket
from collections.abc import Callable, Sequence
from typing import TypeAlias

from gevent import get_hub
from gevent.resolver.thread import Resolver

from gmongo._threads import in_a_thread
from gmongo.wire.address import Address, SocketAddress
from gmongo.wire.socks5 import Proxy, connect_through
from gmongo.wire.tls import Tls, TlsTransport
from gmongo.wire.transport import Transport, TransportError

# Dead peers are found in about 210 seconds: probes start after two idle minutes, nine of them ten seconds apart.
_KEEPALIVE = (("TCP_KEEPIDLE", 120), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 9))
_getaddrinfo = _socket.getaddrinfo
AddressInfo: TypeAlias = tuple[int, int, int, str, SocketAddress]
_NUMERIC_FAMILIES = (_socket.AF_INET, _socket.AF_INET6)


def connect(
    address: Address,
    attach: Callable[[Transport], None],
    ref: bool = True,
    tls: Tls | None = None,
    proxy: Proxy | None = None,
) -> None:
    """Connect to `address`, trying each of its IP addresses in the resolver's order. Limits of time are the caller's.

    :param attach: is given each transport before it connects, so that its owner can interrupt it; the last one given
        is the connected one.
    :param ref: whether waiting on the socket keeps the hub running.
    :param tls: how to encrypt; None is not at all.
    :param proxy: the proxy to connect through, unless `address` is that of a Unix domain socket.
    :raises TransportError: no address could be reached; the error is that of the last one tried.
    """
    proxy = None if address[1] is None else proxy
    last_error: TransportError | None = None
    try:
        for family, sockaddr in _resolve(address if proxy is None else proxy.address, ref):
            sock = _open(family)
            transport = Transport(sock, ref) if tls is None else tls.transport(sock, ref, address[0])
            try:
                attach(transport)
                if proxy is None:
                    transport.connect(sockaddr)
                else:
                    connect_through(proxy, transport, sockaddr, address)
                if isinstance(transport, TlsTransport):
                    transport.shake_hands()
            except TransportError as error:
                transport.close()
                last_error = error
            except BaseException:
                transport.close()
                raise
            else:
                return
        raise last_error or TransportError(f"{address[0]} has no address")
    finally:
        last_error = None  # it refers to this frame


def _resolve(address: Address, ref: bool) -> list[tuple[int, SocketAddress]]:
    host, port = address
    if port is None:
        return [(_socket.AF_UNIX, host)]
    for family in _NUMERIC_FAMILIES:  # an IP literal needs no resolver, which would cost a thread hop
        try:
            _socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    try:
        host.encode("idna")  # the resolver does this in a thread, where a failure would be printed
    except UnicodeError as error:
        raise TransportError(f"{host!r} cannot be a host name: {error}") from error
    found = _look_up(host, port, ref)
    if isinstance(found, Exception):
        try:
            raise TransportError(*found.args) from found
        finally:
            del found  # it refers to this frame
    return [(int(family), sockaddr) for family, _type, _protocol, _name, sockaddr in found]


def _look_up(host: str, port: int, ref: bool) -> Sequence[AddressInfo] | Exception:
    """What the resolver says that the application has chosen. gevent's usual one asks the C library in a thread; so
    does this, in one that does not hold the hub.
    """
    resolver = get_hub().resolver
    if type(resolver) is Resolver:
        return in_a_thread(lambda: _getaddrinfo(host, port, 0, _socket.SOCK_STREAM), ref)
    try:
        found: Sequence[AddressInfo] = resolver.getaddrinfo(host, port, 0, _socket.SOCK_STREAM, 0, 0)
    except _socket.gaierror as error:
        return error
    return found


def _open(family: int) -> _socket.socket:
    try:
        sock = _socket.socket(family)
        sock.setblocking(False)
        if family != _socket.AF_UNIX:
            _tune(sock)
    except OSError as error:  # such as too many open files
        raise TransportError(*error.args) from error
    return sock


def _tune(sock: _socket.socket) -> None:
    sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(_socket, name, None)
        if option is not None:
            sock.setsockopt(_socket.IPPROTO_TCP, option, min(value, sock.getsockopt(_socket.IPPROTO_TCP, option)))
