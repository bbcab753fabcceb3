"""An option that is given twice: in a URI, as keywords, or by DNS; under one name or two. PyMongo is the judge, and
what protects is never lost.
"""

from __future__ import annotations

import itertools
import ssl
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pymongo
import pymongo.common
import pymongo.errors
import pytest

import gmongo
from gmongo.client_options import ClientOptions
from gmongo.errors import ConfigurationError, InvalidURI
from gmongo.options import OPTIONS, srv, tls_enabled
from gmongo.options.table import Option, Source, find

# Two values of each option. Files are names of certificates; a URI has the text of a value.
VALUES: dict[str, tuple[Any, Any]] = {
    "maxPoolSize": (5, 6),
    "minPoolSize": (1, 2),
    "maxIdleTimeMS": (1000, 2000),
    "maxConnecting": (1, 3),
    "waitQueueTimeoutMS": (1000, 2000),
    "drainLateReplies": (True, False),
    "connectTimeoutMS": (1000, 2000),
    "socketTimeoutMS": (1000, 2000),
    "timeoutMS": (1000, 2000),
    "serverSelectionTimeoutMS": (1000, 2000),
    "heartbeatFrequencyMS": (1000, 2000),
    "localThresholdMS": (10, 20),
    "replicaSet": ("a", "b"),
    "directConnection": (True, False),
    "loadBalanced": (True, False),
    "serverMonitoringMode": ("poll", "stream"),
    "appName": ("a", "b"),
    "compressors": ("zlib", "zlib,snappy"),
    "zlibCompressionLevel": (1, 2),
    "tls": (True, False),
    "tlsInsecure": (True, False),
    "tlsAllowInvalidCertificates": (True, False),
    "tlsAllowInvalidHostnames": (True, False),
    "tlsCAFile": ("ca", "other_ca"),
    "tlsCRLFile": ("crl", "crl_with_server"),
    "tlsCertificateKeyFile": ("client", "strange_client"),
    "tlsCertificateKeyFilePassword": ("x", "y"),
    "tlsDisableCertificateRevocationCheck": (True, False),
    "tlsDisableOCSPEndpointCheck": (True, False),
    "authMechanism": ("SCRAM-SHA-1", "SCRAM-SHA-256"),
    "authSource": ("a", "b"),
    "retryReads": (True, False),
    "retryWrites": (True, False),
    "maxAdaptiveRetries": (1, 2),
    "enableOverloadRetargeting": (True, False),
    "baseBackoffMS": (1, 2),
    "readConcernLevel": ("local", "majority"),
    "readPreference": ("secondary", "nearest"),
    "w": (1, 2),
    "wTimeoutMS": (1000, 2000),
    "journal": (True, False),
    "fsync": (True, False),
    "tz_aware": (True, False),
    "uuidRepresentation": ("standard", "javaLegacy"),
    "unicode_decode_error_handler": ("strict", "ignore"),
    "datetime_conversion": ("DATETIME", "DATETIME_MS"),
}
# What needs another option beside it, or is given by `connect` of these tests; its values are merged as all others are.
NEEDS_ANOTHER = {
    "connect",
    "maxStalenessSeconds",
    "readPreferenceTags",
    "drainLateRepliesMS",
    "drainLateRepliesBytes",
    "authMechanismProperties",
    "srvServiceName",
    "srvMaxHosts",
    "srvAllowedHostsSuffix",
    "proxyHost",
    "proxyPort",
    "proxyUsername",
    "proxyPassword",
}
REFUSED = "refused"


@pytest.fixture(autouse=True)
def no_certificates_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client connects here; to load a system's authorities takes tens of milliseconds for each."""
    monkeypatch.setattr(ssl.SSLContext, "set_default_verify_paths", lambda context: None)


def test_every_option_is_here() -> None:
    assert set(VALUES) | NEEDS_ANOTHER == {option.name for option in OPTIONS if option.source is Source.ANYWHERE}


