"""Parser of connection strings (``mongodb://`` and ``mongodb+srv://``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gmongo._documents import Document, DocumentDict
from gmongo._traceback_scrub import clears_locals
from gmongo.options import query
from gmongo.options.hosts import DEFAULT_PORT, parse_host, parse_ipv6_literal_host, split_hosts
from gmongo.options.mapping import Options
from gmongo.options.table import find_option
from gmongo.options.uri import read_uri
from gmongo.options.uri_parts import parse_userinfo

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
    :param default_port: the port of each host that is given without a port; 27017 by default.
    :param validate: True (the default) converts and checks option values. False keeps the values as strings.
    :param warn: True ignores invalid non-security options with a warning; False by default.
    :param normalize: True (the default) replaces aliases of options by the canonical names.
    :param connect_timeout: the time limit of a DNS query, in seconds; None means connectTimeoutMS, or 20 seconds.
    :param srv_service_name: the service name of SRV records; None (the default) uses srvServiceName.
    :param srv_max_hosts: the maximum number of hosts (0 means no limit); None (the default) uses srvMaxHosts.
    :param srv_allowed_hosts_suffix: the required domain of hosts from DNS; None uses srvAllowedHostsSuffix.
    :param srv_host_validator: a function that returns True to accept a DNS host; None by default.
    :returns: a mapping. ``nodelist`` is a list of pairs of host and port. The port of a Unix domain socket is None.
        ``username``, ``password``, ``database`` and ``collection`` are parts of the URI. ``options`` is a
        case-insensitive mapping, with times in seconds except localThresholdMS and wTimeoutMS.
        ``fqdn`` is the host of a ``mongodb+srv`` URI.
    :raises gmongo.errors.InvalidURI: the URI is malformed. The message does not show the user name or the password.
    :raises gmongo.errors.ConfigurationError: options are unknown or contradict each other, or DNS has no hosts.
    :raises ValueError: a port or option value is invalid. The exception is also a ConfigurationError.
    """
    srv_options = {
        "srvservicename": srv_service_name,
        "srvmaxhosts": srv_max_hosts,
        "srvallowedhostssuffix": srv_allowed_hosts_suffix,
        "srv_host_validator": srv_host_validator,
    }
    uri_parts = read_uri(uri, default_port, validate, warn, normalize, connect_timeout, srv_options)
    del uri_parts["own"]
    uri_parts["options"] = _CaseInsensitiveOptions(uri_parts["options"])
    return uri_parts


def split_options(opts: str, validate: bool = True, warn: bool = False, normalize: bool = True) -> DocumentDict:
    """Parse the options in a connection string.

    :param opts: the text after the question mark. The text must not contain both ``&`` and ``;``.
    :param validate: True (the default) converts values and rejects unknown options. False keeps the values as strings.
    :param warn: True ignores invalid non-security options with a warning; False by default.
    :param normalize: True (the default) replaces aliases by the canonical names, for example ``ssl`` by ``tls``.
    :returns: a case-insensitive mapping of the options. Times are in seconds, except localThresholdMS and wTimeoutMS.
    :raises gmongo.errors.InvalidURI: `opts` is malformed, or contains mutually exclusive options.
    :raises gmongo.errors.ConfigurationError: an option is unknown, and `warn` is False.
    :raises ValueError: an option rejects a value, and `warn` does not ignore the value. Also a ConfigurationError.
    """
    return _CaseInsensitiveOptions(query.split_options(opts, validate, warn, normalize))


def validate_options(opts: Document, warn: bool = False) -> DocumentDict:
    """Check options, and convert their values.

    :param opts: a mapping of option names to values. The names are not case-sensitive. Values may be strings.
    :param warn: True ignores invalid non-security options with a warning; False by default.
    :returns: a mapping of lower-case names to values. Times are in seconds, except localThresholdMS and wTimeoutMS.
    :raises gmongo.errors.ConfigurationError: an option is unknown, and `warn` is False.
    :raises ValueError: an option rejects a value, and `warn` does not ignore the value. Also a ConfigurationError.
    """
    return dict(query.validated(opts, warn))


class _CaseInsensitiveOptions(DocumentDict):
    """Case-insensitive mapping of options. The names have the spelling of the specification."""

    def __init__(self, options: Document) -> None:
        super().__init__((_spell_canonically(name), value) for name, value in options.items())

    def __missing__(self, name: str) -> Any:
        if name == _spell_canonically(name):
            raise KeyError(name)
        return self[_spell_canonically(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(_spell_canonically(name))

    def get(self, name: str, default: object = None) -> Any:
        return super().get(_spell_canonically(name), default)

    def __eq__(self, other: object) -> bool:
        return Options(self) == other

    __hash__ = None


def _spell_canonically(name: str) -> str:
    option = find_option(name)
    return option.name if option is not None and option.key == name.lower() else name
