from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import dns.resolver
import pytest

from gmongo._native_threads import result_or_exception
from gmongo.client_options import ClientOptions
from gmongo.errors import ConfigurationError, InvalidURI
from gmongo.options import srv, uri_parts
from gmongo.options.rules import check_combination, validate_keyword_options
from gmongo.options.table import OPTIONS, Source
from gmongo.options.uri import read_uri
from gmongo.uri_parser import parse_uri, split_options, validate_options
from tests.support.cases import with_cases

SECRET = "hunter2"


class TestMalformedUris:
    def test_uri_of_bytes_raises_invalid_uri(self) -> None:
        with pytest.raises(InvalidURI, match="bytes"):
            parse_uri(b"mongodb://localhost")  # type: ignore[arg-type]

    @with_cases
    def test_malformed_uri_error_hides_password(self, uri: str) -> None:
        with pytest.raises(ConfigurationError) as raised:
            parse_uri(uri)
        assert SECRET not in str(raised.value)
        assert raised.value.__context__ is None or SECRET not in str(raised.value.__context__)


class TestOptions:
    def test_unknown_uri_option_raises_or_warns_or_is_accepted_as_requested(self) -> None:
        for read in (read_uri, parse_uri):
            with pytest.raises(ConfigurationError, match="Unknown option 'nosuch'"):
                read("mongodb://h/?nosuch=5")
            with pytest.warns(UserWarning, match="Unknown option 'nosuch'"):
                assert read("mongodb://h/?nosuch=5", warn=True)["options"] == {}
            assert read("mongodb://h/?nosuch=5", validate=False)["options"] == {"nosuch": "5"}
            assert read("mongodb://h/?ssl=true")["options"] == {"tls": True}

    def test_parsed_options_are_found_regardless_of_case(self) -> None:
        text = "MAXPOOLSIZE=5&noSuch=x"
        for options in (parse_uri(f"mongodb://h/?{text}", validate=False)["options"], split_options(text, False)):
            assert list(options) == ["maxPoolSize", "nosuch"] and options == {"maxpoolsize": "5", "noSuch": "x"}
            assert options["maxPoolSize"] == options["MaxPoolSize"] == options.get("maxpoolsize") == "5"
            assert "MaxPoolSize" in options and "minPoolSize" not in options and 5 not in options
            assert options.get("minPoolSize") is None and options.get("minPoolSize", 7) == 7
            for missing in ("minPoolSize", "MINPOOLSIZE"):
                with pytest.raises(KeyError, match=r"^'minPoolSize'$"):
                    options[missing]

    def test_validated_options_have_converted_values_and_lower_case_names(self) -> None:
        assert validate_options({"MaxPoolSize": "5", "maxIdleTimeMS": 500}) == {"maxpoolsize": 5, "maxidletimems": 0.5}
        with pytest.raises(ConfigurationError, match="Unknown option 'noSuch'"):
            validate_options({"noSuch": 5})
        with pytest.warns(UserWarning, match="Unknown option 'noSuch'"):
            assert validate_options({"noSuch": 5}, warn=True) == {}

    def test_deprecated_option_sets_its_successor_with_warning(self) -> None:
        with pytest.warns(UserWarning, match="'wtimeout' is deprecated; use 'wTimeoutMS'"):
            assert split_options("wtimeout=5") == {"wTimeoutMS": 5}
        with pytest.warns(UserWarning, match="deprecated and ignored"):
            assert split_options("wtimeoutMS=10&wtimeout=5") == {"wTimeoutMS": 10}

    @pytest.mark.requirement("CMAP-18")
    @pytest.mark.parametrize("name", ["waitQueueSize", "waitQueueMultiple", "maxPolSize", "documentClass"])
    def test_unknown_option_raises_unless_warn_is_true(self, name: str) -> None:
        with pytest.warns(UserWarning, match=f"Unknown option '{name}'") as caught:
            assert parse_uri(f"mongodb://h/?{name}=5&w=1", warn=True)["options"] == {"w": 1}
        assert caught[0].filename == __file__
        with pytest.raises(ConfigurationError, match=rf"{name}(?!\w)"):
            parse_uri(f"mongodb://h/?{name}=5")
        with pytest.raises(ConfigurationError, match=rf"{name}(?!\w)"):
            validate_keyword_options({name: 5})

    def test_misspelled_option_error_suggests_nearest_name(self) -> None:
        with pytest.raises(ConfigurationError, match="did you mean 'maxPoolSize'"):
            validate_keyword_options({"max_pool_size": 5})

    @pytest.mark.parametrize("option", [option.name for option in OPTIONS if option.source is Source.KEYWORD])
    def test_keyword_only_option_in_uri_raises(self, option: str) -> None:
        with pytest.raises(ConfigurationError, match="keyword argument"):
            parse_uri(f"mongodb://h/?{option}=x")


