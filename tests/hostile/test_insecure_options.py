"""Tests that a misspelled or invalid option does not make a client less secure."""

from __future__ import annotations

import random
import ssl
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from gmongo import MongoClient
from gmongo._tls import tls_context
from gmongo.errors import ConfigurationError, InsecureConnectionWarning, InvalidURI
from gmongo.options.table import OPTIONS, find_option
from tests.support.cases import with_cases

PROTECTIVE_NAMES = sorted(
    name for option in OPTIONS if option.protects for name in (option.name, *option.aliases) if "_" not in name
)
# Functions that misspell an option name: typing errors, encodings, and styles of other drivers.
MISSPELLINGS: dict[str, Callable[[str, random.Random], str]] = {
    "missing letter": lambda name, rng: _with_letter_replaced(name, rng, lambda letter: ""),
    "doubled letter": lambda name, rng: _with_letter_replaced(name, rng, lambda letter: letter + letter),
    "encoded letter": lambda name, rng: _with_letter_replaced(name, rng, lambda letter: f"%{ord(letter):02x}"),
    "leading text": lambda name, rng: rng.choice(("%20", "+", "%09", " ", "%C2%A0", "-", "[", "use", "net.")) + name,
    "trailing text": lambda name, rng: name + rng.choice(("%20", "+", "%00", "\u200b", "s", "_enabled", "[]", "Mode")),
    "wide letters": lambda name, rng: "".join(chr(ord(letter) + 0xFEE0) for letter in name),
}


def _with_letter_replaced(name: str, rng: random.Random, replace: Callable[[str], str]) -> str:
    position = rng.randrange(len(name))
    return name[:position] + replace(name[position]) + name[position + 1 :]


@with_cases
def test_invalid_value_of_protective_option_in_uri_raises_configuration_error(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError):
        MongoClient(f"mongodb://example.com/?{name}={value}", connect=False)


@pytest.mark.parametrize("misspelling", MISSPELLINGS)
@pytest.mark.parametrize("name", PROTECTIVE_NAMES)
def test_misspelled_protective_option_in_uri_raises_error(name: str, misspelling: str) -> None:
    rng = random.Random(f"{name} {misspelling}")
    for misspelled in {MISSPELLINGS[misspelling](name, rng) for _ in range(20)}:
        if find_option(misspelled) is None:  # a misspelled name may be the name of another option
            with pytest.raises(ConfigurationError, match="Unknown option"):
                MongoClient(f"mongodb://example.com/?{misspelled}=true", connect=False)


@pytest.mark.parametrize(
    "query",
    ["?tsl=true", "?useTls=true", "?t%6cs=true", "?%20tls=true", "?securetls=1", "?user=a", "?secure=1", "?encrypt=1"],
)
def test_error_names_misspelled_option(query: str) -> None:
    name = query[1:].partition("=")[0]
    with pytest.raises(ConfigurationError, match=rf"Unknown option '{name}'"):
        MongoClient(f"mongodb://example.com/{query}", connect=False)


@pytest.mark.parametrize("name", ["tls", "ssl", "TLS", "tlsCAFile", "authSource", "authMechanism"])
@with_cases
def test_protective_option_inside_wrong_uri_part_raises_error(uri_template: str, name: str) -> None:
    with pytest.raises(InvalidURI, match=r"must be an option of its own"):
        MongoClient(uri_template.format(name), connect=False)


def test_uri_values_may_contain_equals_signs() -> None:
    uri = "mongodb://a:b@h/my=db?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:xtls==&appName=a=b"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client: MongoClient[Any] = MongoClient(uri, connect=False)
    assert client.get_default_database().name == "my=db"


@pytest.mark.parametrize("name", ["tlsInsecure", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames"])
def test_invalid_value_of_weakening_option_is_ignored_with_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=rf"{name}(?!\w)"):
        client: MongoClient[Any] = MongoClient(f"mongodb://example.com/?tls=true&{name}=yes", connect=False)
    context = client._options.topology().connection.tls.context  # type: ignore[union-attr]
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


PLAIN_URI_TEMPLATE = "mongodb://ann:secret@{}/?authMechanism=PLAIN{}"
OIDC_URI_TEMPLATE = "mongodb://{}/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s{}"


@pytest.mark.parametrize("uri_template", [PLAIN_URI_TEMPLATE, OIDC_URI_TEMPLATE], ids=["PLAIN", "OIDC"])
@pytest.mark.parametrize("host", ["example.com", "10.0.0.1", "127.0.0.1,db.example.com", "127.0.0.1.example.com"])
def test_secret_without_tls_causes_insecure_connection_warning(uri_template: str, host: str) -> None:
    with pytest.warns(InsecureConnectionWarning, match="without tls=true") as caught:
        MongoClient(uri_template.format(host, ""), connect=False)
    assert caught[0].filename == __file__
    assert "secret" not in str(caught[0].message)


@pytest.mark.parametrize("uri_template", [PLAIN_URI_TEMPLATE, OIDC_URI_TEMPLATE], ids=["PLAIN", "OIDC"])
@pytest.mark.parametrize(
    ("host", "options"),
    [("localhost", ""), ("127.0.0.1", ""), ("[::1]", ""), ("%2Ftmp%2Fm.sock", ""), ("example.com", "&tls=true")],
)
def test_secret_on_loopback_interface_or_with_tls_causes_no_warning(uri_template: str, host: str, options: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MongoClient(uri_template.format(host, options), connect=False)


def test_scram_without_tls_causes_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MongoClient("mongodb://ann:secret@example.com/", connect=False)


@pytest.mark.parametrize("options", ["", "&tls=false"])
def test_x509_without_tls_raises_configuration_error(options: str) -> None:
    with pytest.raises(ConfigurationError, match="X509 needs tls=true"):
        MongoClient(f"mongodb://localhost/?authMechanism=MONGODB-X509{options}", connect=False)


def test_tls_context_without_ca_file_trusts_certificates_of_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = tls_context({"tls": True})
    assert context is not None and len(context.get_ca_certs()) == 1


def test_default_tls_context_has_strict_settings() -> None:
    context = tls_context({"tls": True})
    assert context is not None
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert not context.hostname_checks_common_name
    assert context.check_hostname
