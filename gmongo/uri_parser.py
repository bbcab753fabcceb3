"""Parsing of connection strings, ``mongodb://`` and ``mongodb+srv://``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gmongo.errors import InvalidURI
from gmongo.options.connection_string import parse_namespace, parse_userinfo, split_uri
from gmongo.options.hosts import (
    DEFAULT_PORT,
    parse_host,
    parse_ipv6_literal_host,
    split_encoded_hosts,
    split_hosts,
)
from gmongo.options.mapping import Options
from gmongo.options.query import split_options
from gmongo.options.rules import check_uri
from gmongo.options.srv import srv_hostname, srv_name
from gmongo.options.table import find

__all__ = [
    "parse_host",
    "parse_ipv6_literal_host",
    "parse_uri",
    "parse_userinfo",
    "split_hosts",
    "split_options",
]


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
) -> dict[str, Any]:
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
        ``password``, ``database``, ``collection``, ``options`` (a mapping whose names may be looked up in any
        case; times are in seconds, except localThresholdMS) and ``fqdn`` (the host of a ``mongodb+srv`` URI).
    :raises gmongo.errors.InvalidURI: if the URI is malformed. No message shows a username or password.
    :raises gmongo.errors.ConfigurationError: for unknown options (unless `warn`), for options that contradict
        each other, and if DNS has no suitable hosts.
    :raises ValueError: (a ConfigurationError as well) for bad ports and for values that options do not accept
        (unless `warn`).
    """
    if not isinstance(uri, str):
        raise InvalidURI(f"a URI must be a string, not {type(uri).__name__}")
    parts = split_uri(uri)
    username, password = (None, None) if parts.userinfo is None else parse_userinfo(parts.userinfo)
    database, collection = parse_namespace(parts.path)
    options = split_options(parts.options, validate, warn, normalize) if parts.options else Options()
    arguments = _checked_arguments(
        srvServiceName=srv_service_name,
        srvMaxHosts=srv_max_hosts,
        srvAllowedHostsSuffix=srv_allowed_hosts_suffix,
        srv_host_validator=srv_host_validator,
    )
    fqdn = srv_hostname(parts.hosts) if parts.srv else None
    if fqdn is None:
        nodes: list[Any] = split_encoded_hosts(parts.hosts, default_port)
    else:
        name = srv_name(fqdn, {**options, **arguments}, connect_timeout)
        nodes, defaults = name.seeds(), name.options(validate, warn, normalize)
        options = Options({**defaults, **options})
        if "tls" not in options and "ssl" not in options:
            options["tls"] = True if validate else "true"
    if validate:
        check_uri({**options, **arguments}, len(nodes), parts.srv)
    return {
        "nodelist": nodes,
        "username": username,
        "password": password,
        "database": database,
        "collection": collection,
        "options": options,
        "fqdn": fqdn,
    }


def _checked_arguments(**arguments: Any) -> dict[str, Any]:
    """The arguments given, by the keys of their options, converted as options are."""
    given = {name: find(name) for name, value in arguments.items() if value is not None}
    return {option.key: option.check(arguments[name]) for name, option in given.items() if option}