class TestKeywords:
    def test_invalid_password_error_hides_password(self) -> None:
        with pytest.raises(ConfigurationError, match="password must be a string") as raised:
            validate_keyword_options({"password": SECRET.encode()})
        assert SECRET not in str(raised.value)

    @with_cases
    def test_pymongo_3_option_error_names_successor(self, name: str, successor: str) -> None:
        for use in (
            lambda: validate_keyword_options({name: "x"}),
            lambda: parse_uri(f"mongodb://h/?{name}=x"),
        ):
            with pytest.raises(ConfigurationError, match=f"'{name}' of PyMongo 3: use {successor}"):
                use()

    def test_unknown_compressor_is_dropped_with_warning(self) -> None:
        with pytest.warns(UserWarning, match="^compressors must be some of snappy, zlib, zstd; ignored names: 1$"):
            assert validate_keyword_options({"compressors": ["lz4", "zlib"]}) == {"compressors": ["zlib"]}


class TestCombinations:
    @with_cases
    @pytest.mark.requirement("CMAP-08", "SM-40", "LB-04", "LB-05", "LB-06", "LB-07")
    def test_contradictory_options_raise(self, options: Any, host_count: int, is_srv: bool, option: str) -> None:
        with pytest.raises(ConfigurationError, match=rf"{option}(?!\w)"):
            check_combination(validate_keyword_options(options), host_count, is_srv)

    @with_cases
    def test_compatible_options_are_accepted(self, options: dict[str, Any], host_count: int, is_srv: bool) -> None:
        check_combination(validate_keyword_options(options), host_count, is_srv)


class FixedDnsRecords:
    """A function that replaces :func:`gmongo.options.srv.lookup`. The function stores each query, and
    returns fixed DNS records.
    """

    def __init__(self, hosts: list[str], texts: list[str]) -> None:
        self.answers: dict[str, list[Any]] = {"SRV": [(host, 27017) for host in hosts], "TXT": texts}
        self.queries: list[tuple[str, str, float]] = []
        self.refs: list[bool] = []

    def __call__(self, name: str, record_type: str, timeout: float, ref: bool = True) -> srv.Answer:
        self.queries.append((name, record_type, timeout))
        self.refs.append(ref)
        return srv.Answer(self.answers[record_type], 60)


@pytest.fixture
def install_records(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*hosts: str, texts: tuple[str, ...] = ()) -> FixedDnsRecords:
        dns_records = FixedDnsRecords(list(hosts), list(texts))
        monkeypatch.setattr(srv, "lookup", dns_records)
        return dns_records

    return install


