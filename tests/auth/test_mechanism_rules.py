"""The rules of each mechanism hold for all combinations of username, password, authSource and database in the URI."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from gmongo.auth.credential import credential_of
from gmongo.auth_oidc import OIDCCallback
from gmongo.errors import ConfigurationError

# For each mechanism: the rules of username and password, the default authSource, and True if the
# database in the URI replaces the default authSource. A rule is True (required), False (forbidden),
# "any" (optional) or None (both username and password, or neither of the two).
MECHANISMS: dict[str, tuple[Any, Any, str, bool]] = {
    "DEFAULT": (True, True, "admin", True),
    "SCRAM-SHA-1": (True, True, "admin", True),
    "SCRAM-SHA-256": (True, True, "admin", True),
    "PLAIN": (True, True, "$external", True),
    "MONGODB-X509": ("any", False, "$external", False),
    "MONGODB-AWS": (None, None, "$external", False),
    "GSSAPI": (True, "any", "$external", False),
    "MONGODB-OIDC": ("any", False, "$external", False),
}


class Callback(OIDCCallback):
    def fetch(self, context: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_credential_is_valid_according_to_rules_of_mechanism(mechanism: str) -> None:
    username_rule, password_rule, default_source, takes_database = MECHANISMS[mechanism]
    for username, password, source, database in product((None, "ann"), (None, "secret"), (None, "own"), (None, "db")):
        options: dict[str, Any] = {} if mechanism == "DEFAULT" else {"authmechanism": mechanism}
        if source is not None:
            options["authsource"] = source
        if mechanism == "MONGODB-OIDC":
            options["authmechanismproperties"] = {"OIDC_CALLBACK": Callback()}
        valid = (
            not (username_rule is True and username is None)
            and not (password_rule is True and password is None)
            and not (password_rule is False and password is not None)
            and not (username_rule is None and (username is None) != (password is None))
            and (takes_database or source is None)
        )
        if mechanism == "DEFAULT" and username is None:
            assert credential_of(options, username, password, database) is None
        elif not valid:
            with pytest.raises(ConfigurationError, match=f"^authMechanism {mechanism}: "):
                credential_of(options, username, password, database)
        else:
            credential = credential_of(options, username, password, database)
            assert credential is not None
            expected = source or (database if takes_database else None) or default_source
            assert (credential.mechanism, credential.source) == (mechanism, expected)
            assert (credential.username, credential.password) == (username, password)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("username", "password"), [("", None), ("", ""), ("ann", "")])
def test_empty_username_or_password_follows_rules_of_mechanism(mechanism: str, username: str, password: Any) -> None:
    options: dict[str, Any] = {} if mechanism == "DEFAULT" else {"authmechanism": mechanism}
    if mechanism == "MONGODB-OIDC":
        options["authmechanismproperties"] = {"OIDC_CALLBACK": Callback()}
    if mechanism == "DEFAULT" and username == "":
        assert credential_of(options, username, password, None) is None
        return
    needs_both = mechanism == "MONGODB-AWS"
    if username == "" or (needs_both and not password):
        with pytest.raises(ConfigurationError):
            credential_of(options, username, password, None)
        return
    credential = credential_of(options, username, password, None)
    assert credential is not None and credential.password == ("" if MECHANISMS[mechanism][1] is True else None)


@pytest.mark.parametrize(
    ("mechanism", "properties"),
    [
        ("GSSAPI", ("SERVICE_NAME", "SERVICE_REALM", "SERVICE_HOST")),
        ("MONGODB-AWS", ("AWS_SESSION_TOKEN",)),
        ("PLAIN", ()),
        ("SCRAM-SHA-256", ()),
    ],
)
def test_property_of_other_mechanism_raises_configuration_error(mechanism: str, properties: tuple[str, ...]) -> None:
    for name in ("SERVICE_NAME", "SERVICE_REALM", "SERVICE_HOST", "AWS_SESSION_TOKEN", "ENVIRONMENT", "TOKEN_RESOURCE"):
        options = {"authmechanism": mechanism, "authmechanismproperties": {name: "x"}}
        if name in properties:
            credential = credential_of(options, "ann", "secret", None)
            assert credential is not None and credential.properties[name] == "x"
        else:
            with pytest.raises(ConfigurationError, match=f"must not have {name}"):
                credential_of(options, "ann", "secret", None)


@pytest.mark.parametrize("value", ["none", "forward", "forwardAndReverse", "true", "false", True, False])
def test_unknown_canonicalization_mode_raises_configuration_error(value: Any) -> None:
    for option, valid in ((value, True), (f"{value}!", False), ("TRUE", False)):
        options = {"authmechanism": "GSSAPI", "authmechanismproperties": {"CANONICALIZE_HOST_NAME": option}}
        if valid:
            credential = credential_of(options, "ann", None, None)
            assert credential is not None
            assert credential.properties == {"SERVICE_NAME": "mongodb", "CANONICALIZE_HOST_NAME": option}
        else:
            with pytest.raises(ConfigurationError, match="CANONICALIZE_HOST_NAME must be one of none, forward, "):
                credential_of(options, "ann", None, None)
