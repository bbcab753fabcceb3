"""What turns TLS on, for every TLS option with every value, beside PyMongo."""

from __future__ import annotations

import itertools
import socket
import warnings
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest

import gmongo
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.options import OPTIONS
from gmongo.options.rules import TLS_DETAILS
from gmongo.testing import Deployment

FILES = {"tlsCAFile": "ca", "tlsCRLFile": "crl", "tlsCertificateKeyFile": "client"}
VALUES: dict[str, tuple[Any, ...]] = {
    name: (FILES[name],) if name in FILES else ("x",) if name.endswith("Password") else (True, False)
    for name in TLS_DETAILS
}
ONLY_OURS = {"tlsDisableCertificateRevocationCheck"}
PLAIN, TLS, REFUSED = "plain text", "TLS", "refused"


def _mode(driver: Any, keywords: dict[str, Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            client = driver.MongoClient("h", connect=False, **keywords)
        except driver.errors.ConfigurationError:
            return REFUSED
    if driver is gmongo:
        return TLS if client.options.topology().connection.tls else PLAIN
    return TLS if client.options.pool_options._ssl_context else PLAIN


CASES = [
    pytest.param(name, value, tls, id=f"{name}={value},tls={tls}")
    for name, values in VALUES.items()
    for value, tls in itertools.product(values, (None, True, False))
]


def test_all_options_of_tls_are_here() -> None:
    assert {*VALUES, "tls"} == {option.name for option in OPTIONS if option.name.startswith("tls")}


@pytest.mark.parametrize(("name", "value", "tls"), CASES)
def test_tls_is_on_where_it_is_for_pymongo_and_wherever_an_option_of_it_is_given(
    files: SimpleNamespace, name: str, value: Any, tls: bool | None
) -> None:
    keywords = {name: getattr(files, str(value), value)} | ({} if tls is None else {"tls": tls})
    ours = _mode(gmongo, keywords)
    if tls is None:
        assert ours == TLS
    if name in ONLY_OURS:
        assert ours == (REFUSED if tls is False and value is False else PLAIN if tls is False else TLS)
    elif tls is None and value is True:
        assert _mode(pymongo, keywords) == PLAIN, "an option that only leaves out a check, the one difference"
    else:
        assert ours == _mode(pymongo, keywords)


def _fails_with_a_word_of_tls(host: str, port: int) -> None:
    options: Any = {"tlsAllowInvalidCertificates": True, "serverSelectionTimeoutMS": 200}
    with (
        gmongo.MongoClient(host, port, **options) as client,
        pytest.raises(ServerSelectionTimeoutError, match="connecting with TLS"),
    ):
        client.t.x.find_one()


def test_a_server_without_tls_that_closes_is_an_error_that_names_tls() -> None:
    with Deployment.standalone() as deployment:
        _fails_with_a_word_of_tls("127.0.0.1", deployment.members[0].port)


def test_and_so_is_one_that_waits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        _fails_with_a_word_of_tls(*silent.getsockname())