class TestSrv:
    @pytest.mark.requirement("LB-08", "LB-10", "LB-11")
    def test_load_balanced_txt_option_conflicts_with_replica_set_of_uri(self, install_records: Any) -> None:
        dns_records = install_records("a.example.com", texts=("loadBalanced=true",))
        with pytest.raises(ConfigurationError, match="loadBalanced"):
            parse_uri("mongodb+srv://x.example.com/?replicaSet=rs")
        assert [record_type for _, record_type, _ in dns_records.queries] == ["SRV", "TXT"]

    @with_cases
    def test_uri_and_arguments_determine_dns_queries_and_options(
        self, install_records: Any, query: str, arguments: Any, service: str, timeout: float, options: Any, hosts: int
    ) -> None:
        dns_records = install_records("a.example.com.", "b.example.com.", texts=("authSource=x&replicaSet=rs",))
        parsed = parse_uri(f"mongodb+srv://X.example.com./{query}", **arguments)
        queries = [(f"_{service}._tcp.x.example.com", "SRV", timeout), ("x.example.com", "TXT", timeout)]
        assert dns_records.queries == queries and dns_records.refs == [True, True]
        assert dict(parsed["options"]) == options and parsed["fqdn"] == "x.example.com"
        assert len(set(parsed["nodelist"]) & {("a.example.com", 27017), ("b.example.com", 27017)}) == hosts

    @with_cases
    def test_invalid_txt_record_raises_configuration_error(
        self, install_records: Any, texts: tuple[str, ...], message: str
    ) -> None:
        install_records("a.example.com", texts=texts)
        with pytest.raises(ConfigurationError) as caught:
            parse_uri("mongodb+srv://x.example.com")
        assert str(caught.value) == message

    def test_srv_arguments_of_parse_uri_override_options_of_uri(self, install_records: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr("gmongo._random.sample", lambda hosts, count: hosts[:count])
        dns_records = install_records("a.other.org", "b.other.org", "c.other.org")
        uri = "mongodb+srv://ann:pw@x.example.com/db.c?srvServiceName=wrong&srvMaxHosts=1&tls=false"
        suffix = {"srv_allowed_hosts_suffix": "other.org"}
        assert parse_uri(uri, connect_timeout=7.0, srv_service_name="own", srv_max_hosts=2, **suffix) == {
            "nodelist": [("a.other.org", 27017), ("b.other.org", 27017)], "username": "ann", "password": "pw",
            "database": "db", "collection": "c", "fqdn": "x.example.com",
            "options": {"srvServiceName": "wrong", "srvMaxHosts": 1, "tls": False},
        }  # fmt: skip
        assert dns_records.queries == [("_own._tcp.x.example.com", "SRV", 7.0), ("x.example.com", "TXT", 7.0)]
        assert len(parse_uri(uri, srv_host_validator=lambda host: True, srv_max_hosts=0)["nodelist"]) == 3

    def test_background_srv_query_does_not_keep_event_loop_alive(self, install_records: Any) -> None:
        dns_records = install_records("a.example.com")
        name = srv.srv_name("x.example.com", {})
        name.seeds()
        assert name.verified_hosts() == ([("a.example.com", 27017)], 60)
        assert dns_records.refs == [True, False]

    def test_late_dns_query_does_not_keep_event_loop_alive(self, install_records: Any) -> None:
        dns_records = install_records("a.example.com")
        settings = ClientOptions("mongodb+srv://x.example.com", None, {"connect": False}).topology()
        assert dns_records.refs == [] and settings.resolve is not None
        assert settings.resolve(settings).seeds == (("a.example.com", 27017),)
        assert set(dns_records.refs) == {False}

    @pytest.mark.parametrize(
        ("text", "replica_set", "is_load_balanced"), [("replicaSet=rs", "rs", False), ("loadBalanced=true", None, True)]
    )
    def test_late_dns_query_applies_options_of_txt_record(
        self, install_records: Any, text: str, replica_set: str | None, is_load_balanced: bool
    ) -> None:
        install_records("a.example.com", texts=(f"authSource=x&{text}",))
        options = ClientOptions("mongodb+srv://ann:pw@x.example.com", None, {"connect": False})
        settings = options.topology()
        resolved: Any = settings.resolve and settings.resolve(settings)
        assert (resolved.replica_set_name, resolved.load_balanced, resolved.resolve) == (
            replica_set, is_load_balanced, None,
        )  # fmt: skip
        assert resolved.connection.load_balanced is is_load_balanced and not options.is_unresolved
        assert resolved.connection.authenticator.credential.source == "x" and options.topology().resolve is None


class TestLookup:
    """Tests of `srv.lookup` in which a function of the test replaces the resolver of dnspython."""

    @pytest.fixture(autouse=True, params=["in a thread", "in place"])
    def query_place(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        """Select where the DNS query runs: in a native thread, or in the greenlet of the lookup."""
        if request.param == "in place":
            monkeypatch.setattr(srv, "run_in_native_thread", lambda job, ref: result_or_exception(job))
        return str(request.param)

    @staticmethod
    def reply(record_type: str, *texts: str) -> Any:
        rrset = dns.rrset.from_text("x.example.com.", 42, "IN", record_type, *texts)

        class Reply(list):
            pass

        answer = Reply(rrset)
        answer.rrset = rrset
        return answer

    def test_lookup_converts_dns_records_of_resolver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        replies = {
            "SRV": self.reply("SRV", "0 0 27018 a.example.com.", "9 9 27019 b.example.com."),
            "TXT": self.reply("TXT", '"replicaS" "et=rs"'),
        }
        queries: list[object] = []

        def resolve(name: str, record_type: str, lifetime: float) -> Any:
            queries.append((name, record_type, lifetime))
            return replies[record_type]

        monkeypatch.setattr(dns.resolver, "resolve", resolve)
        hosts = srv.lookup("x.example.com", "SRV", 5, ref=True)
        assert set(hosts.records) == {("a.example.com.", 27018), ("b.example.com.", 27019)}
        assert hosts.ttl == 42
        assert srv.lookup("x.example.com", "TXT", 5, ref=True).records == ["replicaSet=rs"]
        assert queries == [("x.example.com", "SRV", 5), ("x.example.com", "TXT", 5)]

    @pytest.mark.parametrize("error", [dns.resolver.NXDOMAIN, dns.resolver.NoAnswer])
    def test_lookup_returns_empty_answer_if_no_records_exist(
        self, error: type[Exception], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(dns.resolver, "resolve", _resolver_that_raises(error.__new__(error)))
        assert srv.lookup("x.example.com", "TXT", 5, ref=True) == ([], 0)

    def test_failed_dns_lookup_raises_error_with_cause_and_prints_nothing(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        failure = OSError("no name server")
        monkeypatch.setattr(dns.resolver, "resolve", _resolver_that_raises(failure))
        with pytest.raises(ConfigurationError, match="no name server") as raised:
            srv.lookup("x.example.com", "SRV", 5, ref=True)
        assert raised.value.__cause__ is failure
        assert capfd.readouterr().err == ""

    def test_lookup_thread_destroys_its_hub_if_sockets_are_monkey_patched(
        self, query_place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        destroy_calls: list[bool] = []
        hub = SimpleNamespace(destroy=lambda destroy_loop: destroy_calls.append(destroy_loop))
        monkeypatch.setattr(srv, "get_hub", lambda: hub)
        monkeypatch.setattr(dns.resolver, "resolve", _resolver_that_raises(OSError("no name server")))
        for module in ("ssl", "socket"):
            monkeypatch.setattr(srv.monkey, "is_module_patched", module.__eq__)
            with pytest.raises(
                ConfigurationError, match=r"DNS gave no SRV records of x\.example\.com: no name server$"
            ):
                srv.lookup("x.example.com", "SRV", 5, ref=True)
        assert destroy_calls == [True]


def _resolver_that_raises(error: Exception) -> Any:
    def raise_error(name: str, record_type: str, lifetime: float) -> Any:
        raise error

    return raise_error


def test_plain_uri_does_not_import_dnspython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dns", None)
    monkeypatch.setitem(sys.modules, "dns.resolver", None)
    assert parse_uri("mongodb://localhost")["nodelist"] == [("localhost", 27017)]


@pytest.mark.parametrize("uri", ["mongodb://", "mongodb:///db", "mongodb://ann:x@/?tls=true"])
def test_uri_without_host_raises_invalid_uri(uri: str) -> None:
    with pytest.raises(InvalidURI, match="must have at least one host; the path of a Unix domain socket must be"):
        parse_uri(uri)


@with_cases
def test_only_error_about_invalid_user_name_advises_to_escape(uri: str, user_name_is_valid: bool) -> None:
    try:
        parse_uri(uri, warn=True)
        message = ""
    except InvalidURI as error:
        message = str(error)
    assert message.startswith(uri_parts.USERINFO_RULE) is not user_name_is_valid


@with_cases
def test_malformed_uri_raises_error_that_states_rule(error: type[Exception], uris: dict[str, list[Any]]) -> None:
    for message, uri in ((message, uri) for message, malformed in uris.items() for uri in malformed):
        with pytest.raises(error) as caught:
            parse_uri(uri)
        assert (type(caught.value), str(caught.value)) == (error, message), uri


@with_cases
def test_uri_is_split_into_hosts_credentials_and_namespace(uri: str, parts: list[Any]) -> None:
    parsed = parse_uri(uri, default_port=7)
    assert [parsed[name] for name in ("nodelist", "username", "password", "database", "collection")] == parts


@with_cases
def test_questionable_option_of_uri_warns(uri: str, messages: list[str], options: dict[str, Any]) -> None:
    with pytest.warns(UserWarning) as caught:
        assert parse_uri(uri, warn=True)["options"] == options
    assert [str(each.message) for each in caught] == messages
