"""Official tests of credentials in connection strings (Driver Authentication specification)."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmongo.auth.credential import Credential, credential_of
from gmongo.errors import ConfigurationError
from gmongo.options.uri import read_uri

from .specifications import cases

# Default mechanism properties of gmongo, which the official cases do not contain.
_OWN_DEFAULTS = {"ALLOWED_HOSTS"}


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
    own = {name: value for name, value in credential.properties.items() if name not in _OWN_DEFAULTS}
    assert own == (expected["mechanism_properties"] or {})
