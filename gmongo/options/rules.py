"""Rules for combinations of options, and for keywords that override options of the URI."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import combinations

from gmongo._documents import Document, DocumentDict
from gmongo.errors import ConfigurationError, InvalidOption, InvalidURI
from gmongo.options.table import find_option, unknown_option_message

DEFAULT_MAX_POOL_SIZE = 100
MIN_HEARTBEAT_SECONDS = 0.5

# A client may set at most one option of each group, even if the values are False.
_EXCLUSIVE_TLS_OPTIONS = (
    ("tlsInsecure", "tlsAllowInvalidHostnames"),
    (
        "tlsInsecure",
        "tlsAllowInvalidCertificates",
        "tlsDisableOCSPEndpointCheck",
        "tlsDisableCertificateRevocationCheck",
    ),
)
TLS_DETAIL_OPTIONS = (
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
_LATE_REPLY_LIMIT_OPTIONS = ("drainLateRepliesMS", "drainLateRepliesBytes")

# Two keys that must not both have a true value, and the error message. "srv" means a mongodb+srv
# URI. A name in braces stands for the value of the option, and {hosts} for the number of hosts.
_EXCLUSIVE_OPTIONS = (
    ("directconnection", "srv", "directConnection=true cannot be used with mongodb+srv"),
    ("directconnection", "several_hosts", "directConnection=true needs exactly one host, not {hosts}"),
    ("loadbalanced", "several_hosts", "loadBalanced=true needs exactly one host, not {hosts}"),
    ("loadbalanced", "replicaset", "loadBalanced=true cannot be used with replicaSet"),
    ("loadbalanced", "directconnection", "loadBalanced=true cannot be used with directConnection=true"),
    ("srvmaxhosts", "replicaset", "srvMaxHosts={srvmaxhosts} cannot be used with replicaSet; only 0 can"),
    ("srvmaxhosts", "loadbalanced", "srvMaxHosts={srvmaxhosts} cannot be used with loadBalanced=true; only 0 can"),
    (
        "srvallowedhostssuffix",
        "srv_host_validator",
        "srvAllowedHostsSuffix and srv_host_validator cannot be used together",
    ),
)

# Each rule is a pair: a condition on the options of a client, and the error message if the condition
# is true.
_CLIENT_RULES: tuple[tuple[Callable[[Document], object], str], ...] = (
    (
        lambda options: 0 < _get_max_pool_size(options) < options.get("minpoolsize", 0),
        "minPoolSize must not be above maxPoolSize, but {minpoolsize} is above {maxpoolsize}",
    ),
    (
        lambda options: not options.get("drainlatereplies") and any_option_set(options, _LATE_REPLY_LIMIT_OPTIONS),
        f"{' and '.join(_LATE_REPLY_LIMIT_OPTIONS)} need drainLateReplies=true",
    ),
    (
        lambda options: options.get("heartbeatfrequencyms", MIN_HEARTBEAT_SECONDS) < MIN_HEARTBEAT_SECONDS,
        "heartbeatFrequencyMS must be at least 500 milliseconds, not {heartbeatfrequencyms} seconds",
    ),
    (
        lambda options: options.get("tls") is False and _relies_on_tls(options),
        "tls=false cannot be used with a TLS option that requires a check or names a file",
    ),
    (
        lambda options: (
            any_option_set(options, ("proxyPort", "proxyUsername", "proxyPassword")) and not options.get("proxyhost")
        ),
        "proxyPort, proxyUsername and proxyPassword need proxyHost",
    ),
    (
        lambda options: bool(options.get("proxyusername")) != bool(options.get("proxypassword")),
        "proxyUsername and proxyPassword must be given together",
    ),
)


def check_combination(options: Document, nodes_count: int, is_srv: bool) -> None:
    """Check the rules of this module for the options of a client. The names are in lower case."""
    contradiction = find_tls_contradiction(options)
    if contradiction:
        raise InvalidURI(contradiction)
    check_uri(options, nodes_count, is_srv)
    for is_broken, message in _CLIENT_RULES:
        if is_broken(options):
            raise InvalidOption(message.format_map({"maxpoolsize": DEFAULT_MAX_POOL_SIZE, **options}))


def check_uri(options: Document, nodes_count: int, is_srv: bool) -> None:
    """Check `_EXCLUSIVE_OPTIONS`, and that only a mongodb+srv URI has SRV options."""
    values = {**options, "hosts": nodes_count, "several_hosts": nodes_count > 1, "srv": is_srv}
    for first, second, message in _EXCLUSIVE_OPTIONS:
        if values.get(first) and values.get(second):
            raise InvalidOption(message.format_map(values))
    if not is_srv and any_option_set(options, _SRV_OPTIONS):
        raise InvalidOption(f"{', '.join(_SRV_OPTIONS)} can only be used with a mongodb+srv URI")


def find_tls_contradiction(names: Collection[str]) -> str | None:
    """Return the error message if two TLS options exclude each other. Otherwise return None."""
    for group in _EXCLUSIVE_TLS_OPTIONS:
        for first, second in combinations(group, 2):
            if first.lower() in names and second.lower() in names:
                return f"{first} and {second} cannot be given together"
    return None


def any_option_set(options: Document, names: Iterable[str]) -> bool:
    """Return True if at least one of the named options is not None."""
    return any(options.get(name.lower()) is not None for name in names)


def validate_keyword_options(keywords: Document) -> DocumentDict:
    """Check and convert the keyword arguments of MongoClient. Return the options by lower-case name.

    If keywords differ only in the case of the name, the last keyword takes effect. Different values
    of a security flag such as ``tlsInsecure``, or of an option and its alias, raise InvalidURI.
    """
    options: DocumentDict = {}
    given_names: dict[str, str] = {}
    for name, value in keywords.items():
        option = find_option(name)
        if option is None:
            raise ConfigurationError(unknown_option_message(name, in_uri=False))
        checked = option.check(value)
        may_differ = option.insecure is None and given_names.get(option.key) == name.lower()
        if options.get(option.key, checked) != checked and not may_differ:
            raise InvalidURI(f"{option.name} and {name!r} are one option: their values must not differ")
        options[option.key], given_names[option.key] = checked, name.lower()
    return options


def overriding_options(keywords: Document, uri_options: Document) -> DocumentDict:
    """Return the keyword options that take effect together with the options of a URI.

    The value None does not override an option that protects the client. A security flag that is less
    secure in the keyword than in the URI raises InvalidURI.
    """
    effective = {}
    for key, value in keywords.items():
        option = find_option(key)
        if option is None or key not in uri_options:
            effective[key] = value
            continue
        if option.insecure is not None and value is option.insecure and uri_options[key] is not value:
            raise InvalidURI(
                f"the URI has {option.name}={str(uri_options[key]).lower()}, which the keyword"
                f" {option.name}={value} must not override; remove one of the two"
            )
        if value is not None or not option.protects:
            effective[key] = value
    return effective


def _relies_on_tls(options: Document) -> bool:
    """Return True if a TLS option names a file, requires a check, or contains a password."""
    details = ((options.get(name.lower()), find_option(name)) for name in TLS_DETAIL_OPTIONS)
    return any(value not in (None, option and option.insecure) for value, option in details)


def _get_max_pool_size(options: Document) -> int:
    return options.get("maxpoolsize", DEFAULT_MAX_POOL_SIZE) or 0
