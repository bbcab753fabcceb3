"""Each option changes the settings of a client. An option has the same effect in a URI and as
a keyword argument.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
from typing import Any

import pytest
from bson import SON
from bson.codec_options import DatetimeConversion, TypeRegistry

from gmongo import MongoClient
from gmongo.auth.credential import Credential
from gmongo.client_options import ClientOptions
from gmongo.driver_info import DriverInfo
from gmongo.monitoring import CommandListener
from gmongo.options import srv
from gmongo.options.table import OPTIONS, Option, Source
from gmongo.read_preferences import ReadPreference
from gmongo.server_api import ServerApi
from tests.support.cases import rows

LISTENER, REGISTRY = CommandListener(), TypeRegistry(fallback_encoder=str)
HOST_URI = "mongodb://h.example.com/"
SRV_URI = "mongodb+srv://h.example.com/"

# Option -> a value other than the default. REQUIRED_OPTIONS contains the other options that an option
# needs.
VALUES: dict[str, Any] = {
    **{row["option"]: row["value"] for row in rows(__file__, "values")},
    "srv_host_validator": lambda host: host.startswith("b"), "server_selector": list, "driver": DriverInfo("x"),
    "server_api": ServerApi("1", True, False), "event_listeners": [LISTENER],
    "read_preference": ReadPreference.NEAREST, "datetime_conversion": DatetimeConversion.DATETIME_MS,
    "document_class": SON, "type_registry": REGISTRY, "tzinfo": datetime.timezone.utc,
}  # fmt: skip
LOGIN_OPTIONS = {"username", "password"}
REQUIRED_OPTIONS = {row["option"]: row["requires"] for row in rows(__file__, "required options")}
# Other test files test the options of TLS files and of encryption. `client_state` uses the repr of
# a credential, which never shows `authMechanismProperties`.
TESTED_ELSEWHERE = {
    "authMechanismProperties", "tlsCAFile", "tlsCRLFile", "tlsCertificateKeyFile",
    "tlsCertificateKeyFilePassword", "auto_encryption_opts",
}  # fmt: skip


def _comparable_tls(tls_options: Any) -> object:
    if tls_options is None:
        return None
    context, revocation = tls_options.context, getattr(tls_options, "revocation", None)
    trust = getattr(context, "trust", None)
    query_mode = getattr(revocation, "_queries_responders", None) if revocation is not None else "no revocation check"
    return (
        type(tls_options).__name__,
        str(getattr(context, "verify_mode", None)),
        context.check_hostname,
        repr(trust),
        query_mode,
    )


def _comparable(value: Any) -> object:
    """Convert an option value to a form in which equal values compare as equal."""
    if type(value).__name__ in ("Tls", "CheckedTls"):
        return _comparable_tls(value)
    if type(value).__name__ == "Authenticator":
        return repr(value.credential)
    if type(value).__name__ == "EventListeners":
        return value.all
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field.name for field in dataclasses.fields(value))
        return {
            name: _comparable(getattr(value, name)) for name in fields if name not in ("topology_id", "connection_made")
        }
    return repr(value)


def client_state(host: str, options: dict[str, Any]) -> dict[str, object]:
    """Return the settings of a client: the options of its parts, the metadata, the credential and the
    seeds.
    """
    parsed = ClientOptions(host, None, options)
    names = [name for name, _ in inspect.getmembers(ClientOptions, lambda each: isinstance(each, property))]
    settings = {
        name: _comparable(getattr(parsed, name)) for name in names if name not in ("pool_options", "event_listeners")
    }
    for name in ("execution", "topology", "telemetry"):
        settings[name] = _comparable(getattr(parsed, name)())
    pool = parsed.pool_options
    settings["pool_options"] = {name: repr(value) for name, value in pool._asdict().items() if name != "metadata"}
    metadata = {name: value for name, value in parsed.metadata().items() if name != "env"}
    return {**settings, "metadata": metadata, "credential": repr(parsed.credential), "seeds": parsed.seeds}


@pytest.fixture(autouse=True)
def dns_queries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Let DNS return two hosts of `example.com`, and return the list of recorded DNS queries."""
    queries: list[tuple[Any, ...]] = []

    def lookup(name: str, kind: str, *arguments: Any) -> srv.Answer:
        queries.append((name, kind, *arguments))
        hosts = [("a.example.com", 1), ("b.example.com", 2)]
        return srv.Answer(hosts if kind == "SRV" else [])

    monkeypatch.setattr(srv, "lookup", lookup)
    monkeypatch.setattr("gmongo._random.sample", lambda hosts, count: hosts[:count])
    return queries


