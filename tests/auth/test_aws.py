"""MONGODB-AWS: signatures, sources of AWS credentials, and conversations with a scripted server."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone

import bson
import pytest

import gmongo
from gmongo.auth import aws_credentials
from gmongo.auth.aws import AwsConversation, authorization, region_of, sign
from gmongo.auth.aws_credentials import AwsCredentials, AwsCredentialsCache
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError
from tests.auth.accounts import REFUSED
from tests.auth.endpoints import Endpoint
from tests.support.refused_connections import refused_port
from tests.support.server import ScriptedServer

CREDENTIALS = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_ENDPOINT_URL_STS",
)


@pytest.fixture(autouse=True)
def without_aws_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def credentials_document(**fields):
    return {"AccessKeyId": "KEY", "SecretAccessKey": "SECRET", "Token": "TOKEN", **fields}


def expiration_in(minutes):
    return (datetime.now(timezone.utc) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


# Tests of signatures


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("sts.amazonaws.com", "us-east-1"),
        ("sts.us-west-2.amazonaws.com", "us-west-2"),
        ("sts.us-west-2.amazonaws.com.ch", "us-west-2"),
        ("example.com", "com"),
        ("localhost", "us-east-1"),
    ],
)
def test_sts_host_selects_region(host, region):
    assert region_of(host) == region


@pytest.mark.parametrize("host", ["sts..com", ".amazonaws.com", "sts.amazonaws.", "", "x" * 256, 7])
def test_invalid_sts_host_raises_operation_failure(host):
    with pytest.raises(OperationFailure, match="impossible STS host"):
        region_of(host)


def test_signature_equals_example_of_signature_version_4():
    text = "\n".join(
        (
            "AWS4-HMAC-SHA256",
            "20150830T123600Z",
            "20150830/us-east-1/iam/aws4_request",
            "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59",
        )
    )
    signature = sign(CREDENTIALS.secret, "20150830", "us-east-1", "iam", text)
    assert signature == "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"


def test_aws_conversation_equals_specification_example():
    """Compare all fields except the signature.

    The test cannot compute the signature, because the specification does not state the secret key.
    """
    nonce = base64.b64decode("dzw1U2IwSEtgaWI0IUxZMVJqc2xuQzNCcUxBc05wZjIGS0J9EgLwzEZ9dIzr/hnnK2mgd4D7F52t8g9yTC5cIA==")
    client = AwsConversation(
        "$external",
        lambda: AwsCredentials("AKIAICGVLKOKZVY3X3DA", "secret"),
        lambda: nonce[:32],
        lambda: datetime(2019, 11, 7, 0, 26, 7, tzinfo=timezone.utc),
    )
    assert bson.decode(client.begin()) == {"r": nonce[:32], "p": 110}
    answer = bson.decode(client.step(bson.encode({"s": nonce, "h": "sts.amazonaws.com"}), False))
    assert answer["a"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIAICGVLKOKZVY3X3DA/20191107/us-east-1/sts/aws4_request, SignedHeaders="
        "content-length;content-type;host;x-amz-date;x-mongodb-gs2-cb-flag;x-mongodb-server-nonce, Signature="
    )
    assert answer["d"] == "20191107T002607Z"
    assert "t" not in answer


@pytest.mark.parametrize(
    ("message", "error_class"),
    [
        (b"", ProtocolError),
        (b"garbage", ProtocolError),
        (bson.encode({"s": b"x" * 64}), ProtocolError),
        (bson.encode({"s": "text", "h": "sts.amazonaws.com"}), ProtocolError),
        (bson.encode({"s": b"x" * 64, "h": "sts.amazonaws.com"}), OperationFailure),
        (bson.encode({"s": b"n" * 63, "h": "sts.amazonaws.com"}), OperationFailure),
        (bson.encode({"s": b"n" * 64, "h": "sts..com"}), OperationFailure),
    ],
)
def test_invalid_first_message_of_server_raises_error(message, error_class):
    client = AwsConversation("$external", lambda: CREDENTIALS, lambda: b"n" * 32)
    client.begin()
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


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
def test_incomplete_aws_environment_variables_raise_configuration_error(monkeypatch, name):
    monkeypatch.setenv(name, "value-secret")
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be") as caught:
        AwsCredentialsCache().find()
    assert "value-secret" not in str(caught.value)


def answer_as_ec2(method, path, headers, body):
    if method == "PUT" and path == "/latest/api/token" and "x-aws-ec2-metadata-token-ttl-seconds" in headers:
        return 200, "session"
    if headers.get("x-aws-ec2-metadata-token") != "session":
        return 401, ""
    if path == "/latest/meta-data/iam/security-credentials/":
        return 200, "the-role"
    if path == "/latest/meta-data/iam/security-credentials/the-role":
        return 200, json.dumps(credentials_document(Expiration=expiration_in(60)))
    return 404, ""


def test_ecs_endpoint_provides_credentials(monkeypatch):
    answer = json.dumps(credentials_document(Expiration=expiration_in(60)))
    with Endpoint(lambda *request: (200, answer)) as endpoint:
        monkeypatch.setattr(aws_credentials, "_ECS", endpoint.url)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/creds?id=1")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "bearer")
        assert AwsCredentialsCache().find().token == "TOKEN"
    [(method, path, headers, _body)] = endpoint.requests
    assert (method, path, headers["authorization"]) == ("GET", "/v2/creds?id=1", "bearer")


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_web_identity_token_provides_credentials(monkeypatch, tmp_path, is_wrapped):
    token = tmp_path / "token"
    token.write_text("identity\n")
    reply = {"Credentials": {**credentials_document(Expiration=1e10), "SessionToken": "SESSION"}}
    if is_wrapped:
        reply = {"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": reply}}
    with Endpoint(lambda *request: (200, json.dumps(reply))) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", endpoint.url)
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
        monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "app1")
        cache = AwsCredentialsCache()
        assert cache.find().token == "SESSION"
        assert cache.find() is cache.find()
    [(method, _path, _headers, body)] = endpoint.requests
    assert method == "POST"
    assert "WebIdentityToken=identity&" in body
    assert "RoleSessionName=app1&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr" in body


@pytest.mark.parametrize(
    ("status", "text", "message"),
    [
        (500, "", "answered GET /creds with status 500"),
        (200, "no json", "did not answer with a JSON object"),
        (200, "[]", "did not answer with a JSON object"),
        (200, "{}", "answered without AccessKeyId"),
        (200, json.dumps(credentials_document(Token=None)), "answered without Token"),
    ],
)
def test_aws_credential_service_with_invalid_answer_raises_operation_failure(monkeypatch, status, text, message):
    with Endpoint(lambda *request: (status, text)) as endpoint:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint.url + "/creds")
        with pytest.raises(OperationFailure, match=message):
            AwsCredentialsCache().find()


def test_unreachable_aws_credential_service_raises_operation_failure(monkeypatch):
    with refused_port() as port:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{port}/creds")
        message = f"the ECS credentials endpoint at 127.0.0.1:{port} cannot be reached"
        with pytest.raises(OperationFailure, match=message):
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
                return dict(REFUSED)
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


def test_aws_credentials_are_fetched_again_after_server_rejected_them(server, monkeypatch):
    keys = iter(["OLD", "KEY"])

    def answer_with_next_key(*request):
        return 200, json.dumps(credentials_document(AccessKeyId=next(keys), Expiration=expiration_in(60)))

    with Endpoint(answer_with_next_key) as endpoint:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint.url)
        with gmongo.MongoClient(*server.address, authMechanism="MONGODB-AWS") as client:
            with pytest.raises(OperationFailure, match="Authentication failed") as caught:
                client.db.c.find_one()
            assert caught.value.code == 18
            assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
