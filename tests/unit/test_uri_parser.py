from __future__ import annotations

import datetime
import sys
import threading
import warnings
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote_plus

import dns.resolver
import gevent
import pytest
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion, TypeRegistry
from hypothesis import given
from hypothesis import strategies as st

from gmongo._threads import caught
from gmongo.errors import ConfigurationError, InvalidURI
from gmongo.options import (
    OPTIONS,
    Source,
    check_combination,
    codec_options,
    connection_string,
    read_preference,
    srv,
    tls_enabled,
    validate_keyword_options,
    write_concern,
)
from gmongo.options.uri import read_uri
from gmongo.read_preferences import Primary, ReadPreference, Secondary
from gmongo.uri_parser import (
    parse_host,
    parse_ipv6_literal_host,
    parse_uri,
    parse_userinfo,
    split_hosts,
    split_options,
)

SECRET = "hunter2"


class TestHosts:
    @pytest.mark.parametrize(
        ("entity", "expected"),
        [
            ("Example.COM", ("example.com", 27017)),
            ("example.com:1", ("example.com", 1)),
            ("10.0.0.1:65535", ("10.0.0.1", 65535)),
            ("[::1]", ("::1", 27017)),
            ("[FE80::1]:27018", ("fe80::1", 27018)),
            ("/tmp/Mongo.sock", ("/tmp/Mongo.sock", None)),
        ],
    )
    def test_parse_host(self, entity: str, expected: tuple[str, int | None]) -> None:
        assert parse_host(entity) == expected

    @pytest.mark.parametrize(
        "entity",
        [
            "",
            ":27017",
            "a:",
            "a:0",
            "a:65536",
            "a:-1",
            "a:b",
            "a:b:c",
            "a::27017",
            "[::1",
            "[]",
            "[::1]x",
            "[::1]:x",
        ],
    )
    def test_malformed_hosts(self, entity: str) -> None:
        with pytest.raises(ConfigurationError) as raised:
            parse_host(entity)
        assert isinstance(raised.value, ValueError)

    def test_split_hosts_uses_the_default_port(self) -> None:
        assert split_hosts("a,b:2,/x/y.sock", 5) == [("a", 5), ("b", 2), ("/x/y.sock", None)]
        with pytest.raises(ConfigurationError, match="comma too many"):
            split_hosts("a,,b")

    def test_ipv6_literal_keeps_its_port_as_text(self) -> None:
        assert parse_ipv6_literal_host("[::1]:27018", 27017) == ("::1", "27018")
        assert parse_ipv6_literal_host("[::1]", None) == ("::1", None)


class TestUserinfo:
    @pytest.mark.parametrize(
        ("userinfo", "expected"),
        [
            ("alice", ("alice", "")),
            ("alice:", ("alice", "")),
            ("alice:p%40ss+word", ("alice", "p@ss word")),
            ("alice:a+b=c", ("alice", "a+b=c")),
            ("a%3Ab:c%2Bd", ("a:b", "c+d")),
        ],
    )
    def test_decoding(self, userinfo: str, expected: tuple[str, str]) -> None:
        assert parse_userinfo(userinfo) == expected

    @given(st.text(min_size=1), st.text())
    def test_what_quote_plus_encoded_comes_back(self, username: str, password: str) -> None:
        try:
            userinfo = f"{quote_plus(username)}:{quote_plus(password)}"
        except UnicodeEncodeError:
            return
        assert parse_userinfo(userinfo) == (username, password)

    @pytest.mark.parametrize("userinfo", ["", ":x", "a:b:c", "a@b", "a%", "a%4", "a:%zz"])
    def test_what_is_not_encoded_is_refused(self, userinfo: str) -> None:
        with pytest.raises(InvalidURI, match=r"^the username"):
            parse_userinfo(userinfo)


