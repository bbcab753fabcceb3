"""Parser of complete connection strings, with hosts and options from DNS."""

from __future__ import annotations

from collections.abc import Sequence

from gmongo._documents import Document, DocumentDict
from gmongo.errors import InvalidURI
from gmongo.options.hosts import DEFAULT_PORT, Address, split_hosts
from gmongo.options.mapping import Options
from gmongo.options.query import refuse_hidden_options, split_options
from gmongo.options.rules import check_uri
from gmongo.options.srv import srv_hostname, srv_name
from gmongo.options.table import find_option
from gmongo.options.uri_parts import parse_namespace, parse_userinfo, split_uri

_NO_OPTIONS: Document = {}


def read_uri(
    uri: str,
    default_port: int | None = DEFAULT_PORT,
    validate: bool = True,
    warn: bool = False,
    normalize: bool = True,
    connect_timeout: float | None = None,
    srv_options: Document = _NO_OPTIONS,
    resolve: bool = True,
) -> DocumentDict:
    """Parse a connection string. :func:`gmongo.uri_parser.parse_uri` describes the result and the first six parameters.

    The field ``own`` of the result contains the options in the URI, without the options that DNS or the scheme sets.

    :param srv_options: options that override the options of the URI, by lower-case name. A value of
        None has no effect.
    :param resolve: False to send no DNS query. The only node of a ``mongodb+srv`` URI then has the
        port None.
    """
    if not isinstance(uri, str):
        raise InvalidURI(f"a URI must be a string, not {type(uri).__name__}")
    parts = split_uri(uri)
    username, password = (None, None) if parts.userinfo is None else parse_userinfo(parts.userinfo)
    refuse_hidden_options(parts.path)
    database, collection = parse_namespace(parts.path)
    own = split_options(parts.options, validate, warn, normalize, parts.has_slash) if parts.options else Options()
    options = own.copy()
    arguments = {key: _check_option(key, value) for key, value in srv_options.items() if value is not None}
    fqdn = srv_hostname(parts.hosts) if parts.srv else None
    nodes: Sequence[Address] = [(fqdn, None)] if fqdn else split_hosts(parts.hosts, default_port)
    if validate:
        check_uri({**options, **arguments}, len(nodes), parts.srv)
    if fqdn is not None and resolve:
        srv_host = srv_name(fqdn, {**options, **arguments}, connect_timeout)
        nodes, options = srv_host.seeds(), Options({**srv_host.options(validate, warn, normalize), **own})
        if validate:
            check_uri({**options, **arguments}, len(nodes), parts.srv)
    if fqdn is not None and "tls" not in options and "ssl" not in options:
        options["tls"] = True if validate else "true"
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


def _check_option(name: str, value: object) -> object:
    option = find_option(name)
    return value if option is None else option.check(value)
