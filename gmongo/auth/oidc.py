"""MONGODB-OIDC: the client sends an access token from an identity provider.

``ENVIRONMENT`` selects a service or a file with the token. Without ``ENVIRONMENT``, a callback of the
application returns the token.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

import bson
from bson.errors import BSONError
from gevent import sleep
from gevent.lock import BoundedSemaphore

from gmongo import _clock
from gmongo._documents import Document, DocumentDict
from gmongo._fork import register_after_fork
from gmongo._server_facts import codes
from gmongo.auth.aws_credentials import read_token
from gmongo.auth.conversation import Run, SaslConversation, run_conversation
from gmongo.auth.credential import Credential
from gmongo.auth.http import azure_token, request
from gmongo.auth.login import Login, speculative_fields, speculative_reply
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackContext, OIDCCallbackResult, OIDCIdPInfo
from gmongo.errors import AutoReconnect, ConfigurationError, OperationFailure, ProtocolError

_CALLBACK_VERSION = 1
_MIN_CALL_INTERVAL = 0.1  # minimum seconds between two calls of the callback
_HUMAN_TIMEOUT = 300.0  # timeout of a callback with a human user, in seconds
_MACHINE_TIMEOUT = 60.0  # timeout of a callback without a human user, in seconds


class OidcTokens:
    """Access token and refresh token of one client. Only one greenlet at a time calls the callback for new tokens."""

    def __init__(self, credential: Credential) -> None:
        self.credential = credential
        self.is_human = credential.properties.get("OIDC_HUMAN_CALLBACK") is not None
        self.access: str | None = None
        self.refresh: str | None = None
        self.provider: OIDCIdPInfo | None = None
        self._fetch_token = token_source(credential)
        self._callback_lock = BoundedSemaphore()
        self._last_call_time = 0.0
        register_after_fork(self)

    def mark_forked(self) -> None:
        self._callback_lock = BoundedSemaphore()  # a greenlet of the parent process may have locked the old lock

    def get(self, seconds: float | None, provider: OIDCIdPInfo | None = None) -> tuple[str, bool]:
        """Return an access token, and True if the token comes from the cache.

        If `provider` is not None, it replaces the stored identity provider and its refresh token.
        """
        with self._callback_lock:
            if self.access is not None:
                return self.access, True
            sleep_for = self._last_call_time + _MIN_CALL_INTERVAL - _clock.monotonic()
            if sleep_for > 0:
                sleep(sleep_for)
            self._last_call_time = _clock.monotonic()
            result = self._fetch(seconds, provider)
            if provider is not None:
                self.provider = provider
            self.access, self.refresh = result.access_token, result.refresh_token
            return result.access_token, False

    def _fetch(self, seconds: float | None, provider: OIDCIdPInfo | None) -> OIDCCallbackResult:
        context = OIDCCallbackContext(
            _HUMAN_TIMEOUT if self.is_human else min(_MACHINE_TIMEOUT, seconds or _MACHINE_TIMEOUT),
            self.credential.username or "",
            _CALLBACK_VERSION,
            None if provider is not None else self.refresh,
            provider or self.provider,
        )
        result = self._fetch_token(context)
        if not isinstance(result, OIDCCallbackResult) or not isinstance(result.access_token, str):
            raise ValueError(
                f"an OIDC callback must return an OIDCCallbackResult with an access token, not {type(result).__name__}"
            )
        lifetime = result.expires_in_seconds
        if lifetime is not None and lifetime < 0:
            raise ValueError(f"an OIDC callback must not return a negative lifetime: {lifetime}")
        return result

    def invalidate(self, token: str | None) -> None:
        """Remove `token`, unless a newer access token has replaced `token`."""
        if token is not None and self.access == token:
            self.access = None


class TokenConversation(SaslConversation):
    """Conversation with one command, in which the client sends its access token."""

    mechanism = "MONGODB-OIDC"
    has_sent_last = True

    def __init__(self, database: str, token: str) -> None:
        super().__init__(database)
        self._token = token

    def first_payload(self) -> bytes:
        return bson.encode({"jwt": self._token})


class PrincipalConversation(SaslConversation):
    """Conversation with two commands: the server names the identity provider, and the client sends an access token."""

    mechanism = "MONGODB-OIDC"

    def __init__(self, database: str, username: str | None, get_token: Callable[[OIDCIdPInfo], str]) -> None:
        super().__init__(database)
        self._username = username
        self._get_token = get_token

    def first_payload(self) -> bytes:
        return bson.encode({} if self._username is None else {"n": self._username})

    def respond(self, payload: bytes) -> bytes:
        self.has_sent_last = True
        return bson.encode({"jwt": self._get_token(_read_provider(payload))})


class OidcLogin(Login):
    """Login of a program with MONGODB-OIDC, without the interaction of a human user."""

    extra_login_seconds: ClassVar[float] = _MACHINE_TIMEOUT

    def __init__(self, tokens: OidcTokens) -> None:
        self._tokens = tokens
        self._source = tokens.credential.source
        self._token: str | None = None  # last token that the connection sent

    def hello_fields(self) -> DocumentDict:
        self._token = self._tokens.access
        return {} if self._token is None else speculative_fields(TokenConversation(self._source, self._token))

    def authenticate(self, run: Run, hello: Document, seconds: float | None) -> None:
        speculative = speculative_reply(hello)
        if self._token is not None and speculative is not None and speculative.get("done"):
            return
        self._authenticate(run, seconds)

    def authenticate_again(self, run: Run, seconds: float | None) -> None:
        self._tokens.invalidate(self._token)
        self._authenticate(run, seconds)

    def _authenticate(self, run: Run, seconds: float | None) -> None:
        token, is_cached = self._tokens.get(seconds)
        if not (is_cached and self._try_token(run, token)):
            self._authenticate_with(run, self._tokens.get(seconds)[0] if is_cached else token)

    def _try_token(self, run: Run, token: str) -> bool:
        """Authenticate with a token. Return False if the server rejects the token."""
        try:
            self._authenticate_with(run, token)
        except OperationFailure as error:
            if error.code != codes.AUTHENTICATION_FAILED:
                raise
            self._tokens.invalidate(token)
            return False
        return True

    def _authenticate_with(self, run: Run, token: str) -> None:
        self._token = token
        run_conversation(run, TokenConversation(self._source, token))


class HumanOidcLogin(OidcLogin):
    """Login of a human with MONGODB-OIDC. The client sends tokens only to hosts in ALLOWED_HOSTS."""

    extra_login_seconds: ClassVar[float] = _HUMAN_TIMEOUT
    extends_deadline: ClassVar[bool] = True

    def __init__(self, tokens: OidcTokens, host: str) -> None:
        super().__init__(tokens)
        patterns = tokens.credential.properties["ALLOWED_HOSTS"]
        if not is_allowed(host, patterns):
            raise ConfigurationError(
                f"MONGODB-OIDC: tokens must not be sent to {host!r}, as ALLOWED_HOSTS has only {', '.join(patterns)}"
            )

    def _authenticate(self, run: Run, seconds: float | None) -> None:
        tokens = self._tokens
        if tokens.access is not None and self._try_token(run, tokens.access):
            return
        if tokens.refresh is not None:
            refreshed_token = self._refresh(seconds)
            if refreshed_token is not None and self._try_token(run, refreshed_token):
                return
            tokens.refresh = None
        run_conversation(run, PrincipalConversation(self._source, tokens.credential.username, self._fetch_token_from))

    def _refresh(self, seconds: float | None) -> str | None:
        """Return a new access token, or None if the callback fails. After None, the user must log in again."""
        try:
            return self._tokens.get(seconds)[0]
        except AutoReconnect:  # the connection timed out
            raise
        except Exception:
            return None

    def _fetch_token_from(self, provider: OIDCIdPInfo) -> str:
        self._token, _ = self._tokens.get(_HUMAN_TIMEOUT, provider)
        return self._token


def is_allowed(host: str, patterns: list[str]) -> bool:
    """Return True if a pattern matches the host. ``*.example.com`` matches all hosts below example.com."""
    host = host.lower()
    lower_patterns = map(str.lower, patterns)
    return any(host.endswith(each[1:]) if each.startswith("*.") else host == each for each in lower_patterns)


def _read_provider(payload: bytes) -> OIDCIdPInfo:
    try:
        fields: DocumentDict = bson.decode(payload)
        return OIDCIdPInfo(fields["issuer"], fields.get("clientId"), fields.get("requestScopes"))
    except (BSONError, KeyError, TypeError, ValueError):
        raise ProtocolError("MONGODB-OIDC: the server does not name an identity provider") from None


_KUBERNETES_TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
FetchToken = Callable[[OIDCCallbackContext], OIDCCallbackResult]


def token_source(credential: Credential) -> FetchToken:
    """Return the application's callback, or the function that fetches tokens for ``ENVIRONMENT``."""
    properties = credential.properties
    callback: OIDCCallback | None = properties.get("OIDC_CALLBACK") or properties.get("OIDC_HUMAN_CALLBACK")
    if callback is not None:
        return callback.fetch
    environment = properties["ENVIRONMENT"]
    if environment in ("azure", "gcp"):
        fetch = _fetch_azure_token if environment == "azure" else _fetch_gcp_token
        return partial(fetch, properties["TOKEN_RESOURCE"])
    if environment == "k8s":
        variables = "AZURE_FEDERATED_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"
        return lambda _context: _read_token_file(variables, _KUBERNETES_TOKEN_FILE)
    return lambda _context: _read_token_file(("OIDC_TOKEN_FILE",))


