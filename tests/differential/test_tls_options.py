"""Each TLS option enables or disables TLS as in PyMongo, or enables TLS where PyMongo does not."""

from __future__ import annotations

import itertools
import warnings
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest

import gmongo
from gmongo.options.rules import TLS_DETAIL_OPTIONS
from gmongo.options.table import OPTIONS

FILE_KEYS = {"tlsCAFile": "ca", "tlsCRLFile": "crl", "tlsCertificateKeyFile": "client"}
OPTION_VALUES: dict[str, tuple[Any, ...]] = {
    name: (FILE_KEYS[name],) if name in FILE_KEYS else ("x",) if name.endswith("Password") else (True, False)
    for name in TLS_DETAIL_OPTIONS
}
ONLY_IN_GMONGO = {"tlsDisableCertificateRevocationCheck"}
PLAIN, TLS, REJECTED = "plain text", "TLS", "rejected"


def _use_of_tls(driver: Any, keywords: dict[str, Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            client = driver.MongoClient("h", connect=False, **keywords)
        except driver.errors.ConfigurationError:
            return REJECTED
    if driver is gmongo:
        return TLS if client.options.topology().connection.tls else PLAIN
    return TLS if client.options.pool_options._ssl_context else PLAIN


CASES = [
    pytest.param(name, value, tls, id=f"{name}={value},tls={tls}")
    for name, values in OPTION_VALUES.items()
    for value, tls in itertools.product(values, (None, True, False))
]


def test_table_contains_all_tls_options() -> None:
    assert {*OPTION_VALUES, "tls"} == {option.name for option in OPTIONS if option.name.startswith("tls")}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "value", "tls"), CASES)
def test_tls_option_enables_tls_or_has_effect_of_pymongo(
    files: SimpleNamespace, name: str, value: Any, tls: bool | None
) -> None:
    keywords = {name: getattr(files, str(value), value)} | ({} if tls is None else {"tls": tls})
    ours = _use_of_tls(gmongo, keywords)
    if tls is None:
        assert ours == TLS
    if name in ONLY_IN_GMONGO:
        assert ours == (REJECTED if tls is False and value is False else PLAIN if tls is False else TLS)
    elif tls is None and value is True:
        assert _use_of_tls(pymongo, keywords) == PLAIN, "PyMongo ignores options that only disable a check"
    else:
        assert ours == _use_of_tls(pymongo, keywords)