class TestMalformedUris:
    @pytest.mark.parametrize(
        "uri",
        [
            "",
            "mongo://localhost:27017",
            "mongodb://",
            "mongodb:///",
            "mongodb://localhost::27017",
            "mongodb://localhost::27017/",
            "mongodb://::",
            "mongodb://localhost,localhost::",
            "mongodb://localhost:-1",
            "mongodb://localhost:0/",
            "mongodb://localhost:65536",
            "mongodb://localhost:foo",
            "mongodb://[::1]:-1",
            "mongodb://[::1]:0/",
            "mongodb://[::1]:65536/",
            "mongodb://example.com/?w",
            "mongodb://example.com/?w=1&",
            "mongodb://example.com/?w=1;journal=true&tls=true",
            "mongodb://example.com/?authSource=",
            "mongodb://alice:foo:bar@127.0.0.1",
            "mongodb://alice@@127.0.0.1",
            "mongodb://alice@foo:bar@127.0.0.1",
            "mongodb://alice/@localhost/db",
            "mongodb://alice/bob:foo@localhost/db",
            "mongodb://alice:foo/bar@localhost/db",
            "mongodb:///tmp/mongodb-27017.sock/",
            "mongodb://%2Ftmp%2Fmongodb-27017.sock:27017",
            "mongodb://exam%70le.com",
            "mongodb://localhost/a$b",
            "mongodb://localhost/a%20b",
            "mongodb://localhost/.coll",
            "mongodb+srv://a.example.com,b.example.com",
            "mongodb+srv://a.example.com:27018",
            "mongodb+srv://127.0.0.1",
            "mongodb+srv://[::1]",
            "mongodb+srv://a..example.com",
            "mongodb+rawsrv://tcp.example.com",
        ],
    )
    @pytest.mark.parametrize("warn", [False, True])
    def test_refused(self, uri: str, warn: bool) -> None:
        with pytest.raises(ConfigurationError):
            parse_uri(uri, warn=warn)

    def test_a_uri_must_be_a_string(self) -> None:
        with pytest.raises(InvalidURI, match="bytes"):
            parse_uri(b"mongodb://localhost")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "uri",
        [
            f"mongodb://alice:{SECRET}/x@localhost/db",
            f"mongodb://alice:{SECRET}?x@localhost/db",
            f"mongodb://alice:{SECRET}@x@localhost/db",
            f"mongodb://alice:{SECRET}:x@localhost",
            f"mongodb://alice:{SECRET}%@localhost",
            f"mongodb://alice:{SECRET}",
            f"mongodb://alice:{SECRET}@",
            f"mongodb://alice:{SECRET}@localhost:nope",
            f"mongodb://alice:{SECRET}@localhost/?maxPoolSize=x",
            f"mongodb://alice:{SECRET}@localhost/?maxPolSize=1",
            f"mongodb://alice:{SECRET}@localhost/a b",
            f"mongodb://localhost/?authMechanismProperties=AWS_SESSION_TOKEN{SECRET}",
            f"mongodb://localhost/?password={SECRET}",
        ],
    )
    def test_no_message_shows_a_password(self, uri: str) -> None:
        with pytest.raises(ConfigurationError) as raised:
            parse_uri(uri)
        assert SECRET not in str(raised.value)
        assert raised.value.__context__ is None or SECRET not in str(raised.value.__context__)


