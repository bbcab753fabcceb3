"""The official tests of the URI Options specification."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.options import check_combination
from gmongo.options.uri import read_uri
from tests.spec.dns_records import publish
from tests.spec.specifications import cases
from tests.support.dns import Network

IN_SECONDS = {
    "connecttimeoutms",
    "heartbeatfrequencyms",
    "maxidletimems",
    "serverselectiontimeoutms",
    "sockettimeoutms",
    "timeoutms",
}


@pytest.fixture(autouse=True)
def records(network: Network) -> None:
    publish(network.names)


def as_a_client_parses(uri: str) -> dict[str, Any]:
    """What MongoClient does with a URI before it connects."""
    result = read_uri(uri, warn=True)
    check_combination(result["options"], len(result["nodelist"]), uri.startswith("mongodb+srv"))
    return result


@pytest.mark.parametrize("case", cases("uri-options/tests"))
def test_uri_options(case: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not case["valid"]:
            with pytest.raises(ConfigurationError):
                as_a_client_parses(case["uri"])
            return
        options = as_a_client_parses(case["uri"])["options"]

    assert bool(caught) == case["warning"]
    for name, value in (case["options"] or {}).items():
        assert options[name] == (value / 1000 if name.lower() in IN_SECONDS else value)
    if case["warning"] and not case["options"]:
        assert not options.keys() - {"tls", "compressors"}, "an invalid value must be ignored"
