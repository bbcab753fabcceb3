"""Tests of the validation of credentials: an error states the violated rule."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import gmongo
from gmongo.auth.credential import DEFAULT_ALLOWED_HOSTS, credential_of
from gmongo.auth_oidc import OIDCCallback
from gmongo.errors import ConfigurationError
from gmongo.options.rules import validate_keyword_options
from tests.support.cases import with_cases


class Callback(OIDCCallback):
    def fetch(self, context: Any) -> Any:
        raise AssertionError


# Objects that replace these texts in the mechanism properties of the data file.
OBJECTS = {"a callback": Callback(), "an object": object()}


@with_cases
def test_invalid_credential_raises_configuration_error_with_rule(options: dict[str, Any], message: str) -> None:
    properties = options.get("authMechanismProperties")
    if isinstance(properties, dict):
        options["authMechanismProperties"] = {name: OBJECTS.get(value, value) for name, value in properties.items()}
    with pytest.raises(ConfigurationError, match=f"{message}$"):
        gmongo.MongoClient("localhost", connect=False, **options)


@pytest.mark.parametrize(
    ("properties", "username"),
    [({"ENVIRONMENT": "k8s"}, None), ({"ENVIRONMENT": "azure", "TOKEN_RESOURCE": "x"}, "ann")],
)
def test_valid_oidc_environment_is_accepted(properties: dict[str, str], username: str | None) -> None:
    options = {"authmechanism": "MONGODB-OIDC", "authmechanismproperties": properties}
    assert credential_of(options, username, None, None) is not None


@pytest.mark.parametrize("hosts", [5, "h", {"h": 1}, [5], ["h", 5], [5, "h"], None])
def test_invalid_allowed_hosts_raise_configuration_error(hosts: Any) -> None:
    options = {"authmechanism": "MONGODB-OIDC"}
    properties = {"OIDC_CALLBACK": Callback(), "ALLOWED_HOSTS": hosts}
    with pytest.raises(ConfigurationError) as caught:
        credential_of({**options, "authmechanismproperties": properties}, None, None, None)
    assert str(caught.value) == "authMechanism MONGODB-OIDC: ALLOWED_HOSTS must be a list of host names"
    for valid in ([], ["h"], ("h", "*.i")):
        valid_options = {**options, "authmechanismproperties": {**properties, "ALLOWED_HOSTS": valid}}
        assert credential_of(valid_options, None, None, None) is not None


def test_keyword_credentials_override_credentials_in_uri() -> None:
    client: Any = gmongo.MongoClient("mongodb://ann:pencil@localhost/db", username="bob", password="pen", connect=False)
    credential = client.options.credential
    assert (credential.username, credential.password, credential.source) == ("bob", "pen", "db")


def test_auth_source_alone_creates_no_credential() -> None:
    client: Any = gmongo.MongoClient("mongodb://localhost/db?authSource=x", connect=False)
    assert client.options.credential is None


def test_names_of_mechanism_properties_ignore_case() -> None:
    options = validate_keyword_options({"authMechanismProperties": "service_name:other"})
    assert options["authmechanismproperties"] == {"SERVICE_NAME": "other"}


# For each mechanism: the rules of username and password, the default authSource, and True if the
# database in the URI replaces the default authSource. A rule is True (required), False (forbidden),
# "any" (optional) or None (both username and password, or neither).
MECHANISM_RULES: dict[str, tuple[Any, Any, str, bool]] = {
    "DEFAULT": (True, True, "admin", True),
    "SCRAM-SHA-1": (True, True, "admin", True),
    "SCRAM-SHA-256": (True, True, "admin", True),
    "PLAIN": (True, True, "$external", True),
    "MONGODB-X509": ("any", False, "$external", False),
    "MONGODB-AWS": (None, None, "$external", False),
    "GSSAPI": (True, "any", "$external", False),
    "MONGODB-OIDC": ("any", False, "$external", False),
}
PROPERTIES: Any = {"GSSAPI": {"SERVICE_NAME": "mongodb"}, "MONGODB-OIDC": {"ALLOWED_HOSTS": DEFAULT_ALLOWED_HOSTS}}


@pytest.mark.parametrize("mechanism", MECHANISM_RULES)
def test_credential_that_breaks_rule_of_mechanism_raises_configuration_error(mechanism: str) -> None:
    username_rule, password_rule, default_source, takes_database = MECHANISM_RULES[mechanism]
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
            assert credential.properties == PROPERTIES.get(mechanism, {}) | options.get("authmechanismproperties", {})


@pytest.mark.parametrize("mechanism", MECHANISM_RULES)
@pytest.mark.parametrize(("username", "password"), [("", None), ("", ""), ("ann", "")])
def test_empty_username_raises_and_empty_password_is_accepted_except_for_aws(
    mechanism: str, username: str, password: Any
) -> None:
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
    assert credential is not None and credential.password == ("" if MECHANISM_RULES[mechanism][1] is True else None)


@with_cases
def test_property_of_other_mechanism_raises_configuration_error(mechanism: str, properties: tuple[str, ...]) -> None:
    for name in ("SERVICE_NAME", "SERVICE_REALM", "SERVICE_HOST", "AWS_SESSION_TOKEN", "ENVIRONMENT", "TOKEN_RESOURCE"):
        options = {"authmechanism": mechanism, "authmechanismproperties": {name: "x"}}
        if name in properties:
            credential = credential_of(options, "ann", "secret", None)
            assert credential is not None and credential.properties[name] == "x"
        else:
            with pytest.raises(ConfigurationError, match=f"must not have {name}"):
                credential_of(options, "ann", "secret", None)