class TestOptions:
    def test_values_are_converted(self) -> None:
        result = parse_uri(
            "mongodb://a:b@h1,h2:3/db.coll.x?maxPoolSize=5&serverSelectionTimeoutMS=500&ssl=true&connectTimeoutMS=0"
            "&socketTimeoutMS=0&maxIdleTimeMS=0&waitQueueTimeoutMS=0&localThresholdMS=9&timeoutMS=0&appName=a%20b"
        )
        assert result["options"] == {
            "maxPoolSize": 5,
            "serverSelectionTimeoutMS": 0.5,
            "tls": True,
            "connectTimeoutMS": None,
            "socketTimeoutMS": None,
            "maxIdleTimeMS": None,
            "waitQueueTimeoutMS": None,
            "localThresholdMS": 9.0,
            "timeoutMS": 0.0,
            "appName": "a b",
        }
        assert list(result["options"])[:2] == ["maxPoolSize", "serverSelectionTimeoutMS"]
        assert isinstance(result["options"], dict)
        assert result["options"]["MAXPOOLSIZE"] == result["options"].get("maxpoolsize") == 5
        assert "appname" in result["options"]
        for absent in ("ssl", "w"):
            with pytest.raises(KeyError, match=absent):
                result["options"][absent]
        del result["options"]
        assert result == {
            "nodelist": [("h1", 27017), ("h2", 3)],
            "username": "a",
            "password": "b",
            "database": "db",
            "collection": "coll.x",
            "fqdn": None,
        }

    def test_options_of_a_client_are_found_in_any_case(self) -> None:
        options = read_uri("mongodb://h/?maxPoolSize=5", None)["options"]
        assert options["MAXPOOLSIZE"] == options["maxPoolSize"] == options.get("maxpoolsize") == 5
        assert dict(options) == {"maxpoolsize": 5}

    def test_what_is_unknown_is_refused_unless_a_warning_is_asked_for(self) -> None:
        for read in (read_uri, parse_uri):
            with pytest.raises(ConfigurationError, match="Unknown option 'nosuch'"):
                read("mongodb://h/?nosuch=5")
            with pytest.warns(UserWarning, match="Unknown option 'nosuch'"):
                assert read("mongodb://h/?nosuch=5", warn=True)["options"] == {}
            assert read("mongodb://h/?nosuch=5", validate=False)["options"] == {"nosuch": "5"}
            assert read("mongodb://h/?ssl=true")["options"] == {"tls": True}

    def test_a_unix_domain_socket_has_no_port(self) -> None:
        result = parse_uri("mongodb://%2Ftmp%2FMongo.sock,h/db")
        assert result["nodelist"] == [("/tmp/Mongo.sock", None), ("h", 27017)]

    def test_an_ipv6_zone_is_decoded(self) -> None:
        assert parse_uri("mongodb://[fe80::1%25eth0]:1")["nodelist"] == [("fe80::1%eth0", 1)]

    def test_read_preference_tags_make_a_list(self) -> None:
        options = read_uri(
            "mongodb://h/?readPreference=secondary&maxStalenessSeconds=100"
            "&readPreferenceTags=dc:ny,rack:1&readPreferenceTags=",
            None,
        )["options"]
        assert read_preference(options) == Secondary([{"dc": "ny", "rack": "1"}, {}], 100)

    def test_a_delimiter_that_is_encoded_is_a_part_of_a_tag(self) -> None:
        tags = "a%3Ab:c%2Cd,e:f:g+h"
        expected = [{"a:b": "c,d", "e": "f:g h"}]
        assert split_options(f"readPreferenceTags={tags}")["readPreferenceTags"] == expected
        assert validate_keyword_options({"readPreferenceTags": tags})["readpreferencetags"] == expected

    def test_semicolons_separate_too(self) -> None:
        assert split_options("w=1;journal=true") == {"w": 1, "journal": True}

    def test_without_validation_values_stay_strings(self) -> None:
        assert split_options("maxPoolSize=x&ssl=true&foo=1", validate=False) == {
            "maxPoolSize": "x",
            "tls": "true",
            "foo": "1",
        }

    def test_without_normalisation_aliases_stay(self) -> None:
        assert split_options("ssl=true", normalize=False) == {"ssl": True}

    def test_a_deprecated_name_gives_its_value_to_the_new_one(self) -> None:
        with pytest.warns(UserWarning, match="'wtimeout' is deprecated; use 'wTimeoutMS'"):
            assert split_options("wtimeout=5") == {"wTimeoutMS": 5}
        with pytest.warns(UserWarning, match="deprecated and ignored"):
            assert split_options("wtimeoutMS=10&wtimeout=5") == {"wTimeoutMS": 10}

    @pytest.mark.requirement("CMAP-18")
    @pytest.mark.parametrize("name", ["waitQueueSize", "waitQueueMultiple", "maxPolSize", "documentClass"])
    def test_unknown_options_are_ignored_with_a_warning_or_refused(self, name: str) -> None:
        with pytest.warns(UserWarning, match=f"Unknown option '{name}'") as caught:
            assert parse_uri(f"mongodb://h/?{name}=5&w=1", warn=True)["options"] == {"w": 1}
        assert caught[0].filename == __file__
        with pytest.raises(ConfigurationError, match=name):
            parse_uri(f"mongodb://h/?{name}=5")
        with pytest.raises(ConfigurationError, match=name):
            validate_keyword_options({name: 5})

    def test_the_nearest_name_is_suggested(self) -> None:
        with pytest.raises(ConfigurationError, match="did you mean 'maxPoolSize'"):
            validate_keyword_options({"max_pool_size": 5})

    @pytest.mark.parametrize("option", [option.name for option in OPTIONS if option.source is Source.KEYWORD])
    def test_python_objects_cannot_come_from_a_uri(self, option: str) -> None:
        with pytest.raises(ConfigurationError, match="keyword argument"):
            parse_uri(f"mongodb://h/?{option}=x")


GOOD_VALUES = [
    ("maxPoolSize", 0, 0),
    ("maxPoolSize", None, None),
    ("maxPoolSize", "7", 7),
    ("maxIdleTimeMS", 1500, 1.5),
    ("maxIdleTimeMS", 0, None),
    ("maxConnecting", 1, 1),
    ("waitQueueTimeoutMS", 0, None),
    ("waitQueueTimeoutMS", 5.5, 0.0055),
    ("connectTimeoutMS", None, None),
    ("timeoutMS", None, None),
    ("serverSelectionTimeoutMS", 0, 0.0),
    ("heartbeatFrequencyMS", 500, 0.5),
    ("wTimeoutMS", 2**40, 2**40),
    ("w", "majority", "majority"),
    ("w", "2", 2),
    ("tlsCAFile", b"/ca.pem", "/ca.pem"),
    ("readPreferenceTags", [{"dc": "ny"}, "dc:la"], [{"dc": "ny"}, {"dc": "la"}]),
    ("authMechanismProperties", {"OIDC_CALLBACK": len}, {"OIDC_CALLBACK": len}),
    ("uuidRepresentation", "standard", UuidRepresentation.STANDARD),
    ("datetime_conversion", "DATETIME_AUTO", DatetimeConversion.DATETIME_AUTO),
    ("tz_aware", None, False),
    ("document_class", None, dict),
    ("baseBackoffMS", 50, 0.05),
    ("maxAdaptiveRetries", 2, 2),
    ("srvAllowedHostsSuffix", ".Example.COM.", "example.com"),
    ("srvAllowedHostsSuffix", "localhost", "localhost"),
]

