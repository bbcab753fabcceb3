"""Official tests of connection strings, URI options, credentials in URIs, and read and
write concern.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmongo.auth.credential import Credential, credential_of
from gmongo.errors import ConfigurationError
from gmongo.options.client_values import read_concern, write_concern
from gmongo.options.rules import check_combination
from gmongo.options.uri import read_uri
from gmongo.read_concern import ReadConcern
from gmongo.write_concern import WriteConcern
from tests.spec.dns_records import add_all_records
from tests.spec.specifications import cases
from tests.support.dns import Network

OPTIONS_IN_SECONDS = {
    "connecttimeoutms",
    "heartbeatfrequencyms",
    "maxidletimems",
    "serverselectiontimeoutms",
    "sockettimeoutms",
    "timeoutms",
}


@pytest.fixture(autouse=True)
def records(network: Network) -> None:
    add_all_records(network.name_server)


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
        assert result["options"][name] == (value / 1000 if name.lower() in OPTIONS_IN_SECONDS else value)
    if case["warning"] and not case["options"]:
        assert not result["options"].keys() - {"tls", "compressors"}, "an invalid value must be ignored"


def assert_credentials(result: dict[str, Any], expected: dict[str, Any]) -> None:
    assert result["username"] == expected["username"]
    # As in PyMongo, the first dot in the path of a URI separates the names of the database and of the
    # collection. The official cases expect one name with both parts.
    names = [result["database"], result["collection"]]
    assert (".".join(part for part in names if part) or None) == expected["db"]
    # If the URI contains only a username, the password is an empty string, as in PyMongo.
    assert result["password"] == ("" if expected["username"] and expected["password"] is None else expected["password"])


# Names of default mechanism properties. The official cases do not contain these properties.
_DEFAULT_PROPERTY_NAMES = {"ALLOWED_HOSTS"}


def credential_in(uri: str) -> Credential | None:
    parsed = read_uri(uri, warn=True)
    return credential_of(parsed["options"], parsed["username"], parsed["password"], parsed["database"])


@pytest.mark.parametrize("case", cases("credential"))
def test_credential_in_uri_equals_official_case(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not case["valid"]:
            with pytest.raises(ConfigurationError):
                credential_in(case["uri"])
            return
        credential = credential_in(case["uri"])

    expected = case["credential"]
    if expected is None:
        assert credential is None
        return
    assert credential is not None
    assert credential.username == expected["username"]
    assert credential.password == expected["password"]
    assert credential.source == expected["source"]
    assert credential.mechanism == (expected["mechanism"] or "DEFAULT")
    properties = {name: value for name, value in credential.properties.items() if name not in _DEFAULT_PROPERTY_NAMES}
    assert properties == (expected["mechanism_properties"] or {})


VALIDATION_ERRORS = (ConfigurationError, ValueError)

# Field name in the official tests -> parameter of WriteConcern.
WRITE_CONCERN_PARAMETERS = {"w": "w", "wtimeoutMS": "wtimeout", "journal": "j"}


def make_write_concern(description: dict[str, Any]) -> WriteConcern:
    return WriteConcern(**{WRITE_CONCERN_PARAMETERS[name]: value for name, value in description.items()})


# For a negative `wtimeoutMS`, the tests of the Read and Write Concern specification expect an error.
# The tests of the URI Options specification expect a warning.
@pytest.mark.parametrize("case", cases("concerns in a uri"))
def test_concerns_of_uri_equal_official_case(case: dict[str, Any]) -> None:
    if not case["valid"]:
        with pytest.raises(VALIDATION_ERRORS, match="w"):
            write_concern(read_uri(case["uri"])["options"])
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = read_uri(case["uri"])["options"]

    assert bool(caught) == case["warning"]
    if "readConcern" in case:
        assert read_concern(options).document == case["readConcern"]
    if "writeConcern" in case:
        assert write_concern(options) == make_write_concern(case["writeConcern"])


@pytest.mark.parametrize("case", cases("read concern"))
def test_read_concern_document_equals_official_case(case: dict[str, Any]) -> None:
    concern = ReadConcern(**case["readConcern"])
    assert concern.document == case["readConcernDocument"]
    assert (concern.document == {}) == case["isServerDefault"]


@pytest.mark.parametrize("case", cases("write concern"))
def test_write_concern_document_equals_official_case(case: dict[str, Any]) -> None:
    if not case["valid"]:
        with pytest.raises(VALIDATION_ERRORS, match="w"):
            make_write_concern(case["writeConcern"])
        return
    concern = make_write_concern(case["writeConcern"])
    assert concern.document == case["writeConcernDocument"]
    assert concern.is_server_default == case["isServerDefault"]
    assert concern.acknowledged == case["isAcknowledged"]
