"""Official tests of the Read and Write Concern specification. The tests need no server."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.options import read_concern, write_concern
from gmongo.options.uri import read_uri
from gmongo.read_concern import ReadConcern
from gmongo.write_concern import WriteConcern

from .specifications import cases

VALIDATION_ERRORS = (ConfigurationError, ValueError)

# Field name in the official tests -> parameter of WriteConcern.
PARAMETERS = {"w": "w", "wtimeoutMS": "wtimeout", "journal": "j"}


def make_write_concern(description: dict[str, Any]) -> WriteConcern:
    return WriteConcern(**{PARAMETERS[name]: value for name, value in description.items()})


# The official tests of this specification expect an error for a negative number. The official tests
# of URI Options expect a warning.
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