BAD_VALUES = [
    ("maxPoolSize", -1, ValueError),
    ("maxPoolSize", 1.5, TypeError),
    ("maxPoolSize", True, TypeError),
    ("maxPoolSize", "a", ValueError),
    ("maxPoolSize", 2**31, ValueError),
    ("minPoolSize", None, TypeError),
    ("maxConnecting", 0, ValueError),
    ("maxIdleTimeMS", -1, ValueError),
    ("waitQueueTimeoutMS", "nan", ValueError),
    ("connectTimeoutMS", 10**9, ValueError),
    ("serverSelectionTimeoutMS", None, TypeError),
    ("heartbeatFrequencyMS", 0, ValueError),
    ("maxStalenessSeconds", 0, ValueError),
    ("zlibCompressionLevel", 10, ValueError),
    ("appName", "\N{SNOWMAN}" * 43, ValueError),
    ("retryWrites", 1, TypeError),
    ("retryWrites", "yes", ValueError),
    ("w", -1, ValueError),
    ("w", 1.5, TypeError),
    ("authMechanism", "MONGODB-CR", ValueError),
    ("authMechanismProperties", "ALLOWED_HOSTS:x", ValueError),
    ("readPreference", "Secondary", ValueError),
    ("read_preference", "secondary", TypeError),
    ("readPreferenceTags", "dc", ValueError),
    ("compressors", 5, TypeError),
    ("uuidRepresentation", 4, ValueError),
    ("datetime_conversion", "never", ValueError),
    ("unicode_decode_error_handler", "loud", ValueError),
    ("serverMonitoringMode", "push", ValueError),
    ("srvServiceName", "_mongodb", ValueError),
    ("srvAllowedHostsSuffix", "com", ValueError),
    ("srv_host_validator", "notacallable", TypeError),
    ("server_selector", 5, TypeError),
    ("server_api", "1", TypeError),
    ("event_listeners", len, TypeError),
    ("event_listeners", [len], TypeError),
    ("document_class", int, TypeError),
    ("type_registry", {}, TypeError),
    ("tzinfo", "UTC", TypeError),
    ("username", 5, TypeError),
    ("tlsCAFile", 5, TypeError),
]


class TestKeywords:
    @pytest.mark.parametrize(("name", "value", "expected"), GOOD_VALUES)
    def test_good_values(self, name: str, value: Any, expected: Any) -> None:
        assert validate_keyword_options({name: value}) == {name.lower(): expected}

    @pytest.mark.requirement("CMAP-07", "CMAP-09", "CMAP-10", "CMAP-13")
    @pytest.mark.parametrize(("name", "value", "error"), BAD_VALUES)
    def test_bad_values(self, name: str, value: Any, error: type[Exception]) -> None:
        with pytest.raises(error, match=name) as raised:
            validate_keyword_options({name: value})
        assert isinstance(raised.value, ConfigurationError)

    def test_aliases_are_resolved(self) -> None:
        assert validate_keyword_options({"ssl": True, "j": False}) == {"tls": True, "journal": False}
        assert validate_keyword_options({"max_adaptive_retries": 3, "enable_overload_retargeting": True}) == {
            "maxadaptiveretries": 3,
            "enableoverloadretargeting": True,
        }
        with pytest.raises(ConfigurationError, match="tls"):
            validate_keyword_options({"tls": True, "ssl": False})

    def test_secrets_are_not_shown(self) -> None:
        with pytest.raises(ConfigurationError, match="password must be a string") as raised:
            validate_keyword_options({"password": SECRET.encode()})
        assert SECRET not in str(raised.value)

    @pytest.mark.parametrize(
        ("name", "successor"),
        [
            ("ssl_ca_certs", "tlsCAFile"),
            ("ssl_match_hostname", r"tlsAllowInvalidHostnames \(the opposite\)"),
            ("ssl_PEM_passphrase", "tlsCertificateKeyFilePassword"),
        ],
    )
    def test_options_of_pymongo_3_are_refused_with_their_successors(self, name: str, successor: str) -> None:
        for use in (lambda: validate_keyword_options({name: "x"}), lambda: parse_uri(f"mongodb://h/?{name}=x")):
            with pytest.raises(ConfigurationError, match=f"'{name}' of PyMongo 3: use {successor}"):
                use()

    def test_unknown_compressors_are_left_out(self) -> None:
        with pytest.warns(UserWarning, match="^compressors must be some of snappy, zlib, zstd; 1 unknown left out$"):
            assert validate_keyword_options({"compressors": ["lz4", "zlib"]}) == {"compressors": ["zlib"]}


