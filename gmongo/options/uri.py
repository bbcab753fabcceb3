"""A connection string as a whole, with what DNS adds to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gmongo._documents import Document, DocumentDict
from gmongo.errors import InvalidURI
from gmongo.options.connection_string import parse_namespace, parse_userinfo, split_uri
from gmongo.options.hosts import DEFAULT_PORT, split_encoded_hosts
from gmongo.options.mapping import Options
from gmongo.options.query import refuse_hidden_options, split_options
from gmongo.options.rules import check_uri
from gmongo.options.srv import srv_hostname, srv_name
from gmongo.options.table import find


def read_uri(
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
    """Parse a connection string; the parameters and what is returned are those of :func:`gmongo.uri_parser.parse_uri`,
    but that the options may be looked up in any case, and that ``own`` has those that neither DNS nor the scheme added.
    """
    if not isinstance(uri, str):
        raise InvalidURI(f"a URI must be a string, not {type(uri).__name__}")
    parts = split_uri(uri)
    username, password = (None, None) if parts.userinfo is None else parse_userinfo(parts.userinfo)
    refuse_hidden_options(parts.path)
    database, collection = parse_namespace(parts.path)
    own = split_options(parts.options, validate, warn, normalize, parts.slash) if parts.options else Options()
    options = own.copy()
    arguments = _checked_arguments(
        srvServiceName=srv_service_name,
        srvMaxHosts=srv_max_hosts,
        srvAllowedHostsSuffix=srv_allowed_hosts_suffix,
        srv_host_validator=srv_host_validator,
    )
    fqdn = srv_hostname(parts.hosts) if parts.srv else None
    if fqdn is None:
        nodes: Sequence[tuple[str, int | None]] = split_encoded_hosts(parts.hosts, default_port)
    else:
        if validate:
            check_uri({**options, **arguments}, 1, parts.srv)
        name = srv_name(fqdn, {**options, **arguments}, connect_timeout)
        nodes, options = name.seeds(), _with_defaults(name.options(validate, warn, normalize), own, validate)
    if validate:
        check_uri({**options, **arguments}, len(nodes), parts.srv)
    return {
        "nodelist": nodes,
        "username": username,
        "password": password,
        "database": database,
        "collection": collection,
        "options": options,
        "own": own,
        "fqdn": fqdn,
    }


def _with_defaults(defaults: Document, own: Options, validate: bool) -> Options:
    """The options of a URI whose hosts are found by DNS: what DNS says counts less, and TLS is on by default."""
    options = Options({**defaults, **own})
    if "tls" not in options and "ssl" not in options:
        options["tls"] = True if validate else "true"
    return options


def _checked_arguments(**arguments: object) -> DocumentDict:
    """The arguments given, by the keys of their options, converted as options are."""
    given = {name: find(name) for name, value in arguments.items() if value is not None}
    return {option.key: option.check(arguments[name]) for name, option in given.items() if option}
