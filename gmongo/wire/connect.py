"""Name lookup and non-blocking connections."""

from __future__ import annotations

import _socket
from collections.abc import Callable, Sequence
from typing import TypeAlias

from gevent import get_hub
from gevent.resolver.thread import Resolver

from gmongo._native_threads import run_in_native_thread
from gmongo.wire.address import Address, SocketAddress
from gmongo.wire.race import AddressOrder, Endpoint, Race
from gmongo.wire.tls import Tls, TlsTransport
from gmongo.wire.transport import Transport, TransportError

# TCP keepalive detects a dead peer after about 210 seconds: 120 idle seconds, and 9 probes at
# intervals of 10 seconds.
_KEEPALIVE = (("TCP_KEEPIDLE", 120), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 9))
_getaddrinfo = _socket.getaddrinfo
AddressInfo: TypeAlias = tuple[int, int, int, str, SocketAddress]
_IP_FAMILIES = (_socket.AF_INET, _socket.AF_INET6)


def connect(
    address: Address, attach: Callable[[Transport | Race], None], ref: bool = True, tls: Tls | None = None
) -> Transport:
    """Connect to `address`, without a time limit, and return the connected transport.

    `attach` receives each new transport and each new race. The caller may interrupt or close these objects.
    """
    endpoints = resolve(address, ref)
    if len(endpoints) > 1:
        race = Race(endpoints, lambda family: make_transport(family, ref, tls, address[0]), None, AddressOrder(), ref)
        attach(race)
        transport = race.run().transport
    else:
        transport = make_transport(endpoints[0][0], ref, tls, address[0])
    try:
        attach(transport)
        if len(endpoints) == 1:
            transport.connect(endpoints[0][1])
        if isinstance(transport, TlsTransport):
            transport.shake_hands()
    except BaseException:
        transport.close()
        raise
    return transport


def make_transport(family: int, ref: bool, tls: Tls | None, host: str) -> Transport:
    """Open an unconnected socket, and return its transport."""
    try:
        sock = _socket.socket(family)
        sock.setblocking(False)
        if family != _socket.AF_UNIX:
            _set_socket_options(sock)
    except OSError as error:  # for example, too many files are open
        raise TransportError(*error.args) from error
    return Transport(sock, ref) if tls is None else tls.transport(sock, ref, host)


def resolve(address: Address, ref: bool) -> list[Endpoint]:
    """Return the endpoints (socket family and address) of a host, in the order of the resolver.

    For `localhost`, IPv4 addresses are first, because another program may use the same port of ::1.
    """
    host, port = address
    if port is None:
        return [(_socket.AF_UNIX, host)]
    for family in _IP_FAMILIES:  # parse IP addresses here, because the resolver would use a thread
        try:
            _socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    try:  # the resolver thread of gevent would print the error of an invalid name
        host.encode("idna")
    except UnicodeError as error:
        raise TransportError(f"{host!r} cannot be a host name: {error}") from error
    results = _look_up(host, port, ref)
    if isinstance(results, Exception):
        try:
            raise TransportError(*results.args) from results
        finally:
            del results  # prevent a reference cycle between this frame and the error in `results`
    endpoints = list(dict.fromkeys((int(family), sockaddr) for family, _, _, _, sockaddr in results))
    if not endpoints:
        raise TransportError(f"{host} has no address")
    if host.lower().rstrip(".") == "localhost":
        endpoints.sort(key=lambda endpoint: endpoint[0] != _socket.AF_INET)
    return endpoints


def _look_up(host: str, port: int, ref: bool) -> Sequence[AddressInfo] | Exception:
    """Return the addresses of a host, or the error. Use a native thread, or the resolver of the application."""
    resolver = get_hub().resolver
    if type(resolver) is Resolver:  # the default resolver would always keep the event loop alive
        return run_in_native_thread(lambda: _getaddrinfo(host, port, 0, _socket.SOCK_STREAM), ref)
    try:
        results: Sequence[AddressInfo] = resolver.getaddrinfo(host, port, 0, _socket.SOCK_STREAM, 0, 0)
    except _socket.gaierror as error:
        return error
    return results


def _set_socket_options(sock: _socket.socket) -> None:
    sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(_socket, name, None)
        if option is not None:
            sock.setsockopt(_socket.IPPROTO_TCP, option, min(value, sock.getsockopt(_socket.IPPROTO_TCP, option)))
