"""Parser of connection strings, ``mongodb://`` and ``mongodb+srv://``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gmongo._documents import Document, DocumentDict
from gmongo._traceback_scrub import clears_locals
from gmongo.options import query
from gmongo.options.hosts import DEFAULT_PORT, parse_host, parse_ipv6_literal_host, split_encoded_hosts
from gmongo.options.mapping import Options
from gmongo.options.table import find
from gmongo.options.uri import read_uri
from gmongo.options.uri_parts import parse_userinfo
from gmongo.wire.address import Address

__all__ = [
    "parse_host",
    "parse_ipv6_literal_host",
    "parse_uri",
    "parse_userinfo",
    "split_hosts",
    "split_options",
    "validate_options",
]


@clears_locals
def parse_uri(
    uri: str,
    default_port: int | None = DEFAULT_PORT,
    validate: bool = True,
    warn: bool = False,
    normalize: bool = True,
    connect_timeout: float | None = None,
    srv_service_name: str | None = None,
    srv_max_hosts: int | None = None,
    srv_allowed_hosts_suffix: str | None = None,
    srv_host_validator: Callable[[str], object] | None = None,
) -> DocumentDict:
    """Parse a connection string. For ``mongodb+srv``, query DNS for the hosts and further options.

    :param uri: the connection string.
    :param default_port: the port of a host without a port.
    :param validate: True converts option values and rejects unknown and contradictory options; False keeps strings.
    :param warn: True warns about invalid options and omits them, instead of raising.
    :param normalize: True replaces option aliases by their canonical names.
    :param connect_timeout: the time limit of a DNS query, in seconds; None uses connectTimeoutMS of the URI, or
        20 seconds.
    :param srv_service_name: the SRV service name; overrides srvServiceName.
    :param srv_max_hosts: the maximum number of randomly selected hosts; 0 means no limit; overrides
        srvMaxHosts.
    :param srv_allowed_hosts_suffix: the required domain of hosts from DNS; overrides
        srvAllowedHostsSuffix.
    :param srv_host_validator: a function that takes the name of a host from DNS, and returns True to accept it.
    :returns: ``nodelist`` (pairs of host and port; the port of a Unix domain socket is None), ``username``,
        ``password``, ``database``, ``collection``, ``options`` (case-insensitive, by the names of the specification;
        times are in seconds, except localThresholdMS) and ``fqdn`` (the host of a ``mongodb+srv`` URI).
    :raises gmongo.errors.InvalidURI: the URI is malformed. No message shows a username or password.
    :raises gmongo.errors.ConfigurationError: an option is unknown (unless `warn`), options contradict each other, or
        DNS has no suitable hosts.
    :raises ValueError: (a ConfigurationError as well) a port is invalid, or an option does not accept a value
        (unless `warn`).
    """
    parsed = read_uri(
        uri,
        default_port,
        validate,
        warn,
        normalize,
        connect_timeout,
        srv_service_name,
        srv_max_hosts,
        srv_allowed_hosts_suffix,
        srv_host_validator,
    )
    del parsed["own"]
    parsed["options"] = _AnyCase(parsed["options"])
    return parsed


def split_hosts(hosts: str, default_port: int | None = DEFAULT_PORT) -> list[Address]:
    """Split a list of hosts in the form of a URI, such as ``"a.example.com,b.example.com:27018"``.

    :param hosts: a comma-separated list, percent-encoded where necessary.
    :param default_port: the port of a host without a port.
    :returns: pairs of host and port; the port of a Unix domain socket is None.
    :raises gmongo.errors.ConfigurationError: a host is empty.
    :raises ValueError: (a ConfigurationError as well) a host or a port is malformed.
    """
    return split_encoded_hosts(hosts, default_port)


def split_options(opts: str, validate: bool = True, warn: bool = False, normalize: bool = True) -> DocumentDict:
    """Parse the options part of a connection string.

    :param opts: the part after the question mark; all separators are ``&``, or all are ``;``.
    :param validate: True converts values and rejects unknown options; False keeps strings.
    :param warn: True warns about invalid options and omits them, instead of raising.
    :param normalize: True replaces aliases by their canonical names, such as ``ssl`` by ``tls``.
    :returns: the options by the names of the specification, case-insensitive. Times are in seconds, except
        ``localThresholdMS``.
    :raises gmongo.errors.InvalidURI: the text is malformed, or has options that exclude each other.
    :raises gmongo.errors.ConfigurationError: an option is unknown, unless `warn`.
    :raises ValueError: (a ConfigurationError as well) an option does not accept a value, unless `warn`.
    """
    return _AnyCase(query.split_options(opts, validate, warn, normalize))


def validate_options(opts: Document, warn: bool = False) -> DocumentDict:
    """Check options and convert their values.

    :param opts: the options by case-insensitive name; values may be strings, as in a URI.
    :param warn: True warns about invalid options and omits them, instead of raising.
    :returns: the options by lower-case name. Times are in seconds, except ``localThresholdMS``.
    :raises gmongo.errors.ConfigurationError: an option is unknown, unless `warn`.
    :raises ValueError: (a ConfigurationError as well) an option does not accept a value, unless `warn`.
    """
    return dict(query.validated(opts, warn))


class _AnyCase(DocumentDict):
    """Case-insensitive mapping of options by the names of the specification.

    :param options: the options by name; an unresolved alias keeps its name.
    """

    def __init__(self, options: Document) -> None:
        super().__init__((_spelled(name), value) for name, value in options.items())

    def __missing__(self, name: str) -> Any:
        if name == _spelled(name):
            raise KeyError(name)
        return self[_spelled(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(_spelled(name))

    def get(self, name: str, default: object = None) -> Any:
        return super().get(_spelled(name), default)

    def __eq__(self, other: object) -> bool:
        return Options(self) == other

    __hash__ = None


def _spelled(name: str) -> str:
    option = find(name)
    return option.name if option is not None and option.key == name.lower() else name
