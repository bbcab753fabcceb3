"""MONGODB-AWS: signatures, sources of AWS credentials, and conversations with a scripted server."""

from __future__ import annotations

import base64
import json
import os
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import bson
import pytest

import gmongo
from gmongo.auth import aws, aws_credentials
from gmongo.auth.aws import AwsConversation, authorization, region_of
from gmongo.auth.aws_credentials import AwsCredentials, AwsCredentialsCache
from gmongo.errors import ConfigurationError, OperationFailure
from tests.auth.accounts import REFUSAL_REPLY
from tests.auth.endpoints import Endpoint
from tests.support.cases import with_cases
from tests.support.server import ScriptedServer

CREDENTIALS = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


@pytest.fixture(autouse=True)
def without_aws_variables(monkeypatch):
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)


def credentials_document(**fields):
    return {"AccessKeyId": "KEY", "SecretAccessKey": "SECRET", "Token": "TOKEN", **fields}


def expiration_in(minutes):
    return (datetime.now(timezone.utc) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


# Tests of signatures


@with_cases
def test_sts_host_selects_region(host, region):
    assert region_of(host) == region


@pytest.mark.parametrize("host", ["sts..com", ".amazonaws.com", "sts.amazonaws.", "", "x" * 256, 7])
def test_invalid_sts_host_raises_operation_failure(host):
    with pytest.raises(OperationFailure, match="invalid STS host name"):
        region_of(host)


def test_aws_conversation_equals_specification_example(monkeypatch):
    """Compare all fields except the signature.

    The test cannot compute the signature, because the specification does not state the secret key.
    """
    nonce = base64.b64decode("dzw1U2IwSEtgaWI0IUxZMVJqc2xuQzNCcUxBc05wZjIGS0J9EgLwzEZ9dIzr/hnnK2mgd4D7F52t8g9yTC5cIA==")
    date = datetime(2019, 11, 7, 0, 26, 7, tzinfo=timezone.utc)
    monkeypatch.setattr(aws._random, "urandom", lambda size: nonce[:size])
    monkeypatch.setattr(aws, "datetime", SimpleNamespace(now=lambda zone: date))
    client = AwsConversation("$external", lambda: AwsCredentials("AKIAICGVLKOKZVY3X3DA", "secret"))
    assert bson.decode(client.first_payload()) == {"r": nonce[:32], "p": 110}
    answer = bson.decode(client.step(bson.encode({"s": nonce, "h": "sts.amazonaws.com"}), False))
    assert answer["a"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIAICGVLKOKZVY3X3DA/20191107/us-east-1/sts/aws4_request, SignedHeaders="
        "content-length;content-type;host;x-amz-date;x-mongodb-gs2-cb-flag;x-mongodb-server-nonce, Signature="
    )
    assert answer["d"] == "20191107T002607Z"
    assert "t" not in answer


@with_cases
def test_invalid_first_message_of_server_raises_error(message, error_class):
    client = AwsConversation("$external", lambda: CREDENTIALS)
    client._nonce = b"n" * 32
    with pytest.raises(error_class, match="MONGODB-AWS"):
        client.step(message, False)


# Tests of the sources of credentials


def test_environment_variables_provide_aws_credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    cache = AwsCredentialsCache()
    assert cache.find() == AwsCredentials("KEY", "SECRET")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "TOKEN")
    assert cache.find() == AwsCredentials("KEY", "SECRET", "TOKEN")
    assert repr(cache.find()) == "AwsCredentials(key_id='KEY', expires=None)"


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
def test_incomplete_aws_environment_variables_raise_configuration_error(monkeypatch, name):
    monkeypatch.setenv(name, "value-secret")
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be") as caught:
        AwsCredentialsCache().find()
    assert "value-secret" not in str(caught.value)


def test_ecs_endpoint_provides_credentials(monkeypatch):
    answer = json.dumps(credentials_document(Expiration=expiration_in(60)))
    with Endpoint(lambda *request: (200, answer)) as endpoint:
        monkeypatch.setattr(aws_credentials, "_ECS_URL", endpoint.url)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/creds?id=1")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "bearer")
        assert AwsCredentialsCache().find().token == "TOKEN"
    [(method, path, headers, _body)] = endpoint.requests
    assert (method, path, headers["authorization"]) == ("GET", "/v2/creds?id=1", "bearer")


@with_cases
def test_aws_credential_service_with_invalid_answer_raises_operation_failure(monkeypatch, status, text, message):
    with Endpoint(lambda *request: (status, text)) as endpoint:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint.url + "/creds")
        with pytest.raises(OperationFailure, match=rf"{message}(?!\w)"):
            AwsCredentialsCache().find()


def test_aws_credential_service_without_answer_raises_after_timeout(monkeypatch):
    import gevent

    monkeypatch.setattr(aws_credentials, "_TIMEOUT", 0.05)
    with Endpoint(lambda *request: gevent.sleep(5)) as endpoint:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint.url + "/creds")
        with pytest.raises(OperationFailure, match=r"did not answer within 0\.05 seconds"):
            AwsCredentialsCache().find()


def test_missing_aws_token_file_raises_operation_failure(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn")
    with pytest.raises(OperationFailure, match=r"AWS_WEB_IDENTITY_TOKEN_FILE: cannot read .*: No such file"):
        AwsCredentialsCache().find()


# Tests of conversations with a scripted server


class AwsServer(ScriptedServer):
    """Scripted server that accepts only a signature with the AWS key ID `key_id`."""

    key_id = "KEY"

    def reply_to(self, name, command):
        if name == "saslStart":
            assert command["mechanism"] == "MONGODB-AWS"
            assert command["$db"] == "$external"
            first = bson.decode(command["payload"])
            self.nonce = first["r"] + b"s" * 32
            payload = bson.encode({"s": self.nonce, "h": "sts.eu-west-1.amazonaws.com"})
            return {"ok": 1, "conversationId": 1, "done": False, "payload": payload}
        if name == "saslContinue":
            answer = bson.decode(command["payload"])
            self.answer = answer
            expected = AwsCredentials(self.key_id, "SECRET", answer.get("t"))
            if answer["a"] != authorization(expected, self.nonce, "sts.eu-west-1.amazonaws.com", answer["d"]):
                return dict(REFUSAL_REPLY)
            return {"ok": 1, "conversationId": 1, "done": True, "payload": b""}
        return super().reply_to(name, command)


@pytest.fixture
def server():
    with AwsServer() as server:
        yield server


def test_client_options_provide_aws_credentials_and_repr_hides_them(server):
    with gmongo.MongoClient(
        *server.address,
        username="KEY",
        password="SECRET",
        authMechanism="MONGODB-AWS",
        authMechanismProperties={"AWS_SESSION_TOKEN": "TOKEN"},
    ) as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert "SECRET" not in repr(client)
        assert "TOKEN" not in repr(client.options.merged)
    assert server.answer["t"] == "TOKEN"
    assert not any("speculativeAuthenticate" in hello for hello in server.commands("handshake"))
