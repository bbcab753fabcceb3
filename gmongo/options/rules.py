"""Rules that forbid contradictory combinations of options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import combinations

from gmongo._documents import Document
from gmongo.errors import InvalidOption, InvalidURI
from gmongo.options.table import find_option

DEFAULT_MAX_POOL_SIZE = 100
MIN_HEARTBEAT_SECONDS = 0.5

# A client may set the first option of a group, or the other options of the group. The values do not matter.
_EXCLUSIVE_TLS_OPTIONS = (
    ("tlsInsecure", "tlsAllowInvalidHostnames"),
    (
        "tlsInsecure",
        "tlsAllowInvalidCertificates",
        "tlsDisableOCSPEndpointCheck",
        "tlsDisableCertificateRevocationCheck",
    ),
)
TLS_DETAILS = (
    "tlsInsecure",
    "tlsAllowInvalidCertificates",
    "tlsAllowInvalidHostnames",
    "tlsCAFile",
    "tlsCRLFile",
    "tlsCertificateKeyFile",
    "tlsCertificateKeyFilePassword",
    "tlsDisableCertificateRevocationCheck",
    "tlsDisableOCSPEndpointCheck",
)
_SRV_OPTIONS = ("srvServiceName", "srvMaxHosts", "srvAllowedHostsSuffix", "srv_host_validator")
_LIMITS_OF_LATE_REPLIES = ("drainLateRepliesMS", "drainLateRepliesBytes")

_Options = Document
_Rule = tuple[Callable[[_Options, int, bool], object], str]

# Each rule has a condition on the options, the number of hosts, and True for a mongodb+srv URI. If the condition is
# true, the message is an error. In a message, a name in braces is the value of the option, or the number of hosts.
_RULES_OF_A_URI: tuple[_Rule, ...] = (
    (
        lambda options, hosts, srv: options.get("directconnection") and srv,
        "directConnection=true cannot be used with mongodb+srv",
    ),
    (
        lambda options, hosts, srv: options.get("directconnection") and hosts > 1,
        "directConnection=true needs exactly one host, not {hosts}",
    ),
    (
        lambda options, hosts, srv: options.get("loadbalanced") and hosts > 1,
        "loadBalanced=true needs exactly one host, not {hosts}",
    ),
    (
        lambda options, hosts, srv: options.get("loadbalanced") and options.get("replicaset"),
        "loadBalanced=true cannot be used with replicaSet",
    ),
    (
        lambda options, hosts, srv: options.get("loadbalanced") and options.get("directconnection"),
        "loadBalanced=true cannot be used with directConnection=true",
    ),
    (
        lambda options, hosts, srv: options.get("srvmaxhosts") and options.get("replicaset"),
        "srvMaxHosts={srvmaxhosts} cannot be used with replicaSet; only 0 can",
    ),
    (
        lambda options, hosts, srv: options.get("srvmaxhosts") and options.get("loadbalanced"),
        "srvMaxHosts={srvmaxhosts} cannot be used with loadBalanced=true; only 0 can",
    ),
    (
        lambda options, hosts, srv: options.get("srvallowedhostssuffix") and options.get("srv_host_validator"),
        "srvAllowedHostsSuffix and srv_host_validator cannot be used together",
    ),
    (
        lambda options, hosts, srv: not srv and any_option_set(options, _SRV_OPTIONS),
        f"{', '.join(_SRV_OPTIONS)} can only be used with a mongodb+srv URI",
    ),
)

_RULES_OF_A_CLIENT: tuple[_Rule, ...] = (
    *_RULES_OF_A_URI,
    (
        lambda options, hosts, srv: 0 < _max_pool_size(options) < options.get("minpoolsize", 0),
        "minPoolSize must not be above maxPoolSize, but {minpoolsize} is above {maxpoolsize}",
    ),
    (
        lambda options, hosts, srv: (
            not options.get("drainlatereplies") and any_option_set(options, _LIMITS_OF_LATE_REPLIES)
        ),
        f"{' and '.join(_LIMITS_OF_LATE_REPLIES)} are limits of drainLateReplies=true",
    ),
    (
        lambda options, hosts, srv: options.get("heartbeatfrequencyms", MIN_HEARTBEAT_SECONDS) < MIN_HEARTBEAT_SECONDS,
        "heartbeatFrequencyMS must be at least 500 milliseconds, not {heartbeatfrequencyms} seconds",
    ),
    (
        lambda options, hosts, srv: options.get("tls") is False and _relies_on_tls(options),
        "tls=false cannot be used with a TLS option that asks for a check or names a file",
    ),
    (
        lambda options, hosts, srv: (
            any_option_set(options, ("proxyPort", "proxyUsername", "proxyPassword")) and not options.get("proxyhost")
        ),
        "proxyPort, proxyUsername and proxyPassword need proxyHost",
    ),
    (
        lambda options, hosts, srv: bool(options.get("proxyusername")) != bool(options.get("proxypassword")),
        "proxyUsername and proxyPassword must be given together",
    ),
)


def check_combination(options: Document, nodes_count: int, srv: bool) -> None:
    """Check that the options of a client, whose names are in lower case, do not contradict each other.

    :raises InvalidURI: two TLS options exclude each other.
    :raises InvalidOption: other options contradict each other.
    """
    message = exclusive_tls_options(options)
    if message:
        raise InvalidURI(message)
    _check_rules(_RULES_OF_A_CLIENT, options, nodes_count, srv)


def check_uri(options: Document, nodes_count: int, srv: bool) -> None:
    """Check only the rules for options of a URI."""
    _check_rules(_RULES_OF_A_URI, options, nodes_count, srv)


def exclusive_tls_options(names: Collection[str]) -> str | None:
    """Return the error message if two TLS options exclude each other, or None."""
    for group in _EXCLUSIVE_TLS_OPTIONS:
        for first, second in combinations(group, 2):
            if first.lower() in names and second.lower() in names:
                return f"{first} and {second} cannot be given together"
    return None


def _check_rules(rules: Iterable[_Rule], options: _Options, nodes_count: int, srv: bool) -> None:
    for is_broken, message in rules:
        if is_broken(options, nodes_count, srv):
            values = {"maxpoolsize": DEFAULT_MAX_POOL_SIZE, **options, "hosts": nodes_count}
            raise InvalidOption(message.format_map(values))


def any_option_set(options: _Options, names: Iterable[str]) -> bool:
    """Return True if at least one of the named options is not None."""
    return any(options.get(name.lower()) is not None for name in names)


def _relies_on_tls(options: _Options) -> bool:
    """Return True if a TLS option names a file or requires a check."""
    return any(options.get(each.lower(), None) not in (None, _insecure_value(each)) for each in TLS_DETAILS)


def _insecure_value(name: str) -> bool | None:
    option = find_option(name)
    return None if option is None else option.insecure


def _max_pool_size(options: _Options) -> int:
    return options.get("maxpoolsize", DEFAULT_MAX_POOL_SIZE) or 0
