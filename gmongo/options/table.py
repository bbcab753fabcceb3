"""Table of all options: names, aliases, sources and validators."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote_plus

from gmongo._nearest import nearest
from gmongo._truncated_repr import short
from gmongo.errors import InvalidOption, InvalidOptionType
from gmongo.options import objects, structured, validators
from gmongo.options.validators import INT64_MAX, Rejected, Validator, integer, one_of, optional


class Source(Enum):
    """Places where an application may set an option."""

    ANYWHERE = "URI or keyword"
    KEYWORD = "keyword only"


class Repeat(Enum):
    """Meaning of an option that occurs several times in a URI."""

    LAST_WINS = "the last value takes effect, with a warning"
    LIST = "the value is the list of all values"
    ERROR = "an error"


@dataclass(frozen=True, eq=False)
class Option:
    """One option of a client. `validate` checks and converts a value."""

    name: str  # the name in the spelling of the specifications
    validate: Validator
    aliases: tuple[str, ...] = ()
    deprecated: tuple[str, ...] = ()  # old names, which cause a warning in a URI
    source: Source = Source.ANYWHERE
    repeat: Repeat = Repeat.LAST_WINS
    secret: bool = False  # True if the value must never be shown
    protects: bool = False  # True if the client would be less secure without the option
    decodes: bool = False  # True if `validate` splits the value at the delimiters, and then percent-decodes the parts
    insecure: bool | None = None  # the insecure value of a security flag, or None for other options

    @property
    def key(self) -> str:
        """The name in lower case, which is the key of the option in converted options."""
        return self.name.lower()

    def check(self, value: object, quoted: bool = True) -> object:
        """Check and convert a value of the option. An error message quotes the value only if `quoted` is True."""
        try:
            return self.validate(value)
        except Rejected as refusal:
            rule, error_class = refusal.rule, InvalidOptionType if refusal.wrong_type else InvalidOption
        # Raise the error outside of the `except` block, because the context of the error could quote the value.
        shown = f", not {short(value)}" if quoted and not self.secret else ""
        raise error_class(f"{self.name} must be {rule}{shown}")


def _keyword_option(name: str, validate: Validator, secret: bool = False) -> Option:
    return Option(name, validate, source=Source.KEYWORD, secret=secret, protects=secret)


OPTIONS = (
    # Connection pools
    Option("maxPoolSize", optional(integer(0))),
    Option("minPoolSize", integer(0)),
    Option("maxIdleTimeMS", validators.limit_in_seconds),
    Option("maxConnecting", integer(1)),
    Option("waitQueueTimeoutMS", validators.limit_in_seconds),
    Option("drainLateReplies", validators.boolean),
    Option("drainLateRepliesMS", validators.positive_seconds),
    Option("drainLateRepliesBytes", integer(1)),
    # Times
    Option("connectTimeoutMS", validators.limit_in_seconds),
    Option("socketTimeoutMS", validators.limit_in_seconds),
    Option("timeoutMS", optional(validators.seconds)),
    Option("serverSelectionTimeoutMS", validators.seconds),
    Option("heartbeatFrequencyMS", validators.positive_seconds),
    Option("localThresholdMS", validators.milliseconds),
    # Topology
    Option("replicaSet", optional(validators.string)),
    Option("directConnection", validators.boolean),
    Option("loadBalanced", validators.boolean),
    Option("serverMonitoringMode", one_of("auto", "stream", "poll")),
    Option("srvServiceName", validators.service_name),
    Option("srvMaxHosts", integer(0)),
    Option("srvAllowedHostsSuffix", structured.allowed_hosts_suffix, protects=True),
    _keyword_option("srv_host_validator", objects.callable_or_none),
    _keyword_option("server_selector", objects.callable_or_none),
    Option("connect", validators.optional_boolean),
    # Connections
    Option("appName", optional(validators.appname)),
    Option("compressors", structured.compressors),
    Option("zlibCompressionLevel", integer(-1, 9)),
    Option("proxyHost", validators.string, repeat=Repeat.ERROR),
    Option("proxyPort", integer(1, 65535), repeat=Repeat.ERROR),
    Option("proxyUsername", validators.string, repeat=Repeat.ERROR, secret=True),
    Option("proxyPassword", validators.string, repeat=Repeat.ERROR, secret=True),
    _keyword_option("driver", objects.instance_of("DriverInfo")),
    _keyword_option("server_api", objects.instance_of("ServerApi")),
    _keyword_option("event_listeners", objects.event_listeners),
    # TLS
    Option("tls", validators.boolean, aliases=("ssl",), protects=True, insecure=False),
    Option("tlsInsecure", validators.boolean, insecure=True),
    Option("tlsAllowInvalidCertificates", validators.boolean, insecure=True),
    Option("tlsAllowInvalidHostnames", validators.boolean, insecure=True),
    Option("tlsCAFile", validators.path, protects=True),
    Option("tlsCRLFile", validators.path, protects=True),
    Option("tlsCertificateKeyFile", validators.path, protects=True),
    Option("tlsCertificateKeyFilePassword", optional(validators.string), secret=True, protects=True),
    Option("tlsDisableCertificateRevocationCheck", validators.boolean, insecure=True),
    Option("tlsDisableOCSPEndpointCheck", validators.boolean, insecure=True),
    # Authentication
    Option("authMechanism", one_of(*structured.MECHANISMS), protects=True),
    Option("authMechanismProperties", structured.mechanism_properties, secret=True),
    Option("authSource", validators.string, protects=True),
    _keyword_option("username", optional(validators.string), secret=True),
    _keyword_option("password", optional(validators.string), secret=True),
    _keyword_option("auto_encryption_opts", objects.instance_of("AutoEncryptionOpts"), secret=True),
    # Reads and writes
    Option("retryReads", validators.boolean),
    Option("retryWrites", validators.boolean),
    Option("maxAdaptiveRetries", integer(0), aliases=("max_adaptive_retries",)),
    Option("enableOverloadRetargeting", validators.boolean, aliases=("enable_overload_retargeting",)),
    Option("baseBackoffMS", validators.seconds),
    Option("readConcernLevel", optional(validators.string)),
    Option("readPreference", one_of(*structured.READ_PREFERENCE_MODES)),
    Option("readPreferenceTags", structured.tag_sets, repeat=Repeat.LIST, decodes=True),
    Option("maxStalenessSeconds", validators.staleness),
    _keyword_option("read_preference", objects.read_preference),
    Option("w", structured.write_acknowledgement),
    Option("wTimeoutMS", integer(0, INT64_MAX), deprecated=("wtimeout",)),
    Option("journal", validators.boolean, deprecated=("j",)),
    Option("fsync", validators.boolean),
    # Documents
    Option("tz_aware", validators.optional_boolean),
    Option("uuidRepresentation", structured.uuid_representation),
    Option("unicode_decode_error_handler", one_of("strict", "replace", "ignore")),
    Option("datetime_conversion", structured.datetime_conversion),
    _keyword_option("document_class", objects.document_class),
    _keyword_option("type_registry", objects.instance_of("TypeRegistry", "a bson.codec_options.TypeRegistry")),
    _keyword_option("tzinfo", objects.instance_of("tzinfo", "a datetime.tzinfo")),
    # Observability
    _keyword_option("tracing", objects.tracing),
    _keyword_option("metrics", objects.metrics),
    _keyword_option("slow_operation_ms", optional(validators.seconds)),
)
"""All options of a client."""

_BY_NAME = {name.lower(): option for option in OPTIONS for name in (option.name, *option.aliases, *option.deprecated)}

SECRET_OPTION_NAMES = frozenset(name for name, option in _BY_NAME.items() if option.secret)
"""The names of the options whose values must never be shown, in lower case."""


def find_option(name: str) -> Option | None:
    """Return the option with the case-insensitive name or alias `name`. Return None if unknown."""
    return _BY_NAME.get(name.lower())


# An unknown name that contains one of these words is probably a misspelled name of a security option.
_PROTECTIVE_WORDS = ("tls", "ssl", "auth", "cert", "crypt", "secur")
# Option that PyMongo 4 removed -> option that replaces it.
_SUCCESSORS = {
    "ssl_ca_certs": "tlsCAFile",
    "ssl_cert_reqs": "tlsAllowInvalidCertificates (True for CERT_NONE)",
    "ssl_certfile": "tlsCertificateKeyFile, one file with certificate and key",
    "ssl_crlfile": "tlsCRLFile",
    "ssl_keyfile": "tlsCertificateKeyFile, one file with certificate and key",
    "ssl_match_hostname": "tlsAllowInvalidHostnames (the opposite)",
    "ssl_pem_passphrase": "tlsCertificateKeyFilePassword",
}
_PUNCTUATION_PATTERN = re.compile(r"[\W_]+")


def protects(name: str) -> bool:
    """Return True if the client may be less secure without the option `name`.

    The result is also True for an unknown name that contains a word such as ``tls``, or resembles the
    name of a security option. The comparison ignores percent-encoding, case, spaces and punctuation.
    """
    option = find_option(name)
    if option is not None:
        return option.protects
    letters = _PUNCTUATION_PATTERN.sub("", unicodedata.normalize("NFKC", unquote_plus(name)).lower())
    protective_names = (key for key, option in _BY_NAME.items() if option.protects)
    return any(each in letters for each in _PROTECTIVE_WORDS) or nearest(letters, protective_names) is not None


def unknown_option_message(name: str, in_uri: bool) -> str:
    """Return the error message for an unknown option. If possible, propose a known option."""
    successor = _SUCCESSORS.get(name.lower())
    if successor is not None:
        return f"Unknown option {name!r} of PyMongo 3: use {successor}"
    known_names = (key for key, option in _BY_NAME.items() if not in_uri or option.source is Source.ANYWHERE)
    match = nearest(unquote_plus(name).strip().lower(), known_names)
    hint = f" (did you mean {_BY_NAME[match].name!r}?)" if match else ""
    return f"Unknown option {name!r}{hint}"
