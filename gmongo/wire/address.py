"""Server addresses: (host, port), or (path, None) for a Unix domain socket."""

from __future__ import annotations

from typing import TypeAlias

Address = tuple[str, int | None]

SocketAddress: TypeAlias = tuple[object, ...] | str
"""Address for socket functions: a tuple for an IP socket, a path for a Unix domain socket."""

_DEFAULT_PORT = 27017
_LARGEST_PORT = 65535


def address_text(address: Address) -> str:
    """Return an address as text, such as ``host:27017``."""
    host, port = address
    return host if port is None else f"{host}:{port}"


def parse_address(text: str) -> Address:
    """Parse an address from a server reply, or raise ValueError. The host name becomes lower case."""
    if not text.isprintable():  # host names have no control characters, which could alter a terminal
        raise ValueError(f"{text!r} cannot be printed")
    if text.endswith(".sock"):
        return text, None
    if text.startswith("["):
        host, _, suffix = text[1:].partition("]")
    else:
        host, colon, suffix = text.rpartition(":")
        host, suffix = (host, colon + suffix) if colon else (text, "")
    if not host:
        raise ValueError(f"{text!r} has no host")
    if not suffix:
        return host.lower(), _DEFAULT_PORT
    digits = suffix[1:]
    port = int(digits) if suffix[0] == ":" and digits.isascii() and digits.isdigit() else 0
    if not 1 <= port <= _LARGEST_PORT:
        raise ValueError(f"{suffix!r} is not a port")
    return host.lower(), port
