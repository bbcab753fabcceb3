"""The ends of conversations: servers that end them too early or not at all, and services that answer in odd ways."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import bson
import pytest

from gmongo import MongoClient
from gmongo.auth.aws import AwsConversation
from gmongo.auth.aws_credentials import AwsCredentials, _moment
from gmongo.auth.conversation import SaslConversation
from gmongo.auth.http import request
from gmongo.auth.login import SimpleLogin
from gmongo.auth.oidc import PrincipalConversation, TokenConversation
from gmongo.auth.oidc_environments import GcpToken
from gmongo.auth.plain import PlainConversation
from gmongo.auth.scram import ScramConversation
from gmongo.auth.scram_keys import ScramKeys
from gmongo.auth_oidc import OIDCCallbackContext
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError
from tests.auth.endpoints import Endpoint

TOO_EARLY = "the server ended the conversation too early"
TOO_LONG = "the server goes on after the end of the conversation"
CREDENTIALS = AwsCredentials("id", "secret", None)
# Of RFC 7677, "Example": what the server says, after which it is complete.
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def aws() -> SaslConversation:
    return AwsConversation("$external", lambda: CREDENTIALS, lambda: b"n" * 32)


def principal() -> SaslConversation:
    return PrincipalConversation("$external", "ann", lambda provider: "token")


def token() -> SaslConversation:
    return TokenConversation("$external", "token")


def plain() -> SaslConversation:
    return PlainConversation("$external", "ann", "secret")


def scram() -> SaslConversation:
    return ScramConversation("admin", "SCRAM-SHA-256", "user", "pencil", ScramKeys(), lambda: "rOprNGfwEbeRWgbNEkqO")


AWS_REPLY = bson.encode({"s": b"n" * 32 + b"s" * 32, "h": "sts.amazonaws.com"})
PROVIDER = bson.encode({"issuer": "https://issuer", "clientId": "c"})


@pytest.mark.parametrize(
    ("make", "replies"),
    [(aws, [AWS_REPLY]), (principal, [PROVIDER]), (token, []), (plain, []), (scram, [FIRST, FINAL])],
)
def test_a_conversation_has_one_length(make: Any, replies: list[bytes]) -> None:
    for end in range(len(replies)):  # the server says that it is done with each of its replies but the last
        conversation = make()
        conversation.first()
        for payload in replies[:end]:
            assert conversation.next({"payload": payload, "done": False, "conversationId": 5})["conversationId"] == 5
        if make is scram and end == 1:  # where the server needs no empty message, this is the end
            assert conversation.next({"payload": replies[end], "done": True}) is None
            continue
        with pytest.raises(ProtocolError) as caught:
            conversation.next({"payload": replies[end], "done": True})
        assert str(caught.value) == f"{conversation.mechanism}: {TOO_EARLY}"
    conversation = make()
    conversation.first()
    for payload in replies:
        conversation.next({"payload": payload, "done": False})
    with pytest.raises(ProtocolError) as caught:
        conversation.next({"payload": b"", "done": False})
    assert str(caught.value) == f"{conversation.mechanism}: {TOO_LONG}"
    assert conversation.next({"payload": b"", "done": True}) is None


@pytest.mark.parametrize(
    ("make", "speculates"), [(aws, False), (principal, True), (token, True), (plain, False), (scram, True)]
)
def test_which_conversations_may_begin_within_the_hello(make: Any, speculates: bool) -> None:
    fields = SimpleLogin(make).hello_fields()
    assert bool(fields) is speculates
    if speculates:
        assert fields == {"speculativeAuthenticate": {**make().first(), "db": make().database}}


@pytest.mark.parametrize("payload", [5, None, "?", "a", {}, [b"x"]])
def test_a_payload_is_bytes(payload: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        plain().next({"payload": payload, "done": True})
    assert str(caught.value) == "the reply to a SASL command has no payload of bytes"


@pytest.mark.parametrize("payload", [b"x", "eA=="])
def test_a_payload_may_be_base64(payload: Any) -> None:
    assert plain().next({"payload": payload, "done": True}) is None
    assert plain().next({"done": True}) is None


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2030-01-02T03:04:05Z", datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
        ("2030-01-02T03:04:05+00:00", datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
        ("2030-01-02T03:04:05", datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
        (86400, datetime(1970, 1, 2, tzinfo=timezone.utc)),
        (86400.0, datetime(1970, 1, 2, tzinfo=timezone.utc)),
        *((value, None) for value in (None, "", "soon", 1e300, float("nan"), [], "2030-13-01T00:00:00Z")),
    ],
)
def test_when_credentials_expire(value: Any, moment: datetime | None) -> None:
    assert _moment(value) == moment


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", ""),
        ("plainly no", ": 'plainly no'"),
        ("x" * 501, f": {'x' * 500!r}"),
        ('{"error": "bad", "error_description": "worse", "secret": "hunter2"}', ": 'bad, worse'"),
        ('{"Code": "No", "Message": "never", "code": 5}', ": 'No, never'"),
        ('{"message": ["x"], "token": "hunter2"}', ""),
        ('["hunter2"]', ": '[\"hunter2\"]'"),
        ("it was told s3cret", ""),
        ("[" * 100_000, f": {'[' * 500!r}"),
        *(
            (f'{{"{name}": "no"}}', ": 'no'")
            for name in ("error", "error_description", "code", "Code", "message", "Message")
        ),
    ],
)
def test_what_a_service_says_when_it_refuses(body: str, said: str) -> None:
    with Endpoint(lambda *_: (403, body)) as endpoint:
        with pytest.raises(OperationFailure) as caught:
            request("the service", "PUT", f"{endpoint.url}/path?query=1", {"X-Secret": "s3cret"}, 5, "body")
        assert str(caught.value) == f"the service at {endpoint.host} answered PUT /path with status 403{said}"
        assert [(method, path, text) for method, path, _, text in endpoint.requests] == [
            ("PUT", "/path?query=1", "body")
        ]


def test_an_empty_token_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with Endpoint(lambda *_: (200, " \n")) as endpoint:
        monkeypatch.setenv("GCE_METADATA_HOST", endpoint.host)
        with pytest.raises(OperationFailure, match=r"^the Google Cloud metadata service answered without a token$"):
            GcpToken("mongodb://x/").fetch(OIDCCallbackContext(5, "", 1))
        [(_, path, headers, _)] = endpoint.requests
        assert path.endswith("/default/identity?audience=mongodb%3A%2F%2Fx%2F")
        assert headers["metadata-flavor"] == "Google"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"ENVIRONMENT": "cloud"}, "ENVIRONMENT must be one of test, k8s, azure, gcp, not 'cloud'"),
        ({"ENVIRONMENT": "azure"}, "TOKEN_RESOURCE must be given with ENVIRONMENT:azure"),
        ({"ENVIRONMENT": "gcp"}, "TOKEN_RESOURCE must be given with ENVIRONMENT:gcp"),
        ({"ENVIRONMENT": "test", "TOKEN_RESOURCE": "x"}, "TOKEN_RESOURCE must not be given with ENVIRONMENT:test"),
        ({"ENVIRONMENT": "k8s", "TOKEN_RESOURCE": "x"}, "TOKEN_RESOURCE must not be given with ENVIRONMENT:k8s"),
        ({"ENVIRONMENT": "test", "username": "ann"}, "a username must not be given with ENVIRONMENT:test"),
        ({"ENVIRONMENT": "k8s"}, None),
        ({"ENVIRONMENT": "azure", "TOKEN_RESOURCE": "x", "username": "ann"}, None),
    ],
)
def test_environments_of_tokens(options: dict[str, str], complaint: str | None) -> None:
    properties = {name: value for name, value in options.items() if name != "username"}
    given: dict[str, Any] = {"authMechanism": "MONGODB-OIDC", "authMechanismProperties": properties, "connect": False}
    if "username" in options:
        given["username"] = options["username"]
    if complaint is None:
        MongoClient(**given).close()
        return
    with pytest.raises(ConfigurationError) as caught:
        MongoClient(**given)
    assert complaint in str(caught.value)
