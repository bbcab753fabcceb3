"""Addresses of servers: host and port, or a path and None for a Unix domain socket."""

from __future__ import annotations

Address = tuple[str, int | None]

_DEFAULT_PORT = 27017


def address_text(address: Address) -> str:
    """An address as people write it."""
    host, port = address
    return host if port is None else f"{host}:{port}"


def parse_address(text: str) -> Address:
    """An address as a server's reply has it; host names are compared in lower case.

    :raises ValueError: the port is not a number.
    """
    if text.endswith(".sock"):
        return text, None
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host.lower(), int(rest[1:]) if rest else _DEFAULT_PORT
    host, _, port = text.rpartition(":")
    return (host.lower(), int(port)) if host else (text.lower(), _DEFAULT_PORT)
