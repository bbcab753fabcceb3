"""The driver caches OIDC tokens, SCRAM keys and AWS credentials. The tests use no server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import bson
import gevent
import pytest

from gmongo import _clock
from gmongo._fork import list_forkables
from gmongo._server_facts import codes
from gmongo.auth import aws, aws_credentials, http, oidc, scram
from gmongo.auth.aws_credentials import AwsCredentials, AwsCredentialsCache
from gmongo.auth.credential import Credential
from gmongo.auth.login import AwsLogin
from gmongo.auth.oidc import HumanOidcLogin, OidcLogin, OidcTokens, is_allowed, token_source
from gmongo.auth.scram import ScramKeys
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackContext, OIDCCallbackResult, OIDCIdPInfo
from gmongo.errors import ConfigurationError, NetworkTimeout, OperationFailure, ProtocolError
from tests.support.cases import with_cases


class AdjustableClock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.slept_seconds: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept_seconds.append(round(seconds, 6))
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> AdjustableClock:
    clock = AdjustableClock()
    monkeypatch.setattr(_clock, "monotonic", lambda: clock.now)
    monkeypatch.setattr(oidc, "sleep", clock.sleep)
    return clock


class SequentialCallback(OIDCCallback):
    """Callback that first returns the given results, and then tokens with increasing numbers."""

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.calls: list[OIDCCallbackContext] = []

    def fetch(self, context: OIDCCallbackContext) -> Any:
        self.calls.append(context)
        if self.results:
            return self.results.pop(0)
        return OIDCCallbackResult(f"token {len(self.calls)}", refresh_token=f"refresh {len(self.calls)}")


def make_tokens(
    callback: OIDCCallback,
    *,
    is_human: bool = False,
    username: str | None = None,
    hosts: Any = ("h",),
) -> OidcTokens:
    name = "OIDC_HUMAN_CALLBACK" if is_human else "OIDC_CALLBACK"
    return OidcTokens(
        Credential(
            "MONGODB-OIDC",
            "$external",
            username,
            None,
            {name: callback, "ALLOWED_HOSTS": list(hosts)},
        )
    )


PROVIDER = OIDCIdPInfo("https://issuer", "c")


def test_oidc_token_is_cached_until_invalidated(clock: AdjustableClock) -> None:
    callback = SequentialCallback()
    tokens = make_tokens(callback)
    assert tokens.access is None
    assert (tokens.get(5.0), tokens.get(5.0)) == (("token 1", False), ("token 1", True))
    assert tokens.access is not None and tokens.refresh == "refresh 1"
    tokens.invalidate("another")
    tokens.invalidate(None)
    assert tokens.access == "token 1"
    tokens.invalidate("token 1")
    assert tokens.access is None and not clock.slept_seconds
    assert tokens.get(5.0) == ("token 2", False)
    assert clock.slept_seconds == [0.1]
    clock.now += 0.1
    tokens.invalidate("token 2")
    tokens.get(5.0)
    assert clock.slept_seconds == [0.1]


@pytest.mark.parametrize("is_human", [False, True])
@pytest.mark.parametrize(("seconds", "expected_timeout"), [(None, 60.0), (5.0, 5.0), (100.0, 60.0), (0, 60.0)])
@pytest.mark.parametrize("username", [None, "ann"])
def test_oidc_callback_receives_timeout_username_provider_and_refresh_token(
    clock: AdjustableClock, is_human: bool, seconds: Any, expected_timeout: float, username: str | None
) -> None:
    callback = SequentialCallback()
    tokens = make_tokens(callback, is_human=is_human, username=username)
    for provider in (None, PROVIDER, None, None):
        tokens.get(seconds, provider)
        tokens.access = None
    first, *others = callback.calls
    assert {each.timeout_seconds for each in callback.calls} == {300.0 if is_human else expected_timeout}
    assert {each.username for each in callback.calls} == {username or ""}
    assert {each.version for each in callback.calls} == {1}
    assert [each.refresh_token for each in callback.calls] == [None, None, "refresh 2", "refresh 3"]
    assert first.idp_info is None and [each.idp_info for each in others] == [PROVIDER] * 3


class TokenServer:
    """Callable that replies to SASL commands like a server that accepts only ``accepted_tokens``."""

    def __init__(self, *accepted_tokens: str, code: int = codes.AUTHENTICATION_FAILED) -> None:
        self.accepted_tokens, self.code = accepted_tokens, code
        self.requests: list[str] = []  # each entry is a token or "principal USER"

    def __call__(self, database: str, command: Any) -> Any:
        assert database == "$external"
        payload = bson.decode(command["payload"])
        if "jwt" not in payload:
            self.requests.append(f"principal {payload.get('n')}")
            return {
                "payload": bson.encode({"issuer": "https://issuer", "clientId": "c"}),
                "conversationId": 1,
            }
        self.requests.append(payload["jwt"])
        if payload["jwt"] not in self.accepted_tokens:
            raise OperationFailure("refused", self.code)
        return {"payload": b"", "done": True}


def test_machine_login_replaces_rejected_oidc_token(clock: AdjustableClock) -> None:
    tokens = make_tokens(SequentialCallback())
    server = TokenServer("token 1", "token 2")
    login = OidcLogin(tokens)
    assert login.hello_fields() == {}
    login.authenticate(server, {}, 5.0)
    assert server.requests == ["token 1"]
    second_login = OidcLogin(tokens)
    fields = second_login.hello_fields()["speculativeAuthenticate"]
    assert bson.decode(fields["payload"]) == {"jwt": "token 1"} and fields["db"] == "$external"
    second_login.authenticate(server, {"speculativeAuthenticate": {"done": True}}, 5.0)
    assert server.requests == ["token 1"]
    second_login.authenticate(server, {"speculativeAuthenticate": {"done": False}}, 5.0)
    second_login.authenticate(server, {}, 5.0)
    assert server.requests == ["token 1"] * 3
    server.accepted_tokens = ("token 2",)
    second_login.authenticate(server, {}, 5.0)
    assert server.requests == ["token 1"] * 4 + ["token 2"] and tokens.access == "token 2"
    server.accepted_tokens = ("token 3",)
    second_login.authenticate_again(server, 5.0)
    assert server.requests[5:] == ["token 3"] and tokens.access == "token 3"


def test_human_login_tries_cached_token_then_refresh_token_then_callback(clock: AdjustableClock) -> None:
    callback = SequentialCallback()
    tokens = make_tokens(callback, is_human=True, username="ann")
    login = HumanOidcLogin(tokens, "h")
    limits = [(each.extra_login_seconds, each.extends_deadline) for each in (login, OidcLogin, AwsLogin)]
    assert limits == [(300.0, True), (60.0, False), (0.0, False)]
    server = TokenServer("token 1")
    login.authenticate(server, {}, None)
    assert server.requests == ["principal ann", "token 1"] and callback.calls[0].idp_info == PROVIDER
    login.authenticate(server, {}, None)  # the login uses the cached token
    assert server.requests[2:] == ["token 1"]
    server.accepted_tokens = ("token 2",)
    # The server rejects the cached token, and the refresh succeeds.
    login.authenticate(server, {}, None)
    assert server.requests[3:] == ["token 1", "token 2"] and callback.calls[1].refresh_token == "refresh 1"
    server.accepted_tokens = ("token 4",)
    # The server rejects the cached and the refreshed token, so the driver calls the callback without
    # a refresh token.
    login.authenticate(server, {}, None)
    assert server.requests[5:] == ["token 2", "token 3", "principal ann", "token 4"]
    assert [each.refresh_token for each in callback.calls] == [None, "refresh 1", "refresh 2", None]


def test_rejected_refresh_token_is_not_reused_after_failed_callback(clock: AdjustableClock) -> None:
    callback = SequentialCallback(
        *(OIDCCallbackResult(f"token {n}", refresh_token=f"refresh {n}") for n in (1, 2)), None
    )
    login = HumanOidcLogin(make_tokens(callback, is_human=True), "h")
    server = TokenServer("token 1")
    login.authenticate(server, {}, None)
    server.accepted_tokens = ("token 4",)
    with pytest.raises(ValueError, match=r"must return an OIDCCallbackResult with an access token, not NoneType$"):
        login.authenticate(server, {}, None)
    login.authenticate(server, {}, None)
    assert [each.refresh_token for each in callback.calls] == [None, "refresh 1", None, None]


def test_human_login_without_refresh_token_follows_callback_error_with_refresh_token(
    clock: AdjustableClock,
) -> None:
    class ExpiredRefresh(SequentialCallback):
        def fetch(self, context: OIDCCallbackContext) -> Any:
            result = super().fetch(context)
            if context.refresh_token is not None:
                raise RuntimeError("the refresh token has expired")
            return result

    callback = ExpiredRefresh()
    login = HumanOidcLogin(make_tokens(callback, is_human=True), "h")
    server = TokenServer("token 1")
    login.authenticate(server, {}, None)
    server.accepted_tokens = ("token 3",)
    login.authenticate(server, {}, None)
    assert server.requests[-2:] == ["principal None", "token 3"]
    assert [each.refresh_token for each in callback.calls] == [None, "refresh 1", None]


def test_timeout_of_connection_during_refresh_propagates_and_keeps_refresh_token(
    clock: AdjustableClock,
) -> None:
    tokens = make_tokens(SequentialCallback(), is_human=True)
    login = HumanOidcLogin(tokens, "h")
    server = TokenServer("token 1")
    login.authenticate(server, {}, None)
    server.accepted_tokens = ()
    tokens._fetch_token = Mock(side_effect=NetworkTimeout("h: timed out"))
    with pytest.raises(NetworkTimeout):
        login.authenticate(server, {}, None)
    assert tokens.refresh == "refresh 1" and server.requests[-1] == "token 1"


def test_child_process_calls_callback_although_parent_greenlet_was_in_callback(
    clock: AdjustableClock,
) -> None:
    tokens = make_tokens(SequentialCallback())
    tokens._callback_lock.acquire()  # a greenlet of the parent process is in the callback
    assert tokens in list_forkables()
    tokens.mark_forked()
    with gevent.Timeout(5):
        assert tokens.get(None) == ("token 1", False)


@with_cases
def test_human_login_raises_configuration_error_unless_host_is_allowed(
    host: str, patterns: list[str], is_allowed_host: bool
) -> None:
    assert is_allowed(host, patterns) is is_allowed_host
    tokens = make_tokens(SequentialCallback(), is_human=True, hosts=patterns)
    if is_allowed_host:
        HumanOidcLogin(tokens, host)
        return
    with pytest.raises(ConfigurationError) as caught:
        HumanOidcLogin(tokens, host)
    assert str(caught.value) == (
        f"MONGODB-OIDC: tokens must not be sent to {host!r}, as ALLOWED_HOSTS has only {', '.join(patterns)}"
    )


@pytest.mark.parametrize("payload", [b"", b"junk", bson.encode({}), bson.encode({"clientId": "c"})])
def test_missing_identity_provider_raises_protocol_error(payload: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"^MONGODB-OIDC: the server does not name an identity provider$"):
        oidc._read_provider(payload)
    provider = oidc._read_provider(bson.encode({"issuer": "i", "requestScopes": ["a"]}))
    assert (provider.issuer, provider.clientId, provider.requestScopes) == ("i", None, ["a"])


# Tests of the callbacks of built-in environments


@pytest.mark.parametrize("host", [None, "own"])
def test_callback_of_environment_gcp_requests_metadata_service(
    monkeypatch: pytest.MonkeyPatch, host: str | None
) -> None:
    calls = Mock(return_value=" t\n")
    monkeypatch.setattr(oidc, "request", calls)
    if host:
        monkeypatch.setenv("GCE_METADATA_HOST", host)
    properties = {"ENVIRONMENT": "gcp", "TOKEN_RESOURCE": "a/b"}
    fetch = token_source(Credential("MONGODB-OIDC", "$external", None, None, properties))
    assert fetch(OIDCCallbackContext(7.0, "", 1)).access_token == "t"
    url = f"http://{host or 'metadata'}/computeMetadata/v1/instance/service-accounts/default/identity?audience=a%2Fb"
    calls.assert_called_once_with("the Google Cloud metadata service", "GET", url, {"Metadata-Flavor": "Google"}, 7.0)
    calls.return_value = "\n"
    with pytest.raises(OperationFailure, match=r"^the Google Cloud metadata service returned no token$"):
        fetch(OIDCCallbackContext(7.0, "", 1))


@pytest.mark.parametrize(("host", "base"), [("", "http://169.254.169.254"), ("http://own/", "http://own")])
@pytest.mark.parametrize("client_id", ["", "my/id"])
@pytest.mark.parametrize(("expires_in", "lifetime"), [("60", 60), (60, 60), (-1, 0), (None, None), ("soon", None)])
def test_callback_of_environment_azure_requests_metadata_service(
    monkeypatch: pytest.MonkeyPatch, host: str, base: str, client_id: str, expires_in: Any, lifetime: Any
) -> None:
    monkeypatch.setattr(
        http, "request_json", fetch := Mock(return_value={"access_token": "t", "expires_in": expires_in})
    )
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", host)
    result = oidc._fetch_azure_token("a/b", OIDCCallbackContext(7.0, client_id, 1))
    assert (result.access_token, result.expires_in_seconds) == ("t", lifetime)
    url = f"{base}/metadata/identity/oauth2/token?resource=a%2Fb&api-version=2018-02-01"
    url += "&client_id=my%2Fid" if client_id else ""
    headers = {"Metadata": "true", "Accept": "application/json"}
    fetch.assert_called_once_with("the Azure metadata service", "GET", url, headers, 7.0)


# Tests of AWS credentials


@pytest.mark.parametrize("roles", ["one\nother", " one \n", "one role\nother", ""])
@pytest.mark.parametrize("metadata_endpoint", [None, "http://own/"])
def test_ec2_credentials_are_requested_with_session_token_and_role(
    monkeypatch: pytest.MonkeyPatch, metadata_endpoint: str | None, roles: str
) -> None:
    answers = iter([" session\n", roles])
    calls = Mock(side_effect=lambda *_: next(answers))
    fetch_json = Mock(return_value={"AccessKeyId": "k", "SecretAccessKey": "s", "Token": "t"})
    monkeypatch.setattr(aws_credentials, "request", calls)
    monkeypatch.setattr(aws_credentials, "request_json", fetch_json)
    variables = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata_endpoint} if metadata_endpoint else {}
    assert aws_credentials._fetch(variables) == AwsCredentials("k", "s", "t")
    service, base_url = (
        "the EC2 metadata service",
        "http://own" if metadata_endpoint else "http://169.254.169.254",
    )
    path, limit = f"{base_url}/latest/meta-data/iam/security-credentials/", aws_credentials._TIMEOUT
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": aws_credentials._TOKEN_LIFETIME}
    session = {"X-aws-ec2-metadata-token": "session"}
    assert [call.args for call in calls.call_args_list] == [
        (service, "PUT", f"{base_url}/latest/api/token", lifetime, limit),
        (service, "GET", path, session, limit),
    ]
    role = {"": "", "one role\nother": "one%20role"}.get(roles, "one")
    fetch_json.assert_called_once_with(service, "GET", path + role, session, limit)


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_web_identity_sends_token_to_security_token_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_wrapped: bool
) -> None:
    (tmp_path / "token").write_text("t\n")
    fields = {"AccessKeyId": "k", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": "2030-01-02T00:00:00Z"}
    reply: dict[str, Any] = {"Credentials": fields}
    variables = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "r"}
    session_name, url = "gmongo-0f", "https://sts.amazonaws.com"
    if is_wrapped:
        reply = {"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": reply}}
        session_name, url = "n", "https://own"
        variables |= {"AWS_ROLE_SESSION_NAME": session_name, "AWS_ENDPOINT_URL_STS": url}
    calls = Mock(return_value=reply)
    monkeypatch.setattr(aws_credentials, "request_json", calls)
    monkeypatch.setattr(aws_credentials._random, "uuid4", lambda: Mock(hex="0f"))
    expiration = datetime(2030, 1, 2, tzinfo=timezone.utc)
    assert aws_credentials._fetch(variables) == AwsCredentials("k", "s", "t", expiration)
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    body = f"Action=AssumeRoleWithWebIdentity&RoleSessionName={session_name}&RoleArn=r&WebIdentityToken=t"
    arguments = ("the AWS security token service", "POST", url, headers, aws_credentials._TIMEOUT)
    calls.assert_called_once_with(*arguments, f"{body}&Version=2011-06-15")
    calls.return_value = {}
    with pytest.raises(OperationFailure, match=r"^the AWS security token service returned no AccessKeyId$"):
        aws_credentials._fetch(variables)


@pytest.mark.parametrize(("relative", "full"), [("/v2", ""), ("v2", ""), ("", "http://own"), ("/v2", "http://own")])
@pytest.mark.parametrize("others", [{}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "f"}, {"AWS_ROLE_ARN": "r"}])
@pytest.mark.parametrize("token", ["", "bearer"])
def test_container_variables_select_ecs_endpoint_unless_web_identity_is_complete(
    monkeypatch: pytest.MonkeyPatch, relative: str, full: str, others: dict[str, str], token: str
) -> None:
    fields = {"AccessKeyId": "k", "SecretAccessKey": "s", "Token": "t"}
    monkeypatch.setattr(aws_credentials, "request_json", fetch_json := Mock(return_value=fields))
    container = {"CREDENTIALS_RELATIVE_URI": relative, "CREDENTIALS_FULL_URI": full, "AUTHORIZATION_TOKEN": token}
    variables = others | {f"AWS_CONTAINER_{name}": value for name, value in container.items()}
    assert aws_credentials._fetch(variables) == AwsCredentials("k", "s", "t")
    url, headers = full or "http://169.254.170.2/v2", {"Authorization": "bearer"} if token else {}
    fetch_json.assert_called_once_with("the ECS credentials endpoint", "GET", url, headers, aws_credentials._TIMEOUT)


def test_aws_credentials_are_fetched_again_five_minutes_before_expiration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    fetched: list[AwsCredentials] = []

    def fetch(variables: Any) -> AwsCredentials:
        fetched.append(AwsCredentials("id", "secret", "token", expires))
        return fetched[-1]

    monkeypatch.setattr(aws_credentials, "_fetch", fetch)
    cache = AwsCredentialsCache()
    for minutes, is_cached in ((6, True), (4, False), (None, False)):
        cache.clear()
        expires = None if minutes is None else datetime.now(timezone.utc) + timedelta(minutes=minutes)
        assert (cache.find() is cache.find()) is is_cached
    expires = datetime.now(timezone.utc) + timedelta(hours=1)
    first = cache.find()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert cache.find() is first
    cache.clear()
    assert cache.find() == AwsCredentials("k", "s") != first


@pytest.mark.parametrize("token", [None, "t0ken"])
@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("sts.amazonaws.com", "us-east-1"),
        ("sts.eu-west-3.amazonaws.com", "eu-west-3"),
        ("first", "us-east-1"),
    ],
)
def test_aws_authorization_equals_independent_signature_version_4(token: str | None, host: str, region: str) -> None:
    nonce, date = b"n" * 64, "20150830T123600Z"
    header = aws.authorization(AwsCredentials("KEY", "SECRET", token), nonce, host, date)
    headers = [
        "content-length:43",
        "content-type:application/x-www-form-urlencoded",
        f"host:{host}",
        f"x-amz-date:{date}",
        *([f"x-amz-security-token:{token}"] if token else []),
        "x-mongodb-gs2-cb-flag:n",
        f"x-mongodb-server-nonce:{base64.b64encode(nonce).decode()}",
    ]
    names = ";".join(each.partition(":")[0] for each in headers)
    body = hashlib.sha256(b"Action=GetCallerIdentity&Version=2011-06-15").hexdigest()
    request = "\n".join(["POST", "/", "", *headers, "", names, body])
    scope = f"20150830/{region}/sts/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = b"AWS4SECRET"
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    assert header == f"AWS4-HMAC-SHA256 Credential=KEY/{scope}, SignedHeaders={names}, Signature={signature}"


# Tests of SCRAM keys


def test_concurrent_callers_derive_keys_once_and_cache_keeps_eight_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    derived: list[Any] = []

    def derive(*arguments: Any) -> Any:
        derived.append(arguments)
        return (b"client", b"%d" % len(derived))

    monkeypatch.setattr(scram, "derive_keys", derive)
    keys = ScramKeys()
    callers = [gevent.spawn(keys.derive, "sha256", b"p", b"s", 4096) for _ in range(3)]
    gevent.sleep(0)
    callers[0].kill()
    assert [each.get() for each in callers[1:]] == [(b"client", b"1")] * 2 and len(derived) == 1
    assert len(keys._cached) == 1 and not keys._derivations
    for number in range(7):
        keys.derive("sha256", b"p", b"%d" % number, 4096)
        assert len(keys._cached) == number + 2
    keys.derive("sha256", b"p", b"s", 4096)
    assert len(derived) == 8
    keys.derive("sha256", b"p", b"7", 4096)
    assert len(derived) == 9 and len(keys._cached) == 1
    keys._process_id = -1
    # A key derivation that the parent process started never ends in a forked child.
    keys._derivations["sha256", b"p", b"s", 4096] = Mock()
    assert keys.derive("sha256", b"p", b"s", 4096)[1] == b"10"
    caller = gevent.spawn(keys.derive, "sha256", b"p", b"k", 4096)
    gevent.sleep(0)
    gevent.killall(list(keys._derivations.values()))  # before the start of the derivation
    assert caller.get(timeout=5)[1] == b"11"
    monkeypatch.setattr(scram, "derive_keys", Mock(side_effect=ValueError))
    for _ in range(2):
        with pytest.raises(ValueError):
            keys.derive("sha256", b"p", b"x", 1)
        assert not keys._derivations
