"""SASL conversations that end too early or too late, selection of mechanisms, AWS credentials, and
unusual replies of HTTP services.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import bson
import pytest

from gmongo.auth.aws import AwsConversation
from gmongo.auth.aws_credentials import AwsCredentials, _parse_expiration_time
from gmongo.auth.conversation import SaslConversation
from gmongo.auth.credential import Credential
from gmongo.auth.http import request
from gmongo.auth.login import AwsLogin, PlainConversation, ScramLogin
from gmongo.auth.oidc import PrincipalConversation, TokenConversation
from gmongo.auth.scram import ScramConversation, ScramKeys
from gmongo.errors import OperationFailure, ProtocolError
from tests.auth.endpoints import Endpoint
from tests.support.cases import with_cases

TOO_EARLY = "the server ended the conversation too early"
TOO_LONG = "the server continues after the end of the conversation"
CREDENTIALS = AwsCredentials("id", "secret", None)
# The two messages that the server sends in the example of RFC 7677.
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def aws_conversation() -> SaslConversation:
    conversation = AwsConversation("$external", lambda: CREDENTIALS)
    conversation._nonce = b"n" * 32
    return conversation


def principal_conversation() -> SaslConversation:
    return PrincipalConversation("$external", "ann", lambda provider: "token")


def token_conversation() -> SaslConversation:
    return TokenConversation("$external", "token")


def plain_conversation() -> SaslConversation:
    return PlainConversation("$external", "ann", "secret")


def scram_conversation() -> SaslConversation:
    return ScramConversation("admin", "SCRAM-SHA-256", "user", "pencil", ScramKeys(), lambda: "rOprNGfwEbeRWgbNEkqO")


AWS_REPLY = bson.encode({"s": b"n" * 32 + b"s" * 32, "h": "sts.amazonaws.com"})
PROVIDER_REPLY = bson.encode({"issuer": "https://issuer", "clientId": "c"})


@pytest.mark.parametrize(
    ("make_conversation", "replies"),
    [
        (aws_conversation, [AWS_REPLY]),
        (principal_conversation, [PROVIDER_REPLY]),
        (token_conversation, []),
        (plain_conversation, []),
        (scram_conversation, [SERVER_FIRST, SERVER_FINAL]),
    ],
)
def test_conversation_with_missing_or_extra_message_raises_protocol_error(
    make_conversation: Any, replies: list[bytes]
) -> None:
    # The server marks the reply at the index `end` as the last reply.
    for end in range(len(replies)):
        conversation = make_conversation()
        conversation.first_command()
        for payload in replies[:end]:
            command = conversation.next_command({"payload": payload, "done": False, "conversationId": 5})
            assert command["conversationId"] == 5
        # After the second SCRAM reply, a server may skip the empty exchange.
        if make_conversation is scram_conversation and end == 1:
            assert conversation.next_command({"payload": replies[end], "done": True}) is None
            continue
        with pytest.raises(ProtocolError) as caught:
            conversation.next_command({"payload": replies[end], "done": True})
        assert str(caught.value) == f"{conversation.mechanism}: {TOO_EARLY}"
    conversation = make_conversation()
    conversation.first_command()
    for payload in replies:
        conversation.next_command({"payload": payload, "done": False})
    with pytest.raises(ProtocolError) as caught:
        conversation.next_command({"payload": b"", "done": False})
    assert str(caught.value) == f"{conversation.mechanism}: {TOO_LONG}"
    assert conversation.next_command({"payload": b"", "done": True}) is None


@pytest.mark.parametrize("configured_mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256", "DEFAULT"])
@with_cases
def test_default_mechanism_selects_strongest_scram_of_user(
    configured_mechanism: str, hello: dict[str, Any], expected_mechanism: str
) -> None:
    class CommandSent(Exception):
        pass

    def run(database: str, command: Any) -> Any:
        raise CommandSent(database, command["mechanism"])

    login = ScramLogin(Credential(configured_mechanism, "db", "ann", "secret"), ScramKeys())
    fields = login.hello_fields()
    assert fields.get("saslSupportedMechs") == ("db.ann" if configured_mechanism == "DEFAULT" else None)
    speculation = fields["speculativeAuthenticate"]
    assert speculation["db"] == "db" and speculation["mechanism"] == (
        "SCRAM-SHA-256" if configured_mechanism == "DEFAULT" else configured_mechanism
    )
    selected_mechanism = expected_mechanism if configured_mechanism == "DEFAULT" else configured_mechanism
    with pytest.raises(CommandSent) as caught:
        login.authenticate(run, hello, None)
    assert caught.value.args == ("db", selected_mechanism)
    with pytest.raises(CommandSent) as caught:
        login.authenticate_again(run, None)
    assert caught.value.args == ("db", selected_mechanism)


@pytest.mark.parametrize("server_rejects", [False, True])
@pytest.mark.parametrize("username", [None, "key"])
def test_rejected_aws_credentials_clear_cache(server_rejects: bool, username: str | None) -> None:
    def run(database: str, command: Any) -> Any:
        assert database == "$external"
        if "saslStart" in command:
            nonce = bson.decode(command["payload"])["r"]
            return {"payload": bson.encode({"s": nonce + b"s" * 32, "h": "sts.amazonaws.com"}), "done": False}
        if server_rejects:
            raise OperationFailure("no")
        answers.append(bson.decode(command["payload"]))
        return {"payload": b"", "done": True}

    answers: list[Any] = []
    cache: Any = Mock(find=lambda: CREDENTIALS)
    credential = Credential("MONGODB-AWS", "$external", username, "own", {"AWS_SESSION_TOKEN": "token"})
    login = AwsLogin(credential, cache)
    assert login.hello_fields() == {}
    for authenticate in (lambda: login.authenticate(run, {}, None), lambda: login.authenticate_again(run, None)):
        if server_rejects:
            with pytest.raises(OperationFailure):
                authenticate()
        else:
            authenticate()
    assert cache.clear.call_count == (2 if server_rejects else 0)
    assert [each.get("t") for each in answers] == (
        [] if server_rejects else [None if username is None else "token"] * 2
    )
    assert all(f"Credential={username or 'id'}/" in each["a"] for each in answers)


@pytest.mark.parametrize("payload", [5, None, "?", "a", {}, [b"x"]])
def test_sasl_payload_that_is_not_binary_raises_protocol_error(payload: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        plain_conversation().next_command({"payload": payload, "done": True})
    assert str(caught.value) == "the payload in the reply to a SASL command is not binary"
    assert plain_conversation().next_command({"done": True}) is None


@with_cases
def test_expiration_of_aws_credentials_is_parsed_as_utc_or_none(value: Any, expiration: str | None) -> None:
    assert str(_parse_expiration_time(value)) == str(expiration)


@with_cases
def test_error_about_http_status_contains_service_message_without_secrets(body: str, detail: str) -> None:
    form = "RoleArn=arn&WebIdentityToken=t0ken"
    with Endpoint(lambda *_: (403, body)) as endpoint:
        with pytest.raises(OperationFailure) as caught:
            request("the service", "PUT", f"{endpoint.url}/path?query=1", {"X-Secret": "s3cret"}, 5, form)
        assert str(caught.value) == f"the service at {endpoint.host} answered PUT /path with status 403{detail}"
        assert [(method, path, text) for method, path, _, text in endpoint.requests] == [("PUT", "/path?query=1", form)]
