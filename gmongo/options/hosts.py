"""Hosts in connection strings: names, IPv4 and IPv6 addresses, paths of Unix domain sockets.

Error messages never quote a host or a port, because this part of a malformed URI may be a username or
a password.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import unquote

from gmongo.errors import InvalidHost

DEFAULT_PORT = 27017
_SOCKET_SUFFIX = ".sock"
_PORT_PATTERN = re.compile(r"0*[0-9]{1,5}")

Address = tuple[str, int | None]


def parse_hosts(hosts: str, default_port: int | None) -> list[Address]:
    """Parse a comma-separated list of hosts. The function decodes no percent-encoding."""
    return [parse_host(entity, default_port) for entity in hosts.split(",")]


def split_hosts(hosts: str, default_port: int | None = DEFAULT_PORT) -> list[Address]:
    """Split a list of hosts in the form of a URI, such as ``"a.example.com,b.example.com:27018"``.

    :param hosts: comma-separated hosts. Special characters in a socket path must be percent-encoded.
    :param default_port: the port of each host that is given without a port; 27017 by default.
    :returns: a list of pairs of host and port. The port of a Unix domain socket is None.
    :raises gmongo.errors.ConfigurationError: the name of a host is empty.
    :raises ValueError: a host or a port is malformed. The exception is also a ConfigurationError.
    """
    return parse_hosts(",".join(_decode(entity) for entity in hosts.split(",")), default_port)


def parse_host(entity: str, default_port: int | None = DEFAULT_PORT) -> Address:
    """Parse one host with or without a port, such as ``"[::1]:27018"``, or the path of a socket.

    :param entity: the host, with or without a port.
    :param default_port: the port if `entity` has no port.
    :returns: a pair: the host in lower case and the port, or the path of a socket and None.
    :raises gmongo.errors.ConfigurationError: the host is empty.
    :raises ValueError: the host or the port is malformed. The error is also a ConfigurationError.
    """
    if entity.endswith(_SOCKET_SUFFIX):
        return entity, None
    port: int | str | None
    if entity.startswith("["):
        host, port = parse_ipv6_literal_host(entity, default_port)
    else:
        host, colon, port_text = entity.partition(":")
        if ":" in port_text:
            raise InvalidHost(
                "a host must have at most one ':'; an IPv6 address must be enclosed in '[' and ']', and reserved"
                " characters of a username or password must be percent-encoded"
            )
        port = port_text if colon else default_port
    if not host:
        raise InvalidHost("a host is empty, or the list of hosts has a superfluous comma")
    return host.lower(), _checked_port(port) if isinstance(port, str) else port


def parse_ipv6_literal_host(entity: str, default_port: int | None) -> tuple[str, str | int | None]:
    """Split an IPv6 address and its port. Return the address without brackets, and the unchecked port as text.

    :param entity: an address such as ``"[::1]"`` or ``"[::1]:27018"``.
    :param default_port: the port if `entity` has no port.
    :raises ValueError: the brackets are malformed, or the address is empty. The error is also a ConfigurationError.
    """
    address, bracket, rest = entity[1:].partition("]")
    if not bracket or not address or (rest and not rest.startswith(":")):
        raise InvalidHost("an IPv6 address must be enclosed in '[' and ']', with nothing but a port after it")
    return address, rest[1:] if rest else default_port


def is_on_this_machine(address: Address) -> bool:
    """Return True for localhost, an IP address of the loopback interface, or a Unix domain socket."""
    host, port = address
    if port is None or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_port(port: str) -> int:
    if not _PORT_PATTERN.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise InvalidHost(
            "a port must be a number from 1 to 65535; if the URI has a username and password,"
            " percent-encode them with urllib.parse.quote_plus"
        )
    return int(port)


def _decode(entity: str) -> str:
    if "%" not in entity:
        return entity
    decoded = unquote(entity)
    if decoded.endswith(_SOCKET_SUFFIX) or entity.startswith("["):
        return decoded
    raise InvalidHost(
        "only the path of a Unix domain socket (ending in .sock, without a port) and the zone of an IPv6"
        " address may be percent-encoded, not the name of a host; username and password need '@' and a host after them"
    )
