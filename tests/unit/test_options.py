"""Each option converts its accepted values, and rejects other values with an error that states the rule."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bson import UuidRepresentation
from bson.codec_options import DatetimeConversion, TypeRegistry
from bson.raw_bson import RawBSONDocument

from gmongo.auth.credential import Credential
from gmongo.client_options import ClientOptions, _check_mechanism_without_tls
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.driver_info import DriverInfo
from gmongo.errors import InvalidOption, InvalidOptionType
from gmongo.execution.retry import ExecutionSettings
from gmongo.monitoring import CommandListener
from gmongo.monitoring.listeners import EventListeners
from gmongo.options.structured import MECHANISMS
from gmongo.options.table import OPTIONS, Option, Source, find
from gmongo.read_preferences import ReadPreference
from gmongo.sdam.settings import TopologySettings
from gmongo.server_api import ServerApi

INT32, INT64 = 2**31 - 1, 2**63 - 1
TYPE, VALUE = InvalidOptionType, InvalidOption
SAME = object()  # expected result of a value that the option accepts without conversion
LISTENER = CommandListener()
UTC = datetime.timezone.utc
REGISTRY = TypeRegistry()
TRACER, METER = SimpleNamespace(get_tracer=print), SimpleNamespace(get_meter=print)

Good = Mapping[Any, Any] | list[tuple[Any, Any]]
Bad = list[tuple[str, type, list[Any]]]


def integer_rules(lowest: int, highest: int = INT32) -> tuple[Good, Bad]:
    rule = f"an integer from {lowest} to {highest}"
    good = [(lowest, lowest), (highest, highest), (str(lowest), lowest), (str(highest), highest)]
    wrong = ["", "x", "1.5", " 1", "+1", lowest - 1, highest + 1, str(highest + 1)]
    return good, [(rule, TYPE, [True, 1.0, None, [], {}]), (rule, VALUE, wrong)]


def choice_rules(*names: str) -> tuple[Good, Bad]:
    return [(name, name) for name in names], [
        (f"one of {', '.join(names)}", VALUE, [None, 5, [], "", names[0].upper() + "x", names[0] + " "])
    ]


def rules_with_more_accepted_values(good: Good, bad: Bad, added: list[tuple[Any, Any]]) -> tuple[Good, Bad]:
    """Return a rule that accepts more values than the given rule.

    :param good: the values that the given rule accepts.
    :param bad: the values that the given rule rejects. The returned rule does not reject `added`.
    :param added: the values that only the returned rule accepts, each with the converted value.
    """
    added_values = [value for value, _ in added]

    def is_added(value: Any) -> bool:
        return any(value is each for each in added_values)

    return [*(good.items() if isinstance(good, Mapping) else good), *added], [
        (rule, kind, [value for value in values if not is_added(value)]) for rule, kind, values in bad
    ]


BOOLEANS: tuple[Good, Bad] = (
    [(True, True), (False, False), ("true", True), ("false", False)],
    [("True or False", TYPE, [0, 1, None, [], 1.0]), ("'true' or 'false'", VALUE, ["", "True", "yes", "1"])],
)
FLAGS = rules_with_more_accepted_values(*BOOLEANS, [(None, False)])
_MILLISECONDS = "a number of milliseconds from 0 to 999999999"
MILLISECONDS: tuple[Good, Bad] = (
    [(0, 0.0), (5, 5.0), (0.5, 0.5), ("1500", 1500.0), ("1.5", 1.5), (999999999, 999999999.0)],
    [
        (_MILLISECONDS, TYPE, [True, None, [], {}]),
        (_MILLISECONDS, VALUE, [-1, -0.1, "", "x", "nan", float("inf"), 10**9, 10**400]),
    ],
)
SECONDS: tuple[Good, Bad] = [(value, shown / 1000) for value, shown in MILLISECONDS[0]], MILLISECONDS[1]
OPTIONAL_SECONDS = rules_with_more_accepted_values(*SECONDS, [(None, None)])
LIMITS = rules_with_more_accepted_values(
    [each for each in SECONDS[0] if each[1]], SECONDS[1], [(None, None), (0, None), ("0", None), (0.0, None)]
)
POSITIVE: tuple[Good, Bad] = (
    [each for each in SECONDS[0] if each[1]],
    [*SECONDS[1], ("a number of milliseconds above 0", VALUE, [0, 0.0, "0"])],
)
STRINGS: tuple[Good, Bad] = [("", ""), ("x y", "x y")], [("a string", TYPE, [None, 5, b"x", ["x"]])]
OPTIONAL_STRINGS = rules_with_more_accepted_values(*STRINGS, [(None, None)])
PATHS: tuple[Good, Bad] = (
    [("/a b", "/a b"), (Path("/a"), "/a"), (b"/a", "/a"), (None, None)],
    [("the path of a file", TYPE, [5, [], True]), ("the path of a file", VALUE, ["", "a\0b", b""])],
)
FUNCTIONS: tuple[Good, Bad] = [(None, None), (print, print)], [("a callable", TYPE, [5, "print", []])]
_SERVICE = "a service name of 1 to 62 letters, digits and inner hyphens"
_DOMAIN = "a domain name of at least two labels"
_TAGS = "tag sets such as 'dc:ny,rack:1'"
_PROPERTIES = (
    "AWS_SESSION_TOKEN, CANONICALIZE_HOST_NAME, ENVIRONMENT, SERVICE_HOST, SERVICE_NAME, SERVICE_REALM, TOKEN_RESOURCE"
)
_IN_TEXTS = f"made of the properties {_PROPERTIES}; it has another one"
_IN_MAPPINGS = (
    f"made of the properties {_PROPERTIES}, ALLOWED_HOSTS, OIDC_CALLBACK, OIDC_HUMAN_CALLBACK; it has another one"
)
_CONVERSIONS = "DATETIME, DATETIME_CLAMP, DATETIME_MS, DATETIME_AUTO"
_STALENESS = "an integer: a positive number of seconds, or -1"


def observability_rules(provider: str, other_key: str, provider_object: Any) -> tuple[Good, Bad]:
    names = ", ".join(each for each in ("enabled", other_key, provider) if each)
    method = f"get_{provider.partition('_')[0]}"
    good = [
        (value, value)
        for value in (None, {}, {"enabled": True}, {"enabled": None}, {provider: provider_object}, {provider: None})
    ]
    return good, [
        (f"a mapping with {names}", TYPE, [5, "x", []]),
        (f"a mapping with no other keys than {names}", VALUE, [{"x": 1}, {"Enabled": True}]),
        ("a mapping whose enabled is True or False", TYPE, [{"enabled": 1}, {"enabled": "true"}]),
        (f"a mapping whose {provider} has the method {method}", TYPE, [{provider: 5}, {provider: SimpleNamespace()}]),
    ]


_SPANS, _METRICS = (
    observability_rules("tracer_provider", "query_text_max_length", TRACER),
    observability_rules("meter_provider", "", METER),
)
_LENGTH = "query_text_max_length"
RULES: dict[tuple[str, ...], tuple[Good, Bad]] = {
    ("maxPoolSize",): rules_with_more_accepted_values(*integer_rules(0), [(None, None)]),
    ("minPoolSize", "srvMaxHosts", "maxAdaptiveRetries"): integer_rules(0),
    ("maxConnecting", "drainLateRepliesBytes"): integer_rules(1),
    ("zlibCompressionLevel",): integer_rules(-1, 9),
    ("proxyPort",): integer_rules(1, 65535),
    ("wTimeoutMS",): integer_rules(0, INT64),
    ("maxIdleTimeMS", "waitQueueTimeoutMS", "connectTimeoutMS", "socketTimeoutMS"): LIMITS,
    ("timeoutMS", "slow_operation_ms"): OPTIONAL_SECONDS,
    ("serverSelectionTimeoutMS", "baseBackoffMS"): SECONDS,
    ("drainLateRepliesMS", "heartbeatFrequencyMS"): POSITIVE,
    ("localThresholdMS",): MILLISECONDS,
    ("drainLateReplies", "directConnection", "loadBalanced", "tls", "tlsInsecure", "tlsAllowInvalidCertificates",
     "tlsAllowInvalidHostnames", "tlsDisableCertificateRevocationCheck", "tlsDisableOCSPEndpointCheck", "retryReads",
     "retryWrites", "enableOverloadRetargeting", "journal", "fsync"): BOOLEANS,
    ("connect", "tz_aware"): FLAGS,
    ("proxyHost", "proxyUsername", "proxyPassword", "authSource"): STRINGS,
    ("replicaSet", "tlsCertificateKeyFilePassword", "username", "password", "readConcernLevel"): OPTIONAL_STRINGS,
    ("tlsCAFile", "tlsCRLFile", "tlsCertificateKeyFile"): PATHS,
    ("srv_host_validator", "server_selector"): FUNCTIONS,
    ("serverMonitoringMode",): choice_rules("auto", "stream", "poll"),
    ("authMechanism",): choice_rules(*MECHANISMS),
    ("readPreference",): choice_rules("primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"),
    ("unicode_decode_error_handler",): choice_rules("strict", "replace", "ignore"),
    ("uuidRepresentation",): (
        [("unspecified", UuidRepresentation.UNSPECIFIED), ("standard", UuidRepresentation.STANDARD),
         ("pythonLegacy", UuidRepresentation.PYTHON_LEGACY), ("javaLegacy", UuidRepresentation.JAVA_LEGACY),
         ("csharpLegacy", UuidRepresentation.CSHARP_LEGACY)],
        [("one of unspecified, standard, pythonLegacy, javaLegacy, csharpLegacy", VALUE, [None, 4, "STANDARD", ""])],
    ),
    ("datetime_conversion",): (
        [(None, DatetimeConversion.DATETIME), *((each.name, each) for each in DatetimeConversion),
         *((each.value, each) for each in DatetimeConversion), ("2", DatetimeConversion(2))],
        [(f"one of {_CONVERSIONS}", VALUE, ["datetime", "", 0, 5, -1]), (f"one of {_CONVERSIONS}", TYPE, [1.0, []])],
    ),
    ("appName",): (
        [("x" * 128, SAME), ("ä" * 64, SAME), ("", SAME), (None, None)],
        [("at most 128 bytes of UTF-8", VALUE, ["x" * 129, "ä" * 65]), ("a string", TYPE, [5, b"x"])],
    ),
    ("srvServiceName",): (
        [("a", "a"), ("a-b9", "a-b9"), ("x" * 62, SAME)],
        [(_SERVICE, VALUE, ["", "-a", "a-", "a_b", "x" * 63, "ä", "a.b"]), ("a string", TYPE, [None, 5])],
    ),
    ("srvAllowedHostsSuffix",): (
        [("a.b", "a.b"), (".A.B.", "a.b"), ("localhost", "localhost"), (".Internal", "internal")],
        [("a domain name", TYPE, [None, 5]), ("a domain name", VALUE, ["", ".", "a..b", "..a.b", "a b.c", "a.b\n"]),
         (_DOMAIN, VALUE, ["com", ".org", "b."])],
    ),
    ("maxStalenessSeconds",): (
        [(-1, -1), ("-1", -1), (1, 1), (INT32, INT32)],
        [(_STALENESS, TYPE, [None, 1.0, True]), (_STALENESS, VALUE, ["", "x"]),
         ("a positive integer number of seconds, or -1", VALUE, [0, -2, INT32 + 1])],
    ),
    ("w",): (
        [(0, 0), ("5", 5), (INT32, INT32), ("majority", "majority"), ("my mode", "my mode"), ("1x", "1x"), ("", "")],
        [(f"an integer from 0 to {INT32}, or the name of a mode", VALUE, [-1, "-1", INT32 + 1, str(INT32 + 1)]),
         (f"an integer from 0 to {INT32}, or the name of a mode", TYPE, [None, True, 1.0, []])],
    ),
    ("compressors",): (
        [("", []), ("snappy,zlib", ["snappy", "zlib"]), (("zstd", "none"), ["zstd"]), (["zlib"], ["zlib"])],
        [("a list of compressors, or their names with commas between", TYPE, [None, 5])],
    ),
    ("readPreferenceTags",): (
        [("", [{}]), ("dc:ny", [{"dc": "ny"}]), ("dc:ny,rack:1", [{"dc": "ny", "rack": "1"}]), ("a:", [{"a": ""}]),
         ("a%3Ab:c%2Cd", [{"a:b": "c,d"}]), ("a:b:c", [{"a": "b:c"}]),
         (["dc:ny", "", {"x": "y"}], [{"dc": "ny"}, {}, {"x": "y"}]),
         ({"x": "y"}, [{"x": "y"}]), (("a:b",), [{"a": "b"}]), ([], [])],
        [(_TAGS, VALUE, ["x", ":x", "a:b,", "a:b,,c:d", 5, [5], None])],
    ),
    ("authMechanismProperties",): (
        [("SERVICE_NAME:x", {"SERVICE_NAME": "x"}),
         ("service_realm:x:y,ENVIRONMENT:", {"SERVICE_REALM": "x:y", "ENVIRONMENT": ""}),
         *((f"{name}:x", {name: "x"}) for name in _PROPERTIES.split(", ")),
         ({"Allowed_Hosts": ["x"], "oidc_callback": 1}, {"ALLOWED_HOSTS": ["x"], "OIDC_CALLBACK": 1}), ({}, {}),
         ({"OIDC_HUMAN_CALLBACK": 1}, SAME)],
        [("comma-separated NAME:value pairs", VALUE, ["", "x", "SERVICE_NAME:x,", ":x"]),
         (_IN_TEXTS, VALUE, ["x:y", "ALLOWED_HOSTS:x", "OIDC_CALLBACK:x"]), (_IN_MAPPINGS, VALUE, [{"x": "y"}, {5: 5}]),
         ("NAME:value pairs or a mapping", TYPE, [None, 5, []])],
    ),
    ("read_preference",): (
        [(ReadPreference.NEAREST, SAME)],
        [("a read preference, such as ReadPreference.SECONDARY", TYPE, [None, "nearest", 5, ReadPreference])],
    ),
    ("event_listeners",): (
        [([], []), ([LISTENER], SAME), ((LISTENER,), [LISTENER])],
        [("a list of event listeners", TYPE, [None, LISTENER, "x", {}]),
         ("a list of event listeners only", TYPE, [[5], [LISTENER, None]])],
    ),
    ("document_class",): (
        [(None, dict), (dict, dict), (RawBSONDocument, RawBSONDocument)],
        [("dict, RawBSONDocument or a subclass of MutableMapping", TYPE, [5, list, "dict"])],
    ),
    ("type_registry",): ([(None, None), (REGISTRY, REGISTRY)], [("a bson.codec_options.TypeRegistry", TYPE, [5, {}])]),
    ("tzinfo",): ([(None, None), (UTC, UTC)], [("a datetime.tzinfo", TYPE, [5, "UTC"])]),
    ("driver",): ([(None, None), (DriverInfo("x"), SAME)], [("an instance of DriverInfo", TYPE, [5, "x"])]),
    ("server_api",): ([(None, None), (ServerApi("1"), SAME)], [("an instance of ServerApi", TYPE, [5, "1"])]),
    ("auto_encryption_opts",): ([(None, None)], [("an instance of AutoEncryptionOpts", TYPE, [5, {}])]),
    ("tracing",): (
        [*_SPANS[0], *(({_LENGTH: value}, SAME) for value in (0, 5, None))],
        [*_SPANS[1], (f"a mapping whose {_LENGTH} is an integer", TYPE, [{_LENGTH: each} for each in (True, "5", 1.0)]),
         (f"a mapping whose {_LENGTH} is 0 or above", VALUE, [{_LENGTH: -1}])],
    ),
    ("metrics",): ([*_METRICS[0], (True, {"enabled": True}), (False, {"enabled": False})], _METRICS[1]),
}  # fmt: skip

NAMED = [(option, RULES[names]) for names in RULES for option in map(find, names)]


def option_name_or_empty(value: Any) -> str:
    return value.name if isinstance(value, Option) else ""


def test_table_of_option_rules_contains_every_option() -> None:
    names = [name for group in RULES for name in group]
    assert sorted(names) == sorted(option.name for option in OPTIONS)


@pytest.mark.filterwarnings("ignore:compressors")
@pytest.mark.parametrize(("option", "rules"), NAMED, ids=option_name_or_empty)
def test_option_converts_accepted_values(option: Option, rules: tuple[Good, Bad]) -> None:
    for value, expected in rules[0]:
        found = option.check(value)
        assert found == (value if expected is SAME else expected), value
        assert type(found) is type(value if expected is SAME else expected), value


@pytest.mark.requirement("CMAP-07", "CMAP-09", "CMAP-10", "CMAP-13")
@pytest.mark.parametrize(("option", "rules"), NAMED, ids=option_name_or_empty)
def test_option_rejects_invalid_values_and_states_rule(option: Option, rules: tuple[Good, Bad]) -> None:
    for rule, error_class, values in rules[1]:
        for value in values:
            with pytest.raises(error_class) as caught:
                option.check(value)
            assert type(caught.value) is error_class, value
            text = str(caught.value)
            assert text.startswith(f"{option.name} must be {rule}"), value
            rest = text.removeprefix(f"{option.name} must be {rule}")
            assert (rest == "") if option.secret else rest.startswith(", not "), value


def test_client_without_options_has_default_settings_of_each_layer() -> None:
    options = ClientOptions("mongodb://a/", None, {})
    topology = options.topology()
    own = {"seeds", "listeners", "topology_id", "connection_made"}
    for given, usual in (
        (options.execution(), ExecutionSettings()),
        (topology.pool, PoolSettings()),
        (topology.connection, ConnectionSettings(metadata=topology.connection.metadata)),
        (topology, TopologySettings((("a", 27017),), EventListeners(), connection=topology.connection)),
    ):
        for field in dataclasses.fields(given):
            if field.name not in own and field.compare:
                assert getattr(given, field.name) == getattr(usual, field.name), field.name
    assert (options.execution().retry_reads, options.execution().retry_writes) == (True, True)
    pool = topology.pool
    assert (pool.max_pool_size, pool.min_pool_size, pool.max_connecting, pool.drain_time, pool.drain_bytes) == (
        100, 0, 2, 1.0, 2**20,
    )  # fmt: skip
    assert (topology.heartbeat_frequency, topology.local_threshold) == (10, 0.015)
    assert topology.server_selection_timeout == 30
    assert (topology.connection.connect_timeout, topology.connection.socket_timeout) == (20.0, None)
    assert (pool.background_interval, topology.srv_rescan_interval) == (10.0, 60)


def option_names_with(condition: Any) -> set[str]:
    return {option.name for option in OPTIONS if condition(option)}


def test_options_have_documented_attributes_and_aliases() -> None:
    assert option_names_with(lambda option: option.secret) == {
        *("proxyUsername", "proxyPassword", "tlsCertificateKeyFilePassword", "authMechanismProperties"),
        *("username", "password", "auto_encryption_opts"),
    }
    assert option_names_with(lambda option: option.protects) == {
        *("srvAllowedHostsSuffix", "tls", "tlsCAFile", "tlsCRLFile", "tlsCertificateKeyFile", "authMechanism"),
        *("tlsCertificateKeyFilePassword", "authSource", "username", "password", "auto_encryption_opts"),
    }
    assert option_names_with(lambda option: option.source is Source.KEYWORD) == {
        *("srv_host_validator", "server_selector", "driver", "server_api", "event_listeners", "username", "password"),
        *("auto_encryption_opts", "read_preference", "document_class", "type_registry", "tzinfo", "tracing", "metrics"),
        "slow_operation_ms",
    }
    assert option_names_with(lambda option: option.insecure is True) == {
        *("tlsInsecure", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames"),
        *("tlsDisableCertificateRevocationCheck", "tlsDisableOCSPEndpointCheck"),
    }
    assert option_names_with(lambda option: option.insecure is False) == {"tls"}
    assert option_names_with(lambda option: option.decodes) == {"readPreferenceTags"}
    for alias, name in (("ssl", "tls"), ("max_adaptive_retries", "maxAdaptiveRetries"), ("wtimeout", "wTimeoutMS"),
                        ("j", "journal"), ("enable_overload_retargeting", "enableOverloadRetargeting")):  # fmt: skip
        assert find(alias) is find(name) is find(alias.upper())
    assert find("nosuch") is None


@pytest.mark.parametrize(
    ("mechanism", "secret"), [("PLAIN", "the password"), ("MONGODB-OIDC", "an access token"), ("SCRAM-SHA-256", None)]
)
def test_mechanism_that_sends_secret_without_tls_warns(mechanism: str, secret: str | None, recwarn: Any) -> None:
    credential = Credential(mechanism, "$external", "ann", "secret", {})
    _check_mechanism_without_tls(credential, [("localhost", 27017)])
    assert not recwarn.list
    _check_mechanism_without_tls(credential, [("localhost", 27017), ("db.example.com", 27017)])
    messages = [str(each.message) for each in recwarn.list]
    text = f"authMechanism {mechanism} without tls=true sends {secret} over the network in plain text"
    assert messages == ([] if secret is None else [text])
