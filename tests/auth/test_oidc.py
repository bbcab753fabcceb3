"""MONGODB-OIDC: callbacks, the token cache, allowed hosts, and built-in environments."""

from __future__ import annotations

import json
from itertools import count

import bson
import gevent
import pytest

import gmongo
from gmongo.auth.credential import DEFAULT_ALLOWED_HOSTS, Credential
from gmongo.auth.oidc import is_allowed, token_source
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackContext, OIDCCallbackResult
from gmongo.errors import AutoReconnect, ConfigurationError, OperationFailure
from tests.auth.accounts import REFUSAL_REPLY
from tests.auth.endpoints import Endpoint
from tests.support.cases import with_cases
from tests.support.server import ScriptedServer, cut_reply

PROVIDER = {"issuer": "https://issuer", "clientId": "abcd", "requestScopes": ["a", "b"]}


class OidcServer(ScriptedServer):
    """Scripted server that accepts the tokens in ``valid_tokens``."""

    def __init__(self):
        super().__init__()
        self.valid_tokens = {"token-1"}
        self.payloads = []
        self.speculates = True

    def reply_to(self, name, command):
        if name in ("saslStart", "saslContinue"):
            return self.answer(command)
        reply = super().reply_to(name, command)
        speculation = command.get("speculativeAuthenticate")
        if name == "handshake" and speculation is not None and self.speculates:
            answer = self.answer(speculation)
            if answer.pop("ok"):
                reply["speculativeAuthenticate"] = answer
        return reply

    def answer(self, command):
        payload = bson.decode(command["payload"])
        self.payloads.append(payload)
        if "jwt" not in payload:
            return {"ok": 1, "conversationId": 1, "done": False, "payload": bson.encode(PROVIDER)}
        if payload["jwt"] not in self.valid_tokens:
            return dict(REFUSAL_REPLY)
        return {"ok": 1, "conversationId": 1, "done": True, "payload": b""}


class Callback(OIDCCallback):
    """Callback that returns ``token-1``, ``token-2`` and so on.

    :param refreshes: True to add a refresh token to each result.
    """

    def __init__(self, refreshes=False):
        self.contexts = []
        self.numbers = count(1)
        self.refreshes = refreshes
        self.running_call_count = 0

    def fetch(self, context):
        self.contexts.append(context)
        self.running_call_count += 1
        assert self.running_call_count == 1, "the driver must not run two calls at the same time"
        gevent.sleep(0.01)
        self.running_call_count -= 1
        number = next(self.numbers)
        return OIDCCallbackResult(f"token-{number}", 60, f"refresh-{number}" if self.refreshes else None)


@pytest.fixture
def server():
    with OidcServer() as server:
        yield server


def oidc_client(server, properties, **options):
    return gmongo.MongoClient(
        *server.address,
        authMechanism="MONGODB-OIDC",
        authMechanismProperties=properties,
        **{"retryReads": False, "serverSelectionTimeoutMS": 3000, **options},
    )


def find_one(client):
    return client.db.c.find_one({"_id": 1})


def find_concurrently(server, client, operation_count=5):
    """Run `operation_count` concurrent operations, so that each operation needs its own
    connection.
    """
    gate = gevent.event.Event()
    server.replies["find"] = lambda command: (
        gate.wait(5) and {"ok": 1, "cursor": {"id": 0, "ns": "d.c", "firstBatch": []}}
    )
    jobs = [gevent.spawn(find_one, client) for _ in range(operation_count)]
    server.wait_for("find", len(server.commands("find")) + operation_count)
    gate.set()
    gevent.joinall(jobs, raise_error=True)


# Tests of machine callbacks


def test_five_concurrent_connections_call_oidc_callback_once(server):
    callback = Callback()
    with oidc_client(server, {"OIDC_CALLBACK": callback}, maxConnecting=5) as client:
        find_concurrently(server, client)
        assert client.pool_stats()[0]["total"] == 5
    assert len(callback.contexts) == 1


def test_callback_of_new_connection_receives_time_limit_of_operation(server):
    callback = Callback()
    with oidc_client(server, {"OIDC_CALLBACK": callback}) as client, gmongo.timeout(0.5):
        find_one(client)
    assert callback.contexts[0].timeout_seconds <= 0.5


