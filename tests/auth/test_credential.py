"""Credentials are validated. The error about an invalid credential states the rule."""

from __future__ import annotations

import pytest

import gmongo
from gmongo.auth_oidc import OIDCCallback
from gmongo.errors import ConfigurationError
from gmongo.options import validate_keyword_options


class Callback(OIDCCallback):
    def fetch(self, context):
        raise AssertionError


PLAIN_OBJECT = object()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"username": "", "password": "x"}, "DEFAULT: a username is required and must not be empty"),
        ({"username": "ann"}, "DEFAULT: a password is required"),
        ({"authMechanism": "SCRAM-SHA-256"}, "SCRAM-SHA-256: a username is required"),
        ({"username": "ann", "password": "\x07"}, "the password cannot be used with SCRAM-SHA-256"),
        (
            {"username": "a", "password": "b", "authMechanismProperties": "SERVICE_NAME:x"},
            "must not have SERVICE_NAME; the mechanism has none",
        ),
        ({"authMechanism": "PLAIN", "username": "ann"}, "PLAIN: a password is required"),
        ({"authMechanism": "PLAIN", "username": "a\0b", "password": "x"}, "must not contain the null character"),
        ({"authMechanism": "PLAIN", "username": "ann", "password": "x\0y"}, "must not contain the null character"),
        ({"authMechanism": "MONGODB-X509", "password": "x"}, "MONGODB-X509: a password must not be given"),
        ({"authMechanism": "MONGODB-X509", "authSource": "db"}, r"authSource must be '\$external', not 'db'"),
        ({"authMechanism": "GSSAPI"}, "GSSAPI: a username is required"),
        (
            {"authMechanism": "GSSAPI", "username": "a", "authMechanismProperties": "CANONICALIZE_HOST_NAME:yes"},
            "CANONICALIZE_HOST_NAME must be one of none, forward, forwardAndReverse, true, false, not 'yes'",
        ),
        ({"authMechanism": "MONGODB-AWS", "username": "key"}, "username .* and password .* must be given together"),
        (
            {"authMechanism": "MONGODB-AWS", "authMechanismProperties": {"aws_session_token": "t"}},
            "AWS_SESSION_TOKEN needs a username and a password",
        ),
        ({"authMechanism": "MONGODB-OIDC"}, "exactly one of ENVIRONMENT, OIDC_CALLBACK, OIDC_HUMAN_CALLBACK"),
        (
            {
                "authMechanism": "MONGODB-OIDC",
                "authMechanismProperties": {"OIDC_CALLBACK": Callback(), "OIDC_HUMAN_CALLBACK": Callback()},
            },
            "exactly one of",
        ),
        (
            {"authMechanism": "MONGODB-OIDC", "authMechanismProperties": {"OIDC_CALLBACK": PLAIN_OBJECT}},
            "OIDC_CALLBACK must be an OIDCCallback",
        ),
        (
            {
                "authMechanism": "MONGODB-OIDC",
                "authMechanismProperties": {"OIDC_CALLBACK": Callback(), "TOKEN_RESOURCE": "r"},
            },
            "TOKEN_RESOURCE needs ENVIRONMENT",
        ),
        (
            {
                "authMechanism": "MONGODB-OIDC",
                "authMechanismProperties": {"OIDC_HUMAN_CALLBACK": Callback(), "ALLOWED_HOSTS": "localhost"},
            },
            "ALLOWED_HOSTS must be a list of host names",
        ),
        (
            {"authMechanism": "MONGODB-OIDC", "authMechanismProperties": "ENVIRONMENT:azure"},
            "TOKEN_RESOURCE must be given with ENVIRONMENT:azure",
        ),
    ],
)
def test_invalid_credential_raises_configuration_error_with_rule(options, message):
    with pytest.raises(ConfigurationError, match=message):
        gmongo.MongoClient("localhost", connect=False, **options)


def test_keyword_credentials_override_credentials_in_uri():
    client = gmongo.MongoClient("mongodb://ann:pencil@localhost/db", username="bob", password="pen", connect=False)
    credential = client.options.credential
    assert (credential.username, credential.password, credential.source) == ("bob", "pen", "db")


def test_auth_source_alone_creates_no_credential():
    assert gmongo.MongoClient("mongodb://localhost/db?authSource=x", connect=False).options.credential is None


def test_names_of_mechanism_properties_ignore_case():
    options = validate_keyword_options({"authMechanismProperties": "service_name:other"})
    assert options["authmechanismproperties"] == {"SERVICE_NAME": "other"}
