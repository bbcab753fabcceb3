"""Hosts of a connection string: names, IPv4 and IPv6 addresses, paths of Unix domain sockets.

No message quotes a host or a port: the text is a username or password if the URI lacks its host.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import unquote

from gmongo.errors import InvalidHost

DEFAULT_PORT = 27017
_SOCKET_SUFFIX = ".sock"
_PORT = re.compile(r"0*[0-9]{1,5}")

Address = tuple[str, int | None]


def split_hosts(hosts: str, default_port: int | None) -> list[Address]:
    """Split a list of hosts such as ``"a.example.com,b.example.com:27018"``.

    :param hosts: with commas between them.
    :param default_port: the port of a host that has none.
    :returns: pairs of host and port; the port of a Unix domain socket is None.
    :raises gmongo.errors.ConfigurationError: if a host is empty.
    :raises ValueError: (a ConfigurationError as well) if a host or a port is malformed.
    """
    return [parse_host(entity, default_port) for entity in hosts.split(",")]


def split_encoded_hosts(hosts: str, default_port: int | None) -> list[Address]:
    """As :func:`split_hosts`, for hosts as they are in a URI: percent-encoded where they need to be."""
    return split_hosts(",".join(_decoded(entity) for entity in hosts.split(",")), default_port)


def parse_host(entity: str, default_port: int | None = DEFAULT_PORT) -> Address:
    """Split one host such as ``"example.com:27018"`` or ``"[::1]:27018"``, or the path of a Unix domain
    socket.

    :param entity: the host, with or without a port.
    :param default_port: the port if there is none in `entity`.
    :returns: the host in lower case (a path is left as it is) and the port.
    :raises gmongo.errors.ConfigurationError: if the host is empty.
    :raises ValueError: (a ConfigurationError as well) if the host or the port is malformed.
    """
    if entity.endswith(_SOCKET_SUFFIX):
        return entity, None
    port: int | str | None
    if entity.startswith("["):
        host, port = parse_ipv6_literal_host(entity, default_port)
    else:
        host, port = _split_name_and_port(entity, default_port)
    if not host:
        raise InvalidHost("a host is empty, or there is a comma too many between hosts")
    return host.lower(), _checked_port(port) if isinstance(port, str) else port


def parse_ipv6_literal_host(entity: str, default_port: int | None) -> tuple[str, str | int | None]:
    """Split an IPv6 address in brackets from its port.

    :param entity: such as ``"[::1]"`` or ``"[::1]:27018"``.
    :param default_port: the port if there is none in `entity`.
    :returns: the address without its brackets, and the port: `default_port`, or the unchecked text from
        `entity`.
    :raises ValueError: (a ConfigurationError as well) if a bracket is missing.
    """
    address, bracket, rest = entity[1:].partition("]")
    if not bracket or not address or (rest and not rest.startswith(":")):
        raise InvalidHost("an IPv6 address must be enclosed in '[' and ']', with nothing but a port after it")
    return address, rest[1:] if rest else default_port


def is_on_this_machine(address: Address) -> bool:
    """Whether an address is one of the loopback interface; names other than localhost are not resolved."""
    host, port = address
    if port is None or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _split_name_and_port(entity: str, default_port: int | None) -> tuple[str, str | int | None]:
    host, colon, port = entity.partition(":")
    if ":" in port:
        raise InvalidHost(
            "a host must have at most one ':'; an IPv6 address must be enclosed in '[' and ']', and reserved"
            " characters of a username or password must be percent-encoded"
        )
    return host, port if colon else default_port


def _checked_port(port: str) -> int:
    """Convert the port to a number."""
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise InvalidHost(
            "a port must be a number from 1 to 65535; if the URI has a username and password,"
            " percent-encode them with urllib.parse.quote_plus"
        )
    return int(port)


def _decoded(entity: str) -> str:
    if "%" not in entity:
        return entity
    decoded = unquote(entity)
    if decoded.endswith(_SOCKET_SUFFIX) or entity.startswith("["):
        return decoded
    raise InvalidHost(
        "only the path of a Unix domain socket (ending in .sock, without a port) and the zone of an IPv6"
        " address may be percent-encoded, not the name of a host; username and password need '@' and a host after them"
    )