def test_rejected_new_token_raises_operation_failure_after_one_call(server):
    server.valid_tokens = set()
    callback = Callback()
    with (
        oidc_client(server, {"OIDC_CALLBACK": callback}) as client,
        pytest.raises(OperationFailure, match="Authentication failed") as caught,
    ):
        find_one(client)
    assert caught.value.code == 18
    assert "token-" not in str(caught.value)
    assert len(callback.contexts) == 1


def test_authentication_error_with_code_other_than_18_keeps_cached_token(server):
    callback = Callback()
    with oidc_client(server, {"OIDC_CALLBACK": callback}) as client:
        find_one(client)
        answer, server.speculates = server.answer, False
        server.answer = lambda command: {"ok": 0, "errmsg": "not now", "code": 20}
        server.fail("find", cut_reply(0))
        with pytest.raises(AutoReconnect):
            find_one(client)
        with pytest.raises(OperationFailure, match="not now"):
            find_one(client)
        server.answer = answer
        find_one(client)
    assert len(callback.contexts) == 1


class FixedResultCallback(OIDCCallback):
    def __init__(self, result):
        self.result = result

    def fetch(self, context):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@with_cases
def test_error_or_invalid_result_of_oidc_callback_raises_error(server, result, error_class, message):
    with (
        oidc_client(server, {"OIDC_CALLBACK": FixedResultCallback(result)}) as client,
        pytest.raises(error_class, match=rf"{message}(?!\w)"),
    ):
        find_one(client)


# Tests of allowed hosts


@with_cases
def test_default_allowed_hosts_match_only_trusted_hosts(host, is_allowed_host):
    assert is_allowed(host, DEFAULT_ALLOWED_HOSTS) is is_allowed_host


# Tests of built-in environments


def fetch_from_environment(properties, username=None):
    fetch = token_source(Credential("MONGODB-OIDC", "$external", username, None, properties))
    return fetch(OIDCCallbackContext(5.0, username or "", 1))


def test_callback_of_environment_test_reads_token_file(server, monkeypatch, tmp_path):
    file = tmp_path / "token"
    file.write_text("token-1\n")
    monkeypatch.setenv("OIDC_TOKEN_FILE", str(file))
    uri = f"mongodb://127.0.0.1:{server.port}/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:test"
    with gmongo.MongoClient(uri) as client:
        assert find_one(client) == {"_id": 1}


def test_environment_test_without_variable_raises_configuration_error(monkeypatch):
    monkeypatch.delenv("OIDC_TOKEN_FILE", raising=False)
    with pytest.raises(ConfigurationError, match="OIDC_TOKEN_FILE must be the path"):
        fetch_from_environment({"ENVIRONMENT": "test"})


def test_callback_of_environment_k8s_reads_token_file(monkeypatch, tmp_path):
    for name in ("AZURE_FEDERATED_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OperationFailure, match=r"/var/run/secrets/kubernetes\.io"):
        fetch_from_environment({"ENVIRONMENT": "k8s"})
    for name in ("AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_FEDERATED_TOKEN_FILE"):
        (tmp_path / name).write_text(f"token of {name}")
        monkeypatch.setenv(name, str(tmp_path / name))
        assert fetch_from_environment({"ENVIRONMENT": "k8s"}).access_token == f"token of {name}"


def test_callback_of_environment_azure_requests_token_from_metadata_service(monkeypatch):
    reply = json.dumps({"access_token": "token", "expires_in": "3600"})
    with Endpoint(lambda *request: (200, reply)) as endpoint:
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", endpoint.url)
        result = fetch_from_environment({"ENVIRONMENT": "azure", "TOKEN_RESOURCE": "mongodb://test-cluster"}, "my id")
    assert (result.access_token, result.expires_in_seconds) == ("token", 3600)
    [(method, path, headers, _body)] = endpoint.requests
    assert method == "GET"
    assert path == (
        "/metadata/identity/oauth2/token?resource=mongodb%3A%2F%2Ftest-cluster&api-version=2018-02-01&client_id=my%20id"
    )
    assert (headers["metadata"], headers["accept"]) == ("true", "application/json")
