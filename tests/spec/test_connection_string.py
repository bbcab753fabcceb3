"""The official tests of the Connection String specification."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.options.uri import read_uri

from .specifications import cases


@pytest.mark.parametrize("case", cases("connection-string/tests"))
def test_connection_string(case: dict[str, Any]) -> None:
    if not case["valid"]:
        with pytest.raises(ConfigurationError):
            read_uri(case["uri"], warn=True)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = read_uri(case["uri"], default_port=None, warn=True)

    assert bool(caught) == case["warning"]
    if case["hosts"] is not None:
        assert result["nodelist"] == [(host["host"], host["port"]) for host in case["hosts"]]
    if case["auth"] is not None:
        assert_credentials(result, case["auth"])
    for name, value in (case["options"] or {}).items():
        assert result["options"][name] == value


def assert_credentials(result: dict[str, Any], expected: dict[str, Any]) -> None:
    assert result["username"] == expected["username"]
    # As in PyMongo, what follows a dot is the name of a collection.
    named = [result["database"], result["collection"]]
    assert (".".join(part for part in named if part) or None) == expected["db"]
    # As in PyMongo, a user without a password has the empty password.
    assert result["password"] == ("" if expected["username"] and expected["password"] is None else expected["password"])
