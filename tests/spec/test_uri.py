"""Official tests of the Connection String and URI Options specifications."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.options import check_combination
from gmongo.options.uri import read_uri
from tests.spec.dns_records import add_all_records
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
    add_all_records(network.names)


def parse_and_validate(uri: str) -> dict[str, Any]:
    result = read_uri(uri, default_port=None, warn=True)
    check_combination(result["options"], len(result["nodelist"]), uri.startswith("mongodb+srv"))
    return result


@pytest.mark.parametrize("case", cases("uri"))
def test_parsed_uri_equals_official_case(case: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not case["valid"]:
            with pytest.raises(ConfigurationError):
                parse_and_validate(case["uri"])
            return
        result = parse_and_validate(case["uri"])

    assert bool(caught) == case["warning"]
    if case["hosts"] is not None:
        assert result["nodelist"] == [(host["host"], host["port"]) for host in case["hosts"]]
    if case["auth"] is not None:
        assert_credentials(result, case["auth"])
    for name, value in (case["options"] or {}).items():
        assert result["options"][name] == (value / 1000 if name.lower() in IN_SECONDS else value)
    if case["warning"] and not case["options"]:
        assert not result["options"].keys() - {"tls", "compressors"}, "an invalid value must be ignored"


def assert_credentials(result: dict[str, Any], expected: dict[str, Any]) -> None:
    assert result["username"] == expected["username"]
    # As in PyMongo, the first dot separates the database from the collection. The official case
    # expects one name with both parts.
    names = [result["database"], result["collection"]]
    assert (".".join(part for part in names if part) or None) == expected["db"]
    # If the URI contains only a username, the password is an empty string, as in PyMongo.
    assert result["password"] == ("" if expected["username"] and expected["password"] is None else expected["password"])