class TestCombinations:
    @pytest.mark.parametrize(
        ("options", "hosts", "is_srv", "named"),
        [
            ({"directConnection": True}, 2, False, "directConnection"),
            ({"directConnection": True}, 1, True, "directConnection"),
            ({"loadBalanced": True}, 2, False, "loadBalanced"),
            ({"loadBalanced": True, "replicaSet": "rs"}, 1, False, "replicaSet"),
            ({"loadBalanced": True, "directConnection": True}, 1, False, "directConnection"),
            ({"srvMaxHosts": 1, "replicaSet": "rs"}, 1, True, "srvMaxHosts"),
            ({"srvMaxHosts": 1, "loadBalanced": True}, 1, True, "srvMaxHosts"),
            ({"srvMaxHosts": 0}, 1, False, "srvMaxHosts"),
            ({"srvServiceName": "x"}, 1, False, "srvServiceName"),
            ({"srv_host_validator": len}, 1, False, "srv_host_validator"),
            ({"srv_host_validator": len, "srvAllowedHostsSuffix": "a.b"}, 1, True, "srvAllowedHostsSuffix"),
            ({"tlsInsecure": False, "tlsAllowInvalidHostnames": False}, 1, False, "tlsInsecure"),
            ({"tls": False, "tlsCAFile": "ca.pem"}, 1, False, "tls=false"),
            ({"minPoolSize": 5, "maxPoolSize": 4}, 1, False, "minPoolSize"),
            ({"minPoolSize": 101}, 1, False, "minPoolSize"),
            ({"heartbeatFrequencyMS": 499}, 1, False, "heartbeatFrequencyMS"),
            ({"proxyPort": 1080}, 1, False, "proxyHost"),
            ({"proxyHost": "p", "proxyUsername": "u"}, 1, False, "proxyPassword"),
        ],
    )
    @pytest.mark.requirement("CMAP-08", "SM-40", "LB-04", "LB-05", "LB-06", "LB-07")
    def test_contradictions(self, options: dict[str, Any], hosts: int, is_srv: bool, named: str) -> None:
        with pytest.raises(ConfigurationError, match=named):
            check_combination(validate_keyword_options(options), hosts, is_srv)

    def test_messages_show_the_values(self) -> None:
        with pytest.raises(ConfigurationError, match="150 is above 100"):
            check_combination({"minpoolsize": 150}, 1, False)
        with pytest.raises(ConfigurationError, match="one host, not 3"):
            check_combination({"directconnection": True}, 3, False)

    @pytest.mark.parametrize(
        ("options", "hosts", "is_srv"),
        [
            ({}, 3, True),
            ({"directConnection": False}, 2, True),
            ({"loadBalanced": True, "directConnection": False, "srvMaxHosts": 0}, 1, True),
            ({"minPoolSize": 5, "maxPoolSize": 0}, 1, False),
            ({"minPoolSize": 150, "maxPoolSize": None}, 1, False),
            ({"minPoolSize": 100}, 1, False),
            ({"heartbeatFrequencyMS": 500}, 1, False),
            ({"tlsCAFile": "ca.pem"}, 1, False),
            ({"proxyHost": "p", "proxyUsername": "u", "proxyPassword": "x"}, 1, False),
        ],
    )
    def test_what_fits_together(self, options: dict[str, Any], hosts: int, is_srv: bool) -> None:
        check_combination(validate_keyword_options(options), hosts, is_srv)


class TestClientValues:
    def test_defaults(self) -> None:
        assert codec_options({}) == CodecOptions()
        assert write_concern({}).is_server_default
        assert read_preference({}) == Primary()
        assert not tls_enabled({})

    def test_codec_options(self) -> None:
        registry = TypeRegistry()
        options = validate_keyword_options(
            {
                "tz_aware": True,
                "tzinfo": datetime.timezone.utc,
                "uuidRepresentation": "standard",
                "type_registry": registry,
                "unicode_decode_error_handler": "ignore",
                "datetime_conversion": "DATETIME_CLAMP",
            }
        )
        codecs = codec_options(options)
        assert (codecs.tz_aware, codecs.tzinfo) == (True, datetime.timezone.utc)
        assert codecs.uuid_representation == UuidRepresentation.STANDARD
        assert codecs.type_registry is registry
        assert codecs.unicode_decode_error_handler == "ignore"
        assert codecs.datetime_conversion == DatetimeConversion.DATETIME_CLAMP

    def test_write_concern(self) -> None:
        options = validate_keyword_options({"w": 2, "wTimeoutMS": 50, "journal": True})
        assert write_concern(options).document == {"w": 2, "wtimeout": 50, "j": True}

    def test_a_read_preference_object_wins(self) -> None:
        options = validate_keyword_options({"read_preference": ReadPreference.NEAREST, "readPreference": "secondary"})
        assert read_preference(options) is ReadPreference.NEAREST

    def test_primary_with_tags_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="tags"):
            read_preference(validate_keyword_options({"readPreferenceTags": "dc:ny"}))

    def test_other_tls_options_turn_tls_on(self) -> None:
        assert tls_enabled({"tlscafile": "ca.pem"})
        assert tls_enabled({"tlsinsecure": False})
        assert not tls_enabled({"tlscafile": None})
        assert not tls_enabled({"tls": False})