class Given(NamedTuple):
    """One option with its two values: where, under which names."""

    places: str
    names: tuple[str, str]
    values: tuple[Any, Any]

    @property
    def option(self) -> Option:
        option = find(self.names[0])
        assert option is not None
        return option

    def client(self, driver: Any, which: tuple[int, ...]) -> Any:
        """A client with the first value, the second, or both.

        :raises Exception: as the driver does.
        """
        uri = [f"{self.names[n]}={_text(self.values[n])}" for n in which if self.places[n] == "U"]
        keywords = {self.names[n]: self.values[n] for n in which if self.places[n] == "K"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return driver.MongoClient(f"mongodb://ann:x@h/?{'&'.join(uri)}".rstrip("?"), connect=False, **keywords)

    def value(self, driver: Any, which: tuple[int, ...]) -> Any:
        """What the option is for such a client."""
        try:
            client = self.client(driver, which)
        except (driver.errors.ConfigurationError, ValueError, TypeError):
            return REFUSED
        options = client.options.merged if driver is gmongo else client.options._options
        client.close()
        return options.get(self.option.key)

    def winner(self, driver: Any) -> Any:
        """Which of the two values counts, or that both are refused."""
        both = self.value(driver, (0, 1))
        return both if both == REFUSED else (self.value(driver, (0,)) == both, self.value(driver, (1,)) == both)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def spellings(option: Option) -> list[str]:
    return list(dict.fromkeys((option.name, option.key, *option.aliases, *option.deprecated)))


def ways(files: SimpleNamespace) -> Iterator[Given]:
    for name, values in VALUES.items():
        option = find(name)
        assert option is not None
        values = tuple(getattr(files, str(value), value) for value in values)
        for places, names in itertools.product(("UU", "UK", "KK"), itertools.product(spellings(option), repeat=2)):
            if places != "KK" or names[0] != names[1]:
                yield Given(places, names, values)
                yield Given(places, names, (values[1], values[0]))


FIRST, LAST = (True, False), (False, True)


def _is_taken_back(given: Given, theirs: Any, ours: Any) -> bool:
    flag = given.option.insecure
    return flag is not None and theirs == LAST and ours == REFUSED and (given.places != "UK" or given.values[1] is flag)


def _is_stronger(given: Given, theirs: Any, ours: Any) -> bool:
    flag = given.option.insecure
    return flag is not None and theirs == REFUSED and ours == LAST and given.values[1] is not flag


DIFFERENCES: dict[str, Callable[[Given, Any, Any], bool]] = {
    "what protects is not taken back by a later value": _is_taken_back,
    "a keyword makes a URI more secure under the other name, too": _is_stronger,
}


def test_the_value_that_counts_is_the_one_that_counts_for_pymongo(files: SimpleNamespace) -> None:
    seen, wrong = set(), []
    for given in ways(files):
        if not all(name.lower() in pymongo.common.URI_OPTIONS_VALIDATOR_MAP for name in given.names):
            continue
        theirs, ours = given.winner(pymongo), given.winner(gmongo)
        reason = next((why for why, explains in DIFFERENCES.items() if explains(given, theirs, ours)), None)
        if theirs != ours and reason is None:
            wrong.append((given, theirs, ours))
        seen.add(reason)
    assert not wrong
    assert seen - {None} == set(DIFFERENCES)


def test_what_protects_is_never_lost(files: SimpleNamespace) -> None:
    flags = files_and_names = 0
    for given in ways(files):
        flag, value = given.option.insecure, given.value(gmongo, (0, 1))
        if flag is not None:
            assert value == REFUSED or value is not flag, given
            flags += value != REFUSED
        elif given.option.protects:
            assert value, given
            files_and_names += value != REFUSED
    assert flags
    assert files_and_names


@pytest.mark.parametrize("name", [option.name for option in OPTIONS if option.protects and option.name in VALUES])
def test_none_does_not_undo_what_protects(files: SimpleNamespace, name: str) -> None:
    value = getattr(files, str(VALUES[name][0]), VALUES[name][0])
    given = Given("UK", (name, name), (value, None))
    assert given.value(gmongo, (0, 1)) in (given.value(gmongo, (0,)), REFUSED)


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize(("in_uri", "keyword"), list(itertools.product(("tls", "ssl", "TLS"), ("tls", "ssl", "SSL"))))
def test_tls_of_a_uri_stays_whichever_name_it_has(in_uri: str, keyword: str, value: str) -> None:
    uri = f"mongodb://h/?{in_uri}={value}"
    assert tls_enabled(gmongo.MongoClient(uri, connect=False, **{keyword: True}).options.merged)
    if value == "true":
        with pytest.raises(InvalidURI, match=r"tls=true, which the keyword tls=False must not override"):
            gmongo.MongoClient(uri, connect=False, **{keyword: False})


def test_a_uri_with_several_hosts_is_one_uri_for_both_drivers() -> None:
    for driver in (gmongo, pymongo):
        driver.MongoClient(["mongodb://a,b/?tls=true", "c"], connect=False).close()
        with pytest.raises(driver.errors.ConfigurationError, match=r"several URIs|multiple MongoDB URIs"):
            driver.MongoClient(["mongodb://a/?tls=true", "mongodb://b/?tls=false"], connect=False)


class TestDns:
    """What DNS and the scheme add is not given: it gives way to the URI and to keywords."""

    @pytest.fixture(autouse=True)
    def _records(self, monkeypatch: pytest.MonkeyPatch) -> None:
        records = {"SRV": [("a.example.com", 27017)], "TXT": ["authSource=dns&replicaSet=dns"]}
        monkeypatch.setattr(srv, "lookup", lambda name, record_type, *_: srv.Answer(records[record_type], 60))

    @pytest.mark.parametrize("name", ["authSource", "replicaSet"])
    def test_a_text_record_gives_way(self, name: str) -> None:
        uri = "mongodb+srv://ann:x@example.com/?"
        for text, keywords, expected in (
            ("", {}, "dns"),
            (f"{name}=uri", {}, "uri"),
            ("", {name: "keyword"}, "keyword"),
            (f"{name}=uri", {name: "keyword"}, "keyword"),
        ):
            assert ClientOptions(uri + text, None, keywords).merged[name] == expected

    @pytest.mark.parametrize("keyword", ["tls", "ssl"])
    def test_the_scheme_asks_for_tls_and_a_uri_insists(self, keyword: str) -> None:
        options: Any = {keyword: False}
        assert tls_enabled(gmongo.MongoClient("mongodb+srv://example.com", connect=False).options.merged)
        assert not tls_enabled(gmongo.MongoClient("mongodb+srv://example.com", connect=False, **options).options.merged)
        with pytest.raises(ConfigurationError, match="must not override"):
            gmongo.MongoClient("mongodb+srv://example.com/?tls=true", connect=False, **options)