def _read_token_file(variables: tuple[str, ...], default: str = "") -> OIDCCallbackResult:
    """Read a token file. The path is the value of the first variable in `variables` that is set, or `default`."""
    variable = next((name for name in variables if os.environ.get(name)), variables[0])
    return OIDCCallbackResult(read_token(variable, {variable: os.environ.get(variable) or default}))


def _fetch_azure_token(resource: str, context: OIDCCallbackContext) -> OIDCCallbackResult:
    reply = azure_token(resource, context.timeout_seconds, context.username)
    return OIDCCallbackResult(reply["access_token"], _parse_lifetime(reply.get("expires_in")))


def _fetch_gcp_token(resource: str, context: OIDCCallbackContext) -> OIDCCallbackResult:
    service = "the Google Cloud metadata service"
    host = os.environ.get("GCE_METADATA_HOST") or "metadata"
    path = "/computeMetadata/v1/instance/service-accounts/default/identity"
    url = f"http://{host}{path}?audience={quote(resource, safe='')}"
    token = request(service, "GET", url, {"Metadata-Flavor": "Google"}, context.timeout_seconds).strip()
    if not token:
        raise OperationFailure(f"{service} returned no token")
    return OIDCCallbackResult(token)


def _parse_lifetime(value: Any) -> float | None:
    """Convert a lifetime in seconds, which may be a text, to a number. Return None for an invalid value."""
    try:
        return max(float(value), 0.0)
    except (TypeError, ValueError):
        return None