class Records:
    """DNS with the records given, in the place of :func:`gmongo.options.srv.lookup`."""

    def __init__(self, hosts: list[str], texts: list[str]) -> None:
        self.answers: dict[str, list[Any]] = {"SRV": [(host, 27017) for host in hosts], "TXT": texts}
        self.questions: list[tuple[str, str, float]] = []
        self.refs: list[bool] = []

    def __call__(self, name: str, record_type: str, timeout: float, ref: bool = True) -> srv.Answer:
        self.questions.append((name, record_type, timeout))
        self.refs.append(ref)
        return srv.Answer(self.answers[record_type], 60)


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*hosts: str, texts: tuple[str, ...] = ()) -> Records:
        dns_records = Records(list(hosts), list(texts))
        monkeypatch.setattr(srv, "lookup", dns_records)
        return dns_records

    return install


class TestSrv:
    def test_hosts_and_options_come_from_dns(self, records: Any) -> None:
        asked = records("A.example.com.", "b.sub.example.com.", texts=("replicaSet=rs&authSource=x",))
        result = parse_uri("mongodb+srv://u:p@Cluster.example.com/db?authSource=mine&connectTimeoutMS=3000")
        assert result["nodelist"] == [("a.example.com", 27017), ("b.sub.example.com", 27017)]
        assert result["fqdn"] == "cluster.example.com"
        assert result["options"] == {
            "tls": True,
            "replicaSet": "rs",
            "authSource": "mine",
            "connectTimeoutMS": 3.0,
        }
        assert asked.questions == [
            ("_mongodb._tcp.cluster.example.com", "SRV", 3.0),
            ("cluster.example.com", "TXT", 3.0),
        ]

    def test_arguments_override_the_uri(self, records: Any) -> None:
        asked = records("a.example.com", "b.example.com", "c.example.com")
        result = parse_uri(
            "mongodb+srv://x.example.com/?srvServiceName=one&srvMaxHosts=1&connectTimeoutMS=0",
            connect_timeout=2.5,
            srv_service_name="two",
            srv_max_hosts=2,
        )
        assert len(set(result["nodelist"])) == 2
        assert asked.questions[0] == ("_two._tcp.x.example.com", "SRV", 2.5)

    def test_without_validation_dns_is_asked_all_the_same(self, records: Any) -> None:
        records("a.example.com", "b.example.com")
        result = parse_uri("mongodb+srv://x.example.com/?srvMaxHosts=1&ssl=false", validate=False, normalize=False)
        assert len(result["nodelist"]) == 1
        assert result["options"] == {"srvMaxHosts": "1", "ssl": "false"}

    @pytest.mark.parametrize(
        ("host", "target"),
        [
            ("localhost", "localhost.mongodb"),
            ("mongo.local", "test_1.evil.local"),
            ("blogs.mongodb.com", "blogs.evil.com"),
            ("localhost", "localhost"),
            ("mongo.local", "mongo.local"),
            ("localhost", "test_1.cluster_1localhost"),
            ("mongo.local", "test_1.my_hostmongo.local"),
            ("blogs.mongodb.com", "cluster.testmongodb.com"),
        ],
    )
    def test_hosts_outside_the_domain_are_refused(self, records: Any, host: str, target: str) -> None:
        records(target)
        with pytest.raises(ConfigurationError, match="does not allow"):
            parse_uri(f"mongodb+srv://{host}")

    @pytest.mark.parametrize(
        ("host", "target"),
        [
            ("localhost", "a.localhost"),
            ("mongo.local", "a.mongo.local"),
            ("test.build.10gen.cc", "test.build.10gen.cc"),
        ],
    )
    def test_hosts_inside_the_domain_are_accepted(self, records: Any, host: str, target: str) -> None:
        records(target)
        assert parse_uri(f"mongodb+srv://{host}")["nodelist"] == [(target, 27017)]

    def test_an_allowed_suffix_replaces_the_own_domain(self, records: Any) -> None:
        records("CLUSTER.MONGODB.COM.")
        uri = "mongodb+srv://blogs.example.com/?srvAllowedHostsSuffix=.mongodb.com"
        assert parse_uri(uri)["nodelist"] == [("cluster.mongodb.com", 27017)]
        records("db.cluster.localhost")
        nodes = parse_uri("mongodb+srv://x.example.com", srv_allowed_hosts_suffix="localhost")["nodelist"]
        assert nodes == [("db.cluster.localhost", 27017)]
        records("cluster.evilmongodb.com")
        with pytest.raises(ConfigurationError, match=r"evilmongodb\.com"):
            parse_uri(uri)

    def test_a_validator_replaces_the_check(self, records: Any) -> None:
        seen: list[str] = []
        records("CLUSTER.evil.com.")
        parse_uri("mongodb+srv://blogs.mongodb.com", srv_host_validator=lambda host: not seen.append(host))
        assert seen == ["cluster.evil.com"]
        records("cluster.mongodb.com")
        with pytest.raises(ConfigurationError, match="srv_host_validator"):
            parse_uri("mongodb+srv://blogs.mongodb.com", srv_host_validator=lambda host: False)

    def test_an_error_of_the_validator_is_the_cause(self, records: Any) -> None:
        error = RuntimeError("no idea")

        def validator(host: str) -> bool:
            raise error

        records("cluster.mongodb.com")
        with pytest.raises(ConfigurationError, match="no idea") as raised:
            parse_uri("mongodb+srv://blogs.mongodb.com", srv_host_validator=validator)
        assert raised.value.__cause__ is error

    @pytest.mark.parametrize(
        "arguments",
        [
            {"srv_service_name": "x"},
            {"srv_max_hosts": 1},
            {"srv_allowed_hosts_suffix": "a.b"},
            {"srv_host_validator": len},
        ],
    )
    def test_srv_arguments_need_an_srv_uri(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(ConfigurationError, match=r"mongodb\+srv"):
            parse_uri("mongodb://localhost", **arguments)

    @pytest.mark.requirement("LB-08", "LB-10", "LB-11")
    def test_load_balancing_is_checked_after_both_lookups(self, records: Any) -> None:
        asked = records("a.example.com", texts=("loadBalanced=true",))
        with pytest.raises(ConfigurationError, match="loadBalanced"):
            parse_uri("mongodb+srv://x.example.com/?replicaSet=rs")
        assert [record_type for _, record_type, _ in asked.questions] == ["SRV", "TXT"]

    @pytest.mark.parametrize(
        ("texts", "why"),
        [
            (
                ("socketTimeoutMS=5",),
                "the TXT record of x.example.com may have only authSource, replicaSet and loadBalanced, not ",
            ),
            (("ssl=false",), "the TXT record of x.example.com may have only "),
            (("authSource",), ""),
            (("a=b", "c=d"), "x.example.com must have one TXT record at most, not 2"),
        ],
    )
    def test_bad_text_records(self, records: Any, texts: tuple[str, ...], why: str) -> None:
        records("a.example.com", texts=texts)
        with pytest.raises(ConfigurationError) as caught:
            parse_uri("mongodb+srv://x.example.com")
        assert str(caught.value).startswith(why) and str(caught.value)

    def test_asking_again_in_the_background_does_not_hold_the_hub(self, records: Any) -> None:
        asked = records("a.example.com")
        name = srv.srv_name("x.example.com", {})
        name.all_hosts()
        name.verified_hosts()
        assert asked.refs == [True, False]

    def test_no_hosts(self, records: Any) -> None:
        records()
        with pytest.raises(ConfigurationError, match=r"no SRV records of _mongodb\._tcp\.x\.example\.com"):
            parse_uri("mongodb+srv://x.example.com")


class TestLookup:
    """The real lookup, with dnspython's resolver replaced."""

    @pytest.fixture(autouse=True, params=["in a thread", "in place"])
    def place(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        """Where the question is asked."""
        if request.param == "in place":
            monkeypatch.setattr(srv, "in_a_thread", lambda job, ref: caught(job))
        return str(request.param)

    @staticmethod
    def reply(record_type: str, *texts: str) -> Any:
        rrset = dns.rrset.from_text("x.example.com.", 42, "IN", record_type, *texts)

        class Reply(list):
            pass

        found = Reply(rrset)
        found.rrset = rrset
        return found

    def test_records_are_converted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        replies = {
            "SRV": self.reply("SRV", "0 0 27018 a.example.com.", "9 9 27019 b.example.com."),
            "TXT": self.reply("TXT", '"replicaS" "et=rs"'),
        }
        monkeypatch.setattr(dns.resolver, "resolve", lambda name, kind, lifetime: replies[kind])
        hosts = srv.lookup("x.example.com", "SRV", 5)
        assert set(hosts.records) == {("a.example.com.", 27018), ("b.example.com.", 27019)}
        assert hosts.ttl == 42
        assert srv.lookup("x.example.com", "TXT", 5).records == ["replicaSet=rs"]

    @pytest.mark.parametrize("error", [dns.resolver.NXDOMAIN, dns.resolver.NoAnswer])
    def test_a_name_without_records_has_an_empty_answer(
        self, error: type[Exception], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(dns.resolver, "resolve", _raiser(error.__new__(error)))
        assert srv.lookup("x.example.com", "TXT", 5).records == []

    def test_failures_say_why_and_print_nothing(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        failure = OSError("no name server")
        monkeypatch.setattr(dns.resolver, "resolve", _raiser(failure))
        with pytest.raises(ConfigurationError, match="no name server") as raised:
            srv.lookup("x.example.com", "SRV", 5)
        assert raised.value.__cause__ is failure
        assert capfd.readouterr().err == ""

    def test_a_hub_that_a_patched_resolver_has_made_in_the_thread_is_destroyed(
        self, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ended: list[bool] = []
        hub = SimpleNamespace(destroy=lambda destroy_loop: ended.append(destroy_loop))
        monkeypatch.setattr(srv, "get_hub", lambda: hub)
        monkeypatch.setattr(dns.resolver, "resolve", _raiser(OSError("no name server")))
        for module in ("ssl", "socket"):
            monkeypatch.setattr(srv.monkey, "is_module_patched", module.__eq__)
            with pytest.raises(ConfigurationError):
                srv.lookup("x.example.com", "SRV", 5)
        assert ended == [True]

    def test_what_is_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[object] = []

        def resolve(name: str, kind: str, lifetime: float) -> Any:
            asked.append((name, kind, lifetime))
            return self.reply("SRV", "0 0 1 a.example.com.")

        monkeypatch.setattr(dns.resolver, "resolve", resolve)
        srv.lookup("x.example.com", "SRV", 5)
        assert asked == [("x.example.com", "SRV", 5)]

    def test_the_loop_goes_on_while_dns_is_asked(self, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        if place == "in place":
            pytest.skip("the thread is what lets it go on")
        may_answer = threading.Event()
        threads: list[int] = []

        def resolve(name: str, kind: str, lifetime: float) -> Any:
            threads.append(threading.get_ident())
            assert may_answer.wait(30)
            return self.reply("SRV", "0 0 1 a.example.com.")

        monkeypatch.setattr(dns.resolver, "resolve", resolve)
        # The answer comes only after another greenlet of this loop has run.
        other = gevent.spawn(may_answer.set)
        assert srv.lookup("x.example.com", "SRV", 5).records == [("a.example.com.", 1)]
        assert other.ready()
        assert threads != [threading.get_ident()]


def _raiser(error: Exception) -> Any:
    def resolve(name: str, kind: str, lifetime: float) -> Any:
        raise error

    return resolve


def test_contradictions_are_refused_before_dns_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(srv, "lookup", _raiser(AssertionError("asked")))
    with pytest.raises(ConfigurationError, match="cannot be used together"):
        parse_uri("mongodb+srv://a.example.com", srv_allowed_hosts_suffix="example.com", srv_host_validator=bool)
    with pytest.raises(ConfigurationError, match="srvMaxHosts=1 cannot be used with replicaSet"):
        parse_uri("mongodb+srv://a.example.com/?srvMaxHosts=1&replicaSet=r")


def test_dnspython_is_imported_only_for_srv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dns", None)
    monkeypatch.setitem(sys.modules, "dns.resolver", None)
    assert parse_uri("mongodb://localhost")["nodelist"] == [("localhost", 27017)]


def test_warnings_of_one_uri_are_shown_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parse_uri("mongodb://h/?journal=1&foo=2", warn=True)
    assert len(caught) == 2


@pytest.mark.parametrize("uri", ["mongodb://", "mongodb:///db", "mongodb://ann:x@/?tls=true"])
def test_a_uri_without_a_host_says_so(uri: str) -> None:
    with pytest.raises(InvalidURI, match="must have at least one host; the path of a Unix domain socket must be"):
        parse_uri(uri)


@pytest.mark.parametrize(
    ("uri", "escaped"),
    [
        ("mongodb://us?er@h", False),
        ("mongodb://us?er@h/?w=1", False),
        ("mongodb://us/er@h", False),
        ("mongodb://u:1?x=a@h/d", False),
        ("mongodb://u@h/?x=a@b", False),
        ("mongodb://u:p?w=a@h", True),
        ("mongodb://user@h/?appName=a@b", True),
        ("mongodb://h/?appName=a@b", True),
    ],
)
def test_a_sign_of_a_user_name_that_is_not_escaped(uri: str, escaped: bool) -> None:
    try:
        parse_uri(uri, warn=True)
        message = ""
    except InvalidURI as error:
        message = str(error)
    assert message.startswith(connection_string.ESCAPE_THE_USERINFO) is not escaped