def test_value_table_and_exception_list_contain_every_option() -> None:
    assert {option.name for option in OPTIONS} == VALUES.keys() | TESTED_ELSEWHERE


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "option", [each for each in OPTIONS if each.name not in TESTED_ELSEWHERE], ids=lambda each: each.name
)
def test_option_changes_client_by_keyword_and_in_uri(option: Option) -> None:
    if option.name in ("metrics", "tracing"):
        pytest.importorskip("opentelemetry")
    if option.name in ("tlsDisableCertificateRevocationCheck", "tlsDisableOCSPEndpointCheck"):
        pytest.importorskip("OpenSSL")
    host = SRV_URI if option.name.lower().startswith("srv") else HOST_URI
    required = REQUIRED_OPTIONS.get(option.name, {})
    client_arguments = {**required, option.name: VALUES[option.name]}
    settings_without_option = client_state(host, {name: value for name, value in required.items() if value != "other"})
    try:
        settings: object = client_state(host, client_arguments)
    except Exception as error:  # for example, for a host outside of the domain
        settings = str(error)
    assert settings != settings_without_option
    if option.source is Source.ANYWHERE and option.name not in ("username", "password"):
        texts = [f"{name}={_uri_text(value)}" for name, value in client_arguments.items() if name not in LOGIN_OPTIONS]
        login = {name: value for name, value in client_arguments.items() if name in LOGIN_OPTIONS}
        try:
            settings_from_uri: object = client_state(f"{host}?{'&'.join(texts)}", login)
        except Exception as error:
            settings_from_uri = str(error)
        assert settings_from_uri == settings


def _uri_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ",".join(f"{name}:{each}" for name, each in value.items())
    return value.name if isinstance(value, DatetimeConversion) else str(value)


def test_srv_max_hosts_counts_duplicate_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = srv.Answer([("a.example.com.", 1), ("A.example.com.", 1), ("b.example.com.", 2)])
    monkeypatch.setattr(srv, "lookup", lambda *_arguments: answer)
    assert srv.SrvName("h.example.com", max_hosts=2).seeds() == [("a.example.com", 1), ("b.example.com", 2)]


@pytest.mark.parametrize("by_keyword", [False, True])
def test_dns_query_uses_service_name_and_connect_timeout(dns_queries: list[tuple[Any, ...]], by_keyword: bool) -> None:
    options = {"srvServiceName": "other", "connectTimeoutMS": 700}
    query = "" if by_keyword else "?srvServiceName=other&connectTimeoutMS=700"
    client_state(SRV_URI + query, options if by_keyword else {})
    assert dns_queries == [("_other._tcp.h.example.com", "SRV", 0.7, True), ("h.example.com", "TXT", 0.7, True)]
    dns_queries.clear()
    client_state(SRV_URI, {})
    assert dns_queries == [("_mongodb._tcp.h.example.com", "SRV", 20.0, True), ("h.example.com", "TXT", 20.0, True)]


def test_client_repr_shows_times_in_unit_of_options() -> None:
    text = repr(MongoClient("a", connect=False, wTimeoutMS=5, localThresholdMS=6, timeoutMS=7))
    assert "wtimeoutms=5," in text and "localthresholdms=6.0," in text and "timeoutms=7" in text


def test_client_repr_shows_options_but_no_secret() -> None:
    options = {name: value for name, value in VALUES.items() if not name.startswith(("srv", "proxy", "tls", "auth"))}
    for name in ("loadBalanced", "directConnection", "metrics", "tracing", "fsync", "username", "password"):
        options.pop(name)
    options["connect"] = False
    client: MongoClient[Any] = MongoClient(HOST_URI, **options)
    text = repr(client)
    secret_names = {option.name for option in OPTIONS if option.secret}
    for name in options:
        assert (f"{name.lower()}=" in text.lower()) is (name not in secret_names), name
    assert "maxidletimems=700" in text and "localthresholdms=700" in text


