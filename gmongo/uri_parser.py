"""Parsing of connection strings, ``mongodb://`` and ``mongodb+srv://``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gmongo._documents import Document, DocumentDict
from gmongo._locals import forgets_locals
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


@forgets_locals
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
    """Parse a connection string. For ``mongodb+srv`` this asks DNS for the hosts and for more options.

    :param uri: the connection string.
    :param default_port: the port of a host that has none.
    :param validate: convert the values of options and refuse unknown options and contradictions; otherwise
        values stay strings.
    :param warn: warn about options that are refused and leave them out, instead of raising.
    :param normalize: replace aliases of options by the names they stand for.
    :param connect_timeout: the limit of a DNS question, in seconds; by default connectTimeoutMS of the URI,
        or 20.
    :param srv_service_name: the service to ask DNS for; overrides srvServiceName.
    :param srv_max_hosts: how many hosts to take at most, chosen at random; 0 is without limit; overrides
        srvMaxHosts.
    :param srv_allowed_hosts_suffix: the domain that hosts from DNS have to lie in; overrides
        srvAllowedHostsSuffix.
    :param srv_host_validator: called with the name of each host from DNS, accepts it by returning true.
    :returns: ``nodelist`` (pairs of host and port; the port of a Unix domain socket is None), ``username``,
        ``password``, ``database``, ``collection``, ``options`` (by the names of the specification, in any case;
        times are in seconds, except localThresholdMS) and ``fqdn`` (the host of a ``mongodb+srv`` URI).
    :raises gmongo.errors.InvalidURI: if the URI is malformed. No message shows a username or password.
    :raises gmongo.errors.ConfigurationError: for unknown options (unless `warn`), for options that contradict
        each other, and if DNS has no suitable hosts.
    :raises ValueError: (a ConfigurationError as well) for bad ports and for values that options do not accept
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
    """Split a list of hosts such as ``"a.example.com,b.example.com:27018"``, as it is in a URI.

    :param hosts: with commas between them; percent-encoded where that is needed.
    :param default_port: the port of a host that has none.
    :returns: pairs of host and port; the port of a Unix domain socket is None.
    :raises gmongo.errors.ConfigurationError: if a host is empty.
    :raises ValueError: (a ConfigurationError as well) if a host or a port is malformed.
    """
    return split_encoded_hosts(hosts, default_port)


def split_options(opts: str, validate: bool = True, warn: bool = False, normalize: bool = True) -> DocumentDict:
    """Parse the options part of a connection string.

    :param opts: the part after the question mark; pairs are separated by ``&`` throughout or by ``;`` throughout.
    :param validate: convert the values and refuse unknown options; otherwise values stay strings.
    :param warn: warn about what is refused and leave it out, instead of raising.
    :param normalize: replace aliases by the names they stand for, such as ``ssl`` by ``tls``.
    :returns: the options by the names of the specification; any case finds them. Times are in seconds, except
        ``localThresholdMS``.
    :raises gmongo.errors.InvalidURI: if the text is malformed, or has options that exclude each other.
    :raises gmongo.errors.ConfigurationError: for an unknown option, unless `warn`.
    :raises ValueError: (a ConfigurationError as well) for a value that an option does not accept, unless `warn`.
    """
    return _AnyCase(query.split_options(opts, validate, warn, normalize))


def validate_options(opts: Document, warn: bool = False) -> DocumentDict:
    """Check options and convert their values.

    :param opts: the options by name, in any case; values may be strings, as in a URI.
    :param warn: warn about what is refused and leave it out, instead of raising.
    :returns: the options by their names in lower case. Times are in seconds, except ``localThresholdMS``.
    :raises gmongo.errors.ConfigurationError: for an unknown option, unless `warn`.
    :raises ValueError: (a ConfigurationError as well) for a value that an option does not accept, unless `warn`.
    """
    return dict(query.validated(opts, warn))


class _AnyCase(DocumentDict):
    """Options by the names of the specification, which are found in any case.

    :param options: by name; an alias that was left as it is stays as it is.
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