def test_allowed_suffix_or_validator_permits_host_of_other_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(srv, "lookup", lambda name, kind, *_: srv.Answer([("a.other.org", 1)] if kind == "SRV" else []))
    with pytest.raises(Exception, match=r"name the host 'a\.other\.org', which example\.com does not allow"):
        client_state(SRV_URI, {})
    for options in ({"srvAllowedHostsSuffix": "other.org"}, {"srv_host_validator": lambda host: True}):
        assert client_state(SRV_URI, options)["seeds"] == (("a.other.org", 1),)


def test_keyword_and_port_complete_uri_in_list_of_hosts() -> None:
    uri = "mongodb://ann:pw@a,b:1/d?maxPoolSize=x&w=2&journal=true"
    with pytest.warns(UserWarning, match=r"^maxPoolSize must be an integer"):
        parsed = ClientOptions([uri, "c"], 27018, {"username": "bob", "w": 3})
    assert parsed.seeds == (("a", 27018), ("b", 1), ("c", 27018)) and parsed.default_database == "d"
    assert parsed.write_concern.document == {"w": 3, "j": True} and parsed.pool_options.max_pool_size == 100
    assert parsed.credential == Credential("DEFAULT", "d", "bob", "pw", {})
    options = {"srvMaxHosts": 0, "connect": False, "password": "other", "driver": DriverInfo("library")}
    parsed = ClientOptions("mongodb+srv://ann:pw@h.example.com/?srvMaxHosts=1&replicaSet=r", None, options)
    assert parsed.credential == Credential("DEFAULT", "admin", "ann", "other", {}) and parsed.replica_set_name == "r"
    assert parsed.metadata()["driver"]["name"] == "gmongo|library"


# The settings of a client without options. Settings whose value is None are not listed.
DEFAULTS: dict[str, Any] = {
    "heartbeat_frequency": 10.0, "local_threshold": 0.015, "server_selection_timeout": 30.0,
    "monitoring_mode": "auto", "srv_max_hosts": 0, "srv_rescan_interval": 60.0, "direct_connection": False,
    "load_balanced": False, "silent": False,
    "max_pool_size": 100, "min_pool_size": 0, "max_connecting": 2, "background_interval": 10.0,
    "drains": False, "drain_time": 1.0, "drain_bytes": 1024 * 1024,
    "connect_timeout": 20.0, "compressors": (), "zlib_level": -1,
    "retry_reads": True, "retry_writes": True, "max_adaptive_retries": 5, "base_backoff": 0.1,
    "overload_retargeting": False,
    "tracing_enabled": False, "query_text_max_length": 0, "metrics_enabled": False,
}  # fmt: skip


def test_client_without_options_has_defaults_of_its_parts() -> None:
    parsed = ClientOptions("mongodb://h/", None, {})
    topology = parsed.topology()
    settings: dict[str, Any] = {}
    for part in (topology, topology.pool, topology.connection, parsed.execution(), parsed.telemetry()):
        defaults = {each.name: each.default for each in dataclasses.fields(part)}
        with_default = {name: default for name, default in defaults.items() if default is not dataclasses.MISSING}
        assert {name: getattr(part, name) for name in with_default} == with_default
        settings |= with_default
    assert {name: default for name, default in settings.items() if default is not None} == DEFAULTS


@pytest.mark.parametrize("value", [0, 2**63 - 1])
def test_wtimeout_that_is_negative_or_above_int64_raises_value_error(value: int) -> None:
    assert ClientOptions("mongodb://h/", None, {"wTimeoutMS": value}).write_concern.document["wtimeout"] == value
    for wrong in (-1, 2**63):
        with pytest.raises(ValueError, match=rf"^wTimeoutMS must be an integer from 0 to {2**63 - 1}"):
            ClientOptions("mongodb://h/", None, {"wTimeoutMS": wrong})
